//! One managed Registry: it holds what all namespaces together want of it, and goes when that is
//! nothing. It is written only if nobody else wrote since it was read.

use super::Workloads;
use super::ladder::{self, Holdings, Wish};
use super::managed::{self, Deed};
use super::report::Place;
use crate::object::{CONFIGURATION, IMAGE, MANAGER, REGISTRY, condition, is_absent, now};
use crate::work::Trouble;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ObjectMeta, Patch, PatchParams,
    PostParams, Preconditions,
};
use kube::{Api, ResourceExt};
use muster_api::scanner::configuration::NAME;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
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
                let written = api.replace(name, &parameters(), &object).await?;
                let generation = written.metadata.generation.unwrap_or_default();
                self.view().wrote(place, generation);
                self.clear_up(place, &before, &wanted).await?;
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

    /// Deletes the Images that nobody wants any more. A scan of all of the Registry would do so too,
    /// and without an interval there is none.
    async fn clear_up(
        &self,
        place: &Place,
        before: &Holdings,
        wanted: &Holdings,
    ) -> Result<(), Trouble> {
        let Place {
            namespace,
            registry,
        } = place;
        for repository in ladder::lessened(before, wanted) {
            let selector =
                format!("imageMetadata.registry={registry},imageMetadata.repository={repository}");
            let images: Vec<Kept> = IMAGE.list(self.home(), namespace, &selector).await?;
            let held = wanted.get(repository);
            for image in images.iter().filter(|image| !image.is_wanted(held)) {
                let name = image.metadata.name.as_deref().unwrap_or_default();
                let api = IMAGE.within(self.home(), namespace);
                match api.delete(name, &DeleteParams::background()).await {
                    Err(error) if !is_absent(&error) => return Err(error.into()),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Says on the configuration whether workloads are scanned.
    pub(super) async fn tell(&self) -> Result<Option<Duration>, Trouble> {
        let api = CONFIGURATION.all(self.home());
        let Some(object) = api.get_opt(NAME).await? else {
            return Ok(None);
        };
        let artifacts = object.data["spec"]["artifactsNamespace"].as_str();
        let artifacts = artifacts.filter(|name| !name.is_empty());
        let is_there = match artifacts {
            Some(name) => {
                let kind = GroupVersionKind::gvk("", "v1", "Namespace");
                let resource = ApiResource::from_gvk(&kind);
                let api: Api<DynamicObject> = Api::all_with(self.home().clone(), &resource);
                match api.get_metadata(name).await {
                    Ok(_) => true,
                    Err(error) if is_absent(&error) => false,
                    Err(error) => return Err(error.into()),
                }
            }
            None => true,
        };
        let is_on = self.view().configuration().is_some();
        let (holds, reason, message) = match (is_on, is_there, artifacts) {
            (false, _, _) => (false, "Disabled", "Workloads are not scanned".to_owned()),
            (true, false, Some(name)) => (
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

/// An Image, as far as it has to be told whether somebody wants it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    metadata: ObjectMeta,
    image_metadata: About,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct About {
    tag: String,
    digest: String,
    index_digest: String,
}

impl Kept {
    fn is_wanted(&self, held: Option<&BTreeMap<Wish, BTreeSet<String>>>) -> bool {
        let About {
            tag,
            digest,
            index_digest,
        } = &self.image_metadata;
        let answers = [
            Wish::Tag(tag.clone()),
            Wish::Digest(digest.clone()),
            Wish::Digest(index_digest.clone()),
        ];
        held.is_some_and(|held| answers.iter().any(|wish| held.contains_key(wish)))
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
