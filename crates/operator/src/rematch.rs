//! After the vulnerability data or what VEX hubs say was replaced, every report that the old data
//! made is made again; nothing is read from a registry. Which ones these are is seen from the
//! reports themselves, so that a pass that was cut short goes on where it was. The messages have a
//! subject of their own with few workers: scans that somebody waits for come first.

use crate::message::Rematch;
use crate::object::{MATCHED_WITH, REPORT, noted};
use crate::work::{Operator, Trouble};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// How often it is seen whether the data was replaced.
const LOOK: Duration = Duration::from_secs(10);
/// A pass is made this often though the data is the same, for what the last one lost.
const AGAIN: u32 = 60;

/// Watches the data until `stop`.
pub(crate) async fn run(operator: Arc<Operator>, stop: CancellationToken) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut idle) = (None, 0);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        // Without data there is nothing to match with; whoever scans says so.
        let Ok(known) = operator.knowledge().now() else {
            continue;
        };
        let key = known.key();
        idle += 1;
        if seen.as_ref() == Some(&key) && idle < AGAIN {
            continue;
        }
        match pass(&operator, &key).await {
            Ok(count) => {
                if count > 0 {
                    tracing::info!(count, "reports of older data are made again");
                }
                (seen, idle) = (Some(key), 0);
            }
            Err(trouble) => tracing::warn!(%trouble, "looking for reports of older data"),
        }
    }
}

/// Hands out every report that other data made.
async fn pass(operator: &Operator, key: &str) -> Result<usize, Trouble> {
    let api: Api<DynamicObject> = REPORT.all(operator.client());
    let mut parameters = ListParams::default().limit(500);
    let mut count = 0;
    loop {
        let page = api.list_metadata(&parameters).await?;
        for report in page.items {
            let metadata = report.metadata;
            // One that never was ours to make stays what it is.
            if noted(&metadata, MATCHED_WITH).is_none_or(|with| with == key) {
                continue;
            }
            // The data may be what it was a moment ago once more, and then this is no repetition.
            let revision = metadata.resource_version.unwrap_or_default();
            let message = Rematch {
                namespace: metadata.namespace.unwrap_or_default(),
                image: metadata.name.unwrap_or_default(),
            };
            operator.again(&message, key, &revision).await?;
            count += 1;
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(count),
        }
    }
}
