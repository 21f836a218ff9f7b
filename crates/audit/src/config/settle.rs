//! What follows from what is written: which policies are in force, which kinds they are about, and so
//! what is watched, looked at again, or no longer reported on. A kind whose policies are the same as
//! before is not touched.

use super::changed::changed;
use super::look::{Job, whereabouts};
use super::{COMPONENT, ConfigAuditor, Desk, Source, Task};
use crate::ledger::Place;
use crate::object::resource;
use crate::resources::{Observation, Seen, number};
use crate::scope::Scope;
use crate::served;
use kube::{Api, ResourceExt};
use muster_checks::force::{Force, Sources};
use muster_checks::written::Written;
use muster_checks::{Kind, Sheet};
use muster_policy::Served;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What could not be asked is asked again after this time.
const AGAIN: Duration = Duration::from_secs(10);
/// How often it is asked what is served, since nobody says when that changes.
const DISCOVER: Duration = Duration::from_secs(15);
/// How long it may take to tell what is served.
const LONGEST_QUESTION: Duration = Duration::from_secs(60);
/// After how long it is seen again whether there is a policy about a kind that has none.
const DELAY: Duration = Duration::from_secs(10);

/// What is watched because there is a policy about it.
#[derive(Default)]
struct Watches {
    tasks: JoinSet<()>,
    resources: BTreeMap<Place, (Arc<Served>, CancellationToken)>,
}

