//! Merge patches: a document and a patch, parted by a NUL; a second time changes nothing.

use muster_merge::merge_patch;
use serde_json::Value;

pub(crate) fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (Some(document), Some(patch)) = (parts.next(), parts.next()) else {
        return;
    };
    if let (Ok(mut document), Ok(patch)) = (
        serde_json::from_slice::<Value>(document),
        merge_patch::parse(patch),
    ) && merge_patch::apply(&mut document, &patch).is_ok()
    {
        let once = document.clone();
        let _ = merge_patch::apply(&mut document, &patch);
        assert_eq!(once, document);
    }
}
