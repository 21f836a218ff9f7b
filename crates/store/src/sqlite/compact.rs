//! Forgetting. The log's end is raised first, in a transaction of its own, so that nobody is
//! promised what is going; then entries go in small steps between which writers have their turn.
//! A step that never came, because the process ended, is made up by the next compaction.
//!
//! Which states go with an entry? Entries go oldest first. When one goes, the state before it has
//! no other friend left: the entry that brought it about is older and gone, the object has moved
//! on. The state after it stays, it is the object's own or the next entry's state before; except
//! for a deletion, whose last state nobody else knows.

use super::fault::during;
use super::writer::Job;
use super::{Clock, SqliteStore, event_number, now, signed};
use muster_apiserver::store::{EventType, StoreError};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqlitePool;
use tokio::sync::oneshot;

/// Entries, or blobs, that go in one step.
const STEP: i64 = 500;
/// Pages given back to the file system in one step.
const SHRINK_PAGES: i64 = 2000;

/// What the writer does for a compaction between writes.
pub(super) enum Step {
    /// Promises nothing up to this revision any more.
    Raise { resource: i64, to: i64 },
    /// Deletes the oldest entries up to this revision.
    Entries { resource: i64, to: i64 },
    /// Deletes these blobs, if nothing refers to them and nobody has touched them since.
    Blobs {
        candidates: Vec<i64>,
        untouched_since: i64,
    },
    /// Gives free pages back to the file system.
    Shrink,
}

const CLOCKS: &str = "
SELECT id, rv, compacted_rv
FROM clock
ORDER BY id";

pub(super) async fn compact(
    store: &SqliteStore,
    keep_seconds: u64,
    keep_events: u64,
) -> Result<u64, StoreError> {
    let failed = during("compacting");
    let clocks: Vec<(i64, i64, i64)> = sqlx::query_as(CLOCKS)
        .fetch_all(&store.readers)
        .await
        .map_err(&failed)?;
    let until = now().saturating_sub(signed(keep_seconds).saturating_mul(1000));
    let mut gone = 0;
    for clock in clocks.into_iter().map(Clock::from) {
        let to = cut(&store.readers, &clock, until, signed(keep_events)).await?;
        let resource = clock.resource;
        if to > clock.compacted {
            ask(store, Step::Raise { resource, to }).await?;
        }
        loop {
            let entries = ask(store, Step::Entries { resource, to }).await?;
            gone += entries;
            if entries == 0 {
                break;
            }
        }
    }
    sweep(store).await?;
    while ask(store, Step::Shrink).await? > 0 {}
    Ok(gone)
}

async fn ask(store: &SqliteStore, step: Step) -> Result<u64, StoreError> {
    let (answer, rows) = oneshot::channel();
    store
        .jobs
        .send(Job::Compact(step, answer))
        .await
        .map_err(|_| StoreError::Closed)?;
    rows.await.map_err(|_| StoreError::Closed)?
}

const FIRST_TO_KEEP: &str = "
SELECT rv
FROM event
WHERE resource = $1 AND rv > $2 AND time > $3
ORDER BY rv
LIMIT 1";

/// The newest revision that goes: before the first entry young enough, and before the newest ones.
async fn cut(
    readers: &SqlitePool,
    clock: &Clock,
    until: i64,
    keep_events: i64,
) -> Result<i64, StoreError> {
    let first: Option<i64> = sqlx::query_scalar(FIRST_TO_KEEP)
        .bind(clock.resource)
        .bind(clock.compacted)
        .bind(until)
        .fetch_optional(readers)
        .await
        .map_err(during("looking for the end of the log"))?;
    Ok(clock.cut(first, keep_events))
}

const CANDIDATES: &str = "
SELECT b.id
FROM blob b
WHERE b.id > $1 AND b.touched <= $2
AND NOT EXISTS (SELECT 1 FROM body_blob r WHERE r.sha256 = b.sha256)
ORDER BY b.id
LIMIT $3";

/// Looks for blobs that nothing refers to with a reader, and has the writer only look again.
async fn sweep(store: &SqliteStore) -> Result<(), StoreError> {
    let idle = i64::try_from(store.blob_idle.as_millis()).unwrap_or(i64::MAX);
    let untouched_since = now().saturating_sub(idle);
    let mut behind = 0;
    loop {
        let candidates: Vec<i64> = sqlx::query_scalar(CANDIDATES)
            .bind(behind)
            .bind(untouched_since)
            .bind(STEP)
            .fetch_all(&store.readers)
            .await
            .map_err(during("looking for blobs to sweep"))?;
        let Some(last) = candidates.last() else {
            return Ok(());
        };
        behind = *last;
        ask(
            store,
            Step::Blobs {
                candidates,
                untouched_since,
            },
        )
        .await?;
    }
}

