//! Whether a file is a backup: a sound database, with exactly the tables of a version we know, in
//! which nothing refers to what is not there. It is only read, and nothing in it is run.

use super::{BackupError, Content};
use crate::sqlite::{self, is_damaged};
use sqlx::SqliteConnection;
use std::path::Path;

/// What must not be found in a store.
const FLAWS: &[(&str, &str)] = &[
    (
        "an object has no state",
        "SELECT EXISTS (
            SELECT 1 FROM object o WHERE NOT EXISTS (SELECT 1 FROM body b WHERE b.id = o.body)
        )",
    ),
    (
        "an entry of the log has no state",
        "SELECT EXISTS (
            SELECT 1 FROM event e WHERE NOT EXISTS (SELECT 1 FROM body b WHERE b.id = e.body)
            OR e.before IS NOT NULL AND NOT EXISTS (SELECT 1 FROM body b WHERE b.id = e.before)
        )",
    ),
    (
        "an entry of the log lies beyond its clock",
        "SELECT EXISTS (
            SELECT 1 FROM event e
            WHERE NOT EXISTS (SELECT 1 FROM clock c WHERE c.id = e.resource AND c.rv >= e.rv)
        )",
    ),
    (
        "an object lies beyond its clock",
        "SELECT EXISTS (
            SELECT 1 FROM object o
            WHERE NOT EXISTS (SELECT 1 FROM clock c WHERE c.id = o.resource AND c.rv >= o.rv)
        )",
    ),
    (
        "a clock has run too far",
        "SELECT EXISTS (
            SELECT 1 FROM clock WHERE rv NOT BETWEEN 1 AND 1 << 62
            OR compacted_rv NOT BETWEEN 0 AND rv
            UNION ALL
            SELECT 1 FROM meta WHERE value NOT BETWEEN 1 AND 1 << 62
        )",
    ),
    (
        "a state has lost its bytes",
        "SELECT EXISTS (
            SELECT 1 FROM body_blob r WHERE NOT EXISTS (
                SELECT 1 FROM blob b JOIN blob_bytes y ON y.id = b.id WHERE b.sha256 = r.sha256
            )
        )",
    ),
];

// The engine takes what is missing at the end for zeros.
const BYTES: &str = "
SELECT p.page_count * s.page_size
FROM pragma_page_count p, pragma_page_size s";

const CONTENT: &str = "
SELECT (SELECT COUNT(*) FROM object), (SELECT COUNT(*) FROM event)";

/// Checks a file; gives the version of its schema and what it holds.
pub(crate) async fn check(path: &Path) -> Result<(i64, Content), BackupError> {
    let reading = BackupError::io("reading", path);
    let bytes = std::fs::metadata(path)
        .and_then(|metadata| match metadata.is_file() {
            true => Ok(metadata.len()),
            false => Err(std::io::Error::other("it is not a file")),
        })
        .map_err(reading)?;
    let damaged = |reason: String| BackupError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let failed = |source: sqlx::Error| match is_damaged(&source) {
        true => damaged(source.to_string()),
        false => BackupError::engine("reading", &path.display().to_string())(source),
    };
    let mut connection = sqlite::look(path).await.map_err(failed)?;
    let version = sqlite::version(&mut connection).await.map_err(failed)?;
    if version > sqlite::KNOWN {
        return Err(BackupError::Newer {
            path: path.to_owned(),
            found: version,
            known: sqlite::KNOWN,
        });
    }
    let expected = sqlite::tables(version).await.map_err(failed)?;
    if version == 0 || sqlite::tables_of(&mut connection).await.map_err(failed)? != expected {
        return Err(damaged("it has other tables".into()));
    }
    let whole: i64 = sqlx::query_scalar(BYTES)
        .fetch_one(&mut connection)
        .await
        .map_err(failed)?;
    if u64::try_from(whole) != Ok(bytes) {
        return Err(damaged(format!("it has {bytes} bytes of {whole}")));
    }
    let flaw = flaw(&mut connection).await.map_err(failed)?;
    if let Some(flaw) = flaw {
        return Err(damaged(flaw));
    }
    let (objects, events): (i64, i64) = sqlx::query_as(CONTENT)
        .fetch_one(&mut connection)
        .await
        .map_err(failed)?;
    let content = Content {
        objects: objects as u64,
        events: events as u64,
        bytes,
    };
    Ok((version, content))
}

async fn flaw(connection: &mut SqliteConnection) -> Result<Option<String>, sqlx::Error> {
    let said: String = sqlx::query_scalar("PRAGMA integrity_check(1)")
        .fetch_one(&mut *connection)
        .await?;
    if said != "ok" {
        return Ok(Some(said));
    }
    for (flaw, question) in FLAWS {
        let found: bool = sqlx::query_scalar(*question)
            .fetch_one(&mut *connection)
            .await?;
        if found {
            return Ok(Some((*flaw).to_owned()));
        }
    }
    Ok(None)
}
