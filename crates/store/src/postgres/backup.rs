//! A copy of a database that others write to, as a SQLite file. One snapshot shows all tables at
//! one moment and hinders nobody; rows are passed on as they come, so no more of them than a few
//! are ever in memory.

use super::connections::Connections;
use super::options::Options;
use super::schema;
use super::text::indexed;
use crate::backup::BackupError;
use crate::backup::shape::{ALIKE, BLOBS_APART, Table, Type};
use crate::facts::{Facts, LINK, added, added_fields};
use crate::sqlite;
use futures::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use std::path::Path;
use std::time::Duration;

const ATTEMPT: &str = "copying";
/// How long the server may be silent between two rows.
const SILENCE: Duration = Duration::from_secs(300);

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

// The limits of a request are not those of a copy, and whole tables are best read as they lie.
const SETTINGS: &str = "
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL enable_seqscan = on;
SET LOCAL enable_hashjoin = on;
SET LOCAL enable_mergejoin = on";

const INCARNATION: &str = "
SELECT number, origin
FROM incarnation";

const LIFE: &str = "
INSERT INTO meta (key, value)
VALUES ('incarnation', $1), ('origin', $2)";

/// Copies the store of a database into an empty file.
pub(crate) async fn backup(options: &Options, to: &Path) -> Result<(), BackupError> {
    let place = options.place();
    let failed = BackupError::engine(ATTEMPT, &place);
    let file = BackupError::engine("writing", &to.display().to_string());
    let connections = Connections::new(options.clone());
    let mut connection = connections.connect().await.map_err(|source| {
        let place = place.clone();
        super::OpenError::Unreachable { place, source }
    })?;
    let mut snapshot = connection.begin_with(SNAPSHOT).await.map_err(&failed)?;
    let settings = sqlx::raw_sql(SETTINGS).execute(&mut *snapshot).await;
    settings.map_err(&failed)?;
    match schema::read(&mut snapshot).await.map_err(&failed)?.found {
        schema::KNOWN => {}
        0 => return Err(BackupError::NoStore { place }),
        found => {
            let known = schema::KNOWN;
            return Err(BackupError::OtherVersion {
                place,
                found,
                known,
            });
        }
    }
    let mut target = sqlite::blank(to).await.map_err(&file)?;
    // One transaction: what is not yet whole need not be written out.
    let begun = sqlx::query("BEGIN").execute(&mut target).await;
    begun.map_err(&file)?;
    let mut copy = Copy {
        from: &mut snapshot,
        to: &mut target,
    };
    for table in ALIKE.iter().chain(BLOBS_APART) {
        copy.table(table)
            .await
            .map_err(Fault::told(&failed, &file))?;
    }
    copy.selectable()
        .await
        .map_err(Fault::told(&failed, &file))?;
    let (number, origin): (i64, i64) = sqlx::query_as(INCARNATION)
        .fetch_one(&mut *snapshot)
        .await
        .map_err(&failed)?;
    let life = sqlx::query(LIFE).bind(number).bind(origin);
    life.execute(&mut target).await.map_err(&file)?;
    let ended = sqlx::query("COMMIT").execute(&mut target).await;
    ended.map_err(&file)?;
    target.close().await.map_err(&file)?;
    snapshot.rollback().await.map_err(&failed)?;
    let _ = connection.close().await;
    Ok(())
}

/// On which side it went wrong.
enum Fault {
    From(sqlx::Error),
    To(sqlx::Error),
}

impl Fault {
    fn told(
        from: impl Fn(sqlx::Error) -> BackupError,
        to: impl Fn(sqlx::Error) -> BackupError,
    ) -> impl FnOnce(Fault) -> BackupError {
        move |fault| match fault {
            Fault::From(error) => from(error),
            Fault::To(error) => to(error),
        }
    }
}

struct Copy<'a> {
    from: &'a mut PgConnection,
    to: &'a mut SqliteConnection,
}

const SELECTABLE: &str = "
SELECT o.resource, o.namespace, o.name, b.facts
FROM object o
JOIN body b ON b.id = o.body
WHERE b.facts IS NOT NULL";

const LABEL: &str = "
INSERT INTO label (resource, namespace, name, key, value)
VALUES ($1, $2, $3, $4, $5)";

