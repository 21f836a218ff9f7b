//! Everything that can be scanned becomes a bill of materials: images in registries, in OCI layouts,
//! in the archives of `docker save` and in a local daemon, root file systems, source directories and
//! bills that somebody else wrote. Layers are read as they come and in parallel, nothing is written
//! to disk but what a [`LayerCache`] keeps, and memory depends on limits alone. The crate refuses to
//! know vulnerability data, Kubernetes and output formats.
//!
//! Start reading at [`Source`] and [`bills`]; an image of any origin is put together in `image`.

pub mod archive;
mod attached;
mod bills;
pub mod cache;
mod content;
mod daemon;
mod directory;
mod docker;
mod document;
mod error;
mod feed;
mod files;
mod image;
mod layout;
mod oci;
mod options;
mod platform;
mod root;
mod source;
mod stream;
mod tree;

pub use attached::{Attached, attached};
pub use bills::{Scanned, bills};
pub use cache::LayerCache;
pub use daemon::Engine;
pub use error::Error;
pub use muster_api::Platform;
pub use muster_scan::digest::Digest as DiffId;
pub use options::{Options, Progress, Quiet};
pub use platform::Platforms;
pub use source::Source;
