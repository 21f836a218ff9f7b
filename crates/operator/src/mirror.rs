//! Namespaces of a cluster that is only looked at, mirrored at home: findings are kept beside the
//! workloads they are about, so a namespace has to be there before they are, and takes them along when it
//! goes. Only names and labels are mirrored. A namespace at home that is not marked as mirrored is the
//! user's: it is neither changed nor deleted. Nothing is deleted before both sides have been seen whole.

use crate::object::MANAGER;
use crate::work::{OPERATOR, Operator, Trouble};
use futures::{StreamExt, TryFutureExt};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PartialObjectMeta, Patch,
    PatchParams, PostParams,
};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Marks a namespace that follows one of the cluster.
const MIRRORED: &str = "sbomscanner.kubewarden.io/mirrored";
/// Namespaces that no server gives away.
const IMMORTAL: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// What could not be done is tried again after this time.
const AGAIN: Duration = Duration::from_secs(5);

type Labels = BTreeMap<String, String>;

/// Keeps the mirror until `stop`, where there is anything to mirror.
pub(crate) async fn run(operator: Arc<Operator>, stop: CancellationToken) {
    if operator.is_at_home() {
        return;
    }
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&operator) => {}
    }
}

async fn follow(operator: &Operator) {
    let (cluster, home) = (operator.cluster(), operator.client());
    let watch = |client: &Client| {
        let config = watcher::Config::default();
        watcher(
            namespaces::<PartialObjectMeta<DynamicObject>>(client),
            config,
        )
        .default_backoff()
    };
    let mut there = pin!(watch(cluster));
    let mut here = pin!(watch(home));
    let mut mirror = Mirror::new(operator.installation());
    loop {
        let again = tokio::time::sleep(AGAIN);
        tokio::select! {
            Some(event) = there.next() => tell(&mut mirror, Side::Cluster, event),
            Some(event) = here.next() => tell(&mut mirror, Side::Home, event),
            () = again, if mirror.has_work() => {}
        }
        for (name, step) in mirror.steps() {
            let work = take(home, &name, &step).map_err(Trouble::from);
            if let Err(error) = operator.catch(OPERATOR, "Namespace", work).await {
                tracing::warn!(%error, name, ?step, "mirroring a namespace");
                mirror.again(name);
            }
        }
    }
}

type Seen = Result<Event<PartialObjectMeta<DynamicObject>>, watcher::Error>;

fn tell(mirror: &mut Mirror, side: Side, event: Seen) {
    match event {
        Ok(event) => mirror.see(side, event),
        Err(error) => tracing::warn!(%error, ?side, "watching namespaces"),
    }
}

fn namespaces<K: Resource<DynamicType = ApiResource>>(client: &Client) -> Api<K> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
    Api::all_with(client.clone(), &resource)
}

/// Makes home as it should be.
async fn take(home: &Client, name: &str, step: &Step) -> Result<(), kube::Error> {
    let api: Api<DynamicObject> = namespaces(home);
    let done = match step {
        Step::Create(labels) => {
            let object = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": labels},
            });
            let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
            let parameters = PostParams {
                field_manager: Some(MANAGER.into()),
                ..PostParams::default()
            };
            api.create(&parameters, &object).await.map(drop)
        }
        Step::Relabel(labels) => {
            let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
            let parameters = PatchParams::apply(MANAGER);
            api.patch(name, &parameters, &patch).await.map(drop)
        }
        Step::Delete => {
            let deleted = api.delete(name, &DeleteParams::background()).await;
            deleted.map(drop)
        }
    };
    match done {
        // What is gone need not be deleted.
        Err(error) if crate::object::is_absent(&error) => Ok(()),
        done => done,
    }
}

/// What is to be done about a namespace at home.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Create(Labels),
    /// Labels to set, or to take away.
    Relabel(BTreeMap<String, Value>),
    Delete,
}

#[derive(Clone, Copy, Debug)]
enum Side {
    Cluster,
    Home,
}

