//! When a Registry is scanned again after its last full scan. A scan that succeeded counts for the whole
//! interval. One that failed is repeated after growing pauses, which follow from what is stored: the end of
//! that scan, and the time since which scans of the Registry fail. Neither is lost by a restart or with old jobs.

use super::plan::Registry;
use super::run::{Outcome, Run};
use crate::message::JobKind;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Pause after the first failed scan, and the least after any.
pub(super) const RETRY_AFTER: SignedDuration = SignedDuration::from_mins(1);
/// Longest pause while no image can be scanned, as when the registry is away. A scan that covers a part of
/// the images costs more, so its pauses grow up to the interval.
const MAX_PAUSE: SignedDuration = SignedDuration::from_hours(1);

/// The last full scan that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last<'a> {
    pub(super) ended: Timestamp,
    pub(super) has_failed: bool,
    /// Generation of the Registry that it scanned, if that is known.
    generation: Option<i64>,
    status: &'a Value,
}

impl<'a> Last<'a> {
    /// The last scan of all jobs that exist, and of what the status of the Registry says of older ones.
    pub(super) fn of(registry: &Registry<'a>, runs: &'a [Run]) -> Option<Self> {
        let noted = &registry.status["lastScan"];
        let noted_end = noted["completionTime"].as_str();
        let noted = noted_end
            .and_then(|end| end.parse().ok())
            .map(|ended| Last {
                ended,
                has_failed: noted["result"] == "Failed",
                generation: None,
                status: noted,
            });
        let full = runs
            .iter()
            .filter(|run| run.kind == JobKind::ScanJob && run.full);
        let ended = full.filter_map(|run| {
            run.outcome.map(|outcome| Last {
                ended: run.ended.unwrap_or(run.created),
                has_failed: outcome == Outcome::Failed,
                generation: run.generation,
                status: &run.status,
            })
        });
        // Of two that are equal the job is the last, and says more.
        noted.into_iter().chain(ended).max_by_key(|last| last.ended)
    }

    /// Pause between the end of this scan and the next one.
    pub(super) fn pause(
        &self,
        registry: &Registry<'_>,
        interval: SignedDuration,
    ) -> SignedDuration {
        if !self.has_failed {
            return interval;
        }
        let first = RETRY_AFTER.min(interval);
        if self.is_outdated(registry) {
            return first;
        }
        let has_scanned = self.status["scannedImagesCount"].as_u64() > Some(0);
        let longest = match has_scanned {
            true => interval,
            false => MAX_PAUSE.min(interval),
        };
        // As long as scans have failed so far: that doubles with each.
        let failing = failing_since(registry).map(|since| self.ended.duration_since(since));
        failing.unwrap_or_default().clamp(first, longest.max(first))
    }

    /// Whether the reason of the failure may be gone: the registry answers again, the Registry has
    /// another spec, or its Secret was written since.
    fn is_outdated(&self, registry: &Registry<'_>) -> bool {
        let back = registry
            .condition("Reachable")
            .filter(|reachable| reachable["status"] == "True");
        let back = back.and_then(|reachable| time(&reachable["lastTransitionTime"]));
        let is_back = back.is_some_and(|back| back > self.ended);
        let is_changed = self
            .generation
            .is_some_and(|scanned| scanned < registry.generation);
        let is_written = registry
            .secret_written
            .is_some_and(|written| written > self.ended);
        is_back || is_changed || is_written
    }
}

/// Since when no full scan of the Registry succeeded, if the last one failed and that is noted.
fn failing_since(registry: &Registry<'_>) -> Option<Timestamp> {
    let current = registry.condition("UpToDate")?;
    let is_failing = current["status"] == "False";
    is_failing.then(|| time(&current["lastTransitionTime"]))?
}

fn time(text: &Value) -> Option<Timestamp> {
    text.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
