//! Our own policies: each is described, and judges its own examples right.

use crate::support::{builtin, directory, document, judge, kind_of, served};
use muster_checks::builtin::{LIBRARIES, POLICIES};
use muster_checks::force::Force;
use muster_checks::{Finding, Outcome, Severity};
use serde_json::Value;
use std::collections::BTreeSet;

/// What one of our policies says of an object, if it is about its kind.
pub fn said(force: &Force, policy: &str, object: &Value) -> Vec<Finding> {
    let kind = kind_of(object);
    let mut policies = force.policies();
    let policy = policies.find(|one| one.id.name == policy).unwrap();
    let input = muster_rego::input(object);
    match policy.kinds.include(&kind, &served()) {
        true => policy.check.judge(&input, &kind, None),
        false => Vec::new(),
    }
}

#[test]
fn every_policy_of_the_directory_is_one_of_ours() {
    let mut found = BTreeSet::new();
    for area in std::fs::read_dir(directory("policies")).unwrap() {
        let area = area.unwrap();
        for file in std::fs::read_dir(area.path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if path
                .extension()
                .is_some_and(|extension| extension == "rego")
            {
                found.insert(format!("{}/{name}", area.file_name().to_string_lossy()));
            }
        }
    }
    let libraries = LIBRARIES.iter().map(|(name, _)| format!("library/{name}"));
    let ours: BTreeSet<String> = POLICIES
        .iter()
        .map(|one| one.name.into())
        .chain(libraries)
        .collect();
    assert_eq!(found, ours);
}

#[test]
fn every_policy_is_described() {
    let force = builtin();
    assert_eq!(force.policies().count(), POLICIES.len());
    let mut ids = BTreeSet::new();
    for policy in force.policies() {
        let (name, check) = (&policy.id.name, policy.check.description());
        assert!(ids.insert(check.id.clone()), "{name} shares {}", check.id);
        assert!(check.id.starts_with("MST-"), "{name}");
        assert_ne!(check.severity, Severity::Unknown, "{name}");
        for (what, text) in [
            ("title", &check.title),
            ("description", &check.description),
            ("remediation", &check.remediation),
            ("category", &check.category),
        ] {
            assert!(text.len() > 5, "{name} has no {what}");
        }
        assert!(check.title.len() <= 80, "{name}: {}", check.title);
    }
}

#[test]
fn every_policy_judges_its_examples() {
    let force = builtin();
    let mut judged = 0;
    for policy in POLICIES {
        let examples = document(&directory("policies").join(format!("{}.yaml", policy.name)));
        for (list, fails) in [("good", false), ("bad", true)] {
            let objects = examples[list].as_array().unwrap();
            assert!(objects.len() >= 2, "{}: {list}", policy.name);
            for object in objects {
                let findings = said(&force, policy.name, object);
                let error = findings
                    .iter()
                    .find(|finding| finding.outcome == Outcome::Error);
                assert_eq!(error, None, "{}: {object}", policy.name);
                let failed = findings.iter().any(Finding::is_failure);
                assert_eq!(
                    failed, fails,
                    "{} ({list}): {object}\n{findings:#?}",
                    policy.name
                );
                judged += 1;
            }
        }
    }
    assert!(judged > 4 * 60, "{judged}");
}

#[test]
fn no_policy_comes_to_grief_over_anything() {
    let force = builtin();
    let broken = |value: Value| -> Vec<Value> {
        served()
            .iter()
            .map(|kind| {
                let api_version = match kind.group.as_str() {
                    "" => kind.versions[0].clone(),
                    group => format!("{group}/{}", kind.versions[0]),
                };
                let mut object = serde_json::json!({"apiVersion": api_version, "kind": kind.kind, "metadata": {"name": "x"}});
                for field in ["spec", "data", "rules", "subjects", "roleRef"] {
                    object[field] = value.clone();
                }
                object
            })
            .collect()
    };
    let pods = |pod: Value| serde_json::json!({"containers": pod, "volumes": pod, "template": {"spec": {"containers": pod}}});
    for value in [
        Value::Null,
        true.into(),
        7.into(),
        "text".into(),
        serde_json::json!([]),
        serde_json::json!([null, 1, "x", [], {}]),
        serde_json::json!({}),
        pods(Value::Null),
        pods("text".into()),
        pods(
            serde_json::json!([null, 1, {"name": 1, "securityContext": "x", "image": null, "env": {}, "ports": 1}]),
        ),
    ] {
        for object in broken(value.clone()) {
            for finding in judge(&force, &object) {
                assert_ne!(finding.outcome, Outcome::Error, "{object}\n{finding:#?}");
            }
        }
    }
    assert_eq!(kind_of(&broken(Value::Null)[0]).kind, "Pod");
}
