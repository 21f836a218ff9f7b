//! Whether an object is judged at all. What another object makes is judged there, once: a pod of a
//! ReplicaSet has nothing that its template has not. What runs nothing any longer is not judged either.

use crate::kinds::Kind;
use crate::sheet::Sheet;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why an object is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Whoever made it is judged in its place.
    Owned,
    /// It runs nothing.
    Inactive,
    /// It has a label that says so.
    Labelled,
}

/// Whether an object is left alone. `sheet` is what would judge it, `sheet_of` what judges another kind.
pub fn is_left(
    object: &Value,
    kind: &Kind,
    sheet: &Sheet,
    labels: &BTreeSet<String>,
    sheet_of: impl Fn(&Kind) -> Option<Arc<Sheet>>,
) -> Option<Left> {
    let own = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    if own.is_some_and(|own| labels.iter().any(|label| own.contains_key(label))) {
        return Some(Left::Labelled);
    }
    if kind.kind == "ReplicaSet" && kind.group == "apps" && !is_active(object) {
        return Some(Left::Inactive);
    }
    let owner = controller(object).filter(|owner| makes(owner, kind))?;
    // A policy about pods alone has to see pods.
    sheet_of(&owner)?.covers(sheet).then_some(Left::Owned)
}

/// Whether a controller makes objects of a kind, and so keeps them as its template is. Anybody may write
/// that an object belongs to another; only of such a pair it says anything.
fn makes(owner: &Kind, kind: &Kind) -> bool {
    let names = (owner.kind.as_str(), kind.kind.as_str());
    let is_pair = matches!(
        names,
        (
            "ReplicaSet" | "ReplicationController" | "StatefulSet" | "DaemonSet" | "Job",
            "Pod"
        ) | ("Deployment", "ReplicaSet")
            | ("CronJob", "Job")
    );
    is_pair && owner.is_workload() && kind.is_workload()
}

/// Whether a ReplicaSet has pods, or wants some.
fn is_active(set: &Value) -> bool {
    let count = |at: &str| set.pointer(at).and_then(Value::as_i64);
    count("/spec/replicas").unwrap_or(1) > 0 || count("/status/replicas").unwrap_or(0) > 0
}

fn controller(object: &Value) -> Option<Kind> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(Kind::parse(
        owner["apiVersion"].as_str()?,
        owner["kind"].as_str()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::force::{Choice, Force, Sources};
    use crate::written::Written;
    use serde_json::json;
    use std::collections::BTreeMap;

    /// What judges each kind, by policies on these.
    fn sheets(kinds: &[&str]) -> impl Fn(&Kind) -> Option<Arc<Sheet>> {
        let served = [
            "v1 Pod",
            "v1 ReplicationController",
            "apps/v1 ReplicaSet",
            "apps/v1 Deployment",
            "apps/v1 StatefulSet",
            "apps/v1 DaemonSet",
            "batch/v1 Job",
            "batch/v1 CronJob",
            "example.com/v1 Job",
        ];
        let served = served.map(|name| {
            let (api_version, kind) = name.split_once(' ').unwrap();
            Kind::parse(api_version, kind)
        });
        let text = "package a\nimport rego.v1\ndeny contains \"x\" if true";
        let entries = kinds.iter().enumerate().flat_map(|(index, kinds)| {
            [
                (format!("policy.{index}.rego"), text.to_owned()),
                (format!("policy.{index}.kinds"), (*kinds).to_owned()),
            ]
        });
        let data: BTreeMap<String, String> = entries.collect();
        let sources = Sources::from([("a".into(), Written::read("a", None, &data))]);
        let mut force = Force::default();
        force.update(&sources, &served, &Choice::default());
        assert!(force.troubles().is_empty(), "{:?}", force.troubles());
        move |kind: &Kind| Sheet::of(&force, kind, &served).map(Arc::new)
    }

    fn left(object: &Value, policies: &[&str]) -> Option<Left> {
        let text = |field: &str| object[field].as_str().unwrap().to_owned();
        let kind = Kind::parse(&text("apiVersion"), &text("kind"));
        let sheet_of = sheets(policies);
        let labels = BTreeSet::from(["skip".to_owned()]);
        is_left(object, &kind, &sheet_of(&kind).unwrap(), &labels, sheet_of)
    }

    #[test]
    fn only_what_a_controller_makes_is_judged_there() {
        let all = &["*"][..];
        let (owned, seen) = (Some(Left::Owned), None);
        for (object, owner, policies, expected) in [
            ("v1 Pod", "apps/v1 ReplicaSet", all, owned),
            ("v1 Pod", "v1 ReplicationController", all, owned),
            ("v1 Pod", "apps/v1 StatefulSet", all, owned),
            ("v1 Pod", "apps/v1 DaemonSet", all, owned),
            ("v1 Pod", "batch/v1 Job", all, owned),
            ("apps/v1 ReplicaSet", "apps/v1 Deployment", all, owned),
            ("batch/v1 Job", "batch/v1 CronJob", all, owned),
            // Nobody makes these so, whatever they say.
            ("v1 Pod", "apps/v1 Deployment", all, seen),
            ("v1 Pod", "batch/v1 CronJob", all, seen),
            ("v1 Pod", "v1 Pod", all, seen),
            ("v1 Pod", "example.com/v1 Job", all, seen),
            ("apps/v1 ReplicaSet", "apps/v1 StatefulSet", all, seen),
            ("apps/v1 Deployment", "apps/v1 Deployment", all, seen),
            ("apps/v1 Deployment", "batch/v1 CronJob", all, seen),
            ("apps/v1 DaemonSet", "apps/v1 ReplicaSet", all, seen),
            ("example.com/v1 Job", "batch/v1 CronJob", all, seen),
            // Who judges the owner does not say everything.
            ("v1 Pod", "apps/v1 ReplicaSet", &["Workload"], owned),
            ("v1 Pod", "apps/v1 ReplicaSet", &["Pod"], seen),
            ("v1 Pod", "apps/v1 ReplicaSet", &["*", "Pod"], seen),
            ("v1 Pod", "apps/v1 ReplicaSet", &["*", "ReplicaSet"], owned),
        ] {
            let (api_version, kind) = object.split_once(' ').unwrap();
            let (by, by_kind) = owner.split_once(' ').unwrap();
            let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"ownerReferences":
                [{"apiVersion": by, "kind": by_kind, "name": "x", "uid": "u", "controller": true}]}});
            assert_eq!(left(&object, policies), expected, "{object} {policies:?}");
            object["metadata"]["ownerReferences"][0]["controller"] = false.into();
            assert_eq!(left(&object, policies), None, "{object} {policies:?}");
        }
    }

    #[test]
    fn what_runs_nothing_or_is_labelled_so_is_left_alone() {
        let set = |metadata: Value, spec: Value, status: Value| {
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": metadata, "spec": spec, "status": status})
        };
        let none = || json!({});
        let scaled = |number: i64| json!({"replicas": number});
        let labelled = json!({"labels": {"skip": "no"}});
        let other = json!({"labels": {"other": "skip"}, "annotations": {"skip": ""}});
        for (object, expected) in [
            (set(none(), none(), none()), None),
            (set(none(), scaled(1), none()), None),
            (set(none(), scaled(0), scaled(2)), None),
            (set(none(), scaled(0), scaled(0)), Some(Left::Inactive)),
            (set(none(), scaled(0), none()), Some(Left::Inactive)),
            (set(labelled, scaled(1), none()), Some(Left::Labelled)),
            (set(other, scaled(1), none()), None),
        ] {
            assert_eq!(left(&object, &["*"]), expected, "{object}");
        }
    }
}
