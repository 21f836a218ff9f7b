//! What was found in layers before. A layer's inventory depends on its diff ID and on our own
//! version alone, so it can be kept by anybody: in a directory, in a store, behind a server. Keeping
//! is a favour and never a condition: whatever goes wrong with it, the layer is read.

mod directory;
mod shared;

pub use directory::Directory;
pub use shared::Shared;

use crate::DiffId;
use async_trait::async_trait;
use muster_scan::layer::LayerInventory;
use std::any::Any;

/// Where inventories are kept.
#[async_trait]
pub trait LayerCache: Send + Sync {
    /// What is kept of a layer, if there is something and it makes sense.
    async fn recall(&self, layer: &DiffId) -> Option<LayerInventory>;

    /// Keeps what was found in a layer.
    async fn keep(&self, layer: &DiffId, found: &LayerInventory);

    /// Waits until nobody else whom this cache knows of reads the layer; it is ours to read until
    /// what is returned is dropped. None if there was no need to wait, or no sense in waiting on.
    async fn turn(&self, _: &DiffId) -> Option<Turn> {
        None
    }
}

/// The right to read a layer, until it is dropped.
pub type Turn = Box<dyn Any + Send>;

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

#[async_trait]
impl LayerCache for Nothing {
    async fn recall(&self, _: &DiffId) -> Option<LayerInventory> {
        None
    }

    async fn keep(&self, _: &DiffId, _: &LayerInventory) {}
}
