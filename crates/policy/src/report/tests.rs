use super::*;

fn policy(kind: &str, changes: &[(&str, Value)]) -> Policy {
    let mut object = json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": kind,
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"},
        "spec": {"module": "m", "rules": []},
    });
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    Policy::read(&object).unwrap()
}

fn line(policy: &str, result: &str) -> Line {
    Line {
        policy: policy.into(),
        result: result.into(),
        ..Line::default()
    }
}

#[test]
fn a_line_tells_the_verdict_and_the_policy() {
    let category = (
        "/metadata/annotations",
        json!({"io.kubewarden.policy.category": "PSP"}),
    );
    let patch = vec![json!({"op": "remove", "path": "/a"})];
    let cause = Cause {
        policy: "a".into(),
        message: "no".into(),
    };
    for (policy, verdict, expected) in [
        (
            policy("AdmissionPolicy", &[category]),
            Verdict::fail("too bad").with_causes([cause]),
            json!({
                "policy": "namespaced-n-p", "source": "kubewarden", "category": "PSP",
                "result": "fail", "scored": true, "message": "too bad",
                "timestamp": {"seconds": 5, "nanos": 0}, "resourceSelector": {},
                "properties": {
                    "validating": "true", "policy-resource-version": "7", "policy-uid": "u",
                    "policy-name": "p", "policy-namespace": "n", "causes": "a: no",
                },
            }),
        ),
        (
            policy(
                "ClusterAdmissionPolicy",
                &[
                    ("/spec/mutating", json!(true)),
                    ("/spec/mode", json!("monitor")),
                    (
                        "/spec/contextAwareResources",
                        json!([{"apiVersion": "v1", "kind": "Node"}]),
                    ),
                ],
            ),
            Verdict::pass().with_patch(patch),
            json!({
                "policy": "clusterwide-p", "source": "kubewarden", "severity": "info",
                "result": "pass", "scored": true,
                "timestamp": {"seconds": 5, "nanos": 0}, "resourceSelector": {},
                "properties": {
                    "mutating": "true", "context-aware": "true", "mutated": "true",
                    "policy-resource-version": "7", "policy-uid": "u", "policy-name": "p",
                },
            }),
        ),
    ] {
        assert_eq!(json!(Line::new(&policy, &verdict, 5)), expected);
    }
}

use crate::verdict::Cause;

#[test]
fn a_line_that_says_the_same_stays_as_it_was() {
    let old = policy("ClusterAdmissionPolicy", &[]);
    let newer = policy(
        "ClusterAdmissionPolicy",
        &[("/metadata/resourceVersion", json!("9"))],
    );
    let severe = policy(
        "ClusterAdmissionPolicy",
        &[(
            "/metadata/annotations",
            json!({"io.kubewarden.policy.severity": "high"}),
        )],
    );
    let before = Line::new(&old, &Verdict::fail("no"), 5);
    for (policy, verdict, kept) in [
        (&newer, Verdict::fail("no"), true),
        (&newer, Verdict::fail("not at all"), false),
        (&newer, Verdict::error("no"), false),
        (&severe, Verdict::fail("no"), false),
    ] {
        let line = Line::new(policy, &verdict, 8).unless_said_by(Some(&before));
        assert_eq!(line == before, kept, "{verdict:?}");
        assert_eq!(line.timestamp.seconds == 5, kept);
    }
    let first = Line::new(&old, &Verdict::pass(), 8);
    assert_eq!(first.clone().unless_said_by(None), first);
}

#[test]
fn a_report_counts_and_sorts_its_lines() {
    let subject = Subject {
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: Some("n".into()),
        name: "p".into(),
        uid: "u".into(),
        resource_version: "3".into(),
    };
    let lines = vec![
        line("c", "fail"),
        line("a", "pass"),
        line("b", "error"),
        line("d", "pass"),
    ];
    let none = BTreeMap::new();
    let report = report(Format::PolicyReport, &subject, lines.clone(), 2, &none);
    assert_eq!(
        report["summary"],
        json!({"pass": 2, "fail": 1, "warn": 0, "error": 1, "skip": 2})
    );
    let order: Vec<&str> = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["policy"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["a", "b", "c", "d"]);
    assert_eq!(
        report["metadata"],
        json!({
            "name": "u", "namespace": "n",
            "labels": {
                "app.kubernetes.io/managed-by": "kubewarden",
                "kubewarden.io/policyreport-version": "v2",
            },
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
        })
    );
    let scope = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "n",
        "uid": "u", "resourceVersion": "3"});
    assert_eq!(report["scope"], scope);
    let cluster = Subject {
        namespace: None,
        ..subject
    };
    for (format, namespaced, kind) in [
        (Format::PolicyReport, false, "ClusterPolicyReport"),
        (Format::OpenReports, false, "ClusterReport"),
    ] {
        let report = super::report(format, &cluster, lines.clone(), 0, &none);
        assert_eq!(report["kind"], kind, "{namespaced}");
        assert_eq!(
            report.get("source").is_some(),
            format == Format::OpenReports
        );
    }
}

#[test]
fn a_report_fits_into_one_object_whatever_policies_say() {
    let lines = (0..1000).map(|n| Line {
        message: "\u{e4}".repeat(2000),
        ..line(&format!("p{n}"), "fail")
    });
    let whole = report(
        Format::PolicyReport,
        &Subject::default(),
        lines.collect(),
        0,
        &BTreeMap::new(),
    );
    assert!(whole.to_string().len() < 1024 * 1024);
    assert_eq!(whole["results"].as_array().unwrap().len(), 1000);
}
