//! What is watched at all times: policies, the servers that judge by them, namespaces, and reports, of
//! which only the metadata is asked for. Before everything has been seen once, nothing is audited: what
//! has been reported already would be reported again.

use crate::agenda::Task;
use crate::auditor::{Auditor, State};
use crate::book::{self, revision};
use crate::ledger::{Place, Whereabouts};
use crate::note::{INPUTS, Key, Note, STALE};
use crate::resources::{refusal, why};
use crate::status::Told;
use futures::{Stream, TryStreamExt};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event, watcher};
use kube::{Api, ResourceExt};
use muster_api::policies::{GROUP, VERSION};
use muster_control::Panics;
use muster_policy::report::{MANAGED_BY, SOURCE};
use muster_policy::{Policy, Served, Sort};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;

/// Changes that come together are looked at together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How many watches there are: four sorts of policy, servers, namespaces, two sorts of report.
const WATCHES: usize = 8;
/// How often a server is asked everything again after a policy was written: it may still be rolled out.
const REASKS: u32 = 2;
/// How often it is seen whether anybody serves reports by now.
const AGAIN: Duration = Duration::from_secs(5);

/// An object of which only the metadata is asked for.
pub(crate) type Metadata = PartialObjectMeta<DynamicObject>;
/// The namespace and the name of an object.
pub(crate) type Name = (String, String);

/// How long to wait before a watch that failed is tried again: longer and longer, until it has been well
/// for two minutes. A watcher says that it begins before it knows whether it can, which is no reason to
/// begin anew with the waiting.
#[derive(Default)]
pub(crate) struct Patience(DefaultBackoff);

impl Iterator for Patience {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for Patience {
    fn reset(&mut self) {}
}

/// Which watches have shown everything once.
#[derive(Default)]
struct Seen(Sender<BTreeSet<String>>);

impl Seen {
    fn note(&self, what: &str) {
        self.0.send_modify(|seen| {
            seen.insert(what.into());
        });
    }

    async fn all(&self) {
        let mut seen = self.0.subscribe();
        // The sender is here, so it cannot fail.
        let _ = seen.wait_for(|seen| seen.len() == WATCHES).await;
    }
}

/// A report that was there when the audit began.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    namespace: Option<String>,
    group: String,
    kind: String,
    name: String,
    note: Option<Note>,
    stale: bool,
    revision: u64,
}

impl Found {
    /// What the metadata of a report tell; none if it is about nothing.
    pub(crate) fn read(metadata: &ObjectMeta, revision: u64) -> Option<Found> {
        let owner = metadata.owner_references.as_ref()?.first()?;
        let (group, _) = owner.api_version.split_once('/').unwrap_or_default();
        let noted = |name: &str| metadata.annotations.as_ref().and_then(|all| all.get(name));
        Some(Found {
            namespace: metadata.namespace.clone(),
            group: group.into(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            note: noted(INPUTS).and_then(|text| Note::read(text)),
            stale: noted(STALE).is_some(),
            revision,
        })
    }

    /// Where its object is, by what is served.
    fn place(&self, served: &[Served]) -> Place {
        let mut served = served.iter();
        let found = served.find(|one| one.group == self.group && one.kind == self.kind);
        let resource = found.map_or_else(String::new, |one| one.resource.clone());
        Place::new((self.group.clone(), resource))
    }
}

impl State {
    /// Takes over the reports that were there. Those that are about nothing that is served, or that
    /// somebody else wrote, are looked at as any others.
    pub(crate) fn adopt(&mut self) {
        let served = self.view.served();
        for (uid, found) in self.found.take().unwrap_or_default() {
            let at = Whereabouts {
                place: found.place(&served),
                namespace: found.namespace.as_deref().map(Into::into),
                name: found.name,
            };
            let note = found.note.unwrap_or_default();
            self.ledger
                .adopt(&uid, at, note, found.stale, found.revision);
        }
        // Earlier versions stored refused evaluations as results, and whatever failed may work now.
        self.ledger.doubt_errors();
        self.unseen.clear();
    }

