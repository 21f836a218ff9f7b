//! Hearing of writes that other processes made: the clocks are read at a modest interval, all in
//! one small query, and at once when somebody says that there is news. What was said is never
//! believed, only looked up, so a wrong word costs a query.

use super::connections::Connections;
use super::fault::during;
use crate::clock::Origin;
use crate::hints::Hints;
use muster_apiserver::store::StoreError;
use sqlx::PgConnection;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

const CLOCKS: &str = "
SELECT i.origin, c.resource, c.rv
FROM incarnation i
LEFT JOIN clock c ON TRUE";

/// The hints as the database has them.
pub(super) async fn read(connection: &mut PgConnection) -> Result<Hints, sqlx::Error> {
    let hints = Hints::default();
    refresh(connection, &hints).await?;
    Ok(hints)
}

async fn refresh(connection: &mut PgConnection, hints: &Hints) -> Result<(), sqlx::Error> {
    let clocks: Vec<(i64, Option<String>, Option<i64>)> =
        sqlx::query_as(CLOCKS).fetch_all(connection).await?;
    if let Some((origin, ..)) = clocks.first() {
        hints.raise_all(Origin(*origin));
    }
    for (_, resource, revision) in clocks {
        if let (Some(resource), Some(revision)) = (resource, revision) {
            hints.raise(&resource.into(), revision as u64);
        }
    }
    Ok(())
}

/// Follows the clocks as long as somebody follows the hints; ends when the store is closed.
pub(super) async fn follow(connections: Arc<Connections>, hints: Hints, nudged: Arc<Notify>) {
    let poll = connections.options.poll;
    let mut failing = false;
    loop {
        // After a failure nobody's word is a reason to hurry.
        match failing {
            true => sleep(poll.max(Duration::from_secs(1))).await,
            false => {
                let _ = timeout(poll, nudged.notified()).await;
            }
        }
        if !hints.followed() {
            continue;
        }
        let limit = connections.options.patience();
        match timeout(limit, look(&connections, &hints)).await {
            Ok(Ok(())) => {
                if failing {
                    tracing::info!("the database answers again");
                }
                failing = false;
            }
            Ok(Err(StoreError::Closed)) => return,
            Ok(Err(error)) => {
                if !failing {
                    let reason = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(%error, reason, "the clocks cannot be read");
                }
                failing = true;
            }
            Err(_) => failing = true,
        }
    }
}

async fn look(connections: &Connections, hints: &Hints) -> Result<(), StoreError> {
    let mut lease = connections.lease().await?;
    refresh(lease.connection(), hints)
        .await
        .map_err(during("reading the clocks"))?;
    lease.done();
    Ok(())
}
