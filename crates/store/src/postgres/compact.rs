//! Forgetting. One process at a time does it. The log's end is raised first, in a transaction of
//! its own, so that nobody is promised what is going; then entries go in small steps between which
//! writers have their turn. A step that never came, because the process ended, is made up by the
//! next compaction.
//!
//! Which states go with an entry? Entries go oldest first. When one goes, the state before it has
//! no other friend left: the entry that brought it about is older and gone, the object has moved
//! on. The state after it stays, it is the object's own or the next entry's state before; except
//! for a deletion, whose last state nobody else knows.

use super::PostgresStore;
use super::fault::during;
use crate::clock::{Clock, event_number, signed};
use muster_apiserver::store::{EventType, StoreError};
use sqlx::{Connection, PgConnection};

/// Entries, or blobs, that go in one step.
const STEP: i64 = 500;

// The lock is the connection's, so it ends with a killed process.
const LOCK: &str = "
SELECT pg_try_advisory_lock(hashtextextended('muster compacts ' || current_schema(), 0))";

const UNLOCK: &str = "
SELECT pg_advisory_unlock(hashtextextended('muster compacts ' || current_schema(), 0))";

/// Compacts, unless another process does; that one's entries are not counted here.
pub(super) async fn compact(
    store: &PostgresStore,
    keep_seconds: u64,
    keep_events: u64,
) -> Result<u64, StoreError> {
    let keep = signed(keep_seconds).saturating_mul(1000);
    let idle = i64::try_from(store.connections.options.blob_idle.as_millis()).unwrap_or(i64::MAX);
    let mut lease = store.connections.lease().await?;
    let connection = lease.connection();
    let failed = during("compacting");
    let ours: bool = sqlx::query_scalar(LOCK)
        .fetch_one(&mut *connection)
        .await
        .map_err(&failed)?;
    let mut gone = 0;
    if ours {
        gone = forget(connection, keep, signed(keep_events))
            .await
            .map_err(&failed)?;
        sweep(connection, idle).await.map_err(&failed)?;
        sqlx::query(UNLOCK)
            .execute(connection)
            .await
            .map_err(&failed)?;
    }
    lease.done();
    Ok(gone)
}

const NOW: &str = "SELECT now_1()";

const CLOCKS: &str = "
SELECT id, rv, compacted_rv
FROM clock
ORDER BY id";

const FIRST_TO_KEEP: &str = "
SELECT rv
FROM event
WHERE resource = $1 AND rv > $2 AND time > $3
ORDER BY rv
LIMIT 1";

const RAISE: &str = "
UPDATE clock
SET compacted_rv = $2
WHERE id = $1 AND compacted_rv < $2";

async fn forget(
    connection: &mut PgConnection,
    keep_milliseconds: i64,
    keep_events: i64,
) -> Result<u64, sqlx::Error> {
    let now: i64 = sqlx::query_scalar(NOW).fetch_one(&mut *connection).await?;
    let until = now.saturating_sub(keep_milliseconds);
    let clocks: Vec<(i64, i64, i64)> = sqlx::query_as(CLOCKS).fetch_all(&mut *connection).await?;
    let mut gone = 0;
    for clock in clocks.into_iter().map(Clock::from) {
        let first: Option<i64> = sqlx::query_scalar(FIRST_TO_KEEP)
            .bind(clock.resource)
            .bind(clock.compacted)
            .bind(until)
            .fetch_optional(&mut *connection)
            .await?;
        let to = clock.cut(first, keep_events);
        if to > clock.compacted {
            sqlx::query(RAISE)
                .bind(clock.resource)
                .bind(to)
                .execute(&mut *connection)
                .await?;
        }
        loop {
            let entries = entries(connection, clock.resource, to).await?;
            gone += entries as u64;
            if entries < STEP {
                break;
            }
        }
    }
    Ok(gone)
}

// One statement, so all of it or nothing. A blob whose last reference goes is touched: whoever has
// just read the state still finds it.
const ENTRIES: &str = "
WITH gone AS (
    DELETE FROM event
    WHERE resource = $1 AND rv <= (
        SELECT MAX(rv)
        FROM (
            SELECT rv
            FROM event
            WHERE resource = $1 AND rv <= $2
            ORDER BY rv
            LIMIT $3
        ) oldest
    )
    RETURNING type, body, before
),
state AS (
    SELECT before AS body FROM gone WHERE before IS NOT NULL
    UNION ALL
    SELECT body FROM gone WHERE type = $4
),
reference AS (
    DELETE FROM body_blob
    WHERE body = ANY (ARRAY (SELECT body FROM state))
    RETURNING sha256
),
touched AS (
    UPDATE blob
    SET touched = now_1()
    WHERE sha256 = ANY (ARRAY (SELECT sha256 FROM reference))
),
bodies AS (
    DELETE FROM body
    WHERE id = ANY (ARRAY (SELECT body FROM state))
)
SELECT COUNT(*)
FROM gone";

async fn entries(
    connection: &mut PgConnection,
    resource: i64,
    to: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(ENTRIES)
        .bind(resource)
        .bind(to)
        .bind(STEP)
        .bind(event_number(EventType::Deleted))
        .fetch_one(connection)
        .await
}

const CANDIDATES: &str = "
SELECT b.touched, b.id
FROM blob b
WHERE (b.touched, b.id) > ($1, $2) AND b.touched <= $3
AND NOT EXISTS (SELECT 1 FROM body_blob r WHERE r.sha256 = b.sha256)
ORDER BY b.touched, b.id
LIMIT $4";

// What a writer holds is about to be referred to.
const HOLD: &str = "
SELECT id
FROM blob
WHERE id = ANY ($1)
ORDER BY sha256
FOR UPDATE SKIP LOCKED";

const NO_BLOBS: &str = "
DELETE FROM blob b
WHERE b.id = ANY ($1) AND b.touched <= $2
AND NOT EXISTS (SELECT 1 FROM body_blob r WHERE r.sha256 = b.sha256)";

/// Takes blobs that nothing refers to and nobody has touched for a while. They are looked for
/// without a lock, then locked, then judged by a statement that began after the lock: a writer
/// that came first is seen, and one that comes later sees that the blob is gone.
async fn sweep(connection: &mut PgConnection, idle: i64) -> Result<(), sqlx::Error> {
    let now: i64 = sqlx::query_scalar(NOW).fetch_one(&mut *connection).await?;
    let until = now.saturating_sub(idle);
    let mut behind = (i64::MIN, i64::MIN);
    loop {
        let found: Vec<(i64, i64)> = sqlx::query_as(CANDIDATES)
            .bind(behind.0)
            .bind(behind.1)
            .bind(until)
            .bind(STEP)
            .fetch_all(&mut *connection)
            .await?;
        let Some(last) = found.last() else {
            return Ok(());
        };
        behind = *last;
        let candidates: Vec<i64> = found.iter().map(|(_, id)| *id).collect();
        let mut transaction = connection.begin().await?;
        let held: Vec<i64> = sqlx::query_scalar(HOLD)
            .bind(candidates)
            .fetch_all(&mut *transaction)
            .await?;
        sqlx::query(NO_BLOBS)
            .bind(held)
            .bind(until)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
    }
}
