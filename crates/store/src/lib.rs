//! Storage of objects, their history and their blobs: [`muster_apiserver::store::Store`] on SQLite
//! and on PostgreSQL. The crate knows bytes, revisions and index entries; what an object means
//! is the caller's business, but for one kind that is computed from others (`computed`). Start reading at [`SqliteStore`].
//!
//! SQLite: one process owns a data directory. It writes through one task that commits what is
//! queued together, and reads through a few connections of their own, so readers never wait for
//! writers. A write that was acknowledged survives a killed process and a power loss: the log is
//! synced before the answer (`synchronous = FULL`).
//!
//! PostgreSQL: any number of processes share a database ([`PostgresStore`]). The row of a clock is
//! locked from the first moment of a write to its commit, so commits come in the order of
//! revisions. Both engines keep the same tables and pass the same suite.

mod backup;
mod body;
mod clock;
mod computed;
mod facts;
mod fault;
mod hints;
mod layers;
mod page;
mod postgres;
mod prepare;
mod selection;
mod sqlite;

pub use backup::{BackupError, Content, Place, backup, restore};
pub use layers::{
    LARGEST_LAYER, LayerAbout, LayerKey, LayerKeyError, LayerLimits, LayerPut, Layers,
    PostgresLayers, SqliteLayers,
};
pub use postgres::PostgresStore;
pub use postgres::{
    OpenError as PostgresOpenError, Options as PostgresOptions, Tls as PostgresTls,
};
pub use sqlite::SqliteStore;
pub use sqlite::open::{OpenError, Options};
