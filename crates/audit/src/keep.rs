//! What follows from what is known: which resources are watched, and what is looked at again when a
//! policy, a namespace or what is served has changed.

use crate::agenda::Task;
use crate::auditor::Auditor;
use crate::ledger::Place;
use crate::note::{Key, Mark, Stamp};
use crate::prepare::PrepareError;
use crate::served;
use crate::view::Changed;
use muster_policy::{GroupVersionKind, Judge, LoadError, Policy, Prepared, Served};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What could not be asked is asked again after this time.
const AGAIN: Duration = Duration::from_secs(10);
/// How often it is asked what is served, since not everything says so.
const DISCOVER: Duration = Duration::from_secs(60);
/// How long objects wait for policies that are being prepared, so that they are looked at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is seen whether they are.
const SOON: Duration = Duration::from_millis(200);
/// How many policies are prepared at once.
const PREPARED: usize = 4;
/// How long it may take to tell what is served.
const LONGEST_QUESTION: Duration = Duration::from_secs(60);
/// The longest time until a policy that could not be fetched is fetched again.
const LONGEST: Duration = Duration::from_secs(300);

/// How soon a policy server is asked everything again after a policy was written, and then once more.
const REASK: Duration = Duration::from_secs(60);
const REASK_LATER: Duration = Duration::from_secs(240);
/// Up to how many objects are looked at one by one.
const FEW: usize = 100;

/// Why a policy cannot be asked that may be asked later.
const UNREACHABLE: &str = "Unreachable";
/// The same after a panic.
const INTERNAL: &str = "InternalError";

/// What is watched because a policy is interested.
#[derive(Default)]
struct Watches {
    tasks: JoinSet<()>,
    resources: BTreeMap<Place, (Arc<Served>, CancellationToken)>,
    contexts: BTreeMap<GroupVersionKind, CancellationToken>,
}

/// What a policy was prepared to.
type Outcome = (Key, Arc<Policy>, Result<Judge, PrepareError>);

/// What happens next.
enum Step {
    /// A policy was prepared.
    Prepared(Result<Outcome, JoinError>),
    /// Something is to be decided.
    Decide(Task),
}

/// What is under way.
#[derive(Default)]
struct Keeping {
    watches: Watches,
    preparing: JoinSet<Outcome>,
    /// What is being prepared, and whether it was tried before.
    flying: BTreeMap<Key, bool>,
    /// What is to be prepared when there is room.
    waiting: BTreeSet<Key>,
    /// Since when objects wait for policies that are being prepared.
    patient_since: Option<Instant>,
}

