//! The objects of a resource: watched, and listed again when there is reason to. Of what is listed
//! nothing is kept here; every object goes to whoever works on it. Only a list that ended well tells
//! that something is gone.

use crate::agenda::{Agenda, Task};
use crate::auditor::{Auditor, State};
use crate::ledger::Place;
use crate::look::{Job, watched};
use crate::object::{Object, resource};
use crate::view::Interest;
use crate::watch::{Metadata, Patience, is_unserved};
use futures::{Stream, TryStreamExt};
use kube::api::ListParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use muster_policy::{GroupVersionKind, Served, request};
use std::collections::HashSet;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How many objects are asked for at once.
const PAGE: u32 = 250;
/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a resource cannot be listed before its reports say so.
const DOUBTFUL: Duration = Duration::from_secs(60);
/// The time until an errand that panicked is run again.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// How soon policies are asked again that read what has changed: it may change often.
const LATER: Duration = Duration::from_secs(30);

/// What a watch of objects tells.
pub(crate) enum Seen {
    /// An object is in the list with which the watch begins.
    Found(Object),
    /// An object is there, like this.
    There(Object),
    /// It is gone.
    Gone(Object),
    /// All objects that there are have been told; these are the numbers of their identities.
    All(HashSet<u64>),
    /// The watch is not well, and why. It is tried again.
    Trouble {
        /// What the server says.
        why: String,
        /// Nobody serves what is watched.
        is_unserved: bool,
    },
}

/// A watch of objects.
pub(crate) struct Observation {
    events: Pin<Box<dyn Stream<Item = watcher::Result<Event<Object>>> + Send>>,
    listed: HashSet<u64>,
}

impl Observation {
    pub(crate) fn of(api: Api<Object>) -> Observation {
        let config = watcher::Config::default().page_size(PAGE);
        let events = watcher(api, config).backoff(Patience::default());
        Observation {
            events: Box::pin(events),
            listed: HashSet::new(),
        }
    }

    /// What it sees next; nothing if it has ended, or is to.
    pub(crate) async fn next(&mut self, stop: &CancellationToken) -> Option<Seen> {
        loop {
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                event = self.events.try_next() => event,
            };
            return Some(match event {
                // Before it lists, a watcher says so; that is no sign that it will succeed.
                Ok(Some(Event::Init)) => {
                    self.listed.clear();
                    continue;
                }
                Ok(Some(Event::InitApply(object))) => {
                    self.listed
                        .insert(number(&object.uid().unwrap_or_default()));
                    Seen::Found(object)
                }
                Ok(Some(Event::InitDone)) => Seen::All(std::mem::take(&mut self.listed)),
                Ok(Some(Event::Apply(object))) => Seen::There(object),
                Ok(Some(Event::Delete(object))) => Seen::Gone(object),
                Ok(None) => return None,
                // The watcher tries again by itself.
                Err(error) => Seen::Trouble {
                    why: why(&error),
                    is_unserved: is_unserved(&error),
                },
            });
        }
    }
}

impl Auditor {
    /// Watches a resource until `stop`.
    pub(crate) async fn watch_resource(
        self: Arc<Self>,
        place: Place,
        served: Arc<Served>,
        stop: CancellationToken,
    ) {
        let namespaces = &self.scope.namespaces;
        if namespaces.is_empty() || !served.namespaced {
            return self.watch_part(&place, &served, None, &stop).await;
        }
        let parts = namespaces
            .iter()
            .map(|namespace| self.watch_part(&place, &served, Some(namespace), &stop));
        futures::future::join_all(parts).await;
    }

