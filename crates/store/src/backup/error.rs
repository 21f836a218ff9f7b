//! Why a store was not copied. Every message says what to do, and none holds a secret.

use crate::{postgres, sqlite};
use std::io;
use std::path::{Path, PathBuf};

/// Why there is no backup, or no store from one.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The backup would replace a file.
    #[error("{path} exists already; choose another name, or move it away")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing to copy.
    #[error("{place} holds no store of muster; check the name")]
    NoStore {
        /// Where it was looked for.
        place: String,
    },
    /// The store has things already.
    #[error(
        "{place} holds a store already, and a backup is restored into an empty place only; choose another one, or move this one away"
    )]
    NotEmpty {
        /// The place.
        place: String,
    },
    /// The file is no backup, or no longer one.
    #[error("{path} is not a backup of muster, or is damaged: {reason}; use another backup")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer build has made the file.
    #[error(
        "{path} has schema version {found}, and this build knows up to {known}; use the muster that made it, or a newer one"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version this build knows.
        known: i64,
    },
    /// An older build has made the file, and it goes into a database.
    #[error(
        "{path} has schema version {found}, and a database takes {known}; restore it into a directory, run `muster up` on that once, and restore a backup of that"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version of this build.
        known: i64,
    },
    /// The database belongs to another build.
    #[error(
        "{place} has schema version {found}, and this build copies {known}; use the muster that runs on it"
    )]
    OtherVersion {
        /// The database.
        place: String,
        /// Its version.
        found: i64,
        /// The version of this build.
        known: i64,
    },
    /// The directory cannot be had.
    #[error(transparent)]
    Directory(#[from] sqlite::open::OpenError),
    /// The database cannot be had.
    #[error(transparent)]
    Database(#[from] postgres::OpenError),
    /// The file system refused.
    #[error("{attempt} {path}; check that it can be written and has room")]
    Io {
        /// What was being done.
        attempt: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it did not work.
        #[source]
        source: io::Error,
    },
    /// An engine refused.
    #[error("{attempt} {place}")]
    Engine {
        /// What was being done.
        attempt: &'static str,
        /// To what.
        place: String,
        /// Why it did not work.
        #[source]
        source: sqlx::Error,
    },
}

impl BackupError {
    /// Says what was being done to a file when the file system refused.
    pub(crate) fn io(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| BackupError::Io {
            attempt,
            path,
            source,
        }
    }

    /// Says what was being done to a file or database when its engine refused.
    pub(crate) fn engine(
        attempt: &'static str,
        place: &str,
    ) -> impl Fn(sqlx::Error) -> Self + use<> {
        let place = place.to_owned();
        move |source| BackupError::Engine {
            attempt,
            place: place.clone(),
            source,
        }
    }
}