    /// Why the audit has not begun, if something stands in the way.
    pub(crate) fn hindrance(&self) -> Option<String> {
        let (what, why) = self.unseen.first_key_value()?;
        Some(format!("The audit has not begun: watching {what}: {why}"))
    }
}

impl Auditor {
    /// Watches until `stop`.
    pub(crate) async fn follow(&self, stop: &CancellationToken) {
        let seen = Seen::default();
        let policies = Sort::ALL.map(|sort| self.follow_policies(sort, &seen, stop));
        tokio::join!(
            futures::future::join_all(policies),
            self.follow_servers(&seen, stop),
            self.follow_namespaces(&seen, stop),
            self.follow_reports(true, &seen, stop),
            self.follow_reports(false, &seen, stop),
            self.begin(&seen, stop),
        );
    }

    /// Begins to audit once everything has been seen.
    async fn begin(&self, seen: &Seen, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = seen.all() => self.want(Task::Discover, Duration::ZERO),
        }
    }

    /// Takes note of a watch that fails, as long as the audit has not begun.
    fn hindered(&self, what: &str, why: String) {
        let mut state = self.state();
        if state.found.is_none() || state.unseen.get(what) == Some(&why) {
            return;
        }
        state.unseen.insert(what.into(), why);
        drop(state);
        self.told();
    }

    /// Takes note of a watch that has shown everything once.
    fn shown(&self, seen: &Seen, what: &str) {
        if self.state().unseen.remove(what).is_some() {
            self.told();
        }
        seen.note(what);
    }

    async fn follow_policies(&self, sort: Sort, seen: &Seen, stop: &CancellationToken) {
        let resource = resource_of(sort.kind(), sort.plural());
        let api: Api<DynamicObject> = Api::all_with(self.home.clone(), &resource);
        let events = watcher(api, watcher::Config::default()).backoff(Patience::default());
        let mut keys: HashMap<Name, Key> = HashMap::new();
        let changed = |name: &Name, object: Option<DynamicObject>| {
            let key = object
                .as_ref()
                .map(|object| Key::of(object.uid().as_deref().unwrap_or_default()));
            let before = keys.get(name).copied();
            if let Some(gone) = before.filter(|before| Some(*before) != key) {
                self.remove_policy(gone);
            }
            match (key, object) {
                (Some(key), Some(object)) => {
                    keys.insert(name.clone(), key);
                    self.write_policy(sort, key, object);
                }
                _ => {
                    keys.remove(name);
                }
            }
        };
        let what = sort.kind();
        let events = events.inspect_err(|error| self.hindered(what, why(error)));
        let complete = || self.shown(seen, what);
        let panics = &self.metrics.panics;
        follow(panics, what, events, stop, changed, complete).await;
    }

    fn remove_policy(&self, key: Key) {
        let mut state = self.state();
        state.view.write_policy(key, None);
        state.told.remove(&key);
        drop(state);
        self.want(Task::Settle, TOGETHER);
    }

    fn write_policy(&self, sort: Sort, key: Key, object: DynamicObject) {
        let Ok(mut value) = serde_json::to_value(&object) else {
            return;
        };
        // The items of a list do not say what they are.
        value["kind"] = sort.kind().into();
        let read = match catch_unwind(AssertUnwindSafe(|| Policy::read(&value))) {
            Ok(read) => read.map_err(|error| ("Unreadable", error.to_string())),
            Err(panic) => {
                let panicked = self.metrics.panics.record("audit", sort.kind(), &*panic);
                Err(("InternalError", panicked.to_string()))
            }
        };
        let mut state = self.state();
        let told = state.told.entry(key).or_insert_with(|| Told::new(sort));
        let moved = told.observe(&object.metadata, value["status"].take());
        if moved && !self.scope.shard.is_whole() {
            self.told();
        }
        match read {
            Ok(policy) => {
                if !state.view.write_policy(key, Some(policy)) {
                    // Its status, or something else that matters to nobody.
                    return;
                }
                // One that was there before is known to its server.
                let reasks = if state.found.is_none() { REASKS } else { 0 };
                if let Some(told) = state.told.get_mut(&key) {
                    told.wait();
                    told.reasks = reasks;
                }
                drop(state);
                self.want(Task::Prepare(key), Duration::ZERO);
            }
            Err((reason, why)) => {
                told.refuse(reason, &why);
                state.view.write_policy(key, None);
                drop(state);
            }
        }
        self.told();
        self.want(Task::Settle, TOGETHER);
    }

