//! Objects as people write them, and what becomes of them.

use crate::kinds;
use muster_kind::structural;
use serde_json::{Value, json};

/// Defaults an object, then says what is wrong with it and which fields are unknown.
fn judge(kind: &str, mut object: Value) -> (Value, Vec<String>) {
    let kind = kinds()
        .into_iter()
        .find(|found| found.kind == kind)
        .unwrap();
    let mut wrong: Vec<String> = Vec::new();
    let metadata = object.as_object_mut().unwrap().remove("metadata");
    structural::set_defaults(&mut object, &kind.schema);
    wrong.extend(structural::prune(&mut object, &kind.schema));
    wrong.extend(
        structural::validate(&object, &kind.schema)
            .into_iter()
            .map(|e| e.field),
    );
    object["metadata"] = metadata.unwrap_or_default();
    let own = kind
        .validator
        .map(|judge| judge(&object, None))
        .unwrap_or_default();
    wrong.extend(
        own.into_iter()
            .map(|error| format!("{}: {}", error.field, error.message)),
    );
    (object, wrong)
}

#[test]
fn an_ordinary_registry_is_accepted_and_completed() {
    let (registry, wrong) = judge(
        "Registry",
        json!({
            "spec": {
                "uri": "https://registry-1.docker.io",
                "discoveryJob": {
                    "cron": {"dayOfWeek": null, "month": null, "dayOfMonth": null, "hour": null},
                    "suspend": false,
                },
                "repositories": [{
                    "name": "library/nginx",
                    "matchConditions": [
                        {"name": "a", "expression": "tag == \"1.25\"", "labels": {"ns": "true"}},
                    ],
                }],
            },
        }),
    );
    assert_eq!(wrong, [""; 0]);
    let spec = &registry["spec"];
    assert_eq!(spec["catalogType"], "OCIDistribution");
    assert_eq!(
        (&spec["scanOnChange"], &spec["insecure"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(spec["scanJobsHistoryLimit"], 10);
    assert_eq!(spec["repositories"][0]["matchOperator"], "And");
    assert_eq!(spec["discoveryJob"]["failedJobsHistoryLimit"], 2);
    assert_eq!(spec["discoveryJob"]["successfulJobsHistoryLimit"], 1);
}

#[test]
fn what_a_schema_can_say_needs_no_validator() {
    for (kind, spec, field) in [
        ("Registry", json!({"uri": ""}), "spec.uri"),
        ("Registry", json!({}), "spec.uri"),
        (
            "Registry",
            json!({"uri": "a", "catalogType": "x"}),
            "spec.catalogType",
        ),
        (
            "Registry",
            json!({"uri": "a", "repositories": ["r"]}),
            "spec.repositories[0]",
        ),
        (
            "Registry",
            json!({"uri": "a", "repositories": [{"name": "r"}, {"name": "r"}]}),
            "spec.repositories[1]",
        ),
        (
            "Registry",
            json!({"uri": "a", "repositories": [{"name": "r", "matchConditions": [
                {"name": "c", "expression": "true"}, {"name": "c", "expression": "false"},
            ]}]}),
            "spec.repositories[0].matchConditions[1]",
        ),
        (
            "Registry",
            json!({"uri": "a", "discoveryJob": {"cron": {"hour": 24}}}),
            "spec.discoveryJob.cron.hour",
        ),
        (
            "Registry",
            json!({"uri": "a", "discoveryJob": {"cron": {"dayOfWeek": 7}}}),
            "spec.discoveryJob.cron.dayOfWeek",
        ),
        (
            "Registry",
            json!({"uri": "a", "scanJobsHistoryLimit": -1}),
            "spec.scanJobsHistoryLimit",
        ),
        ("ScanJob", json!({}), "spec.registry"),
        (
            "AdmissionPolicy",
            json!({"module": "m", "mutating": false, "rules": []}),
            "spec.rules",
        ),
    ] {
        let (_, wrong) = judge(kind, json!({ "spec": spec }));
        // The schema may find more than one fault in a field.
        assert!(
            !wrong.is_empty() && wrong.iter().all(|w| w == field),
            "{wrong:?}"
        );
    }
}

#[test]
fn a_configuration_without_a_spec_is_all_defaults() {
    let (configuration, wrong) = judge(
        "WorkloadScanConfiguration",
        json!({"metadata": {"name": "default"}}),
    );
    assert_eq!(wrong, [""; 0]);
    let expected = json!({"enabled": true, "scanOnChange": true, "insecure": false});
    assert_eq!(configuration["spec"], expected);
}

#[test]
fn a_policy_reads_both_names_of_the_background_flag() {
    let (policy, wrong) = judge(
        "ClusterAdmissionPolicy",
        json!({"metadata": {"name": "p"}, "spec": {
            "module": "registry://ghcr.io/kubewarden/policies/safe-labels:v1",
            "mutating": false, "background": false, "settings": {"deep": [{"er": 1}]},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"], "operations": ["CREATE", "UPDATE"],
            }],
        }}),
    );
    assert_eq!(wrong, [""; 0]);
    let spec = &policy["spec"];
    assert_eq!(
        (&spec["background"], &spec["backgroundAudit"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(spec["settings"]["deep"][0]["er"], 1);
    assert_eq!(
        (&spec["mode"], &spec["timeoutSeconds"]),
        (&json!("protect"), &json!(10))
    );
}

#[test]
fn the_examples_of_reports_are_accepted_whole() {
    let (_, wrong) = judge(
        "PolicyReport",
        json!({
            "results": [{
                "category": "PSP", "message": "Privileged container is not allowed",
                "policy": "clusterwide-privileged-pods", "resourceSelector": {}, "result": "fail",
                "properties": {"policy-resource-version": "1724", "validating": "true"},
                "scored": true, "severity": "low", "source": "kubewarden",
                "timestamp": {"nanos": 0, "seconds": 1_709_753_640},
            }],
            "scope": {
                "apiVersion": "v1", "kind": "Pod", "name": "nginx", "namespace": "default",
                "resourceVersion": "1128", "uid": "feaad3c9-8534-496b-a04b-0707f6876133",
            },
            "summary": {"error": 0, "fail": 1, "pass": 2, "skip": 0, "warn": 0},
        }),
    );
    assert_eq!(wrong, [""; 0]);
    let (_, wrong) = judge(
        "WorkloadScanReport",
        json!({
            "spec": {"containers": [{"name": "nginx", "imageRef": {
                "registry": "workload-scan-docker-io", "namespace": "sbomscanner",
                "repository": "library/nginx", "tag": "1.25",
            }}]},
            "status": {"containerStatuses": [{"name": "nginx", "scanStatus": "ScanComplete"}]},
            "summary": {"high": 5, "medium": 12, "low": 23, "unknown": 0, "suppressed": 2},
            "containers": [{"name": "nginx", "vulnerabilityReports": [{
                "imageMetadata": {
                    "registry": "workload-scan-docker-io", "repository": "library/nginx",
                    "tag": "1.25", "digest": "sha256:abc",
                    "platform": {"os": "linux", "architecture": "amd64"},
                },
                "report": {"results": [{"vulnerabilities": [{"cve": "CVE-2024-1234"}]}]},
            }]}],
        }),
    );
    assert_eq!(wrong, [""; 0]);
}
