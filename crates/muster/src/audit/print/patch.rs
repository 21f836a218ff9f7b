//! What a policy would change, in a line that people can read.

use serde_json::Value;

/// A JSON patch in words: `add /metadata/labels/a "b", remove /spec/x`.
pub(super) fn told(patch: &[Value]) -> String {
    let steps = patch.iter().map(|step| {
        let text = |field: &str| step[field].as_str().unwrap_or_default();
        let (op, path) = (text("op"), text("path"));
        match op {
            "move" | "copy" => format!("{op} {} to {path}", text("from")),
            "remove" => format!("{op} {path}"),
            _ => format!("{op} {path} {}", step["value"]),
        }
    });
    steps.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_is_told_step_by_step() {
        let patch = [
            json!({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}),
            json!({"op": "remove", "path": "/spec/x"}),
            json!({"op": "move", "from": "/a", "path": "/b"}),
        ];
        assert_eq!(
            told(&patch),
            "add /metadata/labels {\"a\":\"b\"}, remove /spec/x, move /a to /b"
        );
    }
}
