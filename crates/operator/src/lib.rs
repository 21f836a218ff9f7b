//! Reconcilers, and the workers that do what they hand out. It speaks only to a `kube::Client` and
//! a `Queue`, so it cannot tell a cluster from one process, and it keeps no state: what has been
//! done is read from the objects, and a message only says that looking is worth it. Start reading
//! at [`Operator`].
//!
//! A ScanJob becomes Images ([`catalog`]), an Image its SBOM ([`bill`]), an SBOM its
//! VulnerabilityReport ([`findings`]); [`job`] decides how far a ScanJob has come. When the data
//! that reports are made with is replaced, they are made again ([`rematch`]).

mod access;
mod bill;
mod catalog;
#[allow(dead_code, reason = "the reconcilers come to use it")]
mod discovery;
mod findings;
mod found;
mod history;
mod hubs;
mod job;
mod knowledge;
mod known;
mod layers;
#[allow(dead_code, reason = "the reconcilers come to use it")]
mod lease;
mod listing;
mod message;
mod name;
mod object;
mod reconcile;
mod refresh;
mod rematch;
mod wanted;
mod work;

pub use work::{Operator, Settings};