impl Auditor {
    /// Decides until `stop`.
    pub(crate) async fn keep(self: &Arc<Self>, stop: &CancellationToken) {
        let mut kept = Keeping::default();
        loop {
            let step = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(outcome) = kept.preparing.join_next() => Step::Prepared(outcome),
                task = self.decision() => Step::Decide(task),
            };
            // After a panic the same is done again, and all else goes on.
            let again = match &step {
                Step::Decide(task) => Some(task.clone()),
                Step::Prepared(Ok((key, ..))) => Some(Task::Prepare(*key)),
                Step::Prepared(Err(_)) => None,
            };
            let work = self.keep_step(step, &mut kept, stop);
            let done = self.metrics.panics.catch("audit", "policies", work).await;
            if let (Err(_), Some(task)) = (done, again) {
                self.want(task, AGAIN);
            }
        }
        kept.preparing.shutdown().await;
        let mut watches = kept.watches;
        for (_, stop) in watches.resources.values() {
            stop.cancel();
        }
        for stop in watches.contexts.values() {
            stop.cancel();
        }
        while watches.tasks.join_next().await.is_some() {}
    }

    /// Takes note of a policy that was prepared, or decides.
    async fn keep_step(self: &Arc<Self>, step: Step, kept: &mut Keeping, stop: &CancellationToken) {
        match step {
            Step::Prepared(outcome) => {
                {
                    let mut state = self.state();
                    state.preparing = state.preparing.saturating_sub(1);
                }
                // What has been wanted meanwhile.
                for key in std::mem::take(&mut kept.waiting) {
                    self.want(Task::Prepare(key), Duration::ZERO);
                }
                match outcome {
                    Ok((key, policy, prepared)) => {
                        kept.flying.remove(&key);
                        self.prepared(key, policy, prepared);
                    }
                    // It is not known which one failed: all that are being prepared are prepared again.
                    Err(_) => {
                        for key in std::mem::take(&mut kept.flying).into_keys() {
                            self.want(Task::Prepare(key), AGAIN);
                        }
                    }
                }
            }
            Step::Decide(task) => self.decide(task, kept, stop).await,
        }
    }

    async fn decide(self: &Arc<Self>, task: Task, kept: &mut Keeping, stop: &CancellationToken) {
        match task {
            Task::Prepare(key) => {
                // Those that could not be reached leave room for those that are new.
                let again = self.state().told.get(&key).is_some_and(|one| one.tries > 0);
                let retries = kept.flying.values().filter(|again| **again).count();
                let full = kept.preparing.len() >= PREPARED || again && retries >= PREPARED / 2;
                if full || kept.flying.contains_key(&key) {
                    kept.waiting.insert(key);
                } else if self.prepare(key, &mut kept.preparing) {
                    kept.flying.insert(key, again);
                }
            }
            Task::Discover => {
                // A cluster that does not answer holds nobody up who wants to stop.
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = self.discover() => {}
                }
            }
            Task::Settle => {
                let busy = !kept.preparing.is_empty() || !kept.waiting.is_empty();
                let since = *kept.patient_since.get_or_insert_with(Instant::now);
                if busy && since.elapsed() < PATIENCE {
                    self.want(Task::Settle, SOON);
                } else if self.has_begun() {
                    kept.patient_since = None;
                    self.settle_views(&mut kept.watches, stop);
                }
            }
            Task::Touch(kind) => {
                let mut state = self.state();
                if let Some(wait) = state.too_soon(&kind, std::time::Instant::now()) {
                    self.want(Task::Touch(kind), wait);
                } else if state.view.touch(&kind, moment()) {
                    self.want(Task::Settle, Duration::ZERO);
                }
            }
            Task::Reask(key) => self.reask(key),
            Task::Recheck(key) => self.recheck(key),
            Task::Verify => self.verify(),
            // Errands are somebody else's.
            Task::Sweep(..) | Task::Look(_) | Task::Retry(_) | Task::Doubt(_) | Task::Leave => {}
        }
    }

    fn has_begun(&self) -> bool {
        self.state().found.is_none()
    }

    /// Begins to prepare a policy, if it is still there.
    fn prepare(&self, key: Key, preparing: &mut JoinSet<Outcome>) -> bool {
        let mut state = self.state();
        let Some(policy) = state.view.policy(key).map(|known| known.policy.clone()) else {
            return false;
        };
        state.preparing += 1;
        drop(state);
        let preparer = self.preparer.clone();
        preparing.spawn(async move {
            let prepared = preparer.prepare(&policy).await;
            (key, policy, prepared)
        });
        true
    }

    /// Takes note of what a policy was prepared to.
    fn prepared(&self, key: Key, policy: Arc<Policy>, outcome: Result<Judge, PrepareError>) {
        let mut state = self.state();
        let current = state.view.policy(key).map(|known| known.policy.hash());
        // It has been written anew meanwhile, and will be prepared as it is now.
        if current != Some(policy.hash()) {
            return;
        }
        let Some(told) = state.told.get_mut(&key) else {
            return;
        };
        let judge = match outcome {
            Ok(judge) => {
                told.accept();
                if told.reasks > 0 && judge.evaluator.is_remote() {
                    self.want(Task::Reask(key), REASK);
                }
                Ok(Arc::new(judge))
            }
            Err(PrepareError::Load(error)) => {
                told.refuse(reason(&error), &error.to_string());
                Err(error)
            }
            Err(error) => {
                let (reason, why) = match error {
                    PrepareError::Panicked(_) => (INTERNAL, error.to_string()),
                    _ => (UNREACHABLE, error.to_string()),
                };
                let wait = AGAIN.saturating_mul(1 << told.tries.min(5)).min(LONGEST);
                told.tries = told.tries.saturating_add(1);
                told.refuse(reason, &why);
                self.want(Task::Prepare(key), wait);
                let known = state.view.policy(key);
                let before = known.and_then(|known| known.prepared.clone());
                // What was fetched before still judges by the same policy.
                let same = |before: &Arc<Prepared>| before.policy.hash() == policy.hash();
                match before.filter(same).map(|before| before.judge.clone()) {
                    Some(Ok(judge)) => Ok(judge),
                    _ => Err(LoadError::Unreachable(why)),
                }
            }
        };
        state.view.prepare_policy(key, Prepared { policy, judge });
        drop(state);
        self.told();
        self.want(Task::Settle, Duration::ZERO);
    }

    async fn discover(&self) {
        let asked = served::discover(&self.cluster);
        let asked = tokio::time::timeout(LONGEST_QUESTION, asked).await;
        match asked.unwrap_or_else(|_| Err(kube::Error::Service("no answer in time".into()))) {
            Ok(discovered) => {
                let mut state = self.state();
                state.let_go();
                let before = state.view.served();
                let first = state.found.is_some();
                state.view.serve(discovered.or_as_before(&before));
                if first {
                    state.adopt();
                }
                drop(state);
                self.want(Task::Settle, Duration::ZERO);
                self.want(Task::Discover, DISCOVER);
                if first {
                    self.want(Task::Verify, self.verify);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "asking what is served");
                self.want(Task::Discover, AGAIN);
            }
        }
    }

    /// Finds out who is interested in what, and watches and looks accordingly.
    fn settle_views(self: &Arc<Self>, watches: &mut Watches, stop: &CancellationToken) {
        let (Changed { places, left }, context) = {
            let mut state = self.state();
            let changed = state.view.settle(&self.scope);
            (changed, state.view.context())
        };
        for place in &left {
            if let Some((_, stop)) = watches.resources.remove(place) {
                stop.cancel();
            }
            let mut state = self.state();
            state.trouble.remove(place);
            state.verified.remove(place);
            state.sweeps.forget(place);
        }
        self.want(Task::Leave, Duration::ZERO);
        for place in places {
            let Some(interest) = self.state().view.interest(&place) else {
                continue;
            };
            match watches.resources.get(&place) {
                Some((served, _)) if *served == interest.served => {
                    self.want(Task::Sweep(place, None), Duration::ZERO);
                }
                _ => {
                    let token = stop.child_token();
                    let watched = (interest.served.clone(), token.clone());
                    if let Some((_, before)) = watches.resources.insert(place.clone(), watched) {
                        before.cancel();
                    }
                    let (auditor, served) = (self.clone(), interest.served.clone());
                    watches.tasks.spawn(async move {
                        let watch = || {
                            let (place, served) = (place.clone(), served.clone());
                            auditor.clone().watch_resource(place, served, token.clone())
                        };
                        let panics = &auditor.metrics.panics;
                        panics.restart("audit", "watch", watch, &token).await;
                    });
                }
            }
        }
        self.watch_contexts(context, watches, stop);
        self.told();
        while watches.tasks.try_join_next().is_some() {}
    }

    fn watch_contexts(
        self: &Arc<Self>,
        wanted: BTreeSet<GroupVersionKind>,
        watches: &mut Watches,
        stop: &CancellationToken,
    ) {
        watches.contexts.retain(|kind, stop| {
            let keep = wanted.contains(kind);
            if !keep {
                stop.cancel();
            }
            keep
        });
        let served = self.state().view.served();
        for kind in wanted {
            if watches.contexts.contains_key(&kind) {
                continue;
            }
            let mut all = served.iter();
            let Some(served) = all.find(|one| one.group == kind.group && one.kind == kind.kind)
            else {
                continue;
            };
            let token = stop.child_token();
            watches.contexts.insert(kind.clone(), token.clone());
            let (auditor, served) = (self.clone(), served.clone());
            watches.tasks.spawn(async move {
                let watch = || {
                    let (kind, served) = (kind.clone(), served.clone());
                    auditor.clone().watch_context(kind, served, token.clone())
                };
                let panics = &auditor.metrics.panics;
                panics.restart("audit", "watch", watch, &token).await;
            });
        }
    }

    /// Asks a policy server again about everything that it judged by a policy: it may have answered
    /// by the policy as it was before.
    fn reask(&self, key: Key) {
        let mut state = self.state();
        let Some(told) = state.told.get_mut(&key) else {
            return;
        };
        told.reasks = told.reasks.saturating_sub(1);
        let more = told.reasks > 0;
        let doubted = state.ledger.doubt_policy(key, |_| true);
        drop(state);
        self.look_at(key, doubted);
        if more {
            self.want(Task::Reask(key), REASK_LATER);
        }
    }

    /// Asks it again about what it could not judge.
    fn recheck(&self, key: Key) {
        let mut state = self.state();
        if state.view.policy(key).is_none() {
            state.unanswered.remove(&key);
            return;
        }
        let tries = state.unanswered.entry(key).or_default();
        *tries = tries.saturating_add(1);
        let known = state
            .view
            .policy(key)
            .and_then(|known| known.prepared.as_ref());
        let is_remote = known.is_some_and(|prepared| prepared.is_remote());
        let doubted = state.ledger.doubt_policy(key, |pair| {
            pair.stamp == Stamp::NONE || is_remote && pair.mark == Mark::Error
        });
        drop(state);
        self.look_at(key, doubted);
    }

    /// Has objects looked at that a policy judges.
    fn look_at(&self, key: Key, objects: Vec<String>) {
        if objects.len() <= FEW {
            for uid in objects {
                self.want(Task::Retry(uid), Duration::ZERO);
            }
            return;
        }
        let places: Vec<Place> = {
            let state = self.state();
            let interests = state.view.interests();
            interests
                .filter(|(_, interest)| interest.policies.iter().any(|one| one.key == key))
                .map(|(place, _)| place.clone())
                .collect()
        };
        for place in places {
            self.want(Task::Sweep(place, None), Duration::ZERO);
        }
    }

    /// Has everything looked at, whatever is known.
    fn verify(&self) {
        self.preparer.modules().refresh();
        let (policies, places, context, foreign) = {
            let mut state = self.state();
            state.ledger.doubt_errors();
            // A server may judge otherwise by now, and nobody says so.
            let remote: Vec<Key> = state
                .view
                .policies()
                .filter(|(_, known)| known.prepared.as_ref().is_some_and(|one| one.is_remote()))
                .map(|(key, _)| key)
                .collect();
            for key in remote {
                state.ledger.doubt_policy(key, |_| true);
            }
            let policies: Vec<Key> = state.view.policies().map(|(key, _)| key).collect();
            let places: Vec<Place> = state.view.interests().map(|(at, _)| at.clone()).collect();
            let foreign: Vec<String> = state.foreign.keys().cloned().collect();
            (policies, places, state.view.context(), foreign)
        };
        // Nobody says when another no longer reports on them.
        for uid in foreign {
            self.want(Task::Look(uid), Duration::ZERO);
        }
        for key in policies {
            self.want(Task::Prepare(key), Duration::ZERO);
        }
        for kind in context {
            self.want(Task::Touch(kind), Duration::ZERO);
        }
        for place in places {
            self.want(Task::Sweep(place, None), Duration::ZERO);
        }
        self.want(Task::Discover, Duration::ZERO);
        self.want(Task::Verify, self.verify);
    }
}

fn reason(error: &LoadError) -> &'static str {
    match error {
        LoadError::Module(_) => "ModuleUnusable",
        LoadError::Settings(_) => "SettingsRefused",
        LoadError::Source(_) => "SourceInvalid",
        LoadError::HostCall(_) => "HostCallUnavailable",
        LoadError::Unreachable(_) => UNREACHABLE,
    }
}

/// A number that no earlier moment had.
pub(crate) fn moment() -> u64 {
    jiff::Timestamp::now().as_millisecond().unsigned_abs()
}
