//! What is told of policies: in one ConfigMap of the installation, which of them judge each kind, under
//! which hash, and what cannot be in force and why; and an Event on the ConfigMap that the policy is
//! written in. The same ConfigMap remembers versions that are in force though something else is written,
//! so that a restart does not lose them.

use super::ConfigAuditor;
use super::status::{self, LAST_GOOD};
use crate::book::{is_absent, is_conflict};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use muster_checks::force::{Force, Remembered};
use muster_checks::report::{MANAGED_BY, MANAGER};
use muster_checks::{PolicyId, Trouble, hash};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The ConfigMap.
const NAME: &str = "muster-config-audit";
/// How long it is waited before what could not be read is read again.
const AGAIN: Duration = Duration::from_secs(2);
/// How much of a reason an Event tells.
const LONGEST: usize = 1_000;

impl ConfigAuditor {
    /// Takes up what was in force before; says whether to go on. Nothing is in force until it is known.
    pub(super) async fn recall(&self, stop: &CancellationToken) -> bool {
        loop {
            let asked = async {
                let found = self.notes().get_opt(NAME).await?;
                let data = found.and_then(|found| found.data).unwrap_or_default();
                Ok::<_, kube::Error>(data.get(LAST_GOOD).cloned())
            };
            let found = tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                found = asked => found,
            };
            match found {
                Ok(text) => {
                    let remembered: Remembered = text
                        .and_then(|text| serde_json::from_str(&text).ok())
                        .unwrap_or_default();
                    let recall = move || Force::recall(&remembered);
                    let recalled = tokio::task::spawn_blocking(recall).await;
                    self.state().force = Arc::new(recalled.unwrap_or_default());
                    return true;
                }
                Err(error) => tracing::warn!(%error, "reading which policies were in force"),
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }

    /// Tells how policies are.
    pub(super) async fn tell(&self) {
        let (force, unlisted) = {
            let state = self.state();
            (state.force.clone(), state.count_unlisted())
        };
        let older = force
            .troubles()
            .values()
            .filter(|trouble| trouble.has_older)
            .count();
        let metrics = &self.settings.metrics;
        metrics.policies(
            "ready",
            force.policies().filter(|one| one.is_current).count(),
        );
        metrics.policies("refused", force.troubles().len() - older);
        metrics.policies("older", older);
        metrics.unlisted(unlisted);
        // Of several that share the work, one tells.
        if !self.settings.scope.shard.is_first() {
            return;
        }
        let data = {
            let state = self.state();
            status::data(&state, &force, self.settings.all)
        };
        if let Err(error) = self.note(data).await {
            tracing::warn!(%error, "telling how policies are");
        }
        for (id, trouble) in force.troubles() {
            if let Err(error) = self.announce(id, trouble).await {
                tracing::warn!(%error, policy = %id, "telling that a policy cannot be used");
            }
        }
    }

    fn notes(&self) -> Api<ConfigMap> {
        Api::namespaced(self.settings.home.clone(), &self.settings.installation)
    }

    async fn note(&self, data: BTreeMap<String, String>) -> kube::Result<()> {
        let api = self.notes();
        let there = api.get_opt(NAME).await?;
        match there {
            Some(there) if there.data.as_ref() == Some(&data) => Ok(()),
            Some(_) => {
                // What is not among it is gone.
                let mut patch = json!({"data": {LAST_GOOD: null}});
                for (key, text) in data {
                    patch["data"][key] = text.into();
                }
                let parameters = PatchParams::apply(MANAGER);
                api.patch(NAME, &parameters, &Patch::Merge(patch))
                    .await
                    .map(drop)
            }
            None => {
                let notes = ConfigMap {
                    metadata: ObjectMeta {
                        name: Some(NAME.into()),
                        labels: Some(BTreeMap::from([(MANAGED_BY.into(), MANAGER.into())])),
                        ..ObjectMeta::default()
                    },
                    data: Some(data),
                    ..ConfigMap::default()
                };
                match api.create(&PostParams::default(), &notes).await {
                    Err(error) if !is_conflict(&error) => Err(error),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Tells on a ConfigMap what is wrong with a policy in it, once for each reason.
    async fn announce(&self, id: &PolicyId, trouble: &Trouble) -> kube::Result<()> {
        let Some(source) = self.state().sources.get(&id.source).cloned() else {
            return Ok(());
        };
        let message = told(id, trouble);
        let name = format!(
            "{}.{}",
            source.name,
            hash::of([message.as_str(), &source.uid])
        );
        let moment = super::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": source.namespace},
            "involvedObject": {
                "apiVersion": "v1", "kind": "ConfigMap", "namespace": source.namespace,
                "name": source.name, "uid": source.uid,
            },
            "type": "Warning", "reason": "PolicyRefused", "message": message,
            "source": {"component": MANAGER}, "count": 1,
            "firstTimestamp": moment, "lastTimestamp": moment,
        });
        let event: Event = serde_json::from_value(event).map_err(kube::Error::SerdeError)?;
        let api: Api<Event> = Api::namespaced(self.settings.home.clone(), &source.namespace);
        match api.create(&PostParams::default(), &event).await {
            Err(error) if !is_conflict(&error) && !is_absent(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

fn told(id: &PolicyId, trouble: &Trouble) -> String {
    let what = match (trouble.is_library, id.name.as_str()) {
        (_, "") => String::from("the ConfigMap"),
        (true, name) => format!("library {name}"),
        (false, name) => format!("policy {name}"),
    };
    let then = match trouble.has_older {
        true => "; the last good version stays in force",
        false => "",
    };
    let why: String = trouble.why.chars().take(LONGEST).collect();
    format!("{what}: {why}{then}")
}