    async fn watch_part(
        &self,
        place: &Place,
        served: &Served,
        namespace: Option<&str>,
        stop: &CancellationToken,
    ) {
        let version = served.versions.first().map_or("", String::as_str);
        let api = self.objects(served, version, namespace);
        let mut watch = Observation::of(api);
        while let Some(seen) = watch.next(stop).await {
            if !matches!(seen, Seen::Found(_) | Seen::Trouble { .. }) {
                self.state().trouble.remove(place);
            }
            let work = async {
                match seen {
                    Seen::Found(object) | Seen::There(object) => self.there(place, object).await,
                    Seen::Gone(object) => {
                        let uid = object.uid().unwrap_or_default();
                        self.hand(&uid, Job::Gone(uid.clone())).await;
                    }
                    Seen::All(listed) => {
                        self.listed(place, namespace, &listed).await;
                        self.state().verify(place);
                        self.told();
                    }
                    Seen::Trouble { why, is_unserved } => {
                        if is_unserved {
                            self.want(Task::Discover, Duration::from_secs(1));
                        }
                        self.trouble(place, &why);
                    }
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = work => {}
            }
        }
    }

    fn objects(&self, served: &Served, version: &str, namespace: Option<&str>) -> Api<Object> {
        let resource = resource(served, version);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.cluster.clone(), namespace, &resource),
            None => Api::all_with(self.cluster.clone(), &resource),
        }
    }

    async fn there(&self, place: &Place, object: Object) {
        let uid = object.uid().unwrap_or_default();
        self.hand(&uid, Job::There(place.clone(), Box::new(object)))
            .await;
    }

    /// Everything has been listed: what was known and is not there is gone.
    async fn listed(&self, place: &Place, namespace: Option<&str>, listed: &HashSet<u64>) {
        let gone = {
            let state = self.state();
            state.ledger.find(|uid, entry| {
                entry.at.place == *place
                    && namespace.is_none_or(|name| entry.at.namespace.as_deref() == Some(name))
                    && !listed.contains(&number(uid))
            })
        };
        // It may have come after what was listed, and have been seen by somebody else.
        for uid in gone {
            self.hand(&uid, Job::Retry(uid.clone())).await;
        }
    }

    fn trouble(&self, place: &Place, why: &str) {
        let mut state = self.state();
        let known = state
            .trouble
            .get(place)
            .map(|(since, said)| (*since, said == why));
        let since = known.map_or_else(Instant::now, |(since, _)| since);
        if known.is_none_or(|(_, said)| !said) {
            let (group, resource) = (&place.0, &place.1);
            tracing::warn!(
                error = why,
                group,
                resource,
                "listing what is to be audited"
            );
        }
        state.trouble.insert(place.clone(), (since, why.into()));
        drop(state);
        if known.is_none() {
            self.want(Task::Doubt(place.clone()), DOUBTFUL);
            self.told();
        }
    }

    /// Runs errands of an agenda until `stop`.
    pub(crate) async fn run_errands(&self, agenda: &Agenda, stop: &CancellationToken) {
        loop {
            let errand = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                errand = agenda.next() => errand,
            };
            let again = errand.clone();
            let work = async {
                match errand {
                    Task::Sweep(place, namespace) => self.sweep(place, namespace).await,
                    Task::Look(uid) => self.hand(&uid, Job::Again(uid.clone())).await,
                    Task::Retry(uid) => self.hand(&uid, Job::Retry(uid.clone())).await,
                    Task::Leave => self.leave().await,
                    Task::Doubt(place) => self.doubt(place).await,
                    _ => {}
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                done = self.metrics.panics.catch("audit", "resource", work) => {
                    if done.is_err() {
                        self.want(again, RETRY_AFTER);
                    }
                }
            }
        }
    }

    /// Looks at all objects of a resource, of one namespace or of all.
    async fn sweep(&self, place: Place, namespace: Option<String>) {
        let part = (place, namespace);
        if !self.state().sweeps.begin(&part, Instant::now()) {
            return;
        }
        let work = self.sweep_part(&part.0, part.1.as_deref());
        let outcome = self.metrics.panics.catch("audit", "resource", work).await;
        let outcome = outcome.unwrap_or_else(|panicked| Err(panicked.to_string()));
        if let Err(why) = &outcome {
            self.trouble(&part.0, why);
        }
        let mut state = self.state();
        if outcome.is_ok() {
            state.trouble.remove(&part.0);
            if part.1.is_none() {
                state.verify(&part.0);
            }
        }
        let again = state.sweeps.end(&part, outcome.is_ok(), Instant::now());
        drop(state);
        self.told();
        if let Some(wait) = again {
            self.want(Task::Sweep(part.0, part.1), wait);
        }
    }

    /// Looks at them; why they could not be listed to the end, if they could not.
    async fn sweep_part(&self, place: &Place, namespace: Option<&str>) -> Result<(), String> {
        let Some(interest) = self.state().view.interest(place) else {
            return Ok(());
        };
        let parts = match namespace {
            Some(namespace) if !self.scope.reaches(Some(namespace)) => return Ok(()),
            Some(namespace) => vec![Some(namespace)],
            None => self.parts(),
        };
        for part in parts {
            let mut listed = HashSet::new();
            let api = self.objects(&interest.served, watched(&interest), part);
            let mut parameters = ListParams::default().limit(PAGE);
            loop {
                self.pace.turn().await;
                self.metrics.asked("list");
                let page = match tokio::time::timeout(PATIENCE, api.list(&parameters)).await {
                    Ok(Ok(page)) => page,
                    // 410: the rest of the list is too old, so it begins anew.
                    Ok(Err(error)) => return Err(refusal(&error)),
                    Err(_) => return Err("the API server takes too long".into()),
                };
                for object in page.items {
                    listed.insert(number(&object.uid().unwrap_or_default()));
                    self.there(place, object).await;
                }
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => parameters = parameters.continue_token(&token),
                    None => break,
                }
            }
            // A watch that missed something would never say that it is gone.
            self.listed(place, part, &listed).await;
        }
        Ok(())
    }

    /// The namespaces that are listed one by one; all at once if none are named.
    fn parts(&self) -> Vec<Option<&str>> {
        match self.scope.namespaces.is_empty() {
            true => vec![None],
            false => {
                let namespaces = self.scope.namespaces.iter();
                namespaces.map(|one| Some(one.as_str())).collect()
            }
        }
    }

    /// Whether a resource can be listed.
    async fn is_listed(&self, interest: &Interest) -> bool {
        let one = ListParams::default().limit(1);
        for part in self.parts() {
            let api = self.objects(&interest.served, watched(interest), part);
            let asked = api.list_metadata(&one);
            if !matches!(tokio::time::timeout(PATIENCE, asked).await, Ok(Ok(_))) {
                return false;
            }
        }
        true
    }

    /// Says of the reports on a resource that they are not current, if it still cannot be listed.
    async fn doubt(&self, place: Place) {
        let interest = self.state().view.interest(&place);
        let trouble = self.state().trouble.get(&place).cloned();
        let (Some(interest), Some((_, why))) = (interest, trouble) else {
            return;
        };
        // A watch that was cut off and is well again says nothing until something happens.
        if self.is_listed(&interest).await {
            let stale = {
                let mut state = self.state();
                state.trouble.remove(&place);
                let stale = state
                    .ledger
                    .find(|_, entry| entry.at.place == place && entry.stale);
                !stale.is_empty()
            };
            if stale {
                self.want(Task::Sweep(place, None), Duration::ZERO);
            }
            return self.told();
        }
        let reported = {
            let state = self.state();
            state
                .ledger
                .find(|_, entry| entry.at.place == place && entry.has_report() && !entry.stale)
        };
        let since = self.state().verified.get(&place).copied();
        let since = since.and_then(|at| jiff::Timestamp::from_second(at).ok());
        let since = since.map(|at| format!("not verified since {at}: "));
        let why = format!("{}{why}", since.unwrap_or_default());
        for uid in reported {
            self.hand(&uid, Job::Unseen(uid.clone(), why.clone())).await;
        }
        self.want(Task::Doubt(place), DOUBTFUL);
    }

    /// Watches a kind that policies read, until `stop`.
    pub(crate) async fn watch_context(
        self: Arc<Self>,
        kind: GroupVersionKind,
        served: Served,
        stop: CancellationToken,
    ) {
        let resource = resource(&served, served.versions.first().map_or("", String::as_str));
        let api: Api<Metadata> = Api::all_with(self.cluster.clone(), &resource);
        let mut events =
            pin!(watcher(api, watcher::Config::default()).backoff(Patience::default()));
        let mut complete = false;
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return,
                event = events.try_next() => event,
            };
            match event {
                Ok(Some(Event::InitDone)) => {
                    // What was missed between two lists is a change too.
                    if complete {
                        self.want(Task::Touch(kind.clone()), LATER);
                    }
                    complete = true;
                }
                Ok(Some(Event::Apply(_) | Event::Delete(_))) => {
                    self.want(Task::Touch(kind.clone()), LATER);
                }
                Ok(None) => return,
                Ok(Some(_)) => {}
                Err(error) => {
                    tracing::warn!(%error, kind = kind.kind, "watching what policies read")
                }
            }
        }
    }
}

