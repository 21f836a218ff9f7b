//! The VEXHub's reconciler: every hub that is enabled is fetched when it is due, and asked from
//! then on. A hub that cannot be fetched is asked as it was last time, and its status says so. All
//! hubs are looked at together, since which of them are asked is one state.

use crate::object::{MANAGER, VEX_HUB, condition, is_absent, now};
use crate::work::{Operator, Trouble, WORKER};
use crate::{events, news};
use futures::StreamExt;
use futures::future::ready;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use muster_advisories::Silent;
use muster_advisories::hub::{Fetch, Fetched, Hubs};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How often it is seen whether a hub is due.
const LOOK: Duration = Duration::from_secs(60);
/// After trouble.
const SOON: Duration = Duration::from_secs(5);
/// How long fetching one hub may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// What became of a hub.
enum Outcome {
    Disabled,
    Read(Fetched),
    Failed(String),
}

impl Outcome {
    /// As it is counted; none if nobody was asked.
    fn word(&self) -> Option<&'static str> {
        match self {
            Outcome::Disabled | Outcome::Read(Fetched::Fresh) => None,
            Outcome::Read(Fetched::Updated) => Some("updated"),
            Outcome::Read(Fetched::Unchanged) => Some("unchanged"),
            Outcome::Failed(_) => Some("failed"),
        }
    }
}

/// Has the hubs asked as they were last time, before anybody is told of a report: one that was
/// made without them would be another one.
pub(crate) async fn recall(operator: &Operator, stop: &CancellationToken) {
    while let Err(trouble) = pass(operator, None, false).await {
        tracing::warn!(%trouble, "looking for VEX hubs");
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SOON) => {}
        }
    }
}

/// Keeps the hubs until `stop`; without `fetch`, as they are here.
pub(crate) async fn run(operator: Arc<Operator>, fetch: Option<Fetch>, stop: CancellationToken) {
    let changes = watcher(VEX_HUB.all(operator.client()), watcher::Config::default());
    let mut known = HashMap::new();
    let changes = changes.default_backoff();
    let changes =
        changes.filter(|event| ready(event.as_ref().is_ok_and(|e| is_new(e, &mut known))));
    let mut changes = pin!(changes);
    loop {
        if let Err(trouble) = pass(&operator, fetch.as_ref(), true).await {
            tracing::warn!(%trouble, "looking at the VEX hubs");
        }
        let mut again = pin!(tokio::time::sleep(LOOK));
        tokio::select! {
            () = stop.cancelled() => return,
            () = &mut again => {}
            Some(_) = changes.next() => {}
        }
    }
}

/// Whether an event is a reason to look: what is said about a hub, by us or by other workers, is none.
fn is_new(event: &Event<DynamicObject>, known: &mut HashMap<String, i64>) -> bool {
    match event {
        Event::Apply(hub) | Event::InitApply(hub) => {
            let generation = hub.metadata.generation.unwrap_or_default();
            known.insert(hub.name_any(), generation) != Some(generation)
        }
        Event::Delete(hub) => {
            known.remove(&hub.name_any());
            true
        }
        Event::Init => false,
        // Some may be gone.
        Event::InitDone => true,
    }
}

async fn pass(operator: &Operator, fetch: Option<&Fetch>, tells: bool) -> Result<(), Trouble> {
    let api = VEX_HUB.all(operator.client());
    let hubs = match api.list(&ListParams::default()).await {
        // Where the kind is not known there are none.
        Err(error) if is_absent(&error) => Vec::new(),
        listed => listed?.items,
    };
    let kept = operator.knowledge().hubs();
    let mut asked = Vec::new();
    for hub in hubs {
        let spec = &hub.data["spec"];
        let url = spec["url"].as_str().unwrap_or_default().to_owned();
        let look = async {
            let outcome = match spec["enabled"].as_bool() {
                Some(false) => Outcome::Disabled,
                _ => read(kept, &url, fetch).await,
            };
            let is_here = !matches!(outcome, Outcome::Disabled)
                && kept.open(std::slice::from_ref(&url)).is_ok();
            (outcome, is_here)
        };
        let panics = operator.metrics().panics();
        let (outcome, is_here) = match panics.catch(WORKER, VEX_HUB.kind, look).await {
            Ok(looked) => looked,
            Err(panicked) => (Outcome::Failed(panicked.to_string()), false),
        };
        if fetch.is_some()
            && let Some(word) = outcome.word()
        {
            operator.metrics().hub(word);
        }
        // Who does not fetch has nothing to say about fetching.
        let status = status(&hub, &outcome, is_here, &now()).filter(|_| tells);
        if let Some(status) = status {
            let (name, parameters) = (hub.name_any(), PatchParams::apply(MANAGER));
            let patch = Patch::Merge(json!({"status": &status}));
            let written = api.patch_status(&name, &parameters, &patch).await;
            let news = news::of_hub(&hub.data["status"], &status);
            match (written, news) {
                (Err(error), _) => {
                    tracing::warn!(%error, name, "writing the status of a VEX hub");
                }
                (Ok(_), Some(news)) => {
                    events::tell(operator, VEX_HUB, &hub.metadata, &news).await;
                }
                (Ok(_), None) => {}
            }
        }
        if is_here && !asked.contains(&url) {
            asked.push(url);
        }
    }
    let opened = match asked.is_empty() {
        true => None,
        false => Some(kept.open(&asked).map_err(Trouble::permanent)?),
    };
    operator.knowledge().ask(opened);
    Ok(())
}

