//! What happens if a policy is not evaluated for a reason that is not its own: a limit of the process, a
//! panic. That is no result. The report from before stays and is marked as stale; without one an incomplete
//! report is written, which has no hashes and is marked too. Either way the object is evaluated again, later
//! each time, and after a restart.
//!
//! Errors that are results may go away too: a policy may have run out of time on a busy machine, and earlier
//! versions stored as results what was not evaluated. So every object whose report has errors is evaluated
//! again after each start, and at each verification.

use super::{ConfigAuditor, Kept, ReportName, Task};
use crate::ledger::Whereabouts;
use muster_checks::report::Hashes;
use std::time::Duration;

/// After how long reports that could not be listed are listed again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What came of looking at an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// Its report is as it should be.
    Done,
    /// Some policies were not evaluated, and why.
    Incomplete(String),
}

impl Kept {
    /// What it was made from, if it is not to be made again.
    pub(super) fn current_hashes(&self) -> Option<&Hashes> {
        let is_current = !self.is_stale && !self.is_revisited;
        self.hashes.as_ref().filter(|_| is_current)
    }

    /// Whether it stays while there is no successor. One that is in doubt does not.
    pub(super) fn stays(&self) -> bool {
        self.hashes.is_some() || self.is_stale
    }
}

impl ConfigAuditor {
    /// Marks the report of an object as stale, unless it is.
    pub(super) async fn mark_stale(
        &self,
        name: &ReportName,
        before: &Kept,
        why: &str,
    ) -> kube::Result<()> {
        if before.is_stale {
            return Ok(());
        }
        let (namespace, of) = (name.0.as_deref(), &name.1);
        let revision = self.shelf.mark_stale(namespace, of, why).await?;
        if let Some(kept) = self.state().reports.get_mut(name) {
            kept.is_stale = true;
            (kept.written, kept.seen) = (revision, kept.seen.max(revision));
        }
        Ok(())
    }

    /// Has an object evaluated again, of which some policies were not evaluated.
    pub(super) fn incomplete(&self, at: Whereabouts, why: &str) {
        if self.retry(&at) == 1 {
            let (resource, name) = (&at.place.1, &at.name);
            tracing::warn!(why, resource, name, "a policy was not evaluated; retrying");
        }
    }

    /// Has all objects evaluated again whose reports have errors.
    pub(super) async fn revisit(&self) {
        match self.shelf.with_errors().await {
            Ok(names) => {
                for name in names {
                    self.revisit_one(&name);
                }
            }
            Err(error) if crate::book::is_absent(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to list reports with errors; retrying");
                self.want(Task::Revisit, RETRY_AFTER);
            }
        }
    }

    fn revisit_one(&self, name: &ReportName) {
        let mut state = self.state();
        let Some(kept) = state.reports.get_mut(name) else {
            return;
        };
        // One that is stale is retried already.
        if kept.is_stale {
            return;
        }
        kept.is_revisited = true;
        let kept = kept.clone();
        let at = state.whereabouts(name, &kept);
        drop(state);
        if let Some(at) = at {
            self.want(Task::Look(at), Duration::ZERO);
        }
    }
}