impl State {
    /// All objects of a resource have been looked at; that is so only if it went well with each.
    fn verify(&mut self, place: &Place) {
        let mut failing = self.failures.keys();
        let is_here = |uid: &String| {
            let entry = self.ledger.get(uid);
            entry.is_some_and(|entry| entry.at.place == *place)
        };
        if !failing.any(is_here) {
            self.verified.insert(place.clone(), now());
        }
    }

    /// For how long those that read a kind are not to be asked again; none if they may be.
    pub(crate) fn too_soon(&self, kind: &GroupVersionKind, now: Instant) -> Option<Duration> {
        let reads = |interest: &Interest| {
            let mut policies = interest.policies.iter();
            policies.any(|one| one.policy.context_aware().contains(kind))
        };
        let interests = self.view.interests();
        let read = interests.filter(|(_, interest)| reads(interest));
        read.filter_map(|(place, _)| self.sweeps.rest(place, now))
            .max()
    }
}

/// Why a watch fails, for people: what the server says, if it says anything.
pub(crate) fn why(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => refusal(error),
        watcher::Error::WatchError(status) => status.message.clone(),
        error => error.to_string(),
    }
}

pub(crate) fn refusal(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}

/// A number for an identity: less to remember.
pub(crate) fn number(uid: &str) -> u64 {
    request::hash(uid.as_bytes())
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[cfg(test)]
mod tests;
