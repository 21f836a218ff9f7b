//! The manifests as a policy may see them that reads other objects, where there is no cluster. Of a kind
//! that some manifest has, the manifests are all there is; of any other kind nothing is known.

use muster_kind::selector::{FieldSelector, LabelSelector};
use muster_policy::{GroupVersionKind, Lookup, LookupError, Served};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The objects of all manifests, by kind.
#[derive(Debug, Default)]
pub(super) struct Manifests(HashMap<GroupVersionKind, Vec<Value>>);

impl Manifests {
    /// Of some objects, each in its namespace.
    pub(super) fn new<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let mut manifests = Manifests::default();
        for object in objects {
            let text = |field: &str| object[field].as_str().unwrap_or_default();
            let kind = GroupVersionKind::parse(text("apiVersion"), text("kind"));
            manifests.0.entry(kind).or_default().push(object.clone());
        }
        manifests
    }

    /// The objects of a kind.
    fn of(&self, kind: &GroupVersionKind) -> Result<&[Value], LookupError> {
        let objects = self.0.get(kind).map(Vec::as_slice);
        objects.ok_or_else(|| {
            let (version, kind) = (kind.api_version(), &kind.kind);
            LookupError::permanent(format!(
                "no manifest is a {version} {kind}, and there is no cluster to look in; add such \
                 manifests, or name a cluster with `--kubeconfig`"
            ))
        })
    }
}

/// The namespace of an object that was placed; none if its kind is cluster-wide.
fn namespace_of(object: &Value) -> Option<&str> {
    object["metadata"]["namespace"].as_str()
}

impl Lookup for Manifests {
    fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, LookupError> {
        let objects = self.of(kind)?;
        let is_namespaced = objects.iter().any(|object| namespace_of(object).is_some());
        if is_namespaced && namespace.is_none() {
            return Err(LookupError::NoNamespace);
        }
        let mut objects = objects.iter().filter(|object| {
            object["metadata"]["name"] == name
                && (!is_namespaced || namespace_of(object) == namespace)
        });
        objects.next().cloned().ok_or(LookupError::NotFound)
    }

    fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Value, LookupError> {
        let wrong = |error: &dyn std::fmt::Display| LookupError::permanent(error.to_string());
        let labels =
            LabelSelector::parse(labels.unwrap_or_default()).map_err(|error| wrong(&error))?;
        let fields =
            FieldSelector::parse(fields.unwrap_or_default()).map_err(|error| wrong(&error))?;
        let objects = self.of(kind)?;
        if namespace.is_some() && !objects.iter().any(|object| namespace_of(object).is_some()) {
            return Err(LookupError::ClusterWide);
        }
        let is_here = |object: &&Value| namespace.is_none() || namespace_of(object) == namespace;
        let is_wanted = |object: &&Value| {
            let field = |path: &str| {
                let path = format!("/{}", path.replace('.', "/"));
                object.pointer(&path).and_then(Value::as_str)
            };
            labels.matches(&labels_of(object)) && fields.matches(field)
        };
        let objects = objects.iter().filter(is_here);
        let items: Vec<&Value> = objects.filter(is_wanted).collect();
        Ok(json!({
            "apiVersion": kind.api_version(), "kind": format!("{}List", kind.kind),
            "metadata": {"resourceVersion": ""}, "items": items,
        }))
    }
}

/// The labels of an object.
pub(super) fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels");
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    labels.collect()
}

/// The labels of the namespaces among some objects.
pub(super) fn namespaces<'a>(
    objects: impl Iterator<Item = &'a Value>,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let namespaces = objects.filter(|one| one["apiVersion"] == "v1" && one["kind"] == "Namespace");
    let named = namespaces.filter_map(|one| {
        let name = one.pointer("/metadata/name")?.as_str()?;
        Some((name.to_owned(), labels_of(one)))
    });
    named.collect()
}

/// Puts an object where it would be created: into a namespace if it is of a kind that has one, and
/// into none otherwise.
pub(super) fn place(object: &mut Value, namespaced: bool, default: &str) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    let is_placed = metadata["namespace"]
        .as_str()
        .is_some_and(|name| !name.is_empty());
    match metadata.as_object_mut() {
        Some(metadata) if !namespaced => {
            metadata.remove("namespace");
        }
        Some(metadata) if !is_placed => {
            metadata.insert("namespace".into(), default.into());
        }
        _ => {}
    }
}

