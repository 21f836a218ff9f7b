//! Keeping the store small: old log entries are compacted, and Event objects live an hour.

use crate::delete::DeleteOptions;
use crate::garbage;
use crate::server::Server;
use crate::store::{ListQuery, StoreError};
use jiff::{SignedDuration, Timestamp};
use muster_kind::object::meta;
use muster_kind::selector::{FieldSelector, LabelSelector};
use std::sync::Arc;
use std::time::Duration;

/// How much of the past is kept, and how often the rest is forgotten. What is kept bounds how long
/// a watcher may be away and still resume, and how long a page of a list may wait for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upkeep {
    /// The pause between two rounds.
    pub interval: Duration,
    /// The log reaches back at least this long.
    pub keep_seconds: u64,
    /// The log keeps at least this many events of every resource.
    pub keep_events: u64,
    /// How long Event objects live.
    pub event_seconds: u64,
}

impl Default for Upkeep {
    fn default() -> Self {
        Upkeep {
            interval: Duration::from_secs(300),
            keep_seconds: 15 * 60,
            keep_events: 1000,
            event_seconds: 3600,
        }
    }
}

/// Keeps the store small until the server stops.
pub(crate) async fn run(server: Arc<Server>, upkeep: Upkeep) {
    loop {
        tokio::select! {
            () = server.stop.cancelled() => return,
            () = tokio::time::sleep(upkeep.interval) => {}
        }
        let compacted = server
            .store
            .compact(upkeep.keep_seconds, upkeep.keep_events)
            .await;
        match compacted {
            Ok(0) => {}
            Ok(entries) => tracing::debug!(entries, "compacted the log"),
            Err(error) => tracing::warn!(%error, "compacting the log"),
        }
        let end = end_of_events(Timestamp::now(), upkeep.event_seconds);
        if let Err(error) = expire_events(&server, end).await {
            tracing::warn!(%error, "expiring events");
        }
    }
}

/// The time before which Event objects are expired.
fn end_of_events(now: Timestamp, seconds: u64) -> Timestamp {
    let age = i64::try_from(seconds).map_or(SignedDuration::MAX, SignedDuration::from_secs);
    now.saturating_sub(age).unwrap_or(Timestamp::MIN)
}

/// Deletes Event objects that were made before a time.
async fn expire_events(server: &Arc<Server>, end: Timestamp) -> Result<(), StoreError> {
    let Some(served) = server.catalog.resource("events").cloned() else {
        return Ok(());
    };
    let mut query = ListQuery {
        resource: served.resource.clone(),
        namespace: None,
        labels: LabelSelector::default(),
        fields: FieldSelector::default(),
        at: None,
        after: None,
        limit: 500,
    };
    let options = DeleteOptions {
        propagation: None,
        uid: None,
        revision: None,
        dry_run: false,
    };
    loop {
        let page = server.store.list(query.clone()).await?;
        query.after = page.items.last().map(|stored| stored.key.clone());
        for stored in page.items {
            let tree = served.tree(&stored.body, stored.revision);
            let created: Option<Timestamp> = meta(&tree, "creationTimestamp").parse().ok();
            if created.is_some_and(|created| created < end) {
                garbage::delete(server, &served, stored.key, &options).await;
            }
        }
        if !page.more {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_are_kept_for_ever_do_not_expire() {
        let now = Timestamp::UNIX_EPOCH;
        for (seconds, expected) in [
            (0, now),
            (60, Timestamp::constant(-60, 0)),
            (i64::MAX as u64, Timestamp::MIN),
            (u64::MAX, Timestamp::MIN),
        ] {
            assert_eq!(end_of_events(now, seconds), expected, "{seconds}");
        }
    }
}
