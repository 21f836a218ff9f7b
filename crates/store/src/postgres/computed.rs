//! The workloads' reports on PostgreSQL. A write to an Image or a VulnerabilityReport becomes a
//! transaction of several statements: the write itself, which locks the clock of its resource, so
//! that of two reports of one image the second sees what the first found; then the counts; then
//! the revisions and events of the reports that depend on it, or of the first of them where they
//! are many (`pending` goes on). Clocks are taken in that order only.

use super::connections::Connections;
use super::fault::during;
use super::text::indexed;
use super::{body, write};
use crate::computed::findings::{Counts, Findings};
use crate::computed::report::{Container, Known, complete, containers, first_half};
use crate::computed::{IMAGES, PORTION, REPORTS, Touched, WORKLOADS, concerned};
use crate::facts::{Facts, LINK};
use crate::prepare::{Outcome, Prepared};
use futures::TryStreamExt;
use muster_apiserver::store::{Detail, Key, Resource, StoreError};
use muster_kind::Body;
use sqlx::postgres::PgRow;
use sqlx::{Connection, PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const ATTEMPT: &str = "computing a report";

const TOUCH: &str = "
SELECT last_revision, unfinished
FROM touch_2($1, $2, $3)";

/// Makes a write to an Image or a VulnerabilityReport with all that depends on it.
pub(super) async fn call(
    connection: &mut PgConnection,
    prepared: &Prepared,
    old: &Facts,
) -> Result<Outcome, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let revision = match write::call(&mut transaction, prepared, old).await? {
        Outcome::Done(revision, _) => revision,
        refused => {
            transaction.rollback().await?;
            return Ok(refused);
        }
    };
    let links = concerned(prepared, old).into_iter().map(indexed);
    let links: Vec<String> = links.collect::<BTreeSet<_>>().into_iter().collect();
    if &*prepared.resource == REPORTS {
        record(&mut transaction, prepared).await?;
        count(&mut transaction, &links).await?;
    }
    let (last, unfinished): (Option<i64>, bool) = sqlx::query_as(TOUCH)
        .bind(WORKLOADS)
        .bind(&links)
        .bind(PORTION)
        .fetch_one(&mut *transaction)
        .await?;
    transaction.commit().await?;
    let touched = Touched {
        last: last.map(|last| last as u64),
        unfinished,
    };
    Ok(Outcome::Done(revision, touched))
}

const FINDINGS: &str = "
INSERT INTO finding (namespace, name, entries)
VALUES ($1, $2, $3)
ON CONFLICT (namespace, name) DO UPDATE SET entries = excluded.entries";

const NO_FINDINGS: &str = "
DELETE FROM finding
WHERE namespace = $1 AND name = $2";

async fn record(connection: &mut PgConnection, write: &Prepared) -> Result<(), sqlx::Error> {
    let Key { namespace, name } = &write.key;
    let query = match &write.findings {
        Some(findings) => sqlx::query(FINDINGS)
            .bind(namespace)
            .bind(name)
            .bind(findings.pack()),
        None => sqlx::query(NO_FINDINGS).bind(namespace).bind(name),
    };
    query.execute(connection).await.map(drop)
}

// Here and below each link is looked up by itself: joined with all links at once, the engine may
// find it cheaper to read every link there is, as long as it does not know how many there are.
const ANSWERING: &str = "
SELECT v.value, s.entries
FROM unnest($3::TEXT[]) v (value)
CROSS JOIN LATERAL (
    SELECT f.namespace, f.name
    FROM field f
    WHERE f.resource = (SELECT id FROM clock WHERE resource = $1)
    AND f.key = $2 AND f.value = v.value
    OFFSET 0
) f
JOIN finding s ON s.namespace = f.namespace AND s.name = f.name";

const TALLY: &str = "
INSERT INTO tally (link, critical, high, medium, low, unknown, suppressed)
SELECT *
FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
ON CONFLICT (link) DO UPDATE SET
    critical = excluded.critical, high = excluded.high, medium = excluded.medium,
    low = excluded.low, unknown = excluded.unknown, suppressed = excluded.suppressed";

const NO_TALLY: &str = "
DELETE FROM tally
WHERE link = ANY ($1)";

