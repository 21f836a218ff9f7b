//! One layer, read once: its bytes are hashed, decompressed, hashed again and walked in a single
//! pass, and only what some detector understands is remembered. Nothing is written to disk, and
//! memory depends on the limits, never on the layer.

mod compression;
mod inventory;
pub(crate) mod path;
mod recall;
pub mod tar;
mod walk;
pub(crate) mod wanted;

pub use inventory::{ANALYZER_VERSION, Found, Incomplete, LayerInventory};
pub use path::PathSet;
pub use recall::RecallError;
pub use tar::TarError;

use crate::digest::{Digest, Hashing};
use crate::limits::{Exceeded, Limits};
use compression::{Decompressed, Expanding, drain};
use std::io::{self, Read};

/// What reading a layer yields.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Digest of the blob as it was read, to be compared with the manifest's.
    pub digest: Digest,
    /// Digest of the decompressed archive, to be compared with the image configuration's.
    pub diff_id: Digest,
    /// Bytes of the blob.
    pub compressed_size: u64,
    /// Bytes of the decompressed archive.
    pub size: u64,
    /// What was found. It depends on the diff ID and on [`ANALYZER_VERSION`] alone.
    pub inventory: LayerInventory,
}

/// Why a layer cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The bytes did not come, or did not decompress.
    #[error("reading the layer: {0}")]
    Read(#[source] io::Error),
    /// The layer is larger, in some way, than is borne.
    #[error("reading the layer: {0}")]
    Limit(#[source] Exceeded),
    /// The archive is malformed.
    #[error("reading the layer's archive: {0}")]
    Archive(#[source] TarError),
}

impl From<io::Error> for LayerError {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Exceeded>() {
            Ok(exceeded) => LayerError::Limit(exceeded),
            Err(error) => LayerError::Read(error),
        }
    }
}

impl From<TarError> for LayerError {
    fn from(error: TarError) -> Self {
        match error {
            TarError::Read(error) => error.into(),
            error => LayerError::Archive(error),
        }
    }
}

/// Whether reading a layer needs the contents of a regular file, or only that it is there.
pub fn is_read(path: &str, mode: u32) -> bool {
    wanted::wanted(path, mode).is_some()
}

/// Reads a layer's blob to its end: gzip, zstd or plain tar, by its first bytes.
pub fn read(blob: impl Read, limits: &Limits) -> Result<Layer, LayerError> {
    let blob = Hashing::new(blob, "compressed bytes in a layer", limits.compressed_bytes);
    let archive = Expanding::new(Decompressed::new(blob, limits)?, limits);
    let archive = Hashing::new(archive, "bytes in a layer", limits.layer_bytes);
    let (inventory, archive) = walk::walk(archive, limits)?;
    let (diff_id, size, archive) = archive.finish()?;
    let mut blob = archive.into_inner().into_blob();
    drain(&mut blob)?;
    let (digest, compressed_size, _) = blob.finish()?;
    Ok(Layer {
        digest,
        diff_id,
        compressed_size,
        size,
        inventory,
    })
}