/// Fetches a hub if it is due, or sees whether it is here.
async fn read(kept: &Hubs, url: &str, fetch: Option<&Fetch>) -> Outcome {
    let Some(fetch) = fetch else {
        return match kept.open(&[url.to_owned()]) {
            Ok(_) => Outcome::Read(Fetched::Fresh),
            Err(error) => Outcome::Failed(error.to_string()),
        };
    };
    match timeout(PATIENCE, kept.fetch(url, fetch, &Silent)).await {
        Ok(Ok(fetched)) => Outcome::Read(fetched),
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Err(_) => Outcome::Failed(format!(
            "fetching {url}: not done within {} s",
            PATIENCE.as_secs()
        )),
    }
}

/// The status of a hub, if it says anything new.
fn status(hub: &DynamicObject, outcome: &Outcome, is_here: bool, now: &str) -> Option<Value> {
    let before = &hub.data["status"];
    let (holds, reason, message) = match outcome {
        Outcome::Disabled => (false, "Disabled", "The hub is not asked".to_owned()),
        Outcome::Read(_) => (true, "Fetched", "The hub is asked".to_owned()),
        Outcome::Failed(why) if is_here => (
            false,
            "FetchFailed",
            format!("{why}; it is asked as it was last time"),
        ),
        Outcome::Failed(why) => (false, "FetchFailed", why.clone()),
    };
    let generation = hub.metadata.generation.unwrap_or_default();
    let known = &before["conditions"];
    let ready = condition(known, "Ready", holds, reason, &message, generation, now);
    let mut status = json!({"observedGeneration": generation, "conditions": [ready]});
    let updated = match outcome {
        Outcome::Read(Fetched::Updated) => Some(now),
        Outcome::Read(_) => Some(before["lastUpdateTime"].as_str().unwrap_or(now)),
        Outcome::Disabled | Outcome::Failed(_) => before["lastUpdateTime"].as_str(),
    };
    if let Some(updated) = updated {
        status["lastUpdateTime"] = json!(updated);
    }
    (status != *before).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::ApiResource;

    fn hub(status: Value) -> DynamicObject {
        let resource: ApiResource = VEX_HUB.resource();
        let mut hub = DynamicObject::new("a", &resource);
        hub.metadata.generation = Some(2);
        hub.data = json!({"spec": {"url": "https://example.org"}, "status": status});
        hub
    }

    #[test]
    fn only_what_people_change_is_a_reason_to_look() {
        let mut known = HashMap::new();
        let of = |generation| {
            let mut hub = hub(json!({}));
            hub.metadata.generation = Some(generation);
            hub
        };
        for (event, expected, case) in [
            (Event::InitApply(of(1)), true, "unknown"),
            (Event::Apply(of(1)), false, "only its status"),
            (Event::Apply(of(2)), true, "another spec"),
            (Event::Init, false, "a new list begins"),
            (Event::InitApply(of(2)), false, "known already"),
            (Event::InitDone, true, "some may be gone"),
            (Event::Delete(of(2)), true, "gone"),
            (Event::Apply(of(1)), true, "made anew"),
        ] {
            assert_eq!(is_new(&event, &mut known), expected, "{case}");
        }
    }

    #[test]
    fn the_status_says_whether_a_hub_is_asked_and_since_when() {
        let failed = || Outcome::Failed("no route".into());
        let before = json!({"lastUpdateTime": "before"});
        for (outcome, is_here, holds, reason, message, updated) in [
            (
                Outcome::Disabled,
                false,
                "False",
                "Disabled",
                "not asked",
                "before",
            ),
            (
                Outcome::Read(Fetched::Updated),
                true,
                "True",
                "Fetched",
                "is asked",
                "now",
            ),
            (
                Outcome::Read(Fetched::Fresh),
                true,
                "True",
                "Fetched",
                "is asked",
                "before",
            ),
            (
                failed(),
                true,
                "False",
                "FetchFailed",
                "as it was last time",
                "before",
            ),
            (
                failed(),
                false,
                "False",
                "FetchFailed",
                "no route",
                "before",
            ),
        ] {
            let status = status(&hub(before.clone()), &outcome, is_here, "now").unwrap();
            let ready = &status["conditions"][0];
            assert_eq!(ready["status"], holds);
            assert_eq!(ready["reason"], reason);
            assert_eq!(ready["observedGeneration"], 2);
            assert!(
                ready["message"].as_str().unwrap().contains(message),
                "{ready}"
            );
            assert_eq!(status["lastUpdateTime"], updated, "{status}");
        }
    }

    #[test]
    fn a_status_that_says_the_same_is_not_written() {
        let outcome = Outcome::Read(Fetched::Unchanged);
        let first = status(&hub(Value::Null), &outcome, true, "one").unwrap();
        assert_eq!(status(&hub(first), &outcome, true, "two"), None);
    }
}