/// What a kind that nobody knows is taken for, as people are told it.
pub(super) fn guessed(object: &Value, served: &Served) -> String {
    let within = match served.namespaced {
        true => "in namespaces",
        false => "in no namespace",
    };
    format!(
        "{} of {} is not known here; it is taken to be served as {}, {within}",
        served.kind,
        object["apiVersion"].as_str().unwrap_or_default(),
        served.resource,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, namespace: Option<&str>, name: &str, team: &str) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"name": name, "labels": {"team": team}}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    }

    #[test]
    fn manifests_are_looked_up_as_a_cluster_is() {
        let objects = [
            object("Pod", Some("a"), "x", "red"),
            object("Pod", Some("b"), "x", "blue"),
            object("Pod", Some("b"), "y", "red"),
            object("Namespace", None, "a", "red"),
        ];
        let manifests = Manifests::new(objects.iter());
        let kind = |kind: &str| GroupVersionKind::parse("v1", kind);
        let found = |kind, namespace, labels, fields| {
            let list = manifests.list(&kind, namespace, labels, fields).unwrap();
            let items = list["items"].as_array().unwrap().iter();
            let named = items.map(|one| one["metadata"]["name"].as_str().unwrap().to_owned());
            named.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found(kind("Pod"), None, None, None), "x x y");
        assert_eq!(found(kind("Pod"), Some("b"), None, None), "x y");
        assert_eq!(found(kind("Pod"), None, Some("team=red"), None), "x y");
        assert_eq!(found(kind("Pod"), None, None, Some("metadata.name=y")), "y");
        let wrong = manifests.list(&kind("Pod"), None, Some("a in"), None);
        assert!(wrong.is_err(), "{wrong:?}");
        let one = manifests.get(&kind("Pod"), Some("b"), "x").unwrap();
        assert_eq!(one["metadata"]["labels"]["team"], "blue");
        for namespace in [None, Some("any")] {
            assert!(manifests.get(&kind("Namespace"), namespace, "a").is_ok());
        }
        assert_eq!(namespaces(objects.iter())["a"]["team"], "red");
    }

    #[test]
    fn only_of_kinds_that_manifests_have_something_can_be_missing() {
        let objects = [
            object("Pod", Some("a"), "x", "red"),
            object("Namespace", None, "a", "red"),
        ];
        let manifests = Manifests::new(objects.iter());
        let kind = |kind: &str| GroupVersionKind::parse("v1", kind);
        for (asked, namespace, name, expected) in [
            ("Pod", Some("a"), "y", LookupError::NotFound),
            ("Pod", Some("b"), "x", LookupError::NotFound),
            ("Pod", None, "x", LookupError::NoNamespace),
            ("Namespace", None, "b", LookupError::NotFound),
        ] {
            let found = manifests.get(&kind(asked), namespace, name);
            assert_eq!(found, Err(expected), "{asked} {namespace:?} {name}");
        }
        let of_one = manifests.list(&kind("Namespace"), Some("a"), None, None);
        assert_eq!(of_one, Err(LookupError::ClusterWide));
        let unknown = [
            manifests.get(&kind("Service"), Some("a"), "x"),
            manifests.list(&kind("Service"), None, None, None),
        ];
        for found in unknown {
            let Err(LookupError::Unavailable { reason, .. }) = found else {
                panic!("{found:?}");
            };
            assert!(
                reason.starts_with("no manifest is a v1 Service,"),
                "{reason}"
            );
        }
    }

    #[test]
    fn an_object_is_placed_where_it_would_be_created() {
        for (object, namespaced, expected) in [
            (json!({}), true, json!({"metadata": {"namespace": "n"}})),
            (
                json!({"metadata": {"namespace": "a"}}),
                true,
                json!({"metadata": {"namespace": "a"}}),
            ),
            (
                json!({"metadata": {"namespace": "a"}}),
                false,
                json!({"metadata": {}}),
            ),
            (json!({"metadata": []}), false, json!({"metadata": {}})),
        ] {
            let mut placed = object.clone();
            place(&mut placed, namespaced, "n");
            assert_eq!(placed, expected, "{object}");
        }
    }
}
