//! Inventories of layers as somebody else kept them: refused, or kept again as the same bytes.

use muster_scan::digest::Digest;
use muster_scan::image::merge;
use muster_scan::layer::LayerInventory;
use muster_scan::limits::Limits;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(inventory) = LayerInventory::from_bytes(bytes, &Limits::DEFAULT) else {
        return;
    };
    let kept = inventory.to_bytes().expect("an inventory can be kept");
    let again = LayerInventory::from_bytes(&kept, &Limits::DEFAULT).expect("and read again");
    assert_eq!(again, inventory);
    assert_eq!(again.to_bytes().ok(), Some(kept));
    let layer = Digest::of(bytes);
    let _ = merge([(&layer, &inventory), (&layer, &again)]);
}
