//! A release gives nobody more than the files say that the tests of the roles run with.

use super::{EXAMPLES, NAMESPACE, called, file, objects, read, template, text, values};
use anyhow::{Result, ensure};
use muster_testkit::storage::ROLES;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn rights(text_of: &str) -> Result<BTreeMap<String, Value>> {
    let all = objects(text_of)?.into_iter();
    let rights = all.filter(|object| {
        text(object, "/apiVersion") == RBAC || text(object, "/kind") == "ServiceAccount"
    });
    Ok(rights.map(|object| (called(&object), object)).collect())
}

#[test]
fn a_release_has_the_rights_that_are_written_down_and_no_others() -> Result<()> {
    let known = rights(ROLES)?;
    for example in EXAMPLES {
        let rendered = rights(&template(NAMESPACE, &values(example))?)?;
        for (name, right) in &rendered {
            assert_eq!(Some(right), known.get(name), "{example:?}: {name}");
        }
        let left: BTreeSet<&str> = (known.keys().map(String::as_str))
            .filter(|name| !rendered.contains_key(*name))
            .collect();
        let expected: &[&str] = match example {
            Some("minimal") => &[
                "ClusterRole muster-audit",
                "ClusterRole muster-workloads",
                "ClusterRoleBinding muster-audit",
                "ClusterRoleBinding muster-audit-view",
                "ClusterRoleBinding muster-workloads",
            ],
            _ => &[],
        };
        assert_eq!(left, expected.iter().copied().collect(), "{example:?}");
    }
    Ok(())
}

#[test]
fn every_file_of_rights_is_one_that_the_roles_are_tested_with() -> Result<()> {
    for entry in fs::read_dir(file("charts/muster/files/roles"))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        ensure!(
            ROLES.contains(&text),
            "{} is unknown to them",
            path.display()
        );
    }
    Ok(())
}

/// Whoever may view or edit a namespace gets no findings and no reports by that.
#[test]
fn reports_are_in_no_role_that_others_are_made_of() -> Result<()> {
    let all = objects(&read("charts/muster/files/roles/people.yaml")?)?;
    let mut aggregated = BTreeSet::new();
    for role in &all {
        assert_eq!(text(role, "/kind"), "ClusterRole", "nobody is bound");
        let Some(labels) = role["metadata"].get("labels") else {
            continue;
        };
        ensure!(labels.to_string().contains("aggregate-to-"), "{labels}");
        for rule in role["rules"].as_array().into_iter().flatten() {
            let resources = rule["resources"].as_array().into_iter().flatten();
            aggregated.extend(resources.filter_map(Value::as_str));
        }
    }
    let expected = [
        "findinghistories",
        "registries",
        "registrydiscoveries",
        "scanjobs",
        "workloadscanreports",
    ];
    assert_eq!(aggregated, expected.into_iter().collect());
    let reader = all
        .iter()
        .find(|role| text(role, "/metadata/name") == "muster-reports-reader");
    for rule in reader
        .and_then(|role| role["rules"].as_array())
        .into_iter()
        .flatten()
    {
        assert_eq!(rule["verbs"], json!(["get", "list", "watch"]));
    }
    Ok(())
}
