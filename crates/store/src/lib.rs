//! Storage of objects, their history and their blobs: [`muster_apiserver::store::Store`] on
//! SQLite. The crate knows bytes, revisions and index entries, and no kind; what an object means
//! is the caller's business. Start reading at [`SqliteStore`].
//!
//! One process owns a data directory. It writes through one task that commits what is queued
//! together, and reads through a few connections of their own, so readers never wait for writers.
//! A write that was acknowledged survives a killed process and a power loss: the log is synced
//! before the answer (`synchronous = FULL`).

mod sqlite;

pub use sqlite::SqliteStore;
pub use sqlite::open::{OpenError, Options};
