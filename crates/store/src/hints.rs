//! The newest revision this process knows of, per resource, for those who follow the log. A hint
//! only ever rises.

use crate::clock::Origin;
use muster_apiserver::store::Resource;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Shared by whoever learns of revisions and whoever waits for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    /// No resource stands before it.
    origin: u64,
    newest: HashMap<Resource, watch::Sender<u64>>,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            origin: Origin::FIRST.0 as u64,
            newest: HashMap::new(),
        }
    }
}

impl Hints {
    pub(crate) fn follow(&self, resource: &Resource) -> watch::Receiver<u64> {
        self.with(resource, watch::Sender::subscribe)
    }

    pub(crate) fn raise(&self, resource: &Resource, revision: u64) {
        self.with(resource, |hint| raise(hint, revision));
    }

    /// All resources stand here at least, also those never written: what anybody knows of them
    /// from before is of a life that is over.
    pub(crate) fn raise_all(&self, origin: Origin) {
        let mut hints = self.lock();
        hints.origin = hints.origin.max(origin.0 as u64);
        for hint in hints.newest.values() {
            raise(hint, hints.origin);
        }
    }

    /// Whether somebody follows the resource and does not know of this revision.
    pub(crate) fn lags(&self, resource: &Resource, revision: u64) -> bool {
        let hints = self.lock();
        let hint = hints.newest.get(resource);
        hint.is_some_and(|hint| hint.receiver_count() > 0 && *hint.borrow() < revision)
    }

    /// Whether anybody follows anything.
    pub(crate) fn followed(&self) -> bool {
        let hints = self.lock();
        let mut newest = hints.newest.values();
        newest.any(|hint| hint.receiver_count() > 0)
    }

    fn with<T>(&self, resource: &Resource, act: impl FnOnce(&watch::Sender<u64>) -> T) -> T {
        let mut hints = self.lock();
        let origin = hints.origin;
        let hint = hints.newest.entry(resource.clone());
        act(hint.or_insert_with(|| watch::Sender::new(origin)))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn raise(hint: &watch::Sender<u64>, revision: u64) {
    hint.send_if_modified(|known| {
        let grown = revision > *known;
        *known = revision.max(*known);
        grown
    });
}
