//! Strategic merge patches: a document and a patch, parted by a NUL.

use muster_merge::strategic;
use serde_json::Value;

pub(crate) fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (Some(document), Some(patch)) = (parts.next(), parts.next()) else {
        return;
    };
    if let (Ok(mut document), Ok(patch)) = (
        serde_json::from_slice::<Value>(document),
        serde_json::from_slice::<Value>(patch),
    ) {
        let _ = strategic::apply(&mut document, &patch, &crate::schema::schema());
    }
}