/// Does a step in the transaction that is open on `connection`; says how many rows it was about.
pub(super) async fn step(
    connection: &mut SqliteConnection,
    step: Step,
) -> Result<u64, sqlx::Error> {
    match step {
        Step::Raise { resource, to } => raise(connection, resource, to).await,
        Step::Entries { resource, to } => entries(connection, resource, to).await,
        Step::Blobs {
            candidates,
            untouched_since,
        } => blobs(connection, &candidates, untouched_since).await,
        Step::Shrink => Ok(0),
    }
}

const RAISE: &str = "
UPDATE clock
SET compacted_rv = $2
WHERE id = $1 AND compacted_rv < $2";

async fn raise(
    connection: &mut SqliteConnection,
    resource: i64,
    to: i64,
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(RAISE)
        .bind(resource)
        .bind(to)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

const OLDEST: &str = "
SELECT COUNT(*), MAX(rv)
FROM (
    SELECT rv
    FROM event
    WHERE resource = $1 AND rv <= $2
    ORDER BY rv
    LIMIT $3
)";

// A blob whose last reference goes is touched: whoever has just read the state still finds it.
const TOUCH_BLOBS: &str = "
UPDATE blob
SET touched = $4
WHERE sha256 IN (
    SELECT r.sha256
    FROM body_blob r
    WHERE r.body IN (
        SELECT before FROM event WHERE resource = $1 AND rv <= $2 AND before IS NOT NULL
        UNION ALL
        SELECT body FROM event WHERE resource = $1 AND rv <= $2 AND type = $3
    )
)";

const NO_REFERENCES: &str = "
DELETE FROM body_blob
WHERE body IN (
    SELECT before FROM event WHERE resource = $1 AND rv <= $2 AND before IS NOT NULL
    UNION ALL
    SELECT body FROM event WHERE resource = $1 AND rv <= $2 AND type = $3
)";

const NO_BODIES: &str = "
DELETE FROM body
WHERE id IN (
    SELECT before FROM event WHERE resource = $1 AND rv <= $2 AND before IS NOT NULL
    UNION ALL
    SELECT body FROM event WHERE resource = $1 AND rv <= $2 AND type = $3
)";

const NO_ENTRIES: &str = "
DELETE FROM event
WHERE resource = $1 AND rv <= $2";

async fn entries(
    connection: &mut SqliteConnection,
    resource: i64,
    to: i64,
) -> Result<u64, sqlx::Error> {
    let (count, last): (i64, Option<i64>) = sqlx::query_as(OLDEST)
        .bind(resource)
        .bind(to)
        .bind(STEP)
        .fetch_one(&mut *connection)
        .await?;
    let Some(last) = last else { return Ok(0) };
    for statement in [TOUCH_BLOBS, NO_REFERENCES, NO_BODIES, NO_ENTRIES] {
        sqlx::query(statement)
            .bind(resource)
            .bind(last)
            .bind(event_number(EventType::Deleted))
            .bind(now())
            .execute(&mut *connection)
            .await?;
    }
    Ok(count as u64)
}

const NO_BLOB: &str = "
DELETE FROM blob
WHERE id = $1 AND touched <= $2
AND NOT EXISTS (SELECT 1 FROM body_blob r WHERE r.sha256 = blob.sha256)";

const NO_BLOB_BYTES: &str = "
DELETE FROM blob_bytes
WHERE id = $1";

async fn blobs(
    connection: &mut SqliteConnection,
    candidates: &[i64],
    untouched_since: i64,
) -> Result<u64, sqlx::Error> {
    let mut gone = 0;
    for id in candidates {
        let done = sqlx::query(NO_BLOB)
            .bind(id)
            .bind(untouched_since)
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() > 0 {
            sqlx::query(NO_BLOB_BYTES)
                .bind(id)
                .execute(&mut *connection)
                .await?;
            gone += 1;
        }
    }
    Ok(gone)
}

const PAGES: &str = "
SELECT f.freelist_count, p.page_count
FROM pragma_freelist_count f, pragma_page_count p";

const VACUUM: &str = "PRAGMA incremental_vacuum(2000)";

/// Gives pages back while more than a quarter of the file is free: what is free is used first by
/// the next writes, so giving back more would only make the file grow again. Says how many went.
pub(super) async fn shrink(connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let (free, pages): (i64, i64) = sqlx::query_as(PAGES).fetch_one(&mut *connection).await?;
    if free < SHRINK_PAGES || free < pages / 4 {
        return Ok(0);
    }
    sqlx::raw_sql(VACUUM).execute(&mut *connection).await?;
    let (left, _): (i64, i64) = sqlx::query_as(PAGES).fetch_one(connection).await?;
    Ok(u64::try_from(free - left).unwrap_or(0))
}
