//! Reading the log: a range of its primary key, with the states it refers to.

use super::body::BodyRow;
use super::fault::{damaged, during};
use super::{clock, event_type, signed};
use futures::TryStreamExt;
use muster_apiserver::store::{Event, Key, Resource, StoreError};
use sqlx::Row;
use sqlx::sqlite::{SqlitePool, SqliteRow};

const EVENTS: &str = "
SELECT e.rv, e.type, e.namespace, e.name, e.before,
    a.revision_at, a.form, a.blobs, a.text,
    b.revision_at, b.form, b.blobs, b.text
FROM event e
CROSS JOIN body a ON a.id = e.body
LEFT JOIN body b ON b.id = e.before
WHERE e.resource = $1 AND e.rv > $2
ORDER BY e.rv
LIMIT $3";

pub(super) async fn events(
    readers: &SqlitePool,
    resource: &Resource,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let failed = during("reading the log");
    // One snapshot for the clock and the log: what is compacted meanwhile is still there.
    let mut transaction = readers.begin().await.map_err(&failed)?;
    let clock = clock(&mut *transaction, resource).await?;
    clock.check(after)?;
    let mut rows = sqlx::query(EVENTS)
        .bind(clock.resource)
        .bind(signed(after))
        .bind(signed(limit as u64))
        .fetch(&mut *transaction);
    let mut events = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        events.push(event(&row)?);
    }
    Ok(events)
}

fn event(row: &SqliteRow) -> Result<Event, StoreError> {
    let failed = during("reading the log");
    let revision: i64 = row.try_get(0).map_err(&failed)?;
    let number: i64 = row.try_get(1).map_err(&failed)?;
    let before: Option<i64> = row.try_get(4).map_err(&failed)?;
    Ok(Event {
        revision: revision as u64,
        event: event_type(number)
            .ok_or_else(|| damaged("an entry of the log has an unknown type"))?,
        key: Key {
            namespace: row.try_get(2).map_err(&failed)?,
            name: row.try_get(3).map_err(&failed)?,
        },
        body: BodyRow::unpack(row, 5)?,
        before: before.map(|_| BodyRow::unpack(row, 9)).transpose()?,
    })
}
