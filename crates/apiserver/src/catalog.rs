//! The kinds a server serves, found by the group, version and resource that a path names.

use crate::store::Resource;
use muster_kind::{Body, FieldPath, Kind, Object, Schema, openapi};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// One served kind with what is derived from it once.
pub struct Served {
    /// The description.
    pub kind: Kind,
    /// Its name in the store.
    pub resource: Resource,
    /// The whole schema, metadata included; read on first use, since the built-in ones are large.
    root: OnceLock<Arc<Schema>>,
}

impl Served {
    /// The schema of a whole object.
    pub fn root(&self) -> &Arc<Schema> {
        self.root.get_or_init(|| {
            let mut root = openapi::root_schema(&self.kind);
            for path in &self.kind.opaque {
                open(&mut root, path.names());
            }
            Arc::new(root)
        })
    }

    /// The name of the version that trees are in.
    pub fn storage_version(&self) -> String {
        self.kind.api_version(&self.kind.versions[0])
    }

    /// An object written down for the store.
    pub fn body(&self, object: &Object) -> Body {
        object.body(&self.kind)
    }

    /// An object read back, in the storage version. What computed objects quote is null in it.
    pub fn tree(&self, body: &Body, revision: u64) -> Value {
        let mut tree = body.outline(revision);
        if let Some(root) = tree.as_object_mut() {
            root.insert("apiVersion".into(), json!(self.storage_version()));
            root.insert("kind".into(), json!(self.kind.kind));
        }
        tree
    }

    /// The value of a selectable field in a tree, as selectors compare it.
    pub fn field(&self, tree: &Value, path: &FieldPath) -> Option<String> {
        if let Some(read) = self.kind.field_reader {
            return Some(read(&self.kind.kind, &path.to_string(), tree)).filter(|v| !v.is_empty());
        }
        match path.get(tree)? {
            Value::String(text) => Some(text.clone()),
            Value::Null | Value::Array(_) => None,
            // A platform is selected by how people spell it: os/architecture[/variant].
            Value::Object(map) => {
                let part = |name: &str| map.get(name).and_then(Value::as_str);
                let parts: Vec<&str> = [
                    part("os"),
                    part("architecture").or(part("arch")),
                    part("variant"),
                ]
                .into_iter()
                .flatten()
                .filter(|part| !part.is_empty())
                .collect();
                (!parts.is_empty()).then(|| parts.join("/"))
            }
            other => Some(other.to_string()),
        }
    }
}

/// In a tree an opaque field is its digest, whatever its schema says.
fn open(schema: &mut Schema, path: &[String]) {
    match path.split_first() {
        None => *schema = muster_kind::schema::any(),
        Some((name, rest)) => {
            if let Some(field) = schema.properties.get_mut(name) {
                open(Arc::make_mut(field), rest);
            }
        }
    }
}

/// All served kinds.
pub struct Catalog {
    kinds: Vec<Arc<Served>>,
    by_path: BTreeMap<(String, String), Arc<Served>>,
}

impl Catalog {
    /// A catalog of these kinds.
    pub fn new(kinds: Vec<Kind>) -> Self {
        let kinds: Vec<Arc<Served>> = kinds
            .into_iter()
            .map(|kind| {
                let resource = Resource::from(kind.group_resource());
                Arc::new(Served {
                    kind,
                    resource,
                    root: OnceLock::new(),
                })
            })
            .collect();
        let by_path = kinds
            .iter()
            .map(|served| {
                (
                    (served.kind.group.clone(), served.kind.plural.clone()),
                    served.clone(),
                )
            })
            .collect();
        Catalog { kinds, by_path }
    }

    /// All kinds, in the order given.
    pub fn kinds(&self) -> &[Arc<Served>] {
        &self.kinds
    }

    /// The kind behind a group, version and plural resource.
    pub fn find(&self, group: &str, version: &str, resource: &str) -> Option<&Arc<Served>> {
        self.by_path
            .get(&(group.to_owned(), resource.to_owned()))
            .filter(|served| served.kind.versions.iter().any(|v| v == version))
    }

    /// The kind behind a store's resource name.
    pub fn resource(&self, resource: &str) -> Option<&Arc<Served>> {
        self.kinds
            .iter()
            .find(|served| &*served.resource == resource)
    }

    /// Groups with their versions, preferred first; the core group is the empty one.
    pub fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for served in &self.kinds {
            let index = match groups
                .iter()
                .position(|(group, _)| *group == served.kind.group)
            {
                Some(index) => index,
                None => {
                    groups.push((served.kind.group.clone(), Vec::new()));
                    groups.len() - 1
                }
            };
            for version in &served.kind.versions {
                if !groups[index].1.contains(version) {
                    groups[index].1.push(version.clone());
                }
            }
        }
        groups
    }

    /// The kinds of one group and version.
    pub fn of<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Served>> {
        self.kinds.iter().filter(move |served| {
            served.kind.group == group && served.kind.versions.iter().any(|v| v == version)
        })
    }
}
