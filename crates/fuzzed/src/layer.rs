//! Layers: whatever the bytes are, reading them ends, and an inventory survives being kept.

use muster_scan::image::merge;
use muster_scan::layer::{self, LayerInventory};
use muster_scan::limits::Limits;

const LIMITS: Limits = Limits {
    layer_bytes: 1 << 22,
    expansion_from: 1 << 20,
    file_bytes: 1 << 20,
    database_bytes: 1 << 20,
    window_log: 20,
    ..Limits::DEFAULT
};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(layer) = layer::read(bytes, &LIMITS) else {
        return;
    };
    let kept = serde_json::to_vec(&layer.inventory).expect("an inventory can be kept");
    let read: LayerInventory = serde_json::from_slice(&kept).expect("and read again");
    assert_eq!(read, layer.inventory);
    let _ = merge([(&layer.diff_id, &layer.inventory), (&layer.diff_id, &read)]);
}
