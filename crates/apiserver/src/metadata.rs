//! The rules of `metadata`: what the server sets, what a client may not change, and what is
//! wrong with it, in Kubernetes' words.

use muster_kind::kind::FieldError;
use muster_kind::object::{meta, metadata, metadata_mut};
use muster_kind::{Kind, name};
use rand::RngExt;
use serde_json::{Map, Value, json};

/// Letters and digits that make no words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const GENERATED: usize = 5;
const PREFIX: usize = 63 - GENERATED;
const ANNOTATIONS: usize = 256 * 1024;

/// A name from `generateName`: the prefix, cut so that the whole stays within 63 characters, and
/// five random ones.
pub fn generate_name(prefix: &str) -> String {
    let mut cut = prefix.len().min(PREFIX);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut random = rand::rng();
    let tail = (0..GENERATED).map(|_| ALPHABET[random.random_range(0..ALPHABET.len())] as char);
    prefix[..cut].chars().chain(tail).collect()
}

/// Sets what only the server knows of a new object.
pub fn prepare_create(tree: &mut Value, kind: &Kind, namespace: &str, now: &str) {
    let metadata = metadata_mut(tree);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
    ] {
        metadata.remove(field);
    }
    metadata.insert("uid".into(), json!(uuid::Uuid::new_v4().to_string()));
    metadata.insert("creationTimestamp".into(), json!(now));
    if kind.generation {
        metadata.insert("generation".into(), json!(1));
    }
    if namespace.is_empty() {
        metadata.remove("namespace");
    } else {
        metadata.insert("namespace".into(), json!(namespace));
    }
    drop_empty(metadata);
}

/// Fields that a client cannot change, whatever it sends.
const SERVERS_OWN: [&str; 4] = [
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Keeps what a client may not change, whatever it sent.
pub fn prepare_update(tree: &mut Value, old: &Value) {
    let kept = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "namespace",
        "generateName",
    ];
    let old = metadata(old).cloned().unwrap_or_default();
    let metadata = metadata_mut(tree);
    for field in kept {
        // A client may leave these out, and may set the prefix of a name at no time but the first.
        let absent = metadata.get(field).is_none_or(Value::is_null);
        if absent || SERVERS_OWN.contains(&field) {
            match old.get(field) {
                Some(value) => metadata.insert(field.into(), value.clone()),
                None => metadata.remove(field),
            };
        }
    }
    metadata.remove("selfLink");
    drop_empty(metadata);
}

/// Drops empty collections and nulls, as typed metadata has none.
fn drop_empty(metadata: &mut Map<String, Value>) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

fn invalid(field: &str, value: impl Into<Value>, detail: &str) -> FieldError {
    FieldError::invalid(field, &value.into(), detail)
}

