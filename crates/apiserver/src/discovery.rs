//! Discovery: which groups, versions and resources there are, plain and aggregated.

use crate::catalog::{Catalog, Served};
use muster_kind::Kind;
use serde_json::{Value, json};

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
/// Custom resources list the same verbs in an order of their own.
const CUSTOM_VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];
/// A collection of namespaces is never deleted at once.
const NAMESPACE_VERBS: [&str; 7] = [
    "create", "delete", "get", "list", "patch", "update", "watch",
];
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Resources that answer a question and store nothing: group, plural, kind, namespaced.
pub(crate) const REVIEWS: [(&str, &str, &str, bool); 5] = [
    (
        "authentication.k8s.io",
        "selfsubjectreviews",
        "SelfSubjectReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        true,
    ),
    (
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        false,
    ),
    (
        "authorization.k8s.io",
        "subjectaccessreviews",
        "SubjectAccessReview",
        false,
    ),
];

/// All groups with their versions, reviews included; the core group is the empty one.
pub(crate) fn groups(catalog: &Catalog) -> Vec<(String, Vec<String>)> {
    let mut groups = catalog.groups();
    for (group, ..) in REVIEWS {
        if !groups.iter().any(|(name, _)| name == group) {
            groups.push((group.into(), vec!["v1".into()]));
        }
    }
    groups
}

/// `/api`.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
pub(crate) fn group_list(catalog: &Catalog) -> Value {
    let groups: Vec<Value> = groups(catalog)
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, versions)| group_body(name, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn group_body(name: &str, versions: &[String]) -> Value {
    let entry =
        |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({
        "name": name,
        "versions": versions.iter().map(entry).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(entry),
    })
}

/// `/apis/GROUP`.
pub(crate) fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    let (name, versions) = groups(catalog)
        .into_iter()
        .find(|(group, _)| !group.is_empty() && group == name)?;
    let mut body = group_body(&name, &versions);
    body["kind"] = json!("APIGroup");
    body["apiVersion"] = json!("v1");
    Some(body)
}

/// `/apis/GROUP/VERSION` and `/api/v1`.
pub(crate) fn resources(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let known = groups(catalog);
    known
        .iter()
        .find(|(name, versions)| name == group && versions.iter().any(|v| v == version))?;
    let mut resources = Vec::new();
    for served in catalog.of(group, version) {
        let kind = &served.kind;
        let mut entry = json!({
            "name": kind.plural, "singularName": kind.singular,
            "namespaced": kind.is_namespaced(), "kind": kind.kind, "verbs": verbs(kind),
            "storageVersionHash": storage_hash(kind),
        });
        if !kind.short_names.is_empty() {
            entry["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            entry["categories"] = json!(kind.categories);
        }
        resources.push(entry);
        for (name, verbs) in subresources(kind) {
            resources.push(json!({
                "name": format!("{}/{name}", kind.plural), "singularName": "",
                "namespaced": kind.is_namespaced(), "kind": kind.kind, "verbs": verbs,
            }));
        }
    }
    for (_, plural, kind, namespaced) in REVIEWS.iter().filter(|(g, ..)| *g == group) {
        resources.push(json!({
            "name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced,
            "kind": kind, "verbs": ["create"],
        }));
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources,
    }))
}

fn verbs(kind: &Kind) -> &'static [&'static str] {
    match kind.builtin {
        _ if is_namespace(kind) => &NAMESPACE_VERBS,
        true => &VERBS,
        false => &CUSTOM_VERBS,
    }
}

/// Kubernetes' own Namespace, which has an end of its own.
pub(crate) fn is_namespace(kind: &Kind) -> bool {
    kind.builtin && kind.kind == "Namespace"
}

fn subresources(kind: &Kind) -> Vec<(&'static str, &'static [&'static str])> {
    let mut found: Vec<(&'static str, &'static [&'static str])> = Vec::new();
    if is_namespace(kind) {
        found.push(("finalize", &["update"]));
    }
    if kind.status {
        found.push(("status", &STATUS_VERBS));
    }
    found
}

fn storage_hash(kind: &Kind) -> String {
    use base64::Engine;
    let text = format!("{}/{}/{}", kind.group, kind.versions[0], kind.kind);
    let digest = muster_kind::Digest::of(text.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest.0[..8])
}

/// The aggregated form of `/api` (`core`) and `/apis`.
pub(crate) fn aggregated(catalog: &Catalog, core: bool) -> Value {
    let items: Vec<Value> = groups(catalog)
        .iter()
        .filter(|(name, _)| name.is_empty() == core)
        .map(|(name, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    json!({
                        "version": version, "freshness": "Current",
                        "resources": aggregated_resources(catalog, name, version),
                    })
                })
                .collect();
            let mut metadata = json!({"creationTimestamp": null});
            if !name.is_empty() {
                metadata["name"] = json!(name);
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items,
    })
}

fn aggregated_resources(catalog: &Catalog, group: &str, version: &str) -> Vec<Value> {
    let response = |kind: &str| json!({"group": group, "version": version, "kind": kind});
    let scope = |namespaced: bool| if namespaced { "Namespaced" } else { "Cluster" };
    // Kubernetes' own kinds leave out what their group and version say already.
    let plain = |kind: &str| json!({"group": "", "version": "", "kind": kind});
    let stored = catalog
        .of(group, version)
        .map(|served: &std::sync::Arc<Served>| {
            let kind = &served.kind;
            let response = |name: &str| {
                if kind.builtin {
                    plain(name)
                } else {
                    response(name)
                }
            };
            let mut entry = json!({
                "resource": kind.plural, "responseKind": response(&kind.kind),
                "scope": scope(kind.is_namespaced()), "singularResource": kind.singular,
                "verbs": verbs(kind),
            });
            if !kind.short_names.is_empty() {
                entry["shortNames"] = json!(kind.short_names);
            }
            if !kind.categories.is_empty() {
                entry["categories"] = json!(kind.categories);
            }
            let below: Vec<Value> = subresources(kind)
            .into_iter()
            .map(|(name, verbs)| {
                json!({"subresource": name, "responseKind": response(&kind.kind), "verbs": verbs})
            })
            .collect();
            if !below.is_empty() {
                entry["subresources"] = json!(below);
            }
            entry
        });
    let reviews =
        REVIEWS
            .iter()
            .filter(|(g, ..)| *g == group)
            .map(|(_, plural, kind, namespaced)| {
                json!({
                    "resource": plural, "responseKind": response(kind), "scope": scope(*namespaced),
                    "singularResource": kind.to_lowercase(), "verbs": ["create"],
                })
            });
    stored.chain(reviews).collect()
}
