//! Server-side apply: a live object and a configuration, parted by a NUL. Forced, it has no
//! conflicts, and a second time changes nothing.

use muster_merge::{ApplyError, ApplyRequest, Set, apply};
use serde_json::Value;

pub(crate) fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (Some(live), Some(applied)) = (parts.next(), parts.next()) else {
        return;
    };
    let (Ok(live), Ok(mut applied)) = (
        serde_json::from_slice::<Value>(live),
        serde_json::from_slice::<Value>(applied),
    ) else {
        return;
    };
    if let Some(fields) = applied.as_object_mut() {
        fields.insert("apiVersion".into(), "v1".into());
    }
    let (schema, reset) = (crate::schema::schema(), Set::default());
    let request = ApplyRequest {
        live: Some(&live),
        applied: &applied,
        schema: &schema,
        manager: "fuzz",
        force: false,
        api_version: "v1",
        subresource: None,
        now: "2024-01-01T00:00:00Z",
        reset: &reset,
    };
    let _ = apply(request);
    let forced = ApplyRequest {
        force: true,
        ..request
    };
    match apply(forced) {
        Err(ApplyError::Conflicts(_)) => panic!("a forced apply has no conflicts"),
        Err(_) => {}
        Ok(first) => {
            let live = Some(&first.object);
            let second = apply(ApplyRequest { live, ..forced });
            let second = second.expect("what was applied can be applied again");
            assert!(!second.changed, "{} became {}", first.object, second.object);
        }
    }
}