impl ConfigAuditor {
    /// Decides until `stop`.
    pub(super) async fn keep(self: &Arc<Self>, stop: &CancellationToken) {
        let mut watches = Watches::default();
        loop {
            let task = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                task = self.agenda.next() => task,
            };
            let again = task.clone();
            let work = async {
                match task {
                    Task::Discover => self.discover().await,
                    Task::Settle => self.settle(&mut watches, stop).await,
                    Task::Reconcile(place) => self.reconcile(place),
                    Task::Tell => self.tell().await,
                    Task::Verify => self.verify(),
                    // Errands are somebody else's.
                    Task::Sweep(_) | Task::Look(_) | Task::Doubt(_) | Task::Revisit => {}
                }
            };
            let panics = &self.settings.metrics.panics;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                done = panics.catch(COMPONENT, "policies", work) => {
                    if done.is_err() {
                        self.want(again, AGAIN);
                    }
                }
            }
        }
        for (_, stop) in watches.resources.values() {
            stop.cancel();
        }
        while watches.tasks.join_next().await.is_some() {}
    }

    async fn discover(&self) {
        let asked = served::discover(&self.settings.cluster);
        let asked = tokio::time::timeout(LONGEST_QUESTION, asked).await;
        match asked.unwrap_or_else(|_| Err(kube::Error::Service("no answer in time".into()))) {
            Ok(discovered) => {
                let mut state = self.state();
                let served = discovered.or_as_before(&state.served);
                let changed = served != state.served;
                let first = !state.has_begun;
                state.kinds = Arc::new(served.iter().map(kind).collect());
                state.served = served;
                drop(state);
                if changed || first {
                    self.want(Task::Settle, Duration::ZERO);
                }
                self.want(Task::Discover, DISCOVER);
                if first {
                    self.want(Task::Verify, self.settings.verify);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "asking what is served");
                self.want(Task::Discover, AGAIN);
            }
        }
    }

    /// Finds out what is in force, and watches and looks accordingly.
    async fn settle(self: &Arc<Self>, watches: &mut Watches, stop: &CancellationToken) {
        let Some(desks) = self.take_force().await else {
            return;
        };
        let changed = {
            let mut state = self.state();
            let before = std::mem::replace(&mut state.desks, desks);
            if !std::mem::replace(&mut state.has_begun, true) {
                self.want(Task::Revisit, Duration::ZERO);
            }
            state.forget_unlisted();
            changed(&before, &state.desks)
        };
        for place in changed.left.iter().chain(&changed.gone) {
            if let Some((_, stop)) = watches.resources.remove(place) {
                stop.cancel();
            }
        }
        for place in &changed.left {
            self.leave(place).await;
        }
        for place in changed.judged {
            self.judge_all(place, watches, stop);
        }
        self.tell().await;
        while watches.tasks.try_join_next().is_some() {}
    }

    /// Takes up what is written; says who judges what. Loading policies takes a while.
    async fn take_force(&self) -> Option<HashMap<Place, Desk>> {
        let (sources, served, kinds, before) = {
            let state = self.state();
            let sources: Vec<Source> = state.sources.values().cloned().collect();
            (
                sources,
                state.served.clone(),
                state.kinds.clone(),
                state.force.clone(),
            )
        };
        let (choice, scope) = (self.settings.choice.clone(), self.settings.scope.clone());
        let work = move || {
            let mut force = Force::clone(&before);
            force.update(&written(&sources), &kinds, &choice);
            let desks = desks_of(&force, &served, &kinds, &scope);
            (force, desks)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok((force, desks)) => {
                if force.troubles().values().any(|one| one.is_temporary) {
                    self.want(Task::Settle, AGAIN);
                }
                self.state().force = Arc::new(force);
                Some(desks)
            }
            Err(error) => {
                tracing::error!(%error, "taking up policies");
                if let Ok(panic) = error.try_into_panic() {
                    let panics = &self.settings.metrics.panics;
                    panics.record(COMPONENT, "policies", &*panic);
                }
                self.want(Task::Settle, AGAIN);
                None
            }
        }
    }

    /// Nobody has anything to say about a kind any longer: its reports go, and it is looked at again,
    /// at once if there were any.
    async fn leave(&self, place: &Place) {
        let Some(desk) = self.state().desks.get(place).cloned() else {
            return;
        };
        let reports: Vec<_> = {
            let state = self.state();
            let of_it = state
                .reports
                .iter()
                .filter(|(_, kept)| kept.group == desk.kind.group && kept.kind == desk.kind.kind);
            of_it
                .filter_map(|(name, kept)| state.whereabouts(name, kept))
                .collect()
        };
        let wait = match reports.is_empty() {
            true => DELAY,
            false => Duration::ZERO,
        };
        for at in reports {
            self.crew.hand(&at.name.clone(), Job::Left(at)).await;
        }
        self.settings
            .metrics
            .requeued(&desk.kind.kind, !wait.is_zero());
        self.want(Task::Reconcile(place.clone()), wait);
    }

    /// Sees whether there is a policy by now about a kind that had none.
    fn reconcile(&self, place: Place) {
        let desk = self.state().desks.get(&place).cloned();
        if let Some(desk) = desk
            && desk.sheet.is_none()
        {
            self.settings.metrics.requeued(&desk.kind.kind, true);
            self.want(Task::Reconcile(place), DELAY);
        }
    }

    /// Watches a kind, or looks at all of it if it is watched already.
    fn judge_all(self: &Arc<Self>, place: Place, watches: &mut Watches, stop: &CancellationToken) {
        let Some(desk) = self.state().desks.get(&place).cloned() else {
            return;
        };
        match watches.resources.get(&place) {
            Some((served, _)) if *served == desk.served => {
                self.want(Task::Sweep(place), Duration::ZERO);
            }
            _ => {
                let token = stop.child_token();
                let watched = (desk.served.clone(), token.clone());
                if let Some((_, before)) = watches.resources.insert(place.clone(), watched) {
                    before.cancel();
                }
                let auditor = self.clone();
                watches.tasks.spawn(async move {
                    let watch = || {
                        let (place, served) = (place.clone(), desk.served.clone());
                        auditor.clone().watch(place, served, token.clone())
                    };
                    let panics = &auditor.settings.metrics.panics;
                    panics.restart(COMPONENT, "watch", watch, &token).await;
                });
            }
        }
    }

    async fn watch(self: Arc<Self>, place: Place, served: Arc<Served>, stop: CancellationToken) {
        let parts = self.parts(&served).into_iter();
        let parts = parts.map(|namespace| self.watch_part(&place, &served, namespace, &stop));
        futures::future::join_all(parts).await;
    }

    async fn watch_part(
        &self,
        place: &Place,
        served: &Served,
        namespace: Option<&str>,
        stop: &CancellationToken,
    ) {
        let mut watch = Observation::of(self.objects(served, namespace));
        while let Some(seen) = watch.next(stop).await {
            let work = async {
                match seen {
                    Seen::Found(object) | Seen::There(object) => self.there(place, object).await,
                    Seen::Gone(object) => {
                        let at = whereabouts(place, &object);
                        self.crew.hand(&object.name_any(), Job::Again(at)).await;
                    }
                    Seen::All(listed) => {
                        self.unlisted(place, namespace, None);
                        self.listed(place, namespace, &listed).await;
                    }
                    Seen::Trouble { why, is_unserved } => {
                        self.unlisted(place, namespace, Some(&why));
                        if is_unserved {
                            self.want(Task::Discover, Duration::from_secs(1));
                        }
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

    /// The namespaces that are watched one by one; all at once if none are named.
    pub(super) fn parts(&self, served: &Served) -> Vec<Option<&str>> {
        let namespaces = &self.settings.scope.namespaces;
        match namespaces.is_empty() || !served.namespaced {
            true => vec![None],
            false => namespaces.iter().map(|one| Some(one.as_str())).collect(),
        }
    }

    pub(super) fn objects(
        &self,
        served: &Served,
        namespace: Option<&str>,
    ) -> Api<crate::object::Object> {
        let version = served.versions.first().map_or("", String::as_str);
        let (client, resource) = (self.settings.cluster.clone(), resource(served, version));
        match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    /// Everything has been listed: what is reported on and is not there is gone.
    async fn listed(&self, place: &Place, namespace: Option<&str>, listed: &HashSet<u64>) {
        let gone: Vec<_> = {
            let state = self.state();
            let of_it = state.reports.iter().filter(|((within, _), kept)| {
                namespace.is_none_or(|name| within.as_deref() == Some(name))
                    && !listed.contains(&number(&kept.uid))
                    && state.place_of(kept).as_ref() == Some(place)
            });
            of_it
                .filter_map(|(name, kept)| state.whereabouts(name, kept))
                .collect()
        };
        // It may have come after what was listed, and have been seen by somebody else.
        for at in gone {
            self.crew.hand(&at.name.clone(), Job::Again(at)).await;
        }
    }

    /// Has everything looked at, whatever is known.
    fn verify(&self) {
        let judged: Vec<Place> = {
            let state = self.state();
            let desks = state.desks.iter().filter(|(_, desk)| desk.sheet.is_some());
            desks.map(|(place, _)| place.clone()).collect()
        };
        for place in judged {
            self.want(Task::Sweep(place), Duration::ZERO);
        }
        self.want(Task::Revisit, Duration::ZERO);
        self.want(Task::Verify, self.settings.verify);
    }
}

/// Who judges what.
pub(super) fn desks_of(
    force: &Force,
    served: &[Served],
    kinds: &[Kind],
    scope: &Scope,
) -> HashMap<Place, Desk> {
    let audited = served.iter().filter(|one| one.is_audited());
    audited
        .map(|served| {
            let kind = kind(served);
            let place = Place::new((served.group.clone(), served.resource.clone()));
            // What is out of scope may have been in it when its reports were written.
            let sheet = match scope.includes(served) {
                true => Sheet::of(force, &kind, kinds).map(Arc::new),
                false => None,
            };
            let served = Arc::new(served.clone());
            let desk = Desk {
                served,
                kind,
                sheet,
            };
            (place, desk)
        })
        .collect()
}

pub(super) fn kind(served: &Served) -> Kind {
    Kind {
        group: served.group.clone(),
        kind: served.kind.clone(),
        versions: served.versions.clone(),
    }
}

fn written(sources: &[Source]) -> Sources {
    let sources = sources.iter();
    sources
        .map(|source| {
            let key = format!("{}/{}", source.namespace, source.name);
            let read = Written::read(&source.name, source.schema.as_deref(), &source.data);
            (key, read)
        })
        .collect()
}
