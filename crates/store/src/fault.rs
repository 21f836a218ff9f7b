//! Errors that are the same whatever the engine.

use muster_apiserver::store::StoreError;

/// What the database holds makes no sense.
pub(crate) fn damaged(what: &'static str) -> StoreError {
    StoreError::Engine {
        attempt: "reading the database",
        source: what.into(),
    }
}
