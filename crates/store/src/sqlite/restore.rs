//! A directory's database from a backup. It is made beside its place, under the directory's lock,
//! and moved there when it is whole and has begun its new life; a process killed before that leaves
//! the directory as empty as it was.

use super::open::{self, DATABASE};
use super::{backup, incarnation, schema};
use crate::backup::{BackupError, create, sync, sync_directory};
use sqlx::{ConnectOptions, Connection};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the database while it is being made.
const PARTIAL: &str = "state.db.restoring";

/// Makes the store of a checked backup in a directory that has none.
pub(crate) async fn restore(from: &Path, directory: &Path) -> Result<(), BackupError> {
    let _lock = open::lock(directory)?;
    let path = directory.join(DATABASE);
    if !is_free(&path).await? {
        return Err(BackupError::NotEmpty {
            place: directory.display().to_string(),
        });
    }
    let partial = directory.join(PARTIAL);
    let made = make(from, &partial).await;
    if made.is_ok() {
        fs::rename(&partial, &path).map_err(BackupError::io("naming", &path))?;
        sync_directory(&path).map_err(BackupError::io("syncing", &path))?;
    }
    // Of a restore that failed nothing shall stay.
    let _ = remove(&partial);
    made
}

const CLOCKS: &str = "
SELECT EXISTS (SELECT 1 FROM clock)";

/// Whether there is no database, or one that nobody has written to.
async fn is_free(path: &Path) -> Result<bool, BackupError> {
    // A log without its database may hold the last writes of one that was moved away.
    if !fs::exists(path).map_err(BackupError::io("looking for", path))? {
        return Ok(!beside(path, "-wal").exists());
    }
    let failed = |source| BackupError::from(open::engine("opening", path)(source));
    let mut connection = open::writing(path, None).connect().await.map_err(failed)?;
    let found = schema::version(&mut connection).await.map_err(failed)?;
    let written = match found {
        0 => false,
        _ => sqlx::query_scalar(CLOCKS)
            .fetch_one(&mut connection)
            .await
            .map_err(failed)?,
    };
    connection.close().await.map_err(failed)?;
    Ok(!written && !beside(path, "-wal").exists())
}

async fn make(from: &Path, partial: &Path) -> Result<(), BackupError> {
    remove(partial).map_err(BackupError::io("removing", partial))?;
    create(partial).map_err(BackupError::io("making", partial))?;
    let failed = |place: &Path| BackupError::engine("restoring", &place.display().to_string());
    let mut source = open::look(from).await.map_err(failed(from))?;
    let copied = backup::copy(&mut source, partial).await;
    copied.map_err(failed(partial))?;
    source.close().await.map_err(failed(from))?;
    renew(partial).await.map_err(failed(partial))?;
    sync(partial).map_err(BackupError::io("syncing", partial))
}

async fn renew(partial: &Path) -> Result<(), sqlx::Error> {
    let mut connection = open::building(partial).connect().await?;
    let found = schema::version(&mut connection).await?;
    schema::migrate(&mut connection, found, schema::KNOWN).await?;
    incarnation::renew(&mut connection).await?;
    connection.close().await
}

fn remove(partial: &Path) -> std::io::Result<()> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        match fs::remove_file(beside(partial, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
