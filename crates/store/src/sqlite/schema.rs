//! The schema and its versions. A migration is a script applied once, in one transaction with the
//! version it leads to; a process killed in the middle leaves the version before.

use sqlx::{Connection, SqliteConnection};

/// The scripts, in order; the version of a database is how many it has seen.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
];

/// The version this build reads and writes.
pub(super) const KNOWN: i64 = MIGRATIONS.len() as i64;

const META: &str = "
CREATE TABLE IF NOT EXISTS meta (
    key TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID";

const HAS_META: &str = "
SELECT COUNT(*)
FROM sqlite_schema
WHERE type = 'table' AND name = 'meta'";

const READ: &str = "
SELECT COALESCE(MAX(value), 0)
FROM meta
WHERE key = 'schema'";

const RAISE: &str = "
INSERT INTO meta (key, value)
VALUES ('schema', $1)
ON CONFLICT (key) DO UPDATE SET value = excluded.value";

/// The version a database has; 0 for an empty one.
pub(super) async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let tables: i64 = sqlx::query_scalar(HAS_META)
        .fetch_one(&mut *connection)
        .await?;
    if tables == 0 {
        return Ok(0);
    }
    sqlx::query_scalar(READ).fetch_one(connection).await
}

/// Brings a database from `found` to [`KNOWN`].
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    found: i64,
) -> Result<(), sqlx::Error> {
    let seen = usize::try_from(found).unwrap_or(0);
    for (at, script) in MIGRATIONS.iter().enumerate().skip(seen) {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::raw_sql(META).execute(&mut *transaction).await?;
        sqlx::raw_sql(*script).execute(&mut *transaction).await?;
        sqlx::query(RAISE)
            .bind(at as i64 + 1)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
    }
    Ok(())
}
