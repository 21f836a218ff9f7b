//! What is written, taken up, and asked.

use muster_checks::force::{Choice, Force, Sources};
use muster_checks::report::{Basis, Hashes, Subject, Writing, report};
use muster_checks::sheet::Object;
use muster_checks::written::Written;
use muster_checks::{Finding, Kind, Sheet};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Kinds that an ordinary cluster serves.
pub fn served() -> Vec<Kind> {
    [
        ("v1", "Pod"),
        ("v1", "ReplicationController"),
        ("v1", "Service"),
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Namespace"),
        ("v1", "Node"),
        ("v1", "ServiceAccount"),
        ("v1", "PersistentVolume"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "LimitRange"),
        ("v1", "ResourceQuota"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("networking.k8s.io/v1", "Ingress"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("example.com/v1", "Widget"),
    ]
    .map(|(api_version, kind)| Kind::parse(api_version, kind))
    .into()
}

/// What is written in one ConfigMap of the current schema.
pub fn source(entries: &[(&str, &str)]) -> Sources {
    let entries = entries.iter();
    let data: BTreeMap<String, String> = entries
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect();
    let written = Written::read("policies", None, &data);
    Sources::from([("muster/policies".into(), written)])
}

/// What is in force if nothing else was before.
pub fn force(entries: &[(&str, &str)]) -> Force {
    let mut force = Force::default();
    force.update(&source(entries), &served(), &Choice::default());
    force
}

/// Our own policies.
pub fn builtin() -> Force {
    let mut force = Force::default();
    let choice = Choice {
        builtin: true,
        ..Choice::default()
    };
    force.update(&Sources::new(), &served(), &choice);
    assert!(force.troubles().is_empty(), "{:#?}", force.troubles());
    force
}

/// The policies about a kind.
pub fn sheet(force: &Force, kind: &str) -> Option<Sheet> {
    let served = served();
    let kind = served.iter().find(|one| one.kind == kind).unwrap();
    Sheet::of(force, kind, &served)
}

/// The kind of an object.
pub fn kind_of(object: &Value) -> Kind {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    Kind::parse(&text("apiVersion"), &text("kind"))
}

/// What is found in an object.
pub fn judge(force: &Force, object: &Value) -> Vec<Finding> {
    judge_as(force, object, true)
}

/// What is found in an object; `exceptions` is whether those on it count.
pub fn judge_as(force: &Force, object: &Value, exceptions: bool) -> Vec<Finding> {
    let kind = kind_of(object);
    let now = "2026-06-15T12:00:00Z".parse().unwrap();
    let sheet = Sheet::of(force, &kind, &served());
    sheet
        .map(|sheet| sheet.judge(&kind, &Object::new(object.clone(), exceptions), now))
        .unwrap_or_default()
}

/// The report on an object.
pub fn reported(force: &Force, object: &Value) -> Value {
    let text = |at: &str| {
        object
            .pointer(at)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let subject = Subject {
        api_version: text("/apiVersion").unwrap_or_default(),
        kind: text("/kind").unwrap_or_default(),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name").unwrap_or_default(),
        uid: "u".into(),
    };
    let hashes = Hashes {
        spec: "s".into(),
        config: "c".into(),
    };
    let writing = Writing {
        basis: Basis::Complete(&hashes),
        version: "1",
        now: "2026-06-15T12:00:00Z",
        all: false,
    };
    report(&subject, &judge(force, object), &writing)
}

/// A directory of this crate.
pub fn directory(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A document of this crate.
pub fn document(path: &std::path::Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
