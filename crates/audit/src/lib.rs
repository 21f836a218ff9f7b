//! The audit that never ends: every object that a policy is about, judged by it, and what it says kept
//! in a report beside the object. It refuses to know how policies judge (`muster_policy`) and what runs
//! them (`muster_wasm`); it knows what changed, and asks only about that. Start reading at [`Auditor`].
//!
//! Policies are watched ([`watch`]), fetched ([`modules`]) and made ready ([`prepare`]); from them follows
//! who is interested in which resource ([`view`]), and so which resources are watched ([`keep`],
//! [`resources`]). Every object that is seen goes through [`look`]: a [`plan`] says who has to be asked,
//! by what the [`ledger`] knows of the last time, and the [`book`] keeps the report. What a report was
//! made from is a [`note`] on the report itself, so that a restart asks nobody again.
//!
//! Beside it is the audit of configuration by checks in Rego ([`config`]), whose reports are of another
//! family; it starts at [`ConfigAuditor`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agenda;
mod auditor;
mod book;
pub mod config;
mod crew;
mod keep;
pub mod ledger;
pub mod logins;
mod look;
pub mod lookup;
mod metrics;
pub mod modules;
pub mod note;
pub mod object;
mod pace;
#[cfg(test)]
mod panics;
pub mod plan;
pub mod prepare;
mod resources;
pub mod rest;
pub mod scope;
pub mod served;
pub mod servers;
mod status;
mod sweeps;
#[cfg(test)]
mod testing;
mod tls;
mod turns;
pub mod view;
mod watch;

pub use auditor::{Auditor, Settings};
pub use config::{ConfigAuditor, ConfigSettings};
pub use metrics::Metrics;
pub use scope::{Scope, Shard};
