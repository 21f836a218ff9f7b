//! What there is to look at in a demonstration, all of it made here: small images and the registry that
//! has them, advisories that are true, what is said about one of them, and the workloads of a small
//! company as a cluster would have them. It refuses to know who looks at it: no control plane, no store, no
//! scanner. Start reading at [`images::all`], which [`site::Site`] puts behind an address, and at
//! [`manifests::all`].
//!
//! Nothing here runs. The images hold what scanners read (package databases, packages of npm, a Go
//! program's record of its modules) and little else, and a pod is what its kubelet would have left.

pub mod advisories;
pub mod archive;
pub mod cluster;
mod error;
pub mod image;
pub mod images;
pub mod manifests;
mod packages;
pub mod program;
pub mod registry;
pub mod site;
pub mod statements;

pub use error::Error;
