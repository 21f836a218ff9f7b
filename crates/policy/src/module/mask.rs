//! The part of an object that a policy wants to see: fields by their paths, with dots between the names,
//! through all items of a list. What an object is stays in any case, since a policy reads it by that.

use serde_json::Value;
use std::collections::BTreeSet;

/// What is never taken away.
const KEPT: [&str; 2] = ["apiVersion", "kind"];

/// Takes away everything but the fields at `paths`.
pub(super) fn apply(object: &mut Value, paths: &BTreeSet<String>) {
    let paths: Vec<Vec<&str>> = KEPT
        .into_iter()
        .chain(paths.iter().map(String::as_str))
        .map(|path| path.split('.').collect())
        .collect();
    let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
    keep(object, &paths);
}

/// Keeps what any of `paths` leads to; a path that is at its end keeps everything below.
fn keep(value: &mut Value, paths: &[&[&str]]) {
    if paths.iter().any(|path| path.is_empty()) {
        return;
    }
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let further: Vec<&[&str]> = paths
                .iter()
                .filter_map(|path| path.split_first())
                .filter(|(first, _)| *first == name)
                .map(|(_, rest)| rest)
                .collect();
            keep(value, &further);
            !further.is_empty()
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| keep(item, paths)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_fields_at_the_paths_are_left() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}], "nodeName": "n"},
        });
        for (paths, expected) in [
            (&["metadata.name"][..], json!({"metadata": {"name": "p"}})),
            (
                &["metadata", "metadata.name"],
                json!({"metadata": {"name": "p", "labels": {"a": "b"}}}),
            ),
            (
                &["spec.containers.image", "spec.nodeName"],
                json!({"spec": {"containers": [{"image": "x"}, {}], "nodeName": "n"}}),
            ),
            (&["status", ""], json!({})),
        ] {
            let mut masked = pod.clone();
            apply(
                &mut masked,
                &paths.iter().map(|path| (*path).into()).collect(),
            );
            let mut expected = expected;
            expected["apiVersion"] = json!("v1");
            expected["kind"] = json!("Pod");
            assert_eq!(masked, expected, "{paths:?}");
        }
    }
}
