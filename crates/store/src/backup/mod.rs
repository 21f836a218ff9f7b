//! Copies of a store, and stores from copies. A backup is one SQLite file in the shape of the
//! SQLite engine's own, whichever engine it was taken from, so it goes into either. It is taken
//! while others write and shows one moment; it is checked before it gets its name, so a file of
//! that name is whole. A restored store begins a new incarnation: what clients have seen of the
//! old one after the backup is never taken for what the new one says.

mod check;
mod error;
mod file;
pub(crate) mod shape;

pub use error::BackupError;

pub(crate) use check::check;
pub(crate) use file::{create, sync, sync_directory};

use crate::{postgres, sqlite};
use file::Partial;
use std::path::{Path, PathBuf};

/// Where a store is.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a data directory, on SQLite.
    Directory(PathBuf),
    /// In a PostgreSQL database.
    Database(Box<postgres::Options>),
}

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// How many objects.
    pub objects: u64,
    /// How many entries of the log.
    pub events: u64,
    /// The size of the file.
    pub bytes: u64,
}

/// Copies a store, which may be in use, into a new file that only its owner can read. The file
/// appears whole or not at all; one that is there already is never replaced.
pub async fn backup(from: &Place, to: &Path) -> Result<Content, BackupError> {
    let partial = Partial::create(to)?;
    match from {
        Place::Directory(directory) => sqlite::backup(directory, partial.path()).await?,
        Place::Database(options) => postgres::backup(options, partial.path()).await?,
    }
    let (_, content) = check(partial.path()).await?;
    partial.publish()?;
    Ok(content)
}

/// Makes the store of a backup in an empty place, whole or not at all.
pub async fn restore(from: &Path, into: &Place) -> Result<Content, BackupError> {
    let (version, content) = check(from).await?;
    match into {
        Place::Directory(directory) => sqlite::restore(from, directory).await?,
        Place::Database(options) => postgres::restore(from, version, options).await?,
    }
    Ok(content)
}
