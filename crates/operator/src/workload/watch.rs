//! What is watched, and what each change is a reason to look at. Of namespaces, Registries and
//! reports only the metadata is asked for; of pods what [`pod`] keeps. What went away while nobody
//! watched is told when watching begins again.

use super::configuration::Configuration;
use super::pod::{self, Pod, Wire};
use super::report::{self, Held, Place};
use super::view::{Affected, Report};
use super::{SOON, TOGETHER, Task, Workloads};
use crate::object::{CONFIGURATION, REGISTRY, WORKLOAD_REPORT, noted};
use futures::{Stream, TryStreamExt};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use muster_api::guard::WORKLOAD_SCAN;
use muster_api::scanner::configuration::NAME;
use std::collections::{BTreeSet, HashSet};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;

/// How soon it is seen what another's Registry has found.
const LATER: Duration = Duration::from_secs(20);
/// How many watches there are.
const WATCHES: usize = 5;

/// An object of which only the metadata is asked for.
type Metadata = PartialObjectMeta<DynamicObject>;

/// Which watches have shown everything once.
#[derive(Default)]
pub(super) struct Seen(Sender<BTreeSet<&'static str>>);

impl Seen {
    fn note(&self, what: &'static str) {
        self.0.send_modify(|seen| {
            seen.insert(what);
        });
    }

    /// Waits until all have.
    pub(super) async fn all(&self) {
        let mut seen = self.0.subscribe();
        // The sender is here, so it cannot fail.
        let _ = seen.wait_for(|seen| seen.len() == WATCHES).await;
    }
}

impl Workloads {
    /// Watches until `stop`.
    pub(super) async fn watch(&self, seen: &Seen, stop: &CancellationToken) {
        tokio::join!(
            self.follow_configuration(seen, stop),
            self.follow_namespaces(seen, stop),
            self.follow_pods(seen, stop),
            self.follow_registries(seen, stop),
            self.follow_reports(seen, stop),
        );
    }

    async fn follow_configuration(&self, seen: &Seen, stop: &CancellationToken) {
        let api = CONFIGURATION.all(self.home());
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let changed = |(_, name): &Key, object: Option<DynamicObject>| {
            if name != NAME {
                return;
            }
            self.want(Task::Configuration, TOGETHER);
            match object.as_ref().map_or(Ok(None), Configuration::read) {
                Ok(configuration) => {
                    if self.view().configure(configuration) {
                        self.want_everything();
                    }
                }
                Err(error) => tracing::warn!(error, "the WorkloadScanConfiguration"),
            }
        };
        let what = "the WorkloadScanConfiguration";
        follow(what, events, stop, changed, || seen.note(what)).await;
    }

    async fn follow_namespaces(&self, seen: &Seen, stop: &CancellationToken) {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
        let api: Api<Metadata> = Api::all_with(self.cluster().clone(), &resource);
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let changed = |(_, name): &Key, object: Option<Metadata>| {
            if self
                .view()
                .namespace(name, object.map(|object| object.metadata))
            {
                self.want(Task::Namespace(name.clone()), TOGETHER);
                self.want(Task::Configuration, TOGETHER);
            }
        };
        let what = "namespaces";
        follow(what, events, stop, changed, || seen.note(what)).await;
    }

    async fn follow_pods(&self, seen: &Seen, stop: &CancellationToken) {
        let api: Api<Wire> = Api::all_with(self.cluster().clone(), &pod::resource());
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let changed = |(namespace, name): &Key, object: Option<Wire>| {
            let pod = object.as_ref().and_then(Pod::read);
            if self.view().pod(namespace, name, pod) {
                self.want(Task::Namespace(namespace.clone()), TOGETHER);
            }
        };
        let what = "pods";
        follow(what, events, stop, changed, || seen.note(what)).await;
    }

    async fn follow_registries(&self, seen: &Seen, stop: &CancellationToken) {
        let api: Api<Metadata> = Api::all_with(self.home().clone(), &REGISTRY.resource());
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let changed = |(namespace, name): &Key, object: Option<Metadata>| {
            let place = Place {
                namespace: namespace.clone(),
                registry: name.clone(),
            };
            let affected = self
                .view()
                .registry(&place, object.map(|object| object.metadata));
            match affected {
                Affected::Nothing => {}
                Affected::Registry => self.want(Task::Registry(place), SOON),
                Affected::Namespaces(namespaces) => {
                    for namespace in namespaces {
                        self.want(Task::Namespace(namespace), TOGETHER);
                    }
                }
                Affected::Around(home) => {
                    let around = self.view().around(&home);
                    for namespace in around {
                        self.want(Task::Namespace(namespace), LATER);
                    }
                }
            }
        };
        let what = "Registries";
        follow(what, events, stop, changed, || seen.note(what)).await;
    }

    async fn follow_reports(&self, seen: &Seen, stop: &CancellationToken) {
        let api: Api<Metadata> = Api::all_with(self.home().clone(), &WORKLOAD_REPORT.resource());
        let ours = watcher::Config::default().labels(&format!("{WORKLOAD_SCAN}=true"));
        let events = watcher(api, ours).default_backoff();
        let changed = |(namespace, name): &Key, object: Option<Metadata>| {
            let now = object.map(|object| {
                let content = noted(&object.metadata, report::CONTENT);
                Report {
                    content: content.unwrap_or_default().to_owned(),
                    held: Held::read(&object.metadata),
                }
            });
            let before = self.view().report(namespace, name, now.clone());
            let Some(before) = before.filter(|before| Some(before) != now.as_ref()) else {
                return;
            };
            // Perhaps its workload has gone, or let it go; that is asked anew.
            if let Some(held) = &before.held {
                self.owners.forget(namespace, &held.workload);
            }
            if now.is_none() {
                self.usage.gone(namespace, name);
            }
            self.want(Task::Namespace(namespace.clone()), TOGETHER);
        };
        let what = "WorkloadScanReports";
        follow(what, events, stop, changed, || seen.note(what)).await;
    }
}

/// The namespace and the name of an object.
type Key = (String, String);

/// Follows a watch until `stop`. `changed` is told of every object that is there, or gone;
/// `complete` is called when all that there were have been told.
async fn follow<K: ResourceExt>(
    what: &'static str,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    stop: &CancellationToken,
    mut changed: impl FnMut(&Key, Option<K>),
    mut complete: impl FnMut(),
) {
    let mut known: HashSet<Key> = HashSet::new();
    let mut listed: HashSet<Key> = HashSet::new();
    let mut events = pin!(events);
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.try_next() => event,
        };
        match event {
            Ok(Some(Event::Init)) => listed.clear(),
            Ok(Some(Event::InitApply(object))) => {
                let key = key(&object);
                listed.insert(key.clone());
                changed(&key, Some(object));
            }
            Ok(Some(Event::InitDone)) => {
                for key in known.difference(&listed) {
                    changed(key, None);
                }
                known = std::mem::take(&mut listed);
                complete();
            }
            Ok(Some(Event::Apply(object))) => {
                let key = key(&object);
                known.insert(key.clone());
                changed(&key, Some(object));
            }
            Ok(Some(Event::Delete(object))) => {
                let key = key(&object);
                known.remove(&key);
                changed(&key, None);
            }
            Ok(None) => return,
            // The watcher tries again by itself.
            Err(error) => tracing::warn!(%error, "watching {what}"),
        }
    }
}

fn key<K: ResourceExt>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}
