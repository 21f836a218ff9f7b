//! A cache whose users read no layer twice: who wants a layer that another of this process is
//! reading waits for what the other finds, though not for ever.

use super::{LayerCache, Turn};
use crate::DiffId;
use async_trait::async_trait;
use muster_scan::layer::LayerInventory;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// How long somebody waits for another who reads the same layer, before both do: a registry may be
/// slow, or slow on purpose.
const WAIT: Duration = Duration::from_secs(60);

/// A cache, and who of this process reads which layer.
pub struct Shared {
    kept: Arc<dyn LayerCache>,
    /// The layers that somebody reads or waits for; a place goes with the last of them.
    places: Mutex<HashMap<DiffId, Weak<Place>>>,
}

/// Where those who want a layer wait, and find it.
#[derive(Default)]
struct Place {
    turn: Arc<tokio::sync::Mutex<()>>,
    found: OnceLock<LayerInventory>,
}

/// Whose turn it is; a place lasts as long as somebody has or awaits it.
struct Held {
    _turn: OwnedMutexGuard<()>,
    _place: Arc<Place>,
}

impl Shared {
    /// Shares this cache.
    pub fn new(kept: Arc<dyn LayerCache>) -> Self {
        Shared {
            kept,
            places: Mutex::default(),
        }
    }

    /// The place of a layer, if there is one.
    fn place(&self, layer: &DiffId) -> Option<Arc<Place>> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.get(layer)?.upgrade()
    }

    /// The place of a layer; a new one where nobody reads it. Places that are no more are left.
    fn enter(&self, layer: &DiffId) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(layer).and_then(Weak::upgrade) {
            return place;
        }
        places.retain(|_, place| place.strong_count() > 0);
        let place = Arc::new(Place::default());
        places.insert(layer.clone(), Arc::downgrade(&place));
        place
    }
}

#[async_trait]
impl LayerCache for Shared {
    async fn recall(&self, layer: &DiffId) -> Option<LayerInventory> {
        let place = self.place(layer);
        if let Some(found) = place.and_then(|place| place.found.get().cloned()) {
            return Some(found);
        }
        self.kept.recall(layer).await
    }

    async fn keep(&self, layer: &DiffId, found: &LayerInventory) {
        if let Some(place) = self.place(layer) {
            // Whoever was first is as right as we are.
            let _ = place.found.set(found.clone());
        }
        self.kept.keep(layer, found).await;
    }

    async fn turn(&self, layer: &DiffId) -> Option<Turn> {
        let place = self.enter(layer);
        let turn = tokio::time::timeout(WAIT, place.turn.clone().lock_owned()).await;
        Some(Box::new(Held {
            _turn: turn.ok()?,
            _place: place,
        }))
    }
}
