//! A copy of a directory's database, which another process may own and write to: the engine reads
//! it in one snapshot, which hinders no writer, and writes it anew, without the holes.

use super::open::{self, DATABASE};
use super::schema;
use crate::backup::BackupError;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::path::Path;

const COPY: &str = "VACUUM INTO $1";

/// Copies the store of a directory into an empty file.
pub(crate) async fn backup(directory: &Path, to: &Path) -> Result<(), BackupError> {
    let path = directory.join(DATABASE);
    let nothing = || BackupError::NoStore {
        place: directory.display().to_string(),
    };
    if !path.is_file() {
        return Err(nothing());
    }
    let failed = |source| BackupError::from(open::engine("copying", &path)(source));
    let mut connection = open::look(&path).await.map_err(failed)?;
    match schema::version(&mut connection).await.map_err(failed)? {
        0 => return Err(nothing()),
        found if found > schema::KNOWN => {
            return Err(BackupError::Newer {
                path,
                found,
                known: schema::KNOWN,
            });
        }
        _ => {}
    }
    copy(&mut connection, to).await.map_err(failed)?;
    connection.close().await.map_err(failed)
}

/// Copies a database into an empty file.
pub(super) async fn copy(connection: &mut SqliteConnection, to: &Path) -> Result<(), sqlx::Error> {
    // The engine takes names as text. An absolute one is never taken for a URI.
    let to = std::path::absolute(to)?;
    let to = to.to_str().ok_or_else(|| {
        let text = format!("the name {} is not UTF-8", to.display());
        sqlx::Error::Io(std::io::Error::other(text))
    })?;
    sqlx::query(COPY).bind(to).execute(connection).await?;
    Ok(())
}

/// A new database in an empty file, with our tables and no rows, that nobody else sees yet: if
/// writing it is cut short, it is thrown away, so it needs no journal.
pub(crate) async fn blank(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = open::building(path).connect().await?;
    schema::migrate(&mut connection, 0, schema::KNOWN).await?;
    Ok(connection)
}