const FIELD: &str = "
INSERT INTO field (resource, namespace, name, key, value)
VALUES ($1, $2, $3, $4, $5)";

const OWNER: &str = "
INSERT INTO owner (resource, namespace, name, uid)
VALUES ($1, $2, $3, $4)";

const FULL_LINKS: [&str; 2] = [
    "UPDATE tally SET link = $1 WHERE link = $2",
    "UPDATE pending SET link = $1 WHERE link = $2",
];

impl Copy<'_> {
    async fn table(&mut self, table: &Table) -> Result<(), Fault> {
        let names = table.names();
        let read = format!("SELECT {names} FROM {}", table.from);
        let places: Vec<String> = (1..=table.columns.len()).map(|n| format!("${n}")).collect();
        let write = format!(
            "INSERT INTO {} ({names}) VALUES ({})",
            table.to,
            places.join(", ")
        );
        // Both are made of the names in the shape.
        let mut rows = sqlx::query(AssertSqlSafe(read)).fetch(&mut *self.from);
        while let Some(row) = next(&mut rows).await? {
            let values = values(&row, table).map_err(Fault::From)?;
            sqlx::query_with(AssertSqlSafe(write.as_str()), values)
                .execute(&mut *self.to)
                .await
                .map_err(Fault::To)?;
        }
        Ok(())
    }

    /// Labels, fields, owners and the names of the counts, from the facts: there they stand in
    /// full, where the tables have digests of some.
    async fn selectable(&mut self) -> Result<(), Fault> {
        let none = Facts::default();
        let mut rows = sqlx::query(SELECTABLE).fetch(&mut *self.from);
        while let Some(row) = next(&mut rows).await? {
            let read = |row: &PgRow| -> Result<(i64, String, String, String), sqlx::Error> {
                Ok((
                    row.try_get(0)?,
                    row.try_get(1)?,
                    row.try_get(2)?,
                    row.try_get(3)?,
                ))
            };
            let (resource, namespace, name, facts) = read(&row).map_err(Fault::From)?;
            let facts = Facts::read(Some(&facts))
                .map_err(|error| Fault::From(sqlx::Error::Decode(error.into())))?;
            let object = |statement| {
                let query = sqlx::query(statement).bind(resource);
                query.bind(&namespace).bind(&name)
            };
            for (statement, entries) in [
                (LABEL, added(&none.labels, &facts.labels)),
                (FIELD, added_fields(&none, &facts)),
            ] {
                for (key, value) in entries {
                    let query = object(statement).bind(key).bind(value);
                    query.execute(&mut *self.to).await.map_err(Fault::To)?;
                    let known = indexed(value);
                    if key == LINK && known != value {
                        for statement in FULL_LINKS {
                            let query = sqlx::query(statement).bind(value).bind(&known);
                            query.execute(&mut *self.to).await.map_err(Fault::To)?;
                        }
                    }
                }
            }
            for uid in &facts.owners {
                let query = object(OWNER).bind(uid);
                query.execute(&mut *self.to).await.map_err(Fault::To)?;
            }
        }
        Ok(())
    }
}

type Rows<'a> = futures::stream::BoxStream<'a, Result<PgRow, sqlx::Error>>;

async fn next(rows: &mut Rows<'_>) -> Result<Option<PgRow>, Fault> {
    let next = tokio::time::timeout(SILENCE, rows.try_next()).await;
    let next = next.unwrap_or_else(|_| {
        let text = format!("the server said nothing for {SILENCE:?}");
        Err(std::io::Error::new(std::io::ErrorKind::TimedOut, text).into())
    });
    next.map_err(Fault::From)
}

fn values(row: &PgRow, table: &Table) -> Result<SqliteArguments, sqlx::Error> {
    let mut values = SqliteArguments::default();
    for (at, (_, of)) in table.columns.iter().enumerate() {
        match of {
            Type::Number => values.add(row.try_get::<Option<i64>, _>(at)?),
            Type::Text | Type::Indexed => values.add(row.try_get::<Option<String>, _>(at)?),
            Type::Bytes => values.add(row.try_get::<Option<Vec<u8>>, _>(at)?),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(values)
}