/// A namespace on one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Namespace {
    labels: Labels,
    /// It is going, and whoever wants it has to wait until it is gone.
    is_ending: bool,
}

/// One side as far as it is known.
#[derive(Debug, Default)]
struct Known {
    namespaces: BTreeMap<String, Namespace>,
    /// What a list that is under way has brought.
    coming: BTreeMap<String, Namespace>,
    is_whole: bool,
}

/// Both sides, and which namespaces are to be looked at.
#[derive(Debug)]
struct Mirror {
    cluster: Known,
    home: Known,
    doubtful: BTreeSet<String>,
    installation: String,
}

impl Mirror {
    fn new(installation: &str) -> Self {
        Mirror {
            cluster: Known::default(),
            home: Known::default(),
            doubtful: BTreeSet::new(),
            installation: installation.into(),
        }
    }

    fn has_work(&self) -> bool {
        !self.doubtful.is_empty()
    }

    fn again(&mut self, name: String) {
        self.doubtful.insert(name);
    }

    fn see(&mut self, side: Side, event: Event<PartialObjectMeta<DynamicObject>>) {
        let known = match side {
            Side::Cluster => &mut self.cluster,
            Side::Home => &mut self.home,
        };
        let read = |object: PartialObjectMeta<DynamicObject>| {
            let namespace = Namespace {
                labels: object.labels().clone(),
                is_ending: object.metadata.deletion_timestamp.is_some(),
            };
            (object.name_any(), namespace)
        };
        match event {
            Event::Init => known.coming.clear(),
            Event::InitApply(object) => {
                let (name, namespace) = read(object);
                known.coming.insert(name, namespace);
            }
            Event::InitDone => {
                let gone = std::mem::take(&mut known.namespaces);
                known.namespaces = std::mem::take(&mut known.coming);
                known.is_whole = true;
                self.doubtful.extend(gone.into_keys());
                self.doubtful.extend(known.namespaces.keys().cloned());
            }
            Event::Apply(object) => {
                let (name, namespace) = read(object);
                // Most changes are of other things.
                if known.namespaces.get(&name) != Some(&namespace) {
                    known.namespaces.insert(name.clone(), namespace);
                    self.doubtful.insert(name);
                }
            }
            Event::Delete(object) => {
                let (name, _) = read(object);
                known.namespaces.remove(&name);
                self.doubtful.insert(name);
            }
        }
    }

    /// What is to be done now, each once.
    fn steps(&mut self) -> Vec<(String, Step)> {
        if !self.cluster.is_whole || !self.home.is_whole {
            return Vec::new();
        }
        let names = std::mem::take(&mut self.doubtful);
        let steps = names.into_iter().filter_map(|name| {
            let there = self.cluster.namespaces.get(&name);
            let here = self.home.namespaces.get(&name);
            let keep = IMMORTAL.contains(&name.as_str()) || name == self.installation;
            Some((name, step(there, here, keep)?))
        });
        steps.collect()
    }
}

/// What makes a namespace at home follow the one of the cluster.
fn step(there: Option<&Namespace>, here: Option<&Namespace>, keep: bool) -> Option<Step> {
    match (there, here) {
        (None, None) => None,
        (Some(there), None) => Some(Step::Create(mirrored(there))),
        // Once it is gone it is looked at again.
        (_, Some(here)) if here.is_ending => None,
        (_, Some(here)) if here.labels.get(MIRRORED).map(String::as_str) != Some("true") => None,
        (None, Some(_)) => (!keep).then_some(Step::Delete),
        (Some(there), Some(here)) => {
            let wanted = mirrored(there);
            let gone = here.labels.keys().filter(|key| !wanted.contains_key(*key));
            let gone = gone.map(|key| (key.clone(), Value::Null));
            let set = wanted.iter();
            let set = set.filter(|(key, value)| here.labels.get(*key) != Some(value));
            let set = set.map(|(key, value)| (key.clone(), json!(value)));
            let labels: BTreeMap<String, Value> = gone.chain(set).collect();
            (!labels.is_empty()).then_some(Step::Relabel(labels))
        }
    }
}

