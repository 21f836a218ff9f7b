//! Puts objects where they belong, and beside them what a cluster would have made of them. Doing it again
//! changes nothing.

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use muster_demo::site::Site;
use muster_demo::{cluster, manifests};
use muster_kind::{Kind, Scope};
use serde_json::{Value, json};
use std::collections::VecDeque;

const MANAGER: &str = "muster-demo";

/// Applies everything; gives the objects as they are stored, in the order of their coming.
pub(super) async fn all(client: &Client, site: &Site) -> Result<Vec<Value>> {
    let mut kinds = muster_api::builtin::builtin();
    kinds.extend(muster_api::kinds());
    let mut waiting: VecDeque<Value> = manifests::all(site.host())?.into();
    let mut stored = Vec::new();
    while let Some(object) = waiting.pop_front() {
        let kind = object["kind"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let what = || format!("applying the {kind} {name}");
        let api = api(client, &kinds, &object).with_context(what)?;
        let parameters = PatchParams::apply(MANAGER).force();
        let applied = api.patch(name, &parameters, &Patch::Apply(&object)).await;
        let applied = serde_json::to_value(applied.with_context(what)?)?;
        if let Some(status) = cluster::status(&applied, |image| site.image_id(image)) {
            let (parameters, status) = (PatchParams::default(), json!({"status": status}));
            let said = api
                .patch_status(name, &parameters, &Patch::Merge(status))
                .await;
            said.with_context(what)?;
        }
        waiting.extend(cluster::children(&applied));
        stored.push(applied);
    }
    Ok(stored)
}

/// Where objects of that kind are.
fn api(client: &Client, kinds: &[Kind], object: &Value) -> Result<Api<DynamicObject>> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let is_it = |kind: &&Kind| {
        let served = kind.versions.iter().any(|one| one == version);
        kind.group == group && served && object["kind"] == *kind.kind
    };
    let kind = kinds
        .iter()
        .find(is_it)
        .context("nobody serves this kind")?;
    let resource = ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: object["apiVersion"].as_str().unwrap_or_default().into(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    };
    Ok(match kind.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object["metadata"]["namespace"].as_str();
            Api::namespaced_with(client.clone(), namespace.unwrap_or("default"), &resource)
        }
    })
}