    async fn follow_servers(&self, seen: &Seen, stop: &CancellationToken) {
        let resource = resource_of("PolicyServer", "policyservers");
        let api: Api<Metadata> = Api::all_with(self.home.clone(), &resource);
        let events = watcher(api, watcher::Config::default()).backoff(Patience::default());
        let mut generations: HashMap<Name, Option<i64>> = HashMap::new();
        let changed = |(namespace, name): &Name, object: Option<Metadata>| {
            let generation = object.map(|object| object.metadata.generation);
            let key = (namespace.clone(), name.clone());
            let before = match generation {
                Some(generation) => generations.insert(key, generation),
                None => generations.remove(&key),
            };
            if before == generation {
                return;
            }
            let served: Vec<Key> = {
                let state = self.state();
                let policies = state.view.policies();
                policies
                    .filter(|(_, known)| known.policy.server == *name)
                    .map(|(key, _)| key)
                    .collect()
            };
            for key in served {
                self.want(Task::Prepare(key), Duration::ZERO);
            }
        };
        let what = "PolicyServers";
        let events = events.inspect_err(|error| self.hindered(what, why(error)));
        let complete = || self.shown(seen, what);
        let panics = &self.metrics.panics;
        follow(panics, what, events, stop, changed, complete).await;
    }

    async fn follow_namespaces(&self, seen: &Seen, stop: &CancellationToken) {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
        let api: Api<Metadata> = Api::all_with(self.cluster.clone(), &resource);
        let events = watcher(api, watcher::Config::default()).backoff(Patience::default());
        let changed = |(_, name): &Name, object: Option<Metadata>| {
            let labels = object.map(|object| object.metadata.labels.unwrap_or_default());
            let mut state = self.state();
            if !state.view.write_namespace(name, labels) || state.found.is_some() {
                return;
            }
            let places: Vec<Place> = state
                .view
                .interests()
                .filter(|(_, interest)| {
                    let mut policies = interest.policies.iter();
                    interest.served.namespaced
                        && policies.any(|one| !one.policy.namespace_selector.is_empty())
                })
                .map(|(place, _)| place.clone())
                .collect();
            drop(state);
            for place in places {
                self.want(Task::Sweep(place, Some(name.clone())), TOGETHER);
            }
        };
        let what = "namespaces";
        let events = events.inspect_err(|error| self.hindered(what, why(error)));
        let complete = || self.shown(seen, what);
        let panics = &self.metrics.panics;
        follow(panics, what, events, stop, changed, complete).await;
    }

