//! What policies may say, in conftest's way and in Trivy's, and what becomes of it in a report.

use crate::support::{force, judge, reported};
use muster_checks::report::summary;
use muster_checks::{Finding, Outcome};
use serde_json::{Value, json};

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"},
        "spec": {"containers": [{"name": "app", "image": "a:latest"}, {"name": "side", "image": "b:1"}]}})
}

fn asked(text: &str, object: &Value) -> Vec<Finding> {
    let force = force(&[("policy.named.rego", text), ("policy.named.kinds", "Pod")]);
    assert!(force.troubles().is_empty(), "{:?}", force.troubles());
    judge(&force, object)
}

/// Each finding on a line: outcome, identifier, severity, place, messages.
fn told(findings: &[Finding]) -> Vec<String> {
    let findings = findings.iter();
    findings
        .map(|finding| {
            let outcome = match &finding.outcome {
                Outcome::Pass => "pass",
                Outcome::Fail => "fail",
                Outcome::Exempt(_) => "exempt",
                Outcome::Error => "error",
            };
            let check = &finding.check;
            let place = finding.place.as_ref();
            let place = place.map(|place| format!(" {}={}", place.sort, place.value));
            let messages = finding.messages.join("; ");
            let line = format!(
                "{outcome} {} {}{} {messages}",
                check.id,
                check.severity,
                place.unwrap_or_default()
            );
            line.trim_end().to_owned()
        })
        .collect()
}

