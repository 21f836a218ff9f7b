//! The example of the design: which policies are about which kind, and how many hashes that makes.

use crate::support::{force, served, sheet};
use muster_checks::Sheet;
use std::collections::BTreeSet;

const DENY: &str =
    "package main\nimport rego.v1\ndeny contains \"no\" if input.metadata.name == \"no\"";

/// The policies and their kinds, with the slips of the document corrected.
const POLICIES: [(&str, &str); 6] = [
    (
        "file_system_not_read_only",
        "Pod,ReplicationController,ReplicaSet,StatefulSet,DaemonSet,Job,CronJob",
    ),
    ("uses_image_tag_latest", "Workload"),
    ("configmap_with_sensitive_data", "ConfigMap"),
    ("configmap_with_secret_data", "ConfigMap"),
    ("service_with_external_ip", "Service"),
    ("object_without_recommended_labels", "*"),
];
const LIBRARIES: [&str; 2] = ["kubernetes", "utils"];

/// The ConfigMap, with the text of one entry replaced.
fn entries(changed: Option<(&str, &str)>) -> Vec<(String, String)> {
    let mut entries = vec![
        (
            "conftest.imageRef".into(),
            "openpolicyagent/conftest:v0.30.0".into(),
        ),
        ("conftest.resources.requests.cpu".into(), "50".into()),
        ("conftest.resources.requests.memory".into(), "50M".into()),
        ("conftest.resources.limits.cpu".into(), "300m".into()),
        ("conftest.resources.limits.memory".into(), "300M".into()),
    ];
    for (name, kinds) in POLICIES {
        entries.push((format!("conftest.policy.{name}.rego"), DENY.into()));
        entries.push((format!("conftest.policy.{name}.kinds"), kinds.into()));
    }
    for name in LIBRARIES {
        let text = format!("package lib.{name}_example\nimport rego.v1\nis_true if true");
        entries.push((format!("conftest.library.{name}.rego"), text));
    }
    for (key, value) in &mut entries {
        if let Some((changed, text)) = changed
            && key.ends_with(changed)
        {
            *value = text.into();
        }
    }
    entries
}

fn sheet_of(kind: &str, changed: Option<(&str, &str)>) -> Sheet {
    let entries = entries(changed);
    let entries: Vec<(&str, &str)> = entries
        .iter()
        .map(|(key, text)| (&**key, &**text))
        .collect();
    let force = force(&entries);
    assert!(force.troubles().is_empty(), "{:?}", force.troubles());
    assert_eq!(force.libraries().len(), LIBRARIES.len());
    sheet(&force, kind).unwrap()
}

#[test]
fn policies_are_grouped_by_kind_as_the_document_shows() {
    let workload = [
        "file_system_not_read_only",
        "object_without_recommended_labels",
        "uses_image_tag_latest",
    ];
    let rows: [(&str, &[&str]); 11] = [
        (
            "ConfigMap",
            &[
                "configmap_with_secret_data",
                "configmap_with_sensitive_data",
                "object_without_recommended_labels",
            ],
        ),
        (
            "Service",
            &[
                "object_without_recommended_labels",
                "service_with_external_ip",
            ],
        ),
        ("Pod", &workload),
        ("ReplicationController", &workload),
        ("ReplicaSet", &workload),
        ("StatefulSet", &workload),
        ("DaemonSet", &workload),
        ("Job", &workload),
        ("CronJob", &workload),
        // The list of the first policy leaves it out; `Workload` does not.
        (
            "Deployment",
            &["object_without_recommended_labels", "uses_image_tag_latest"],
        ),
        ("Ingress", &["object_without_recommended_labels"]),
    ];
    let mut hashes = BTreeSet::new();
    for (kind, policies) in rows {
        let sheet = sheet_of(kind, None);
        let names: Vec<&str> = sheet
            .policies()
            .iter()
            .map(|one| one.id.name.as_str())
            .collect();
        assert_eq!(names, policies, "{kind}");
        hashes.insert(sheet.hash().to_owned());
    }
    // ConfigMap, Service, seven workloads that share theirs, Deployment, and all that has only `*`.
    assert_eq!(hashes.len(), 5);
}

#[test]
fn a_changed_policy_changes_the_hashes_of_its_kinds_and_no_others() {
    let changed = format!("{DENY}\n# changed");
    for (entry, touched) in [
        ("policy.configmap_with_secret_data.rego", &["ConfigMap"][..]),
        ("policy.service_with_external_ip.rego", &["Service"]),
        (
            "policy.file_system_not_read_only.rego",
            &[
                "Pod",
                "ReplicationController",
                "ReplicaSet",
                "StatefulSet",
                "DaemonSet",
                "Job",
                "CronJob",
            ],
        ),
        (
            "policy.uses_image_tag_latest.rego",
            &[
                "Pod",
                "ReplicationController",
                "ReplicaSet",
                "StatefulSet",
                "DaemonSet",
                "Job",
                "CronJob",
                "Deployment",
            ],
        ),
    ] {
        for kind in served().iter().map(|kind| kind.kind.as_str()) {
            let (before, after) = (
                sheet_of(kind, None),
                sheet_of(kind, Some((entry, &changed))),
            );
            let differs = before.hash() != after.hash();
            assert_eq!(differs, touched.contains(&kind), "{entry} {kind}");
        }
    }
}

#[test]
fn a_changed_library_changes_all_hashes() {
    let changed = "package lib.utils_example\nimport rego.v1\nis_true if 1 == 1";
    for kind in served().iter().map(|kind| kind.kind.as_str()) {
        let after = sheet_of(kind, Some(("library.utils.rego", changed)));
        assert_ne!(sheet_of(kind, None).hash(), after.hash(), "{kind}");
    }
}
