//! The store's promises: a suite over the trait, and what is SQLite's own.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod crash;
mod sqlite;
mod suite;
