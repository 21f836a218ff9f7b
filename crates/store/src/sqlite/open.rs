//! Opening a data directory: one process at a time, only a schema this build knows, and the
//! durability the store promises. Every refusal says what was attempted and what to do.

use super::fault::is_damaged;
use super::{SqliteStore, schema, writer};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqliteConnection};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database's name in the data directory.
pub(super) const DATABASE: &str = "state.db";
/// The name of the file whose lock says that a process owns the directory.
const LOCK: &str = "lock";
/// How often and after which pause a lock is tried again. A program that this process starts holds its files
/// for a moment, until it runs: a store that was closed just then is still locked.
const LOCK_RETRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
const PAGE_BYTES: u64 = 4096;
/// Longer than any transaction of ours; only a backup or a curious shell can make us wait.
const BUSY: Duration = Duration::from_secs(10);

/// Where and how a store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data directory; made, readable to its owner only, if it is not there.
    pub directory: PathBuf,
    /// How many readers work at once; each is a thread and about 2 MB of cache.
    pub readers: u32,
    /// How long a blob that nothing refers to is kept.
    pub blob_idle: Duration,
    /// Writes beyond this size of the database are refused as if the disk were full.
    pub max_bytes: Option<u64>,
}

impl Options {
    /// The usual store in this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Options {
            directory: directory.into(),
            readers: 4,
            blob_idle: Duration::from_secs(3600),
            max_bytes: None,
        }
    }
}

/// Why a data directory could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "data directory {directory} is in use by another process; stop that one, or choose another directory"
    )]
    Locked {
        /// The directory.
        directory: PathBuf,
    },
    /// A newer build has written it.
    #[error(
        "{path} has schema version {found}, and this build knows up to {known}; run the newer muster, or choose another directory"
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version this build knows.
        known: i64,
    },
    /// It is no database, or a damaged one.
    #[error(
        "{path} is not a database or is damaged; restore it from a backup, or move it away to start empty"
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What the engine said.
        #[source]
        source: sqlx::Error,
    },
    /// The file system refused.
    #[error("{attempt} {path}; check that it exists, is writable and has room")]
    Io {
        /// What was being done.
        attempt: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it did not work.
        #[source]
        source: io::Error,
    },
    /// The engine refused.
    #[error("{attempt} {path}; check that it is writable and has room")]
    Engine {
        /// What was being done.
        attempt: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it did not work.
        #[source]
        source: sqlx::Error,
    },
}

impl SqliteStore {
    /// Opens the store of a directory, making or upgrading it as needed.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let lock = lock(&options.directory)?;
        let path = options.directory.join(DATABASE);
        create(&path)?;
        let write = writing(&path, options.max_bytes);
        let failed = |attempt| engine(attempt, &path);

        let mut connection = write.connect().await.map_err(failed("opening"))?;
        let found = schema::version(&mut connection)
            .await
            .map_err(failed("reading the schema of"))?;
        if found > schema::KNOWN {
            return Err(OpenError::Newer {
                path,
                found,
                known: schema::KNOWN,
            });
        }
        schema::migrate(&mut connection, found, schema::KNOWN)
            .await
            .map_err(failed("preparing"))?;
        let hints = super::Hints::read(&mut connection)
            .await
            .map_err(failed("reading the clocks of"))?;
        let writer = writer::Writer::new(connection, write, hints.clone(), lock)
            .await
            .map_err(failed("reading"))?;

        let readers = SqlitePoolOptions::new()
            .max_connections(options.readers.max(1))
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_with(reading(&path))
            .await
            .map_err(failed("opening"))?;
        Ok(SqliteStore::start(
            writer,
            readers,
            hints,
            options.blob_idle,
        ))
    }
}

pub(super) fn lock(directory: &Path) -> Result<File, OpenError> {
    let failed = |attempt, path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Io {
            attempt,
            path,
            source,
        }
    };
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .recursive(true)
        .create(directory)
        .map_err(failed("making the data directory", directory))?;
    let path = directory.join(LOCK);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(failed("opening the lock", &path))?;
    for try_number in 0.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if try_number < LOCK_RETRIES => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Locked {
                    directory: directory.into(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed("locking", &path)(source)),
        }
    }
    Ok(file)
}

/// Makes the file before the engine does: it holds Secrets, so only its owner may read it. The
/// engine gives its side files the same mode.
pub(crate) fn create(path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::Io {
        attempt: "making",
        path: path.into(),
        source,
    };
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(failed)?;
    // A new name is durable only when its directory is.
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(failed)?;
    }
    Ok(())
}

fn shared(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false)
        .busy_timeout(BUSY)
        .pragma("temp_store", "MEMORY")
        .disable_statement_logging()
}

pub(crate) fn writing(path: &Path, max_bytes: Option<u64>) -> SqliteConnectOptions {
    let options = shared(path)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", "67108864")
        .pragma("cache_size", "-8192");
    match max_bytes {
        None => options,
        Some(bytes) => options.pragma("max_page_count", bytes.div_ceil(PAGE_BYTES).to_string()),
    }
}

pub(crate) fn reading(path: &Path) -> SqliteConnectOptions {
    shared(path)
        .read_only(true)
        .row_buffer_size(128)
        .pragma("cache_size", "-2048")
}

/// Opens a database only to read it, and runs nothing that stands in it.
pub(crate) async fn look(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    // Rows of any size pass here, and none shall wait in memory.
    reading(path)
        .row_buffer_size(2)
        .pragma("trusted_schema", "OFF")
        .connect()
        .await
}

/// How a database is written that nobody else sees yet.
pub(super) fn building(path: &Path) -> SqliteConnectOptions {
    shared(path)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Off)
        .synchronous(SqliteSynchronous::Off)
        .pragma("cache_size", "-16384")
}

pub(crate) fn engine(
    attempt: &'static str,
    path: &Path,
) -> impl FnOnce(sqlx::Error) -> OpenError + use<> {
    let path = path.to_owned();
    move |source| match is_damaged(&source) {
        true => OpenError::Damaged { path, source },
        false => OpenError::Engine {
            attempt,
            path,
            source,
        },
    }
}

/// Opens a writing connection anew, after one that broke.
pub(super) async fn reconnect(
    options: &SqliteConnectOptions,
) -> Result<SqliteConnection, sqlx::Error> {
    options.connect().await
}
