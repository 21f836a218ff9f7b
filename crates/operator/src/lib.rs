//! Reconcilers, and the workers that do what they hand out. It speaks only to a `kube::Client` and
//! a `Queue`, so it cannot tell a cluster from one process, and it keeps no state: what has been
//! done is read from the objects, and a message only says that looking is worth it. Start reading
//! at [`Operator`].
//!
//! A ScanJob becomes Images ([`catalog`]), an Image its SBOM ([`bill`]), an SBOM its
//! VulnerabilityReport ([`findings`]); [`job`] decides how far a ScanJob has come, [`discovery`] how
//! far a RegistryDiscovery has, which needs no findings. Which of them may work on a Registry is
//! said by a [`lease`], and when they do, by [`registry`]; what is asked of our kinds before they are
//! kept, by [`admission`]. When the data that reports are made with is replaced, they are made again
//! ([`rematch`]). Which images run, and in which workloads, is [`workload`]'s to see, and how
//! their findings came and went is noted by [`timeline`]. One message is handled in [`stage`]; what people
//! are told of it follows from a status as it was and as it is ([`news`]).

mod access;
pub mod admission;
mod bill;
mod catalog;
mod clients;
mod controller;
mod discovery;
mod events;
mod findings;
mod found;
mod history;
mod hubs;
mod job;
mod knowledge;
mod known;
mod layers;
mod leader;
mod lease;
mod listing;
mod meaning;
mod message;
mod metrics;
mod mirror;
mod missing;
mod name;
mod news;
mod object;
mod patience;
mod progress;
mod reconcile;
mod refresh;
mod registry;
mod rematch;
mod schedule;
mod stage;
mod standing;
mod tally;
#[cfg(test)]
mod testing;
mod timeline;
mod trace;
mod usage;
mod wanted;
mod work;
mod workload;

pub use leader::{Election, Terms};
pub use metrics::{CONTENT_TYPE, Metrics};
pub use standing::Standing;
pub use trace::{JobSpan, Tracer};
pub use work::{Operator, Settings};
