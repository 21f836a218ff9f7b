//! How a scan goes about it: what it may use, and whom it tells how far it is.

use crate::cache::{LayerCache, Nothing};
use crate::platform::Platforms;
use muster_registry::Client;
use muster_scan::limits::Limits;
use std::path::PathBuf;
use std::sync::Arc;

/// How many layers of an image are read at once unless told otherwise.
const PARALLEL: usize = 4;

/// How a scan goes about it.
#[derive(Clone)]
pub struct Options {
    /// Which of an image's platforms are wanted.
    pub platforms: Platforms,
    /// What was found in layers before.
    pub cache: Arc<dyn LayerCache>,
    /// What is borne of a layer.
    pub limits: Limits,
    /// How registries are asked.
    pub client: Client,
    /// How many layers are read at once.
    pub parallel: usize,
    /// Who is told how far it is.
    pub progress: Arc<dyn Progress>,
    /// The socket of the local daemon, where it is at none of the usual places.
    pub socket: Option<PathBuf>,
}

impl Options {
    /// The usual, with this client: the machine's own platform, no cache, and nobody is told.
    pub fn new(client: Client) -> Self {
        Options {
            platforms: Platforms::Default,
            cache: Arc::new(Nothing),
            limits: Limits::DEFAULT,
            client,
            parallel: PARALLEL,
            progress: Arc::new(Quiet),
            socket: None,
        }
    }
}

/// Who is told how far a scan is. A layer goes by its digest, or by its name where it has none; one
/// that fails is not done.
pub trait Progress: Send + Sync {
    /// A layer is begun; `size` is how many bytes are to be read, where that is known.
    fn layer_started(&self, digest: &str, size: Option<u64>);
    /// So many more bytes of a layer were read.
    fn layer_advanced(&self, digest: &str, bytes: u64);
    /// A layer is done; `cached` says that it did not have to be read.
    fn layer_done(&self, digest: &str, cached: bool);
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn layer_started(&self, _: &str, _: Option<u64>) {}
    fn layer_advanced(&self, _: &str, _: u64) {}
    fn layer_done(&self, _: &str, _: bool) {}
}