    async fn follow_reports(&self, namespaced: bool, seen: &Seen, stop: &CancellationToken) {
        let what = self.book.resource(namespaced).kind;
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.find_reports(&what) => {}
        }
        let resource = self.book.resource(namespaced);
        let api: Api<Metadata> = Api::all_with(self.home.clone(), &resource);
        let ours = watcher::Config::default().labels(&format!("{MANAGED_BY}={SOURCE}"));
        let events = watcher(api, ours).backoff(Patience::default());
        let changed = |(_, uid): &Name, object: Option<Metadata>| {
            if !self.scope.shard.has(uid) {
                return;
            }
            let now = object.as_ref().map(revision);
            let mut state = self.state();
            match &mut state.found {
                Some(found) => {
                    let read = object.zip(now);
                    let read = read.and_then(|(object, now)| Found::read(&object.metadata, now));
                    match read {
                        Some(report) => found.insert(uid.clone(), report),
                        None => found.remove(uid),
                    };
                }
                None => {
                    if state.ledger.seen(uid, now) {
                        drop(state);
                        self.want(Task::Look(uid.clone()), TOGETHER);
                    }
                }
            }
        };
        let events = events.inspect_err(|error| self.hindered(&what, why(error)));
        let complete = || self.shown(seen, &what);
        let panics = &self.metrics.panics;
        follow(panics, &what, events, stop, changed, complete).await;
    }

    /// Waits until it is known in which version reports are served.
    async fn find_reports(&self, what: &str) {
        loop {
            let why = match self.book.find_version().await {
                Ok(true) => return,
                Ok(false) => "nobody serves them; see muster crds".to_owned(),
                Err(error) => refusal(&error),
            };
            self.hindered(what, why);
            tokio::time::sleep(AGAIN).await;
        }
    }
}

fn resource_of(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: GROUP.into(),
        version: VERSION.into(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: kind.into(),
        plural: plural.into(),
    }
}

/// Where the status of a policy is.
pub(crate) fn policies(
    client: kube::Client,
    sort: Sort,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let resource = resource_of(sort.kind(), sort.plural());
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

/// Follows a watch until `stop`. `changed` is told of every object that is there, or gone;
/// `complete` is called when all that there were have been told, and if there can be none, since
/// nobody serves them.
///
/// A panic of `changed` is counted and logged; other objects are followed as before.
pub(crate) async fn follow<K: ResourceExt>(
    panics: &Panics,
    what: &str,
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    stop: &CancellationToken,
    mut changed: impl FnMut(&Name, Option<K>),
    mut complete: impl FnMut(),
) {
    let mut changed = |name: &Name, object: Option<K>| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| changed(name, object))) {
            let (namespace, name) = name;
            panics.record("audit", "watch", &*panic);
            tracing::warn!(what, namespace, name, "skipped a change of an object");
        }
    };
    let mut known: HashSet<Name> = HashSet::new();
    let mut listed: HashSet<Name> = HashSet::new();
    let mut said = String::new();
    let mut events = pin!(events);
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = events.try_next() => event,
        };
        match event {
            Ok(Some(Event::Init)) => listed.clear(),
            Ok(Some(Event::InitApply(object))) => {
                let name = name(&object);
                listed.insert(name.clone());
                known.insert(name.clone());
                changed(&name, Some(object));
            }
            Ok(Some(Event::InitDone)) => {
                for name in known.difference(&listed) {
                    changed(name, None);
                }
                known = std::mem::take(&mut listed);
                complete();
            }
            Ok(Some(Event::Apply(object))) => {
                let name = name(&object);
                known.insert(name.clone());
                changed(&name, Some(object));
            }
            Ok(Some(Event::Delete(object))) => {
                let name = name(&object);
                known.remove(&name);
                changed(&name, None);
            }
            Ok(None) => return,
            // The watcher tries again by itself.
            Err(error) => {
                let is_unserved = is_unserved(&error);
                let error = error.to_string();
                if error != said {
                    tracing::warn!(error, "watching {what}");
                    said = error;
                }
                if is_unserved && known.is_empty() && is_optional(what) {
                    complete();
                }
            }
        }
    }
}

/// Reports have to be kept somewhere; nobody has to have every sort of policy.
fn is_optional(what: &str) -> bool {
    what.starts_with("PolicyServer") || Sort::ALL.iter().any(|sort| sort.kind() == what)
}

/// Whether a watch fails because nobody serves what is watched.
pub(crate) fn is_unserved(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error) => {
            book::is_absent(error)
        }
        _ => false,
    }
}

fn name<K: ResourceExt>(object: &K) -> Name {
    (object.namespace().unwrap_or_default(), object.name_any())
}
