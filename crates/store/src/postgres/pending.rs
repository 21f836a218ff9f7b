//! Going on with changes that concern more reports than one transaction tells. Who made such a
//! change goes on at once; should that process end, any other does: all look now and then. One at
//! a time works on a change, and each portion is a transaction with the note of what is left, so
//! every report is told once.

use super::connections::Connections;
use super::fault::during;
use crate::computed::{PORTION, WORKLOADS};
use crate::hints::Hints;
use muster_apiserver::store::{Resource, StoreError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, broadcast};
use tokio::time::timeout;

/// How often one looks for what others have left.
const LOOK: Duration = Duration::from_secs(5);

const MORE: &str = "
SELECT last_revision
FROM touch_more_1($1, $2)";

/// What the task needs of its store.
pub(super) struct Pending {
    pub(super) connections: Arc<Connections>,
    pub(super) hints: Hints,
    pub(super) written: broadcast::Sender<(Resource, u64)>,
    /// Somebody has left something.
    pub(super) left: Arc<Notify>,
}

impl Pending {
    /// Goes on with what is left, from the start, whenever something is; ends when the store is
    /// closed.
    pub(super) async fn run(self) {
        let mut failing = false;
        loop {
            let limit = self.connections.options.patience();
            match timeout(limit, self.portion()).await {
                Ok(Ok(true)) => {
                    failing = false;
                    continue;
                }
                Ok(Ok(false)) => failing = false,
                Ok(Err(StoreError::Closed)) => return,
                Ok(Err(error)) => {
                    if !failing {
                        let reason = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::warn!(%error, reason, "reports wait to be told of a change");
                    }
                    failing = true;
                }
                Err(_) => failing = true,
            }
            match failing {
                true => tokio::time::sleep(LOOK).await,
                false => {
                    let _ = timeout(LOOK, self.left.notified()).await;
                }
            }
        }
    }

    /// Tells some reports; says whether there may be more.
    async fn portion(&self) -> Result<bool, StoreError> {
        let mut lease = self.connections.lease().await?;
        let last: Option<i64> = sqlx::query_scalar(MORE)
            .bind(WORKLOADS)
            .bind(PORTION)
            .fetch_optional(lease.connection())
            .await
            .map_err(during("telling reports of a change"))?;
        lease.done();
        let Some(last) = last else { return Ok(false) };
        let resource = Resource::from(WORKLOADS);
        self.hints.raise(&resource, last as u64);
        // Nobody may be listening.
        let _ = self.written.send((resource, last as u64));
        Ok(true)
    }
}
