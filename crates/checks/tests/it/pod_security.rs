//! The Pod Security Standards: every control, with what the Kubernetes documentation allows and forbids.

use crate::builtin::said;
use crate::support::{builtin, directory, document};
use muster_checks::Finding;
use muster_checks::builtin::POLICIES;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn every_control_allows_and_forbids_what_the_standards_do() {
    let force = builtin();
    let (mut controls, mut wrong, mut judged) = (BTreeSet::new(), Vec::new(), 0);
    for file in std::fs::read_dir(directory("tests/it/pod_security")).unwrap() {
        let path = file.unwrap().path();
        let table = document(&path);
        let policy = table["policy"].as_str().unwrap();
        controls.insert(policy.to_owned());
        for (list, fails) in [("allowed", false), ("forbidden", true)] {
            for row in table[list].as_array().unwrap() {
                let object = object(&row["pod"]);
                let failed = said(&force, policy, &object)
                    .iter()
                    .any(Finding::is_failure);
                judged += 1;
                if failed != fails {
                    wrong.push(format!("{policy}: {} ({list})", row["about"]));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    let of_standards = POLICIES
        .iter()
        .filter(|one| one.name.starts_with("pod_security_"));
    let of_standards: BTreeSet<String> = of_standards.map(|one| one.name.into()).collect();
    assert_eq!(controls, of_standards);
    assert!(judged > 300, "{judged}");
}

/// A whole object, or the pod that has this spec.
fn object(pod: &Value) -> Value {
    match pod.get("kind") {
        Some(_) => pod.clone(),
        None => {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": pod})
        }
    }
}
