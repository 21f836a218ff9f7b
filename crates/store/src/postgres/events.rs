//! Reading the log: the clock and a range of the log's primary key in one statement, which is one
//! snapshot, so nothing is compacted in between.

use super::connections::Connections;
use super::fault::during;
use super::{body, read_clock};
use crate::clock::{event_type, signed};
use crate::fault::damaged;
use muster_apiserver::store::{Event, Key, Resource, StoreError};
use sqlx::Row;
use sqlx::postgres::PgRow;

const ATTEMPT: &str = "reading the log";

const EVENTS: &str = "
SELECT i.origin, c.id, c.rv, c.compacted_rv,
    e.rv, e.type, e.namespace, e.name, e.before,
    a.revision_at, a.form, a.blobs, a.text,
    b.revision_at, b.form, b.blobs, b.text
FROM incarnation i
LEFT JOIN clock c ON c.resource = $1
LEFT JOIN LATERAL (
    SELECT rv, type, namespace, name, body, before
    FROM event
    WHERE resource = c.id AND rv > $2
    ORDER BY rv
    LIMIT $3
) e ON TRUE
LEFT JOIN body a ON a.id = e.body
LEFT JOIN body b ON b.id = e.before
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
    let first = rows.first();
    let first = first.ok_or_else(|| damaged("the database has no incarnation"))?;
    read_clock(first).map_err(&failed)?.check(after)?;
    let events = rows.iter().filter_map(|row| event(row).transpose());
    events.collect()
}

/// The entry of a row; a clock without entries is a row without one.
fn event(row: &PgRow) -> Result<Option<Event>, StoreError> {
    let failed = during(ATTEMPT);
    let revision: Option<i64> = row.try_get(4).map_err(&failed)?;
    let Some(revision) = revision else {
        return Ok(None);
    };
    let number: i64 = row.try_get(5).map_err(&failed)?;
    let before: Option<i64> = row.try_get(8).map_err(&failed)?;
    Ok(Some(Event {
        revision: revision as u64,
        event: event_type(number)
            .ok_or_else(|| damaged("an entry of the log has an unknown type"))?,
        key: Key {
            namespace: row.try_get(6).map_err(&failed)?,
            name: row.try_get(7).map_err(&failed)?,
        },
        body: body::read(row, 9)?,
        before: before.map(|_| body::read(row, 13)).transpose()?,
    }))
}
