//! What policies may say, in conftest's way and in Trivy's, and what becomes of it in a report.

use crate::support::{force, judge, judge_as, reported, served, sheet};
use muster_checks::report::summary;
use muster_checks::sheet::Object;
use muster_checks::{Finding, Outcome, subject};
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
                Outcome::NotEvaluated => "not evaluated",
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
fn a_policy_whose_selector_means_one_kind_sees_it_wherever_it_comes_from() {
    let policy = |selector: &str| {
        format!(
            "# METADATA\n# custom:\n#   input:\n#     selector:\n{selector}package main\nimport rego.v1\ndeny contains \"x\" if true"
        )
    };
    let subtypes = |lines: &[&str]| {
        let lines = lines.iter().map(|line| format!("#       {line}\n"));
        let lines: String = lines.collect();
        format!("#     - type: kubernetes\n#       subtypes:\n{lines}")
    };
    let (pods, sets) = (
        subtypes(&["- kind: pod"]),
        subtypes(&["- kind: replicaset"]),
    );
    let elsewhere = subtypes(&["- kind: pod", "  group: example.com"]);
    let later = subtypes(&["- kind: pod", "  version: v2"]);
    let namespaced = subtypes(&["- kind: pod", "  namespace: other"]);
    let (whole, docker) = ("#     - type: kubernetes\n", "#     - type: dockerfile\n");
    // Which kinds have the policy on their sheet, and whether a pod of a ReplicaSet is judged.
    for (selector, on_pods, on_sets, is_judged) in [
        (String::new(), true, true, false),
        (whole.into(), true, true, false),
        (pods.clone(), true, false, true),
        (sets.clone(), false, true, false),
        // Any of several will do, as for a policy that stands alone.
        (format!("{pods}{sets}"), true, true, false),
        (format!("{docker}{pods}"), true, false, true),
        (docker.into(), false, false, false),
        (elsewhere, false, false, false),
        (later, false, false, false),
        // Where an object is does not say which kinds a policy is about.
        (namespaced, true, false, true),
    ] {
        let text = policy(&selector);
        let force = force(&[("policy.a.rego", &text), ("policy.a.kinds", "Workload")]);
        assert!(force.troubles().is_empty(), "{:?}", force.troubles());
        let on = |kind: &str| sheet(&force, kind).is_some();
        assert_eq!((on("Pod"), on("ReplicaSet")), (on_pods, on_sets), "{text}");
        let Some(own) = sheet(&force, "Pod") else {
            continue;
        };
        let mut owned = pod();
        owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1",
            "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": true}]);
        let kinds = served();
        let kind = kinds.iter().find(|kind| kind.kind == "Pod").unwrap();
        let left = subject::is_left(&owned, kind, &own, &Default::default(), |owner| {
            sheet(&force, &owner.kind).map(Into::into)
        });
        assert_eq!(left.is_none(), is_judged, "{text}");
    }
}

#[test]
fn results_are_counted_and_told_within_limits() {
    let v1 = "package main\nimport rego.v1\n";
    let doubled: String = (1..19)
        .map(|index| format!("a{index} := [a{0}, a{0}]\n", index - 1))
        .collect();
    let rows = [
        // A few lines, and as much as a policy may make if it were written out.
        format!("{v1}a0 := [\"x\"]\n{doubled}deny contains a18 if true"),
        format!("{v1}a0 := [\"x\"]\n{doubled}deny := a18"),
        format!(
            "{v1}a0 := [\"x\"]\n{doubled}deny contains {{\"msg\": \"x\", \"more\": a18}} if true"
        ),
        format!("{v1}a0 := [\"x\"]\n{doubled}deny_x contains \"x\" if true\nexception := a18"),
        // Many at one place, and many places.
        format!("{v1}deny contains sprintf(\"%d\", [i]) if some i in numbers.range(1, 5000)"),
        format!(
            "{v1}deny contains {{\"msg\": \"x\", \"container\": sprintf(\"%d\", [i])}} if some i in numbers.range(1, 5000)"
        ),
        // Long names of a place.
        format!(
            "{v1}name := concat(\"\", [\"x\" | some _ in numbers.range(1, 90000)])\ndeny contains {{\"msg\": \"x\", \"container\": name}} if true\ndeny contains {{\"msg\": \"x\", \"cause\": {{\"name\": name, \"image\": \"a\"}}}} if true"
        ),
    ];
    for text in rows {
        let findings = asked(&text, &pod());
        assert!((1..=200).contains(&findings.len()), "{text}");
        for finding in findings {
            assert!(finding.is_failure(), "{text}");
            let messages = &finding.messages;
            assert!((1..=51).contains(&messages.len()), "{text}");
            let place = finding.place.map_or(0, |place| place.value.len());
            let longest = messages.iter().map(String::len).max().unwrap().max(place);
            assert!(longest <= 1_000, "{longest}: {text}");
        }
    }
    let many = format!("{v1}deny contains sprintf(\"%d\", [i]) if some i in numbers.range(1, 60)");
    let findings = asked(&many, &pod());
    assert_eq!(findings[0].messages[50], "… and 10 more");
}

