//! OpenAPI v3: an index of documents, one for each group and version, made when first asked for.

use crate::catalog::{Catalog, Served};
use crate::discovery;
use muster_kind::{Digest, openapi};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `/openapi/v3`. The hash changes with the kinds, so that clients may keep what they have.
pub(crate) fn index(catalog: &Catalog) -> Value {
    let mut paths = Map::new();
    for (group, versions) in discovery::groups(catalog) {
        for version in versions {
            let path = prefix(&group, &version);
            let hash = hash(catalog, &group, &version);
            let url = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// A hash over what the document is made of, cheaper than the document.
pub(crate) fn hash(catalog: &Catalog, group: &str, version: &str) -> String {
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    for served in catalog.of(group, version) {
        let kind = &served.kind;
        text.push_str(&format!("{}{}{:?}", kind.kind, kind.plural, kind.scope));
        if !kind.builtin {
            text.push_str(&openapi::inline(&kind.schema).to_string());
        }
    }
    Digest::of(text.as_bytes()).to_string()[7..39].to_uppercase()
}

/// `/openapi/v3/apis/GROUP/VERSION`.
pub(crate) fn document(catalog: &Catalog, path: &str) -> Option<Value> {
    let known = discovery::groups(catalog);
    let (group, version) = known.iter().find_map(|(group, versions)| {
        let version = versions
            .iter()
            .find(|version| prefix(group, version) == path)?;
        Some((group.as_str(), version.as_str()))
    })?;
    let mut components = BTreeMap::new();
    let mut paths = Map::new();
    for served in catalog.of(group, version) {
        let name = openapi::add_kind(&served.kind, version, &mut components);
        add_paths(served, version, &name, &mut paths);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Muster", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": components},
    }))
}

fn add_paths(served: &Arc<Served>, version: &str, component: &str, paths: &mut Map<String, Value>) {
    let kind = &served.kind;
    let base = format!("/{}", prefix(&kind.group, version));
    let place = if kind.is_namespaced() {
        format!("{base}/namespaces/{{namespace}}")
    } else {
        base.clone()
    };
    let gvk = json!({"group": kind.group, "version": version, "kind": kind.kind});
    let schema = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let content = |name: &str| json!({"application/json": {"schema": schema(name)}});
    let operation = |action: &str, body: bool, answer: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
            .collect();
        let mut operation = json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content(answer)}},
        });
        if body {
            let types: &[&str] = match action {
                "patch" => &[
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ],
                _ => &["application/json"],
            };
            let body: Map<String, Value> = types
                .iter()
                .map(|media| ((*media).to_owned(), json!({"schema": schema(component)})))
                .collect();
            operation["requestBody"] = json!({"content": body, "required": true});
        }
        operation
    };
    let writing = ["dryRun", "fieldManager", "fieldValidation"];
    let patching = ["dryRun", "fieldManager", "fieldValidation", "force"];
    let listing = [
        "allowWatchBookmarks",
        "continue",
        "fieldSelector",
        "labelSelector",
        "limit",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "timeoutSeconds",
        "watch",
    ];
    let deleting = [
        "dryRun",
        "gracePeriodSeconds",
        "orphanDependents",
        "propagationPolicy",
    ];
    let list = format!("{component}List");
    let plural = &kind.plural;
    if kind.is_namespaced() {
        let all = json!({"get": operation("list", false, &list, &listing)});
        paths.insert(format!("{base}/{plural}"), all);
    }
    paths.insert(
        format!("{place}/{plural}"),
        json!({
            "get": operation("list", false, &list, &listing),
            "post": operation("post", true, component, &writing),
            "delete": operation("deletecollection", false, component, &deleting),
        }),
    );
    let one = json!({
        "get": operation("get", false, component, &[]),
        "put": operation("put", true, component, &writing),
        "patch": operation("patch", true, component, &patching),
        "delete": operation("delete", false, component, &deleting),
    });
    paths.insert(format!("{place}/{plural}/{{name}}"), one);
    if kind.status {
        paths.insert(
            format!("{place}/{plural}/{{name}}/status"),
            json!({
                "get": operation("get", false, component, &[]),
                "put": operation("put", true, component, &writing),
                "patch": operation("patch", true, component, &patching),
            }),
        );
    }
}
