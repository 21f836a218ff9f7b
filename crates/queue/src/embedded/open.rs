//! Opening the file: one process at a time, readable to its owner only, durable before the
//! answer, and the leases of whoever had it before set free.

use super::statements;
use crate::queue::QueueError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, SqliteConnection};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

/// The version of the schema, kept in the file's header.
const VERSION: i64 = 1;
const SCHEMA: &str = include_str!("schema.sql");

pub(super) struct Opened {
    pub(super) connection: SqliteConnection,
    pub(super) options: SqliteConnectOptions,
}

pub(super) async fn open(path: &Path) -> Result<(Opened, File), QueueError> {
    let attempt = format!("opening the queue {}", path.display());
    let unusable = |reason: String| QueueError::Unusable {
        attempt: attempt.clone(),
        reason,
    };
    let lock = lock(path).map_err(unusable)?;
    create(path).map_err(|error| unusable(error.to_string()))?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false)
        .busy_timeout(Duration::from_secs(10))
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("temp_store", "MEMORY")
        .pragma("journal_size_limit", "67108864")
        .disable_statement_logging();
    let engine = |error: sqlx::Error| {
        unusable(format!(
            "{error}; check that it is a queue, is writable and has room"
        ))
    };
    let mut connection = options.connect().await.map_err(engine)?;
    let found: i64 = sqlx::query_scalar(statements::VERSION)
        .fetch_one(&mut connection)
        .await
        .map_err(engine)?;
    match found {
        0 => {
            // One transaction: a process killed in the middle leaves an empty file.
            let script =
                format!("BEGIN IMMEDIATE;\n{SCHEMA}\nPRAGMA user_version = {VERSION};\nCOMMIT;");
            let script = sqlx::AssertSqlSafe(script);
            sqlx::raw_sql(script)
                .execute(&mut connection)
                .await
                .map_err(engine)?;
        }
        VERSION => {}
        other => {
            let reason = format!(
                "it has schema version {other}, and this build knows {VERSION}; run the newer muster"
            );
            return Err(unusable(reason));
        }
    }
    sqlx::query(statements::RELEASE)
        .bind(super::now())
        .execute(&mut connection)
        .await
        .map_err(engine)?;
    Ok((
        Opened {
            connection,
            options,
        },
        lock,
    ))
}

fn lock(path: &Path) -> Result<File, String> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(&name).map_err(|error| error.to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err("it is in use by another process".into()),
        Err(TryLockError::Error(error)) => Err(error.to_string()),
    }
}

fn create(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?;
    // A new name is durable only when its directory is.
    #[cfg(unix)]
    if let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}
