//! What is watched at all times: the ConfigMaps that policies are written in, and reports, of which only
//! the metadata is asked for. Before everything has been seen once nothing is audited, as what has been
//! reported already would be reported again.

use super::shelf;
use super::{ConfigAuditor, Kept, ReportName, Source, Task};
use crate::book::revision;
use crate::ledger::{Place, Whereabouts};
use crate::watch::{Metadata, Name, Patience, follow};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, ResourceExt};
use muster_checks::report::{Hashes, MANAGED_BY, MANAGER, STALE};
use muster_checks::written::{LABEL, SCHEMA, has_policies};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch::Sender;
use tokio_util::sync::CancellationToken;

/// Changes that come together are looked at together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long after a report was seen it is known who wrote it.
const SOON: Duration = Duration::from_secs(1);

impl ConfigAuditor {
    /// Watches until `stop`.
    pub(super) async fn follow(&self, stop: &CancellationToken) {
        let seen: Sender<BTreeSet<String>> = Sender::default();
        let namespaces: BTreeSet<&str> = [self.settings.installation.as_str()]
            .into_iter()
            .chain(self.settings.namespaces.iter().map(String::as_str))
            .collect();
        let all = namespaces.len() + 2;
        let sources = namespaces
            .iter()
            .map(|name| self.follow_sources(name, &seen, stop));
        let begin = async {
            let mut told = seen.subscribe();
            tokio::select! {
                () = stop.cancelled() => {}
                // The sender is here, so it cannot fail.
                _ = told.wait_for(|seen| seen.len() == all) => self.want(Task::Discover, Duration::ZERO),
            }
        };
        tokio::join!(
            futures::future::join_all(sources),
            self.follow_reports(true, &seen, stop),
            self.follow_reports(false, &seen, stop),
            begin,
        );
    }

    async fn follow_sources(
        &self,
        namespace: &str,
        seen: &Sender<BTreeSet<String>>,
        stop: &CancellationToken,
    ) {
        let api: Api<ConfigMap> = Api::namespaced(self.settings.home.clone(), namespace);
        let events = watcher(api, watcher::Config::default()).backoff(Patience::default());
        let changed = |(_, name): &Name, object: Option<ConfigMap>| {
            let key = format!("{namespace}/{name}");
            let source = object.and_then(|object| read(namespace, name, object));
            let mut state = self.state();
            let before = state.sources.get(&key);
            if before == source.as_ref() {
                return;
            }
            match source {
                Some(source) => state.sources.insert(key, source),
                None => state.sources.remove(&key),
            };
            // From then on what is written may have been taken up already, be it for the first time.
            if !state.served.is_empty() {
                drop(state);
                self.want(Task::Settle, TOGETHER);
            }
        };
        let what = format!("ConfigMaps of {namespace}");
        let panics = &self.settings.metrics.panics;
        follow(panics, &what, events, stop, changed, || note(seen, &what)).await;
    }

    async fn follow_reports(
        &self,
        namespaced: bool,
        seen: &Sender<BTreeSet<String>>,
        stop: &CancellationToken,
    ) {
        let resource = shelf::resource(namespaced);
        let api: Api<Metadata> = Api::all_with(self.settings.home.clone(), &resource);
        let ours = watcher::Config::default().labels(&format!("{MANAGED_BY}={MANAGER}"));
        let events = watcher(api, ours).backoff(Patience::default());
        let changed = |(namespace, name): &Name, object: Option<Metadata>| {
            let namespace = Some(namespace.clone()).filter(|_| namespaced);
            self.saw_report((namespace, name.clone()), object);
        };
        let what = resource.kind.as_str();
        let panics = &self.settings.metrics.panics;
        follow(panics, what, events, stop, changed, || note(seen, what)).await;
    }

    /// A report is there, like this, or gone.
    fn saw_report(&self, name: ReportName, object: Option<Metadata>) {
        let found = object.and_then(|object| kept(&object));
        if let Some(found) = &found
            && !self.settings.scope.shard.has(&found.uid)
        {
            return;
        }
        let mut state = self.state();
        match (state.reports.get_mut(&name), found) {
            (Some(known), Some(found)) => {
                known.seen = found.seen;
                if known.written != known.seen {
                    drop(state);
                    self.want(Task::Doubt(name), SOON);
                }
            }
            (None, Some(found)) => {
                let is_late = state.has_begun;
                state.reports.insert(name.clone(), found);
                if is_late {
                    // Whoever wrote it: is it right?
                    if let Some(known) = state.reports.get_mut(&name) {
                        known.written = 0;
                    }
                    drop(state);
                    self.want(Task::Doubt(name), SOON);
                }
            }
            (Some(_), None) => {
                // Not our doing, as what we delete is forgotten first.
                let gone = state.reports.remove(&name);
                let at = gone.and_then(|gone| state.whereabouts(&name, &gone));
                drop(state);
                if let Some(at) = at {
                    self.want(Task::Look(at), TOGETHER);
                }
            }
            (None, None) => {}
        }
    }

    /// Sees whether a report is as we wrote it; if it is not, its object is judged again.
    pub(super) fn doubt(&self, name: &ReportName) {
        let mut state = self.state();
        let Some(known) = state.reports.get_mut(name) else {
            return;
        };
        if known.written == known.seen {
            return;
        }
        (known.hashes, known.is_stale) = (None, false);
        known.written = known.seen;
        let known = known.clone();
        let at = state.whereabouts(name, &known);
        drop(state);
        if let Some(at) = at {
            self.want(Task::Look(at), Duration::ZERO);
        }
    }
}

impl super::State {
    /// Where the object of a report is, if its kind is served.
    pub(super) fn whereabouts(
        &self,
        (namespace, _): &ReportName,
        kept: &Kept,
    ) -> Option<Whereabouts> {
        Some(Whereabouts {
            place: self.place_of(kept)?,
            namespace: namespace.as_deref().map(Into::into),
            name: kept.name.clone(),
        })
    }

    /// The resource that a report is about, if it is served.
    pub(super) fn place_of(&self, kept: &Kept) -> Option<Place> {
        let mut desks = self.desks.iter();
        let desk =
            desks.find(|(_, desk)| desk.kind.group == kept.group && desk.kind.kind == kept.kind);
        desk.map(|(place, _)| place.clone())
    }
}

fn note(seen: &Sender<BTreeSet<String>>, what: &str) {
    seen.send_modify(|seen| {
        seen.insert(what.into());
    });
}

/// A ConfigMap, if it has policies.
fn read(namespace: &str, name: &str, object: ConfigMap) -> Option<Source> {
    let label = object.labels().get(LABEL).map(String::as_str);
    has_policies(name, label).then(|| Source {
        namespace: namespace.into(),
        name: name.into(),
        uid: object.uid().unwrap_or_default(),
        schema: object.annotations().get(SCHEMA).cloned(),
        data: object.data.unwrap_or_default(),
    })
}

/// What the metadata of a report tell; none if it is about nothing.
pub(super) fn kept(object: &Metadata) -> Option<Kept> {
    let owner = object.metadata.owner_references.as_ref()?.first()?;
    let (group, _) = owner.api_version.split_once('/').unwrap_or_default();
    Some(Kept {
        hashes: Hashes::read(object.labels()),
        is_stale: object.annotations().contains_key(STALE),
        is_revisited: false,
        group: group.into(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        written: revision(object),
        seen: revision(object),
    })
}
