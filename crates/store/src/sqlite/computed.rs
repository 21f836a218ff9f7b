//! The workloads' reports on SQLite. The transaction that changes an Image or a VulnerabilityReport
//! also counts its findings anew and tells the reports that depend on it (`touch`), so whoever
//! watches hears of it exactly once, and never before it can be read.

use super::apply::Identifiers;
use super::body::BodyRow;
use super::fault::during;
use super::touch;
use crate::computed::findings::{Counts, Findings};
use crate::computed::report::{Container, Known, complete, containers, first_half};
use crate::computed::{IMAGES, REPORTS, Touched, WORKLOADS, concerned};
use crate::facts::{Facts, LINK};
use crate::prepare::Prepared;
use futures::TryStreamExt;
use muster_apiserver::store::{Detail, Key, Resource, StoreError};
use muster_kind::Body;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Row, SqliteConnection};
use std::collections::BTreeSet;

const ATTEMPT: &str = "computing a report";

const FINDINGS: &str = "
INSERT INTO finding (namespace, name, entries)
VALUES ($1, $2, $3)
ON CONFLICT (namespace, name) DO UPDATE SET entries = excluded.entries";

const NO_FINDINGS: &str = "
DELETE FROM finding
WHERE namespace = $1 AND name = $2";

/// After a write to an Image or a VulnerabilityReport: brings what depends on it up to date, in
/// the same transaction.
pub(super) async fn settle(
    connection: &mut SqliteConnection,
    write: &Prepared,
    old: &Facts,
    resource: i64,
    identifiers: &mut Identifiers,
) -> Result<Touched, sqlx::Error> {
    let Key { namespace, name } = &write.key;
    let links = concerned(write, old);
    if &*write.resource == REPORTS {
        let query = match &write.findings {
            Some(findings) => sqlx::query(FINDINGS)
                .bind(namespace)
                .bind(name)
                .bind(findings.pack()),
            None => sqlx::query(NO_FINDINGS).bind(namespace).bind(name),
        };
        query.execute(&mut *connection).await?;
        for link in &links {
            count(connection, resource, link).await?;
        }
    }
    touch::begin(connection, &links, identifiers).await
}

const ANSWERING: &str = "
SELECT s.entries
FROM field f
CROSS JOIN finding s ON s.namespace = f.namespace AND s.name = f.name
WHERE f.resource = $1 AND f.key = $2 AND f.value = $3";

const TALLY: &str = "
INSERT INTO tally (link, critical, high, medium, low, unknown, suppressed)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (link) DO UPDATE SET
    critical = excluded.critical, high = excluded.high, medium = excluded.medium,
    low = excluded.low, unknown = excluded.unknown, suppressed = excluded.suppressed";

const NO_TALLY: &str = "
DELETE FROM tally
WHERE link = $1";

/// Counts what the reports that answer to a link have found together.
async fn count(
    connection: &mut SqliteConnection,
    reports: i64,
    link: &str,
) -> Result<(), sqlx::Error> {
    let sets: Vec<Vec<u8>> = sqlx::query_scalar(ANSWERING)
        .bind(reports)
        .bind(LINK)
        .bind(link)
        .fetch_all(&mut *connection)
        .await?;
    if sets.is_empty() {
        let gone = sqlx::query(NO_TALLY).bind(link).execute(connection).await;
        return gone.map(drop);
    }
    let counts = Findings::count(&sets).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    let mut query = sqlx::query(TALLY).bind(link);
    for count in counts.0 {
        query = query.bind(count);
    }
    query.execute(connection).await.map(drop)
}

fn json_array<'a>(links: impl Iterator<Item = &'a str>) -> String {
    serde_json::Value::from_iter(links).to_string()
}