fn mirrored(namespace: &Namespace) -> Labels {
    let mut labels = namespace.labels.clone();
    labels.insert(MIRRORED.into(), "true".into());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(labels: &[(&str, &str)]) -> Namespace {
        let labels = labels.iter();
        Namespace {
            labels: labels
                .map(|&(key, value)| (key.into(), value.into()))
                .collect(),
            is_ending: false,
        }
    }

    #[test]
    fn a_mirrored_namespace_follows_and_the_users_are_left_alone() {
        let marked = (MIRRORED, "true");
        let ending = Namespace {
            is_ending: true,
            ..namespace(&[marked])
        };
        let shop = namespace(&[("team", "a")]);
        let relabelled = BTreeMap::from([
            ("old".to_owned(), Value::Null),
            ("team".to_owned(), json!("a")),
        ]);
        for (there, here, keep, expected, case) in [
            (
                Some(&shop),
                None,
                false,
                Some(Step::Create(mirrored(&shop))),
                "new",
            ),
            (
                Some(&shop),
                Some(namespace(&[marked, ("team", "b"), ("old", "1")])),
                false,
                Some(Step::Relabel(relabelled)),
                "labels changed",
            ),
            (
                Some(&shop),
                Some(namespace(&[marked, ("team", "a")])),
                false,
                None,
                "the same",
            ),
            (
                Some(&shop),
                Some(namespace(&[("mine", "1")])),
                false,
                None,
                "the user's",
            ),
            (
                None,
                Some(namespace(&[("mine", "1")])),
                false,
                None,
                "the user's alone",
            ),
            (
                None,
                Some(namespace(&[marked])),
                false,
                Some(Step::Delete),
                "gone",
            ),
            (
                None,
                Some(namespace(&[marked])),
                true,
                None,
                "gone, and never deleted",
            ),
            (None, Some(ending.clone()), false, None, "going already"),
            (
                Some(&shop),
                Some(ending),
                false,
                None,
                "back before it was gone",
            ),
            (None, None, false, None, "gone on both sides"),
        ] {
            assert_eq!(step(there, here.as_ref(), keep), expected, "{case}");
        }
    }

    #[test]
    fn nothing_is_done_before_both_sides_are_known_whole() {
        let object = |name: &str, labels: &[(&str, &str)]| -> PartialObjectMeta<DynamicObject> {
            let labels = namespace(labels).labels;
            serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap()
        };
        let mut mirror = Mirror::new("muster");
        for event in [
            Event::Init,
            Event::InitApply(object("old", &[(MIRRORED, "true")])),
            Event::InitApply(object("muster", &[(MIRRORED, "true")])),
            Event::InitDone,
        ] {
            mirror.see(Side::Home, event);
        }
        mirror.see(Side::Cluster, Event::Init);
        mirror.see(Side::Cluster, Event::InitApply(object("new", &[])));
        assert!(mirror.steps().is_empty());
        mirror.see(Side::Cluster, Event::InitDone);
        let steps = mirror.steps();
        assert_eq!(steps.len(), 2, "{steps:?}");
        assert!(matches!(&steps[0], (name, Step::Create(_)) if name == "new"));
        assert!(matches!(&steps[1], (name, Step::Delete) if name == "old"));

        // A list that is under way takes nothing away until it is whole.
        mirror.see(
            Side::Home,
            Event::Apply(object("new", &[(MIRRORED, "true")])),
        );
        assert!(mirror.steps().is_empty());
        mirror.see(Side::Cluster, Event::Init);
        assert!(mirror.steps().is_empty());
        mirror.see(Side::Cluster, Event::InitDone);
        let steps = mirror.steps();
        let deleted: Vec<&str> = steps.iter().map(|(name, _)| name.as_str()).collect();
        // The other was told before, and is told again only if that failed.
        assert_eq!(deleted, ["new"]);
    }
}
