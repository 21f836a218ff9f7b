//! The schemas of Kubernetes' own kinds, read from a table that `cargo xtask generate` makes out
//! of a real kube-apiserver's OpenAPI document. Parts are shared: a `PodSpec` is held once and the
//! thousands of plain strings and numbers in it are a handful of values.

use muster_kind::openapi::{self, OBJECT_META};
use muster_kind::schema::{self, Schema};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

const TABLE: &str = include_str!("../../data/builtin-schemas.json");

/// Reads components and remembers them.
pub(super) struct Schemas {
    table: HashMap<String, Value>,
    read: HashMap<String, Arc<Schema>>,
    leaves: Vec<Arc<Schema>>,
}

impl Schemas {
    /// Parses the table; a table that does not parse is empty, which a test would notice.
    pub(super) fn new() -> Self {
        let table = serde_json::from_str(TABLE).unwrap_or_default();
        Schemas {
            table,
            read: HashMap::new(),
            leaves: Vec::new(),
        }
    }

    /// The schema of a component. One that is unknown, or inside itself, is an object of any shape.
    pub(super) fn component(&mut self, name: &str) -> Arc<Schema> {
        if name.ends_with(".ObjectMeta") {
            return OBJECT_META.clone();
        }
        if let Some(schema) = self.read.get(name) {
            return schema.clone();
        }
        let inside = Arc::new(schema::any_object());
        self.read.insert(name.to_owned(), inside.clone());
        let Some(value) = self.table.remove(name) else {
            return inside;
        };
        let mut schema = openapi::read(&value, &mut |part| self.component(part));
        for property in schema.properties.values_mut() {
            self.share(property);
        }
        schema.component = Some(name.to_owned());
        let schema = Arc::new(schema);
        self.read.insert(name.to_owned(), schema.clone());
        schema
    }

    /// Replaces a schema without parts by an equal one that is already held.
    fn share(&mut self, schema: &mut Arc<Schema>) {
        let plain = |s: &Schema| s.component.is_none() && s.properties.is_empty();
        let part = schema.items.as_ref().or(schema.additional.as_ref());
        if !plain(schema) || part.is_some_and(|p| !plain(p) || p.items.is_some()) {
            return;
        }
        match self.leaves.iter().find(|leaf| *leaf == schema) {
            Some(leaf) => *schema = leaf.clone(),
            None => self.leaves.push(schema.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_kind::schema::{ListType, Type};

    fn at<'a>(schema: &'a Arc<Schema>, path: &str) -> &'a Arc<Schema> {
        path.split('.').fold(schema, |schema, name| match name {
            "[]" => schema.items.as_ref().unwrap(),
            name => schema
                .property(name)
                .unwrap_or_else(|| panic!("{path}: no {name}")),
        })
    }

    #[test]
    fn facts_of_the_real_server_arrive_in_the_schemas() {
        let mut schemas = Schemas::new();
        let pod = schemas.component("io.k8s.api.core.v1.Pod");
        let containers = at(&pod, "spec.containers");
        assert_eq!(containers.list, ListType::Map(vec!["name".into()]));
        assert!(containers.strategic.merge);
        assert_eq!(containers.strategic.merge_key.as_deref(), Some("name"));
        let ports = at(containers, "[].ports");
        assert_eq!(
            ports.list,
            ListType::Map(vec!["containerPort".into(), "protocol".into()])
        );
        assert_eq!(ports.strategic.merge_key.as_deref(), Some("containerPort"));
        assert_eq!(at(ports, "[].protocol").default, Some("TCP".into()));
        assert_eq!(
            at(containers, "[].livenessProbe.httpGet.port").of,
            Type::IntOrString
        );
        assert_eq!(at(containers, "[].resources.limits.cpu").of, Type::Any);
        assert!(at(&pod, "spec.volumes").strategic.retain_keys);
        assert!(at(&pod, "spec.nodeSelector").atomic);
        assert!(Arc::ptr_eq(at(&pod, "metadata"), &OBJECT_META));
        let deployment = schemas.component("io.k8s.api.apps.v1.Deployment");
        assert!(Arc::ptr_eq(
            at(&deployment, "spec.template.spec"),
            at(&pod, "spec")
        ));
        let secret = schemas.component("io.k8s.api.core.v1.Secret");
        assert_eq!(at(&secret, "data.x").format.as_deref(), Some("byte"));
    }

    #[test]
    fn a_schema_inside_itself_ends_as_an_object_of_any_shape() {
        let base = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
        let props = Schemas::new().component(&format!("{base}.JSONSchemaProps"));
        assert!(at(&props, "properties.x").preserve_unknown);
        assert_eq!(at(&props, "description").of, Type::String);
    }

    #[test]
    fn every_reference_of_the_table_is_in_the_table() {
        let schemas = Schemas::new();
        assert!(schemas.table.len() > 250);
        fn references(value: &Value, found: &mut Vec<String>) {
            if let Some(name) = value.get("$ref").and_then(Value::as_str) {
                found.push(name.into());
            }
            match value {
                Value::Object(map) => map.values().for_each(|part| references(part, found)),
                Value::Array(items) => items.iter().for_each(|part| references(part, found)),
                _ => {}
            }
        }
        for (name, value) in &schemas.table {
            let mut found = Vec::new();
            references(value, &mut found);
            for reference in found.iter().filter(|r| !r.ends_with(".ObjectMeta")) {
                assert!(
                    schemas.table.contains_key(reference),
                    "{name} refers to {reference}"
                );
            }
        }
    }
}
