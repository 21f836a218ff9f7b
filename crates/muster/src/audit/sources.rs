//! Where configuration checks are written that Muster does not bring along: ConfigMaps of files or of a
//! cluster, and policies in Rego that stand by themselves. The first of a name stands.

use super::cluster::Cluster;
use super::files;
use super::lookup::place;
use super::talk::Talk;
use muster_checks::written::{LABEL, SCHEMA, Written, has_policies};
use muster_checks::{Kind, alone, force};
use muster_policy::Served;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is written, by where it is.
#[derive(Debug, Default)]
pub(super) struct Sources(force::Sources);

impl Sources {
    /// Whether an object is a ConfigMap with policies.
    pub(super) fn is_one(object: &Value) -> bool {
        let metadata = &object["metadata"];
        object["kind"] == "ConfigMap"
            && object["apiVersion"] == "v1"
            && has_policies(
                metadata["name"].as_str().unwrap_or_default(),
                metadata["labels"][LABEL].as_str(),
            )
    }

    /// Adds a ConfigMap.
    pub(super) fn add(&mut self, mut object: Value, namespace: &str, talk: &Talk) {
        place(&mut object, true, namespace);
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let schema = metadata["annotations"][SCHEMA].as_str();
        let data = object["data"].as_object().into_iter().flatten();
        let data: BTreeMap<String, String> = data
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect();
        let written = Written::read(text("name"), schema, &data);
        let source = format!("{}/{}", text("namespace"), text("name"));
        self.insert(source, written, talk);
    }

    /// Adds a file of Rego, named `name`, if it is a configuration check; says whether it is one.
    pub(super) fn add_file(
        &mut self,
        module: &str,
        name: &str,
        served: &[Kind],
        talk: &Talk,
    ) -> bool {
        let path = module
            .strip_prefix("file://")
            .filter(|path| path.ends_with(".rego"));
        // What cannot be read is told by whoever loads it as a module.
        let text = path.and_then(|path| files::text(Path::new(path), &mut 0).ok());
        let Some(policy) = text.and_then(|text| alone::read(&text, served)) else {
            return false;
        };
        let written = Written {
            policies: BTreeMap::from([(name.to_owned(), policy)]),
            libraries: BTreeMap::new(),
        };
        self.insert(module.to_owned(), Ok(written), talk);
        true
    }

    /// Reads the ConfigMaps of some namespaces of a cluster.
    pub(super) async fn of_cluster(&mut self, cluster: &Cluster, namespaces: &[&str], talk: &Talk) {
        let served = Served {
            group: String::new(),
            resource: "configmaps".into(),
            kind: "ConfigMap".into(),
            namespaced: true,
            versions: vec!["v1".into()],
        };
        let namespaces: BTreeSet<&str> = namespaces.iter().copied().collect();
        for namespace in namespaces {
            match cluster.all(&served, "v1", Some(namespace)).await {
                Ok(objects) => {
                    for object in objects.into_iter().filter(Sources::is_one) {
                        self.add(object, namespace, talk);
                    }
                }
                Err(error) => talk.trouble(&crate::told(&error)),
            }
        }
    }

    /// Whether nothing is written anywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is written, as it is taken up.
    pub(super) fn into_written(self) -> force::Sources {
        self.0
    }

    fn insert(&mut self, source: String, written: WrittenResult, talk: &Talk) {
        if self.0.contains_key(&source) {
            talk.note(&format!(
                "{} is there more than once; the first stands",
                called(&source)
            ));
            return;
        }
        self.0.insert(source, written);
    }
}

type WrittenResult = Result<Written, muster_checks::written::WrittenError>;

/// A source as people are told of it.
pub(super) fn called(source: &str) -> String {
    match source.strip_prefix("file://") {
        Some(file) => file.to_owned(),
        None => format!("ConfigMap {source}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_config_map_has_policies_if_its_name_or_its_label_says_so() {
        let map = |kind: &str, metadata: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
        for (object, expected) in [
            (map("ConfigMap", json!({"name": "a"})), false),
            (
                map(
                    "ConfigMap",
                    json!({"name": "trivy-operator-policies-config"}),
                ),
                true,
            ),
            (
                map(
                    "ConfigMap",
                    json!({"name": "trivy-operator-conftest-config"}),
                ),
                true,
            ),
            (
                map("Secret", json!({"name": "trivy-operator-policies-config"})),
                false,
            ),
            (
                map("ConfigMap", json!({"name": "a", "labels": {LABEL: "true"}})),
                true,
            ),
            (
                map(
                    "ConfigMap",
                    json!({"name": "a", "labels": {LABEL: "false"}}),
                ),
                false,
            ),
            (map("ConfigMap", Value::Null), false),
        ] {
            assert_eq!(Sources::is_one(&object), expected, "{object}");
        }
    }
}
