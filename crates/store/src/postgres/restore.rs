//! A database from a backup: one transaction, so all of it or nothing, whatever is killed. Others
//! may have the empty database open; they wait with their writes, and see the store appear.

use super::connections::Connections;
use super::options::Options;
use super::text::indexed;
use super::{OpenError, PostgresStore, incarnation, schema};
use crate::backup::BackupError;
use crate::backup::shape::{ALIKE, BLOBS_WHOLE, SELECTABLE, Table, Type};
use crate::clock::Origin;
use crate::sqlite;
use futures::TryStreamExt;
use sqlx::postgres::PgArguments;
use sqlx::sqlite::SqliteRow;
use sqlx::{Arguments, AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use std::path::Path;

/// How much goes to the server at once: so many rows, or so many bytes if that is less.
const ROWS: usize = 1000;
const BYTES: usize = 4 << 20;

const SETTINGS: &str = "
SET LOCAL statement_timeout = '10min';
SET LOCAL idle_in_transaction_session_timeout = '10min'";

// Reading goes on; whoever writes takes a clock first and waits.
const LOCK: &str = "LOCK TABLE clock IN EXCLUSIVE MODE";

const WRITTEN: &str = "
SELECT EXISTS (SELECT 1 FROM clock)";

/// Makes the store of a checked backup in a database that has none.
pub(crate) async fn restore(
    from: &Path,
    version: i64,
    options: &Options,
) -> Result<(), BackupError> {
    let place = options.place();
    let failed = BackupError::engine("restoring", &place);
    let file = BackupError::engine("reading", &from.display().to_string());
    if version != sqlite::KNOWN {
        return Err(BackupError::Older {
            path: from.to_owned(),
            found: version,
            known: sqlite::KNOWN,
        });
    }
    // Makes the tables if there are none, and refuses what is not ours.
    PostgresStore::open(options.clone()).await?.close().await;
    let connections = Connections::new(options.clone());
    let mut connection = connections.connect().await.map_err(|source| {
        let place = place.clone();
        OpenError::Unreachable { place, source }
    })?;
    let mut transaction = connection.begin().await.map_err(&failed)?;
    let settings = sqlx::raw_sql(SETTINGS).execute(&mut *transaction).await;
    settings.map_err(&failed)?;
    let locked = sqlx::query(LOCK).execute(&mut *transaction).await;
    locked.map_err(&failed)?;
    let found = schema::read(&mut transaction).await.map_err(&failed)?.found;
    if found != schema::KNOWN {
        return Err(BackupError::OtherVersion {
            place,
            found,
            known: schema::KNOWN,
        });
    }
    let written = sqlx::query_scalar(WRITTEN).fetch_one(&mut *transaction);
    if written.await.map_err(&failed)? {
        return Err(BackupError::NotEmpty { place });
    }
    let mut source = sqlite::look(from).await.map_err(&file)?;
    let tables = ALIKE.iter().chain([&BLOBS_WHOLE]).chain(SELECTABLE);
    for table in tables {
        copy(&mut source, &mut transaction, table)
            .await
            .map_err(|fault| match fault {
                Fault::From(error) => file(error),
                Fault::To(error) => failed(error),
            })?;
    }
    let number = sqlite::incarnation(&mut source).await.map_err(&file)?;
    let origin = sqlite::origin(&mut source).await.map_err(&file)?;
    source.close().await.map_err(&file)?;
    let finished = finish(&mut transaction, number, origin).await;
    finished.map_err(&failed)?;
    transaction.commit().await.map_err(&failed)?;
    let _ = connection.close().await;
    Ok(())
}

/// On which side it went wrong.
enum Fault {
    From(sqlx::Error),
    To(sqlx::Error),
}

async fn copy(
    from: &mut SqliteConnection,
    to: &mut PgConnection,
    table: &Table,
) -> Result<(), Fault> {
    let read = format!("SELECT {} FROM {}", table.names(), table.from);
    // Made of the names in the shape.
    let mut rows = sqlx::query(AssertSqlSafe(read)).fetch(from);
    let mut batch = Batch::new(table);
    while let Some(row) = rows.try_next().await.map_err(Fault::From)? {
        batch.add(&row).map_err(Fault::From)?;
        if batch.rows >= ROWS || batch.bytes >= BYTES {
            let full = std::mem::replace(&mut batch, Batch::new(table));
            full.send(to).await.map_err(Fault::To)?;
        }
    }
    batch.send(to).await.map_err(Fault::To)
}

/// The values of one column.
enum Values {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

/// Some rows, by columns, which one statement takes.
struct Batch<'a> {
    table: &'a Table,
    columns: Vec<Values>,
    rows: usize,
    bytes: usize,
}

impl<'a> Batch<'a> {
    fn new(table: &'a Table) -> Self {
        let values = |(_, of): &(&str, Type)| match of {
            Type::Number => Values::Numbers(Vec::new()),
            Type::Text | Type::Indexed => Values::Texts(Vec::new()),
            Type::Bytes => Values::Bytes(Vec::new()),
        };
        Batch {
            table,
            columns: table.columns.iter().map(values).collect(),
            rows: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, row: &SqliteRow) -> Result<(), sqlx::Error> {
        let columns = self.columns.iter_mut().zip(self.table.columns);
        for (at, (values, (_, of))) in columns.enumerate() {
            match values {
                Values::Numbers(values) => values.push(row.try_get(at)?),
                Values::Texts(values) => {
                    let text: Option<String> = row.try_get(at)?;
                    let text = match of {
                        Type::Indexed => text.as_deref().map(indexed),
                        _ => text,
                    };
                    self.bytes += text.as_ref().map_or(0, String::len);
                    values.push(text);
                }
                Values::Bytes(values) => {
                    let bytes: Option<Vec<u8>> = row.try_get(at)?;
                    self.bytes += bytes.as_ref().map_or(0, Vec::len);
                    values.push(bytes);
                }
            }
        }
        self.rows += 1;
        Ok(())
    }

    async fn send(self, to: &mut PgConnection) -> Result<(), sqlx::Error> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut arguments = PgArguments::default();
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (at, values) in self.columns.into_iter().enumerate() {
            let (array, added) = match values {
                Values::Numbers(values) => ("BIGINT[]", arguments.add(values)),
                Values::Texts(values) => ("TEXT[]", arguments.add(values)),
                Values::Bytes(values) => ("BYTEA[]", arguments.add(values)),
            };
            added.map_err(sqlx::Error::Encode)?;
            arrays.push(format!("${}::{array}", at + 1));
        }
        // Only a blob can be there already: of a write that others have begun and not ended.
        let statement = format!(
            "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest({}) {}",
            self.table.to,
            self.table.names(),
            arrays.join(", "),
            match self.table.to {
                "blob" => "ON CONFLICT (sha256) DO NOTHING",
                _ => "",
            }
        );
        let query = sqlx::query_with(AssertSqlSafe(statement), arguments);
        query.execute(to).await.map(drop)
    }
}

// The next identifiers follow those that came with the rows.
const NUMBERS: &str = "
SELECT setval(pg_get_serial_sequence('clock', 'id'), COALESCE(MAX(id), 0) + 1, false)
FROM clock
UNION ALL
SELECT setval(pg_get_serial_sequence('body', 'id'), COALESCE(MAX(id), 0) + 1, false)
FROM body
UNION ALL
SELECT setval(pg_get_serial_sequence('pending', 'id'), COALESCE(MAX(id), 0) + 1, false)
FROM pending";

// With the number every clock jumps.
const INCARNATION: &str = "
UPDATE incarnation
SET number = GREATEST(number, $1) + 1, place = $2, origin = GREATEST(origin, $3)";

/// Begins the new life, behind that of the backup.
async fn finish(
    connection: &mut PgConnection,
    number: i64,
    origin: Origin,
) -> Result<(), sqlx::Error> {
    sqlx::query(NUMBERS).execute(&mut *connection).await?;
    let here = incarnation::place(connection).await?;
    let renewed = sqlx::query(INCARNATION).bind(number).bind(here);
    renewed.bind(origin.0).execute(connection).await.map(drop)
}