#[test]
fn rules_of_both_contracts_become_findings() {
    let v1 = "package main\nimport rego.v1\n";
    let rows: Vec<(String, &[&str])> = vec![
        (format!("{v1}deny contains \"x\" if true"), &["fail named CRITICAL x"]),
        (format!("{v1}deny contains \"x\" if false"), &["pass named CRITICAL"]),
        (format!("{v1}violation contains {{\"msg\": \"x\"}} if true"), &["fail named CRITICAL x"]),
        (format!("{v1}violation contains {{\"message\": \"x\"}} if true"), &["fail named CRITICAL x"]),
        (format!("{v1}warn contains \"x\" if true"), &["fail named LOW x"]),
        (format!("{v1}deny_a contains \"x\" if true\nwarn_b contains \"y\" if true"), &["fail named CRITICAL x; y"]),
        ("package main\ndeny[msg] { msg := \"x\" }".into(), &["fail named CRITICAL x"]),
        ("package main\ndeny { input.kind == \"Pod\" }".into(), &["fail named CRITICAL the object is refused"]),
        (format!("{v1}deny := \"x\" if true"), &["fail named CRITICAL x"]),
        (format!("{v1}deny contains \"x\" if true\ndeny contains \"y\" if true"), &["fail named CRITICAL x; y"]),
        (format!("{v1}deny contains {{\"msg\": \"x\", \"severity\": \"high\", \"id\": \"I-1\"}} if true"), &["fail I-1 HIGH x"]),
        (
            format!("{v1}deny contains r if {{ some c in input.spec.containers; r := {{\"msg\": c.image, \"scope\": {{\"type\": \"Container\", \"value\": c.name}}}} }}"),
            &["fail named CRITICAL Container=app a:latest", "fail named CRITICAL Container=side b:1"],
        ),
        (
            format!("{v1}deny contains result.new(c.image, c) if some c in input.spec.containers"),
            &["fail named CRITICAL Container=app a:latest", "fail named CRITICAL Container=side b:1"],
        ),
        (
            format!("{v1}deny_a contains \"x\" if true\ndeny_b contains \"y\" if true\nexception contains [\"a\"] if true"),
            &["exempt named CRITICAL x", "fail named CRITICAL y"],
        ),
        (
            format!("# METADATA\n# title: T\n# custom:\n#   id: KSV-1\n#   severity: MEDIUM\n{v1}deny contains \"x\" if true"),
            &["fail KSV-1 MEDIUM x"],
        ),
        (
            "package main\n__rego_metadata__ := {\"id\": \"KSV-2\", \"title\": \"T\", \"severity\": \"LOW\", \"type\": \"Kubernetes Security Check\"}\ndeny[msg] { msg := \"x\" }".into(),
            &["fail KSV-2 LOW x"],
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(told(&asked(&text, &pod())), expected, "{text}");
    }
}

#[test]
fn a_selector_of_the_policy_leaves_other_kinds_alone() {
    let text = |kind: &str| {
        format!(
            "# METADATA\n# custom:\n#   input:\n#     selector:\n#     - type: kubernetes\n#       subtypes:\n#       - kind: {kind}\npackage main\nimport rego.v1\ndeny contains \"x\" if true"
        )
    };
    assert_eq!(asked(&text("pod"), &pod()).len(), 1);
    assert_eq!(asked(&text("service"), &pod()).len(), 0);
}

#[test]
fn what_cannot_be_evaluated_is_neither_kept_nor_broken() {
    let endless = "package main\nimport rego.v1\ndeny contains \"x\" if { some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i + j == 0 }";
    let force = force(&[
        ("policy.endless.rego", endless),
        ("policy.endless.kinds", "Pod"),
        (
            "policy.good.rego",
            "package main\nimport rego.v1\ndeny contains \"x\" if true",
        ),
        ("policy.good.kinds", "Pod"),
    ]);
    let findings = judge(&force, &pod());
    let told = told(&findings);
    assert!(
        told[0].starts_with("error endless CRITICAL could not be evaluated: "),
        "{told:?}"
    );
    assert_eq!(told[1], "fail good CRITICAL x");
    let summary = summary(&findings);
    assert_eq!(summary["criticalCount"], 1);
    assert_eq!(summary["errorCount"], 1);
}

#[test]
fn a_report_is_what_readers_of_trivy_operator_s_expect() {
    let text = "# METADATA\n# title: Latest\n# description: Why.\n# custom:\n#   id: T-1\n#   severity: HIGH\n#   recommended_action: Pin it.\npackage main\nimport rego.v1\ndeny contains {\"msg\": \"no tag\", \"container\": c.name} if { some c in input.spec.containers; endswith(c.image, \":latest\") }";
    let force = force(&[("policy.named.rego", text), ("policy.named.kinds", "Pod")]);
    let mut object = pod();
    assert_eq!(
        reported(&force, &object),
        json!({
            "apiVersion": "aquasecurity.github.io/v1alpha1", "kind": "ConfigAuditReport",
            "metadata": {
                "name": "pod-a", "namespace": "n",
                "labels": {
                    "app.kubernetes.io/managed-by": "muster",
                    "resource-spec-hash": "s", "plugin-config-hash": "c",
                    "trivy-operator.resource.kind": "Pod", "trivy-operator.resource.name": "a",
                    "trivy-operator.resource.namespace": "n",
                },
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u",
                    "controller": true, "blockOwnerDeletion": false}],
            },
            "report": {
                "updateTimestamp": "2026-06-15T12:00:00Z",
                "scanner": {"name": "Muster", "vendor": "Muster", "version": "1"},
                "summary": {"criticalCount": 0, "highCount": 1, "mediumCount": 0, "lowCount": 0,
                    "exemptCount": 0, "errorCount": 0},
                "checks": [{
                    "checkID": "T-1", "title": "Latest", "description": "Why.", "severity": "HIGH",
                    "category": "Kubernetes Security Check", "remediation": "Pin it.",
                    "messages": ["no tag"], "success": false,
                    "scope": {"type": "Container", "value": "app"},
                }],
            },
        })
    );
    // Somebody answers for it.
    object["metadata"]["annotations"] =
        json!({"exception.audit.kubewarden.io/T-1": "until 2027-01-31: a mirror"});
    let report = reported(&force, &object);
    assert_eq!(report["report"]["summary"]["highCount"], 0);
    assert_eq!(report["report"]["summary"]["exemptCount"], 1);
    let check = &report["report"]["checks"][0];
    assert_eq!(check["success"], true);
    assert_eq!(
        check["exception"],
        json!({"reason": "a mirror", "until": "2027-01-31", "by": "annotation"})
    );
}

#[test]
fn an_object_outside_of_namespaces_has_a_report_outside_too() {
    let force = force(&[
        (
            "policy.named.rego",
            "package main\nimport rego.v1\ndeny contains \"x\" if true",
        ),
        ("policy.named.kinds", "ClusterRole"),
    ]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:node"}});
    let report = reported(&force, &role);
    assert_eq!(report["kind"], "ClusterConfigAuditReport");
    let labels = &report["metadata"]["labels"];
    assert_eq!(labels["trivy-operator.resource.namespace"], "");
    assert!(labels["trivy-operator.resource.name-hash"].is_string());
    assert_eq!(
        report["metadata"]["annotations"]["trivy-operator.resource.name"],
        "system:node"
    );
}
