//! The kinds Muster serves, described as data with the form that `muster-kind` gives: what can be
//! scanned and how ([`scanner`]), what was found in images ([`storage`], [`history`]), which policies apply
//! ([`policies`]) and what broke them ([`reports`], [`config_audit`]), together with the rules a
//! schema cannot state ([`validate`]) and the few values those fields hold (durations, platforms,
//! group expressions). It refuses to know any server, store, queue or client, and does no I/O: the
//! same descriptions serve the embedded API server, the aggregated one, the CRD manifests and the
//! admission webhooks. Start reading at [`kinds`], then at [`scanner::registry`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod builtin;
pub mod condition;
pub mod config_audit;
pub mod duration;
pub mod expression;
pub mod filter;
pub mod finding;
pub mod guard;
pub mod history;
pub mod image;
pub mod link;
pub mod platform;
pub mod policies;
pub mod reports;
pub mod scanner;
pub mod selector;
pub mod storage;
pub mod validate;

pub use duration::GoDuration;
pub use expression::GroupExpression;
pub use platform::Platform;

use muster_kind::Kind;

/// The category that lists everything of ours: `kubectl get muster`.
pub const CATEGORY: &str = "muster";

/// All kinds of ours, in the order in which a finding comes to be.
pub fn kinds() -> Vec<Kind> {
    let mut kinds = scanner::kinds();
    kinds.extend(storage::kinds());
    kinds.extend(policies::kinds());
    kinds.extend(reports::kinds());
    kinds.extend(config_audit::kinds());
    kinds
}

#[cfg(test)]
mod tests;
