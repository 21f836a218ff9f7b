//! The newest revision this process knows of, per resource, for those who follow the log. A hint
//! only ever rises.

use crate::clock::BEGINNING;
use muster_apiserver::store::Resource;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Shared by whoever learns of revisions and whoever waits for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints(Arc<Mutex<HashMap<Resource, watch::Sender<u64>>>>);

impl Hints {
    pub(crate) fn follow(&self, resource: &Resource) -> watch::Receiver<u64> {
        self.with(resource, watch::Sender::subscribe)
    }

    pub(crate) fn raise(&self, resource: &Resource, revision: u64) {
        self.with(resource, |hint| {
            hint.send_if_modified(|known| {
                let grown = revision > *known;
                *known = revision.max(*known);
                grown
            })
        });
    }

    /// Whether somebody follows the resource and does not know of this revision.
    pub(crate) fn lags(&self, resource: &Resource, revision: u64) -> bool {
        let hints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hints
            .get(resource)
            .is_some_and(|hint| hint.receiver_count() > 0 && *hint.borrow() < revision)
    }

    /// Whether anybody follows anything.
    pub(crate) fn followed(&self) -> bool {
        let hints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hints.values().any(|hint| hint.receiver_count() > 0)
    }

    fn with<T>(&self, resource: &Resource, act: impl FnOnce(&watch::Sender<u64>) -> T) -> T {
        let mut hints = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(hints
            .entry(resource.clone())
            .or_insert_with(|| watch::Sender::new(BEGINNING as u64)))
    }
}
