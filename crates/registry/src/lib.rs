//! A client of OCI distribution registries, for scanning, policies and database updates: which
//! repositories and tags there are, what a reference means now, and the bytes behind a digest. It
//! knows hosts, credentials, retries and limits, and nothing of what is inside a layer. What it
//! hands out has been checked against its digest; what it refuses says whether trying again later
//! could help. Start reading at [`Client`].
//!
//! The HTTP stack is used directly. The distribution clients there are read an answer whole
//! before looking at its size, forget the headers of a refusal (`Retry-After`, the next challenge)
//! and hide a failed login, and these three are what this crate is for.

mod answer;
mod authorization;
mod client;
mod config;
mod credentials;
mod digest;
mod error;
mod helper;
mod layer;
mod listing;
mod manifest;
mod memory;
mod mirror;
mod reference;
mod referrers;
mod retry;
mod tally;
mod traffic;
mod transport;

pub use client::{Access, Client, Limits, Options, Resolved, Timeouts};
pub use config::{History, ImageConfig};
pub use credentials::{Credentials, Login, Secret};
pub use digest::{Digest, Verifier};
pub use error::Error;
pub use layer::Layer;
pub use manifest::{Descriptor, Fetched, ImageManifest, Index, Manifest, media};
pub use mirror::{Mirror, Mirrors};
pub use reference::{Host, Reference, ReferenceError, Repository};
pub use retry::Retry;
pub use tally::Counts;
pub use traffic::Traffic;
pub use transport::Transport;
