//! The schema facts: names, types, list types and merge keys out of `/openapi/v3`, and nothing
//! that is prose. Only what the served kinds reach is kept.

use super::PACKAGES;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// `metadata` has a schema of its own in `muster-kind`.
const LEFT_OUT: &[&str] = &["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"];

const KEPT: &[&str] = &[
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
];

/// The table: component name to schema.
pub(super) fn table(fetch: impl Fn(&str) -> Result<Value>) -> Result<Value> {
    let mut all = BTreeMap::new();
    let mut wanted = Vec::new();
    for package in PACKAGES {
        let mut document = fetch(&format!("/openapi/v3/{}", package.path))?;
        let Value::Object(components) = document["components"]["schemas"].take() else {
            anyhow::bail!("no components in /openapi/v3/{}", package.path);
        };
        all.extend(components);
        wanted.extend(
            package
                .kinds
                .iter()
                .map(|kind| format!("{}.{kind}", package.component)),
        );
    }
    let mut table = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        if table.contains_key(&name) || LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let component = all
            .get(&name)
            .with_context(|| format!("no component {name}"))?;
        let facts = facts(component, &mut wanted);
        table.insert(name, facts);
    }
    keep_key_defaults(&mut table, &all);
    Ok(json!(table))
}

fn facts(schema: &Value, wanted: &mut Vec<String>) -> Value {
    let mut out = Map::new();
    if let Some(name) = reference(schema) {
        wanted.push(name.to_owned());
        out.insert("$ref".into(), name.into());
    }
    for key in KEPT {
        if let Some(value) = schema.get(*key) {
            out.insert((*key).into(), value.clone());
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let properties: Map<String, Value> = properties
            .iter()
            .map(|(name, part)| (name.clone(), facts(part, wanted)))
            .collect();
        out.insert("properties".into(), Value::Object(properties));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(part) = schema.get(key).filter(|part| part.is_object()) {
            out.insert(key.into(), facts(part, wanted));
        }
    }
    Value::Object(out)
}

/// Of the defaults, only those of fields that are keys of a list are kept: without them two items
/// that leave the field out could not be told apart from one that writes it.
fn keep_key_defaults(table: &mut BTreeMap<String, Value>, all: &BTreeMap<String, Value>) {
    let mut keys = BTreeSet::new();
    for schema in table.values() {
        for list in schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(Map::values)
        {
            let names = list["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten();
            let item = list["items"]["$ref"].as_str().unwrap_or_default();
            keys.extend(
                names
                    .filter_map(Value::as_str)
                    .map(|key| (item.to_owned(), key.to_owned())),
            );
        }
    }
    for (component, key) in keys {
        let default = all
            .get(&component)
            .map(|schema| &schema["properties"][&key]["default"]);
        if let (Some(Value::String(default)), Some(schema)) = (default, table.get_mut(&component))
            && !default.is_empty()
        {
            schema["properties"][&key]["default"] = default.as_str().into();
        }
    }
}

fn reference(schema: &Value) -> Option<&str> {
    let plain = schema.get("$ref");
    let wrapped = || schema.get("allOf")?.get(0)?.get("$ref");
    plain.or_else(wrapped)?.as_str()?.rsplit('/').next()
}
