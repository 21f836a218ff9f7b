//! The schema and its versions. A migration is a script applied once, in one transaction with the
//! version it leads to; a process killed in the middle leaves the version before.

use sqlx::{Connection, SqliteConnection};

/// The scripts, in order; the version of a database is how many it has seen.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
];

/// The version this build reads and writes.
pub(crate) const KNOWN: i64 = MIGRATIONS.len() as i64;

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
pub(crate) async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let tables: i64 = sqlx::query_scalar(HAS_META)
        .fetch_one(&mut *connection)
        .await?;
    if tables == 0 {
        return Ok(0);
    }
    sqlx::query_scalar(READ).fetch_one(connection).await
}

/// Brings a database from one version to a later one.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    found: i64,
    wanted: i64,
) -> Result<(), sqlx::Error> {
    let place = |version| usize::try_from(version).unwrap_or(0);
    let scripts = MIGRATIONS.iter().enumerate().take(place(wanted));
    for (at, script) in scripts.skip(place(found)) {
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

const TABLES: &str = "
SELECT name, sql
FROM sqlite_schema
WHERE sql IS NOT NULL
ORDER BY name";

/// The statements that made a database's tables, and whatever else is in it.
pub(crate) async fn tables_of(
    connection: &mut SqliteConnection,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    sqlx::query_as(TABLES).fetch_all(connection).await
}

/// The same of a database of this version.
pub(crate) async fn tables(version: i64) -> Result<Vec<(String, String)>, sqlx::Error> {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
    migrate(&mut connection, 0, version).await?;
    let tables = tables_of(&mut connection).await?;
    connection.close().await?;
    Ok(tables)
}
