//! The store's promises: a suite over the trait, and what is each engine's own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod answers;
mod backup;
mod crash;
mod full;
mod layers;
mod nudges;
mod plans;
mod postgres;
mod replicas;
mod sqlite;
mod suite;
