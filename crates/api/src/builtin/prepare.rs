//! What Kubernetes changes in an object before it judges and stores it, as far as users see it.
//! Workloads are left as they were written.

use super::cell::text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_kind::Schema;
use serde_json::{Map, Value, json};

const ACCESS: &str = "rbac.authorization.k8s.io";

/// Completes an object of one of Kubernetes' own kinds, given the one it replaces.
pub fn prepare(kind: &str, tree: &mut Value, old: Option<&Value>) {
    let Some(object) = tree.as_object_mut() else {
        return;
    };
    match kind {
        "Secret" => secret(object),
        "Namespace" => namespace(object, old),
        "Pod" | "PersistentVolume" | "PersistentVolumeClaim" if old.is_none() => {
            set(object, "status", "phase", "Pending".into());
        }
        "RoleBinding" | "ClusterRoleBinding" => binding(object),
        _ => {}
    }
}

/// Quantities that were written as numbers become text, as the real server shows them.
pub fn quantities_as_text(value: &mut Value, schema: &Schema) {
    match value {
        Value::Number(number) if is_quantity(schema) => *value = number.to_string().into(),
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(property) = schema.property(name) {
                    quantities_as_text(value, property);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items
                    .iter_mut()
                    .for_each(|item| quantities_as_text(item, schema));
            }
        }
        _ => {}
    }
}

fn is_quantity(schema: &Schema) -> bool {
    schema
        .component
        .as_deref()
        .is_some_and(|name| name.ends_with(".Quantity"))
}

/// Sets a field of a part unless it is there and not empty.
fn set(object: &mut Map<String, Value>, part: &str, field: &str, value: Value) {
    let part = object.entry(part).or_insert_with(|| json!({}));
    if let Some(part) = part.as_object_mut()
        && part
            .get(field)
            .is_none_or(|v| v.is_null() || *v == "" || *v == json!([]))
    {
        part.insert(field.into(), value);
    }
}

/// `stringData` is written only: it ends up in `data`.
fn secret(secret: &mut Map<String, Value>) {
    if let Some(Value::Object(plain)) = secret.remove("stringData") {
        for (key, value) in plain {
            let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
            let data = secret.entry("data").or_insert_with(|| json!({}));
            if !data.is_object() {
                *data = json!({});
            }
            data[key] = encoded.into();
        }
    }
    if secret
        .get("type")
        .is_none_or(|of| of.is_null() || *of == "")
    {
        secret.insert("type".into(), "Opaque".into());
    }
}

/// A namespace is active and held by Kubernetes until it is empty; only finalizing lets go of it.
fn namespace(namespace: &mut Map<String, Value>, old: Option<&Value>) {
    let metadata = namespace.get("metadata").cloned().unwrap_or_default();
    let name = text(&metadata, "/name");
    if !name.is_empty() {
        let metadata = namespace.entry("metadata").or_insert_with(|| json!({}));
        if !metadata["labels"].is_object() {
            metadata["labels"] = json!({});
        }
        metadata["labels"]["kubernetes.io/metadata.name"] = name.into();
    }
    match old {
        None => {
            set(namespace, "spec", "finalizers", json!([]));
            let finalizers = namespace
                .get_mut("spec")
                .and_then(|spec| spec.get_mut("finalizers"));
            if let Some(Value::Array(finalizers)) = finalizers
                && !finalizers.iter().any(|finalizer| finalizer == "kubernetes")
            {
                finalizers.push("kubernetes".into());
            }
            set(namespace, "status", "phase", "Active".into());
        }
        Some(old) => match old.pointer("/spec/finalizers") {
            Some(finalizers) => namespace["spec"] = json!({"finalizers": finalizers}),
            None => drop(namespace.insert("spec".into(), json!({}))),
        },
    }
}

/// Roles, users and groups are of the one group there is; service accounts of none.
fn binding(binding: &mut Map<String, Value>) {
    if binding.get("roleRef").is_some_and(Value::is_object) {
        set(binding, "roleRef", "apiGroup", ACCESS.into());
    }
    for subject in binding
        .get_mut("subjects")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if matches!(text(subject, "/kind"), "User" | "Group")
            && text(subject, "/apiGroup").is_empty()
        {
            subject["apiGroup"] = ACCESS.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_completed_as_the_real_server_does() {
        for (kind, written, stored) in [
            (
                "Secret",
                json!({"data": {"a": "eA==", "b": "eA=="}, "stringData": {"a": "y"}}),
                json!({"data": {"a": "eQ==", "b": "eA=="}, "type": "Opaque"}),
            ),
            ("Secret", json!({"type": "x"}), json!({"type": "x"})),
            (
                "Namespace",
                json!({"metadata": {"name": "n", "labels": {"a": "b"}}}),
                json!({
                    "metadata": {
                        "name": "n",
                        "labels": {"a": "b", "kubernetes.io/metadata.name": "n"},
                    },
                    "spec": {"finalizers": ["kubernetes"]},
                    "status": {"phase": "Active"},
                }),
            ),
            (
                "Namespace",
                json!({"metadata": {"generateName": "n-"}, "spec": {"finalizers": ["a.io/b"]}}),
                json!({
                    "metadata": {"generateName": "n-"},
                    "spec": {"finalizers": ["a.io/b", "kubernetes"]},
                    "status": {"phase": "Active"},
                }),
            ),
            (
                "Pod",
                json!({"spec": {}}),
                json!({"spec": {}, "status": {"phase": "Pending"}}),
            ),
            ("Deployment", json!({"spec": {}}), json!({"spec": {}})),
            (
                "RoleBinding",
                json!({
                    "roleRef": {"kind": "Role", "name": "r"},
                    "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}],
                }),
                json!({
                    "roleRef": {"apiGroup": ACCESS, "kind": "Role", "name": "r"},
                    "subjects": [
                        {"apiGroup": ACCESS, "kind": "User", "name": "u"},
                        {"kind": "ServiceAccount", "name": "s"},
                    ],
                }),
            ),
        ] {
            let mut tree = written;
            prepare(kind, &mut tree, None);
            assert_eq!(tree, stored, "{kind}");
        }
    }

    #[test]
    fn an_updated_namespace_keeps_its_finalizers() {
        let old = json!({"spec": {"finalizers": ["kubernetes"]}});
        for (old, spec) in [
            (old, json!({"finalizers": ["kubernetes"]})),
            (json!({}), json!({})),
        ] {
            let mut tree = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["x.io/y"]}});
            prepare("Namespace", &mut tree, Some(&old));
            assert_eq!(tree["spec"], spec);
        }
    }

    #[test]
    fn quantities_written_as_numbers_become_text() {
        let kind = crate::builtin::builtin()
            .into_iter()
            .find(|kind| kind.kind == "Pod")
            .unwrap();
        let limits = |value: Value| json!({"spec": {"containers": [{"resources": {"limits": {"cpu": value}}}]}});
        for (written, stored) in [
            (json!(2), "2"),
            (json!(1.5), "1.5"),
            (json!("500m"), "500m"),
        ] {
            let mut tree = limits(written);
            quantities_as_text(&mut tree, &kind.schema);
            assert_eq!(tree, limits(stored.into()));
        }
    }
}
