//! One managed Registry: it holds what all namespaces together want of it, and goes when that is
//! nothing. It is written only if nobody else wrote since it was read.

use super::Workloads;
use super::managed::{self, Deed};
use super::report::Place;
use crate::object::{CONFIGURATION, MANAGER, REGISTRY, condition, is_absent, now};
use crate::work::Trouble;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use muster_api::scanner::configuration::NAME;
use serde_json::{Value, json};
use std::time::Duration;

/// How soon it is seen whether a Registry has gone.
const AGAIN: Duration = Duration::from_secs(2);
/// How soon it is seen whether a name is free that somebody else has taken.
const MUCH_LATER: Duration = Duration::from_secs(300);

impl Workloads {
    /// Makes a managed Registry what it should be.
    pub(super) async fn settle(&self, place: &Place) -> Result<Option<Duration>, Trouble> {
        let Place {
            namespace,
            registry: name,
        } = place;
        let api = REGISTRY.within(self.home(), namespace);
        let present = api.get_opt(name).await?;
        let before = present.as_ref().map(managed::holdings).unwrap_or_default();
        let (configuration, host, wanted) = {
            let view = self.view();
            let (host, wanted) = view.wanted(place, &before);
            (view.configuration(), host, wanted)
        };
        let configuration = configuration.as_deref();
        let (host, present) = (host.as_ref(), present.as_ref());
        match managed::deed(present, namespace, name, host, &wanted, configuration) {
            Deed::Nothing => {}
            Deed::Create(object) => {
                let object = serde_json::from_value(object).map_err(Trouble::permanent)?;
                api.create(&parameters(), &object).await?;
            }
            Deed::Replace(object) => {
                api.replace(name, &parameters(), &object).await?;
            }
            Deed::Delete => {
                let only_this = Preconditions {
                    uid: present.and_then(ResourceExt::uid),
                    resource_version: present.and_then(ResourceExt::resource_version),
                };
                let parameters = DeleteParams::background().preconditions(only_this);
                match api.delete(name, &parameters).await {
                    Err(error) if !is_absent(&error) => return Err(error.into()),
                    _ => {}
                }
            }
            Deed::Wait => return Ok(Some(AGAIN)),
            Deed::Foreign => {
                tracing::warn!(
                    namespace,
                    name,
                    "somebody made a Registry of the name that the workload scan needs; its images wait until that one is gone"
                );
                return Ok(Some(MUCH_LATER));
            }
        }
        Ok(None)
    }

    /// Says on the configuration whether workloads are scanned.
    pub(super) async fn tell(&self) -> Result<Option<Duration>, Trouble> {
        let api = CONFIGURATION.all(self.home());
        let Some(object) = api.get_opt(NAME).await? else {
            return Ok(None);
        };
        let artifacts = object.data["spec"]["artifactsNamespace"].as_str();
        let artifacts = artifacts.filter(|name| !name.is_empty());
        let (is_on, is_there) = {
            let view = self.view();
            let is_there = artifacts.is_none_or(|name| view.has_namespace(name));
            (view.configuration().is_some(), is_there)
        };
        let (holds, reason, message) = match (is_on, is_there, artifacts) {
            (false, _, _) => (false, "Disabled", "Workloads are not scanned".to_owned()),
            (true, false, Some(name)) if self.operator.is_at_home() => (
                false,
                "NamespaceNotFound",
                format!("The namespace {name:?} for artifacts does not exist; create it"),
            ),
            _ => (true, "Scanning", "Workloads are scanned".to_owned()),
        };
        let generation = object.metadata.generation.unwrap_or_default();
        let known = &object.data["status"]["conditions"];
        let told = condition(known, "Ready", holds, reason, &message, generation, &now());
        if same(known, &told) {
            return Ok(None);
        }
        let patch = json!({"status": {"conditions": [told]}});
        let parameters = PatchParams::apply(MANAGER);
        match api
            .patch_status(NAME, &parameters, &Patch::Merge(patch))
            .await
        {
            Err(error) if !is_absent(&error) => Err(error.into()),
            _ => Ok(None),
        }
    }
}

fn same(known: &Value, told: &Value) -> bool {
    let known = known.as_array().into_iter().flatten();
    known.into_iter().any(|known| known == told)
}

fn parameters() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    }
}