/// Completes stored reports, with lookups that do not depend on how many there are.
pub(super) async fn compute(
    readers: &SqlitePool,
    resource: &Resource,
    bodies: Vec<Body>,
    detail: Detail,
) -> Result<Vec<Body>, StoreError> {
    if &**resource != WORKLOADS {
        return Ok(bodies);
    }
    let asked: Vec<Vec<Container>> = bodies.iter().map(containers).collect();
    let (mut bodies, mut asked) = (&bodies[..], &asked[..]);
    loop {
        let links: BTreeSet<&str> = asked
            .iter()
            .flatten()
            .filter_map(|container| container.link.as_deref())
            .collect();
        let known = known(readers, &links, detail)
            .await
            .map_err(|fault| fault.into_store())?;
        if !known.reports.exceeded() || bodies.len() == 1 {
            return Ok(complete(bodies, asked, known, detail));
        }
        (bodies, asked) = first_half(bodies, asked);
    }
}

const COUNTS: &str = "
SELECT t.link, t.critical, t.high, t.medium, t.low, t.unknown, t.suppressed
FROM json_each($1) j
CROSS JOIN tally t ON t.link = j.value";

const FOUND: &str = "
SELECT f.value, f.namespace, f.name
FROM clock c
CROSS JOIN json_each($2) j
CROSS JOIN field f ON f.resource = c.id AND f.key = $3 AND f.value = j.value
WHERE c.resource = $1";

const FOUND_REPORTS: &str = "
SELECT f.value, f.namespace, f.name, b.revision_at, b.form, b.blobs, b.text
FROM clock c
CROSS JOIN json_each($2) j
CROSS JOIN field f ON f.resource = c.id AND f.key = $3 AND f.value = j.value
CROSS JOIN object o ON o.resource = c.id AND o.namespace = f.namespace AND o.name = f.name
CROSS JOIN body b ON b.id = o.body
WHERE c.resource = $1
ORDER BY f.value, f.namespace, f.name";

/// Looks up, all in one snapshot, what is known under some links.
async fn known(
    readers: &SqlitePool,
    links: &BTreeSet<&str>,
    detail: Detail,
) -> Result<Known, Fault> {
    let mut known = Known::default();
    let links = json_array(links.iter().copied());
    let mut transaction = readers.begin().await?;
    let counts: Vec<(String, i64, i64, i64, i64, i64, i64)> = sqlx::query_as(COUNTS)
        .bind(&links)
        .fetch_all(&mut *transaction)
        .await?;
    for (link, critical, high, medium, low, unknown, suppressed) in counts {
        let counts = Counts([critical, high, medium, low, unknown, suppressed]);
        known.counts.insert(link, counts);
    }
    let find = |statement: &'static str, resource: &'static str| {
        let query = sqlx::query(statement).bind(resource);
        query.bind(links.clone()).bind(LINK)
    };
    {
        let mut rows = find(FOUND, IMAGES).fetch(&mut *transaction);
        while let Some(row) = rows.try_next().await? {
            let (link, key) = place(&row)?;
            known.images.entry(link).or_default().insert(key);
        }
    }
    // Only who asks for the reports has them read.
    let statement = match detail {
        Detail::Brief => FOUND,
        Detail::Full => FOUND_REPORTS,
    };
    let mut rows = find(statement, REPORTS).fetch(&mut *transaction);
    while let Some(row) = rows.try_next().await? {
        let (link, key) = place(&row)?;
        if detail == Detail::Full {
            let body = || BodyRow::unpack(&row, 3);
            known.reports.add(&link, &key, body).map_err(Fault::Store)?;
        }
        known.scanned.entry(link).or_default().insert(key);
    }
    drop(rows);
    Ok(known)
}

fn place(row: &SqliteRow) -> Result<(String, Key), sqlx::Error> {
    let key = Key {
        namespace: row.try_get(1)?,
        name: row.try_get(2)?,
    };
    Ok((row.try_get(0)?, key))
}

/// The engine's errors and our own, until they are the store's.
enum Fault {
    Engine(sqlx::Error),
    Store(StoreError),
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Fault::Engine(error)
    }
}

impl Fault {
    fn into_store(self) -> StoreError {
        match self {
            Fault::Engine(error) => during(ATTEMPT)(error),
            Fault::Store(error) => error,
        }
    }
}
