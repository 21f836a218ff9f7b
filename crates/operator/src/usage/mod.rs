//! Who uses an image: `Image.status.workloadScanReports` names the workloads' reports that count it,
//! so that "which workloads have this?" is one read. Whoever keeps the reports tells their links
//! here ([`Usage`]); [`run`] watches the Images and writes the lists that are not what they should
//! be. What should be follows from both sides alone ([`index`]), so losing this process loses nothing,
//! and a list is only ever shortened once every report there is has been told.

mod index;
mod narrow;
mod place;
mod run;

use index::{Index, Name};
pub(crate) use run::run;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The links of all reports and of the Images that answer to them.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    index: Mutex<Index>,
    /// There may be something to write or to look for.
    changed: Notify,
}

impl Usage {
    /// Tells what a report asks for now.
    pub(crate) fn report(&self, namespace: &str, name: &str, links: BTreeSet<String>) {
        self.change(|index| index.report(Name::new(namespace, name), links));
    }

    /// Tells that a report is gone.
    pub(crate) fn gone(&self, namespace: &str, name: &str) {
        self.report(namespace, name, BTreeSet::new());
    }

    /// Tells that every report there is has been told. Until then no list is shortened.
    pub(crate) fn complete(&self) {
        self.change(Index::complete);
    }

    /// Changes the index; what that leaves to do is done by [`run`].
    fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        let (outcome, has_work) = {
            let mut index = self.locked();
            (change(&mut index), index.has_work())
        };
        if has_work {
            self.changed.notify_one();
        }
        outcome
    }

    fn locked(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
