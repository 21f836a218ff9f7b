//! Reading the log: the clock and a range of the log's primary key in one statement, which is one
//! snapshot, so nothing is compacted in between.

use super::body;
use super::connections::Connections;
use super::fault::during;
use crate::clock::{Clock, event_type, signed};
use crate::fault::damaged;
use muster_apiserver::store::{Event, Key, Resource, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

const ATTEMPT: &str = "reading the log";

const EVENTS: &str = "
SELECT c.id, c.rv, c.compacted_rv,
    e.rv, e.type, e.namespace, e.name, e.before,
    a.revision_at, a.form, a.blobs, a.text,
    b.revision_at, b.form, b.blobs, b.text
FROM clock c
LEFT JOIN LATERAL (
    SELECT rv, type, namespace, name, body, before
    FROM event
    WHERE resource = c.id AND rv > $2
    ORDER BY rv
    LIMIT $3
) e ON TRUE
LEFT JOIN body a ON a.id = e.body
LEFT JOIN body b ON b.id = e.before
WHERE c.resource = $1
ORDER BY e.rv";

pub(super) async fn events(
    connections: &Connections,
    resource: &Resource,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let failed = during(ATTEMPT);
    let mut lease = connections.lease().await?;
    let rows = sqlx::query(EVENTS)
        .bind(&**resource)
        .bind(signed(after))
        .bind(signed(limit as u64))
        .fetch_all(lease.connection())
        .await
        .map_err(&failed)?;
    lease.done();
    let clock = match rows.first() {
        None => Clock::NEW,
        Some(row) => Clock {
            resource: row.try_get(0).map_err(&failed)?,
            revision: row.try_get(1).map_err(&failed)?,
            compacted: row.try_get(2).map_err(&failed)?,
        },
    };
    clock.check(after)?;
    let events = rows.iter().filter_map(|row| event(row).transpose());
    events.collect()
}

/// The entry of a row; a clock without entries is a row without one.
fn event(row: &PgRow) -> Result<Option<Event>, StoreError> {
    let failed = during(ATTEMPT);
    let revision: Option<i64> = row.try_get(3).map_err(&failed)?;
    let Some(revision) = revision else {
        return Ok(None);
    };
    let number: i64 = row.try_get(4).map_err(&failed)?;
    let before: Option<i64> = row.try_get(7).map_err(&failed)?;
    Ok(Some(Event {
        revision: revision as u64,
        event: event_type(number)
            .ok_or_else(|| damaged("an entry of the log has an unknown type"))?,
        key: Key {
            namespace: row.try_get(5).map_err(&failed)?,
            name: row.try_get(6).map_err(&failed)?,
        },
        body: body::read(row, 8)?,
        before: before.map(|_| body::read(row, 12)).transpose()?,
    }))
}