/// Counts what the reports that answer to each link have found together. The clock is locked
/// meanwhile and others wait for it, so this takes as few trips as it can.
async fn count(connection: &mut PgConnection, links: &[String]) -> Result<(), sqlx::Error> {
    let found: Vec<(String, Vec<u8>)> = sqlx::query_as(ANSWERING)
        .bind(REPORTS)
        .bind(LINK)
        .bind(links)
        .fetch_all(&mut *connection)
        .await?;
    let mut sets: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (link, entries) in found {
        sets.entry(link).or_default().push(entries);
    }
    let gone: Vec<&String> = links
        .iter()
        .filter(|link| !sets.contains_key(*link))
        .collect();
    if !gone.is_empty() {
        let query = sqlx::query(NO_TALLY).bind(gone);
        query.execute(&mut *connection).await?;
    }
    if sets.is_empty() {
        return Ok(());
    }
    let mut columns: [Vec<i64>; 6] = Default::default();
    for sets in sets.values() {
        let counts = Findings::count(sets).map_err(|error| sqlx::Error::Decode(error.into()))?;
        for (column, count) in columns.iter_mut().zip(counts.0) {
            column.push(count);
        }
    }
    let counted: Vec<&String> = sets.keys().collect();
    let query = sqlx::query(TALLY).bind(counted);
    let query = columns
        .into_iter()
        .fold(query, |query, column| query.bind(column));
    query.execute(connection).await.map(drop)
}

/// Completes stored reports, with lookups that do not depend on how many there are.
pub(super) async fn compute(
    connections: &Connections,
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
        let links = asked.iter().flatten().filter_map(|one| one.link.as_deref());
        // By what the tables call them.
        let links: HashMap<String, &str> = links.map(|link| (indexed(link), link)).collect();
        let mut lease = connections.lease().await?;
        let known = known(lease.connection(), &links, detail).await?;
        lease.done();
        if !known.reports.exceeded() || bodies.len() == 1 {
            return Ok(complete(bodies, asked, known, detail));
        }
        (bodies, asked) = first_half(bodies, asked);
    }
}

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

const COUNTS: &str = "
SELECT link, critical, high, medium, low, unknown, suppressed
FROM tally
WHERE link = ANY ($1)";

const FOUND: &str = "
SELECT f.value, f.namespace, f.name
FROM unnest($3::TEXT[]) v (value)
CROSS JOIN LATERAL (
    SELECT f.value, f.namespace, f.name
    FROM field f
    WHERE f.resource = (SELECT id FROM clock WHERE resource = $1)
    AND f.key = $2 AND f.value = v.value
    OFFSET 0
) f";

const FOUND_REPORTS: &str = "
SELECT f.value, f.namespace, f.name, b.revision_at, b.form, b.blobs, b.text
FROM unnest($3::TEXT[]) v (value)
CROSS JOIN LATERAL (
    SELECT f.resource, f.value, f.namespace, f.name
    FROM field f
    WHERE f.resource = (SELECT id FROM clock WHERE resource = $1)
    AND f.key = $2 AND f.value = v.value
    OFFSET 0
) f
JOIN object o ON o.resource = f.resource AND o.namespace = f.namespace AND o.name = f.name
JOIN body b ON b.id = o.body
ORDER BY f.value, f.namespace, f.name";

/// Looks up, all in one snapshot, what is known under some links.
async fn known(
    connection: &mut PgConnection,
    links: &HashMap<String, &str>,
    detail: Detail,
) -> Result<Known, StoreError> {
    let failed = during(ATTEMPT);
    let mut known = Known::default();
    let original = |link: String| links.get(&link).map_or(link, |link| (*link).to_owned());
    let values: Vec<&String> = links.keys().collect();
    let mut transaction = connection.begin_with(SNAPSHOT).await.map_err(&failed)?;
    let counts: Vec<(String, i64, i64, i64, i64, i64, i64)> = sqlx::query_as(COUNTS)
        .bind(&values)
        .fetch_all(&mut *transaction)
        .await
        .map_err(&failed)?;
    for (link, critical, high, medium, low, unknown, suppressed) in counts {
        let counts = Counts([critical, high, medium, low, unknown, suppressed]);
        known.counts.insert(original(link), counts);
    }
    let find = |statement: &'static str, resource: &'static str| {
        sqlx::query(statement)
            .bind(resource)
            .bind(LINK)
            .bind(&values)
    };
    {
        let mut rows = find(FOUND, IMAGES).fetch(&mut *transaction);
        while let Some(row) = rows.try_next().await.map_err(&failed)? {
            let (link, key) = place(&row).map_err(&failed)?;
            known.images.entry(original(link)).or_default().insert(key);
        }
    }
    // Only who asks for the reports has them read.
    let statement = match detail {
        Detail::Brief => FOUND,
        Detail::Full => FOUND_REPORTS,
    };
    let mut rows = find(statement, REPORTS).fetch(&mut *transaction);
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        let (link, key) = place(&row).map_err(&failed)?;
        let link = original(link);
        if detail == Detail::Full {
            known.reports.add(&link, &key, || body::read(&row, 3))?;
        }
        known.scanned.entry(link).or_default().insert(key);
    }
    drop(rows);
    transaction.commit().await.map_err(&failed)?;
    Ok(known)
}

fn place(row: &PgRow) -> Result<(String, Key), sqlx::Error> {
    let key = Key {
        namespace: row.try_get(1)?,
        name: row.try_get(2)?,
    };
    Ok((row.try_get(0)?, key))
}
