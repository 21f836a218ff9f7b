//! The hashes by which a report is known to be right: what goes in is written with its length, so that
//! two different rows of texts never look the same, and what comes out fits into a label.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A hash being made.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds a text.
    pub fn add(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }

    /// Adds texts, one after the other.
    pub fn add_all<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) {
        texts.into_iter().for_each(|text| self.add(text));
    }

    /// Half of the digest, as 32 hexadecimal digits.
    pub fn end(self) -> String {
        let digest = self.0.finalize();
        digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The hash of some texts.
pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Hasher::default();
    hasher.add_all(texts);
    hasher.end()
}

/// What only the server writes: it changes without anybody having changed the object.
const BOOKKEEPING: [&str; 7] = [
    "resourceVersion",
    "generation",
    "managedFields",
    "selfLink",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
];

/// An object as it is judged: without its status and without bookkeeping, and of a Secret without what
/// is secret, which nobody may find in a report or guess from a hash. Fields that are null are as if they
/// were not there, as an API server has it.
pub fn content(mut object: Value) -> Value {
    drop_nulls(&mut object);
    if object["apiVersion"] == "v1" && object["kind"] == "Secret" {
        hide(&mut object);
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in BOOKKEEPING {
                metadata.remove(field);
            }
            if let Some(annotations) = metadata
                .get_mut("annotations")
                .and_then(Value::as_object_mut)
            {
                // What kubectl and the Deployment controller remember for themselves.
                annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
                annotations.remove("deployment.kubernetes.io/revision");
                if annotations.is_empty() {
                    metadata.remove("annotations");
                }
            }
        }
    }
    object
}

/// Leaves of a Secret the names of what it holds.
fn hide(secret: &mut Value) {
    for field in ["data", "stringData"] {
        match secret.get_mut(field) {
            Some(Value::Object(held)) => held.values_mut().for_each(|value| *value = "".into()),
            Some(other) => *other = "".into(),
            None => {}
        }
    }
}

/// In a list a null keeps its place.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The hash of an object as it is judged, and of what it depends on beside that.
pub fn of_content<'a>(content: &Value, also: impl IntoIterator<Item = &'a str>) -> String {
    // Keys of objects are in their order already.
    let mut hasher = Hasher::default();
    hasher.add(&content.to_string());
    hasher.add_all(also);
    hasher.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hash(object: Value) -> String {
        of_content(&content(object), [])
    }

    #[test]
    fn only_what_is_judged_changes_the_hash_of_an_object() {
        let pod = |change: Value| {
            let mut pod = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"c": "d"}},
                "spec": {"x": 1}});
            for (pointer, value) in change.as_object().unwrap() {
                let (parent, key) = pointer.rsplit_once('/').unwrap();
                pod.pointer_mut(parent).unwrap()[key] = value.clone();
            }
            hash(pod)
        };
        let plain = pod(json!({}));
        assert_eq!(plain.len(), 32);
        for (change, differs) in [
            (json!({"/status": {"phase": "Running"}}), false),
            (json!({"/metadata/resourceVersion": "7"}), false),
            (json!({"/metadata/managedFields": []}), false),
            (json!({"/metadata/generation": 2}), false),
            (json!({"/metadata/uid": "u"}), false),
            (
                json!({"/metadata/annotations/kubectl.kubernetes.io~1last": "x"}),
                true,
            ),
            (json!({"/metadata/labels": {"a": "c"}}), true),
            (json!({"/metadata/annotations": {"c": "e"}}), true),
            (json!({"/spec/x": 2}), true),
            (json!({"/data": {"k": "v"}}), true),
            (json!({"/spec/y": null}), false),
            (json!({"/spec/y": {"z": null}}), true),
            (json!({"/spec/y": [null]}), true),
        ] {
            assert_eq!(pod(change.clone()) != plain, differs, "{change}");
        }
    }

    #[test]
    fn fields_that_are_null_are_not_there() {
        let (written, judged) = (
            json!({"metadata": {"name": "a", "labels": null, "annotations": {"b": null}},
                "spec": {"a": [{"b": null, "c": 1}, null], "d": {"e": null}}}),
            json!({"metadata": {"name": "a"}, "spec": {"a": [{"c": 1}, null], "d": {}}}),
        );
        assert_eq!(content(written), judged);
    }

    #[test]
    fn nothing_of_what_a_secret_holds_is_judged_but_its_names() {
        let secret = |api_version: &str, kind: &str, data: Value| {
            json!({"apiVersion": api_version, "kind": kind, "type": "Opaque",
                "metadata": {"name": "a"}, "data": data, "stringData": data})
        };
        let word = json!({"user": "YWRtaW4=", "odd": {"deep": ["x"]}});
        for (api_version, kind, held, judged) in [
            ("v1", "Secret", word.clone(), json!({"user": "", "odd": ""})),
            ("v1", "Secret", "bare".into(), "".into()),
            ("v1", "Secret", json!(["listed"]), "".into()),
            ("v1", "Secret", json!({}), json!({})),
            // Whoever calls his own kind so says himself what is in it.
            ("example.com/v1", "Secret", word.clone(), word.clone()),
            ("v1", "ConfigMap", word.clone(), word.clone()),
        ] {
            let expected = secret(api_version, kind, judged);
            assert_eq!(content(secret(api_version, kind, held)), expected);
        }
        let (one, other) = (json!({"key": "one"}), json!({"key": "other"}));
        assert_eq!(
            hash(secret("v1", "Secret", one)),
            hash(secret("v1", "Secret", other))
        );
        let (one, other) = (json!({"one": "key"}), json!({"other": "key"}));
        assert_ne!(
            hash(secret("v1", "Secret", one)),
            hash(secret("v1", "Secret", other))
        );
    }

    #[test]
    fn rows_of_texts_are_told_apart() {
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
        assert_ne!(of(["a", ""]), of(["a"]));
        assert_eq!(of(["a", "b"]), of(["a", "b"]));
    }
}