#[test]
fn an_array_of_results_is_results_and_an_array_in_it_is_one() {
    let v1 = "package main\nimport rego.v1\n";
    for (rule, expected) in [
        ("deny := [\"x\", \"y\"]", "fail named CRITICAL x; y"),
        (
            "deny contains [\"x\", \"y\"] if true",
            "fail named CRITICAL [\"x\", \"y\"]",
        ),
        (
            "deny contains {\"a\": 1} if true",
            "fail named CRITICAL {\"a\": 1}",
        ),
        ("deny contains false if true", "pass named CRITICAL"),
        ("deny := null", "pass named CRITICAL"),
        ("deny[\"x\"] := true", "fail named CRITICAL x"),
        ("deny[\"x\"] := false", "pass named CRITICAL"),
    ] {
        let text = format!("{v1}{rule}");
        assert_eq!(told(&asked(&text, &pod())), [expected], "{text}");
    }
}

#[test]
fn nothing_that_is_secret_gets_into_a_report() {
    let text = "package main\nimport rego.v1\ndeny contains sprintf(\"%v\", [input]) if true";
    let force = force(&[("policy.all.rego", text), ("policy.all.kinds", "*")]);
    let written = json!({"data": {"token": "c2VjcmV0"}, "stringData": {"password": "secret"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "a", "namespace": "n", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": written.to_string()}},
        "data": written["data"], "stringData": written["stringData"]});
    let report = reported(&force, &secret).to_string();
    for (word, is_told) in [
        ("token", true),
        ("password", true),
        ("Opaque", true),
        ("c2VjcmV0", false),
        ("secret\\\"", false),
    ] {
        assert_eq!(report.contains(word), is_told, "{word}: {report}");
    }
}

#[test]
fn exceptions_on_objects_count_unless_they_are_switched_off() {
    let text = "package main\nimport rego.v1\ndeny_a contains \"x\" if true\ndeny_b contains \"y\" if true\nexception contains [\"a\"] if true";
    let force = force(&[("policy.named.rego", text), ("policy.named.kinds", "Pod")]);
    let mut object = pod();
    object["metadata"]["annotations"] =
        json!({"exception.audit.kubewarden.io/named": "until 2027-01-31: a mirror"});
    let now = "2026-06-15T12:00:00Z".parse().unwrap();
    let later = "2028-06-15T12:00:00Z".parse().unwrap();
    let mut hashes = Vec::new();
    for (counts, expected, turns) in [
        (
            true,
            ["exempt named CRITICAL x", "exempt named CRITICAL y"],
            true,
        ),
        // What the policy itself excepts is part of the policy.
        (
            false,
            ["exempt named CRITICAL x", "fail named CRITICAL y"],
            false,
        ),
    ] {
        let mut found = told(&judge_as(&force, &object, counts));
        found.sort();
        assert_eq!(found, expected, "{counts}");
        let judged = Object::new(object.clone(), counts);
        assert_eq!(judged.turns(now).is_some(), turns, "{counts}");
        assert_eq!(judged.hash(now) != judged.hash(later), turns, "{counts}");
        hashes.push(judged.hash(now));
    }
    // Whoever switches them off has everything judged again.
    assert_ne!(hashes[0], hashes[1]);
}

#[test]
fn a_report_that_tells_more_has_another_hash() {
    let text = "package main\nimport rego.v1\ndeny contains \"x\" if true";
    let force = force(&[("policy.a.rego", text), ("policy.a.kinds", "Pod")]);
    let sheet = sheet(&force, "Pod").unwrap();
    assert_eq!(sheet.report_hash(false), sheet.hash());
    assert_ne!(sheet.report_hash(true), sheet.report_hash(false));
    assert_eq!(sheet.report_hash(true).len(), sheet.hash().len());
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
                    "unknownCount": 0, "exemptCount": 0, "errorCount": 0},
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
