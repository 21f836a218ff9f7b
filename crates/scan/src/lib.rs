//! From the bytes of an image's layers to what is installed in it, and from that to what is wrong
//! with it: layers become inventories, inventories an image's contents, contents a bill of
//! materials, and a bill with vulnerability data findings. The crate is pure: it reads what it is
//! given and returns values. It refuses to know registries, networks, clocks, files on disk other
//! than mapped databases, and Kubernetes kinds.
//!
//! Start reading at [`layer::read`], then [`image::merge`], [`sbom::Bill`], [`matching::find`] and
//! [`report::Report`]. Everything that is read is hostile until proven otherwise: [`limits`] says
//! what is borne.

pub mod apk;
pub mod archive;
pub mod composer;
pub mod digest;
pub mod dotnet;
pub mod dpkg;
pub mod embedded;
pub mod go_binary;
pub mod image;
pub mod java;
pub mod layer;
pub mod limits;
pub mod lockfile;
pub mod matching;
pub mod node;
pub mod os;
pub mod output;
pub mod package;
pub mod purl;
pub mod python;
pub mod report;
pub mod rpm;
pub mod ruby;
pub mod rust_binary;
pub mod sbom;
mod third_party;
pub mod version;
pub mod vex;
pub mod vulnerability;