/// What is wrong with the metadata of a new object.
pub fn validate(tree: &Value, kind: &Kind) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name_text = meta(tree, "name");
    let prefix = meta(tree, "generateName");
    if !prefix.is_empty() {
        // A prefix may end in what a name may not end in.
        let padded = format!("{}a", prefix.trim_end_matches('-'));
        for wrong in (kind.name_rule)(&padded) {
            errors.push(invalid("metadata.generateName", prefix, &wrong));
        }
    }
    if name_text.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        for wrong in (kind.name_rule)(name_text) {
            errors.push(invalid("metadata.name", name_text, &wrong));
        }
    }
    let empty = Map::new();
    let map = |field: &str| {
        metadata(tree)
            .and_then(|m| m.get(field))
            .and_then(Value::as_object)
            .unwrap_or(&empty)
    };
    for (key, value) in map("labels") {
        for wrong in name::qualified(key) {
            errors.push(invalid("metadata.labels", key.as_str(), &wrong));
        }
        let text = value.as_str().unwrap_or_default();
        for wrong in name::label_value(text) {
            errors.push(invalid("metadata.labels", text, &wrong));
        }
    }
    let mut size = 0;
    for (key, value) in map("annotations") {
        size += key.len() + value.as_str().unwrap_or_default().len();
        for wrong in name::qualified(&key.to_lowercase()) {
            errors.push(invalid("metadata.annotations", key.as_str(), &wrong));
        }
    }
    if size > ANNOTATIONS {
        errors.push(FieldError {
            reason: "FieldValueTooLong",
            field: "metadata.annotations".into(),
            message: format!("Too long: may not be more than {ANNOTATIONS} bytes"),
        });
    }
    validate_owners(tree, &mut errors);
    for (index, finalizer) in list(tree, "finalizers").iter().enumerate() {
        let text = finalizer.as_str().unwrap_or_default();
        let mut wrong = name::qualified(text);
        if wrong.is_empty() && !text.contains('/') && !STANDARD_FINALIZERS.contains(&text) {
            wrong
                .push("name is neither a standard finalizer name nor is it fully qualified".into());
        }
        for wrong in wrong {
            let field = if wrong.starts_with("name is neither") {
                format!("metadata.finalizers[{index}]")
            } else {
                "metadata.finalizers".into()
            };
            errors.push(invalid(&field, text, &wrong));
        }
    }
    let finalizers = list(tree, "finalizers");
    if finalizers.contains(&json!(ORPHAN)) && finalizers.contains(&json!(FOREGROUND)) {
        let value = json!(finalizers);
        errors.push(FieldError::invalid(
            "metadata.finalizers",
            &value,
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    errors
}

/// Dependents lose their owner instead of going with it.
pub const ORPHAN: &str = "orphan";
/// Dependents go first.
pub const FOREGROUND: &str = "foregroundDeletion";
const STANDARD_FINALIZERS: [&str; 3] = [ORPHAN, FOREGROUND, "kubernetes"];

fn validate_owners(tree: &Value, errors: &mut Vec<FieldError>) {
    let mut controllers: Vec<String> = Vec::new();
    for (index, owner) in list(tree, "ownerReferences").iter().enumerate() {
        let at = |field: &str| format!("metadata.ownerReferences[{index}].{field}");
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let version = text("apiVersion");
        if version.is_empty() || version.matches('/').count() > 1 || version.ends_with('/') {
            errors.push(invalid(
                &at("apiVersion"),
                version,
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(invalid(&at(field), "", "must not be empty"));
            }
        }
        if owner.get("controller") == Some(&json!(true)) {
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if controllers.len() > 1 {
        errors.push(FieldError::invalid(
            "metadata.ownerReferences",
            &json!(list(tree, "ownerReferences")),
            &format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                controllers[0], controllers[1]
            ),
        ));
    }
}

/// What is wrong with the metadata of a changed object.
pub fn validate_update(tree: &Value, old: &Value, kind: &Kind) -> Vec<FieldError> {
    let mut errors = validate(tree, kind);
    errors.retain(|error| error.field != "metadata.generateName");
    for field in ["name", "namespace", "uid", "creationTimestamp"] {
        let (new, before) = (meta(tree, field), meta(old, field));
        if new != before {
            errors.push(invalid(
                &format!("metadata.{field}"),
                new,
                "field is immutable",
            ));
        }
    }
    if !meta(old, "deletionTimestamp").is_empty() {
        let before = list(old, "finalizers");
        let added: Vec<String> = list(tree, "finalizers")
            .iter()
            .filter(|finalizer| !before.contains(finalizer))
            .map(|finalizer| finalizer.to_string())
            .collect();
        if !added.is_empty() {
            errors.push(FieldError::forbidden(
                "metadata.finalizers",
                &format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    added.join(", ")
                ),
            ));
        }
    }
    errors
}

/// A list of `metadata`, empty if absent.
pub fn list<'a>(tree: &'a Value, field: &str) -> &'a [Value] {
    metadata(tree)
        .and_then(|m| m.get(field))
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Whether deletion has been asked for.
pub fn is_deleting(tree: &Value) -> bool {
    !meta(tree, "deletionTimestamp").is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_keeps_its_prefix_and_fits() {
        let name = generate_name("job-");
        assert!(name.starts_with("job-") && name.len() == 9);
        assert_eq!(generate_name(&"x".repeat(80)).len(), 63);
    }

    #[test]
    fn bad_metadata_is_named_field_by_field() {
        let kind = Kind::namespaced("g", "v1", "Thing");
        for (metadata, field) in [
            (json!({}), "metadata.name"),
            (json!({"name": "Bad_Name"}), "metadata.name"),
            (
                json!({"name": "a", "labels": {"-": "x"}}),
                "metadata.labels",
            ),
            (
                json!({"name": "a", "labels": {"a": "b c"}}),
                "metadata.labels",
            ),
            (
                json!({"name": "a", "finalizers": ["plain"]}),
                "metadata.finalizers[0]",
            ),
            (
                json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "n"}]}),
                "metadata.ownerReferences[0].uid",
            ),
        ] {
            let errors = validate(&json!({"metadata": metadata}), &kind);
            assert_eq!(errors.len(), 1, "{metadata}: {errors:?}");
            assert_eq!(errors[0].field, field);
        }
    }

    #[test]
    fn a_deleting_object_takes_no_new_finalizer() {
        let kind = Kind::namespaced("g", "v1", "Thing");
        let old = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x.io/a"]}});
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["x.io/a", "x.io/b"]);
        let errors = validate_update(&new, &old, &kind);
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].reason, "FieldValueForbidden");
    }
}
