//! The part of an object that a policy wants to see: fields by their paths, with dots between the names,
//! through all items of a list. Type and metadata of an object stay whole, as in Kubewarden: the SDKs of
//! policies cannot read an object without them.

use serde_json::Value;
use std::collections::BTreeSet;

/// What is never taken away.
const KEPT: [&str; 3] = ["apiVersion", "kind", "metadata"];

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
    fn type_and_metadata_and_the_fields_at_the_paths_are_left() {
        let object = |mut rest: Value| {
            rest["apiVersion"] = json!("v1");
            rest["kind"] = json!("Pod");
            rest["metadata"] = json!({"name": "p", "labels": {"a": "b"}});
            rest
        };
        let pod = object(json!({
            "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}], "nodeName": "n"},
        }));
        for (paths, expected) in [
            (&["metadata.name"][..], json!({})),
            (&["metadata.labels.a", "metadata"], json!({})),
            (
                &["spec.containers.image", "spec.nodeName"],
                json!({"spec": {"containers": [{"image": "x"}, {}], "nodeName": "n"}}),
            ),
            (&["spec.containers.name"], {
                json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})
            }),
            (&["status", ""], json!({})),
        ] {
            let mut masked = pod.clone();
            let paths = paths.iter().map(|path| (*path).into()).collect();
            apply(&mut masked, &paths);
            assert_eq!(masked, object(expected), "{paths:?}");
        }
    }

    #[test]
    fn a_masked_vulnerability_report_can_still_be_read() {
        let metadata = json!({"name": "r", "namespace": "n", "labels": {"image": "i"}});
        let mut report = json!({
            "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1",
            "kind": "VulnerabilityReport",
            "metadata": metadata,
            "imageMetadata": {"registry": "r"},
            "report": {"summary": {"critical": 1}, "results": [{"target": "t", "vulnerabilities": [
                {"cve": "CVE-1", "severity": "CRITICAL", "title": "long"},
            ]}]},
        });
        let paths =
            ["cve", "severity"].map(|field| format!("report.results.vulnerabilities.{field}"));
        apply(&mut report, &paths.into());
        let expected = json!({
            "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1",
            "kind": "VulnerabilityReport",
            "metadata": metadata,
            "report": {"results": [{"vulnerabilities": [{"cve": "CVE-1", "severity": "CRITICAL"}]}]},
        });
        assert_eq!(report, expected);
    }
}
