//! JSON patches: a document and a patch, parted by a NUL.

use muster_merge::json_patch;
use serde_json::Value;

pub(crate) fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (Some(document), Some(patch)) = (parts.next(), parts.next()) else {
        return;
    };
    if let (Ok(mut document), Ok(operations)) = (
        serde_json::from_slice::<Value>(document),
        json_patch::parse(patch),
    ) {
        let _ = json_patch::apply(&mut document, &operations);
        let text = document.to_string();
        assert!(text.len() < 64 << 20, "a small patch made a huge document");
    }
}
