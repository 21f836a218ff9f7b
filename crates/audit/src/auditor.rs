//! The audit put together: what it is told, what it knows, and the tasks that keep it current until
//! they are told to stop.

use crate::agenda::{Agenda, Task};
use crate::book::Book;
use crate::crew::Crew;
use crate::keep::moment;
use crate::ledger::{Ledger, Place, Whereabouts};
use crate::look::Job;
use crate::metrics::Metrics;
use crate::note::Key;
use crate::pace::Pace;
use crate::prepare::Preparer;
use crate::rest::Rests;
use crate::scope::Scope;
use crate::status::Told;
use crate::sweeps::Sweeps;
use crate::turns::Turns;
use crate::view::View;
use crate::watch::Found;
use kube::Client;
use muster_policy::report::Format;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How many errands are run at once: a resource that cannot be listed holds up no other.
const RUNNERS: usize = 3;
/// How long it is remembered that an object is gone: longer than any list that still has it.
const MOURNING: Duration = Duration::from_secs(600);

/// What an audit is told.
#[derive(Clone)]
pub struct Settings {
    /// Where policies are, and reports are kept.
    pub home: Client,
    /// Where the objects are.
    pub cluster: Client,
    /// How policies become judges.
    pub preparer: Arc<Preparer>,
    /// What is audited.
    pub scope: Scope,
    /// In which family reports are written.
    pub format: Format,
    /// The namespace of the admission controller, which policies for the cluster leave alone.
    pub controller: Option<String>,
    /// Whether nobody else writes the status of policies, so that all of it is ours.
    pub is_alone: bool,
    /// How many objects are judged at once.
    pub parallel: usize,
    /// How many requests a second the API server is asked at most; 0 is as many as there are.
    pub requests_per_second: u32,
    /// How often everything is looked at, whether or not anything was said to have changed.
    pub verify: Duration,
    /// What is counted.
    pub metrics: Metrics,
}

/// An audit.
pub struct Auditor {
    pub(crate) home: Client,
    pub(crate) cluster: Client,
    pub(crate) preparer: Arc<Preparer>,
    pub(crate) scope: Scope,
    pub(crate) controller: Option<String>,
    pub(crate) is_alone: bool,
    pub(crate) verify: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) pace: Arc<Pace>,
    pub(crate) book: Book,
    /// What is decided about.
    agenda: Agenda,
    /// What is looked at, which may take long.
    errands: Agenda,
    /// What is done about single objects, which does not wait for what takes long.
    chores: Agenda,
    pub(crate) turns: Arc<Turns>,
    pub(crate) rests: Arc<Rests>,
    state: Mutex<State>,
    crew: Crew<Job>,
    news: AtomicBool,
}

/// What an audit knows.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) view: View,
    pub(crate) ledger: Ledger,
    /// What was read of the status of each policy, and what was said there.
    pub(crate) told: HashMap<Key, Told>,
    /// Reports that were there when it began, until it is known what is served.
    pub(crate) found: Option<HashMap<String, Found>>,
    /// What has to be seen before it begins and cannot be, and why.
    pub(crate) unseen: BTreeMap<String, String>,
    /// Since when a resource cannot be listed, and why.
    pub(crate) trouble: HashMap<Place, (Instant, String)>,
    /// When all objects of a resource were last looked at, in seconds since 1970.
    pub(crate) verified: HashMap<Place, i64>,
    /// What is being looked at as a whole.
    pub(crate) sweeps: Sweeps,
    /// How many policies are being prepared.
    pub(crate) preparing: usize,
    /// How often in a row a policy's server was asked again about what it could not judge.
    pub(crate) unanswered: HashMap<Key, u32>,
    /// How often in a row something could not be done about an object.
    pub(crate) failures: HashMap<String, u32>,
    /// Objects on which somebody else reports under the same name, and what they are.
    pub(crate) foreign: HashMap<String, Place>,
    /// Objects that are gone, and since when; a list may be older.
    graves: HashMap<String, (Instant, Option<Whereabouts>)>,
}

impl State {
    /// Notes that an object is gone.
    pub(crate) fn bury(&mut self, uid: &str) {
        self.graves.insert(uid.into(), (Instant::now(), None));
    }

    /// Notes that the report on an object that is gone is still there.
    pub(crate) fn mourn(&mut self, uid: &str, at: Whereabouts) {
        self.graves.insert(uid.into(), (Instant::now(), Some(at)));
    }

    /// Where the report on an object that is gone still is.
    pub(crate) fn mourned(&self, uid: &str) -> Option<Whereabouts> {
        self.graves.get(uid).and_then(|(_, at)| at.clone())
    }

    /// Whether an object is known to be gone.
    pub(crate) fn is_mourned(&self, uid: &str) -> bool {
        let grave = self.graves.get(uid);
        grave.is_some_and(|(since, _)| since.elapsed() < MOURNING)
    }

    pub(crate) fn let_go(&mut self) {
        self.graves
            .retain(|_, (since, at)| at.is_some() || since.elapsed() < MOURNING);
    }
}

impl Auditor {
    /// An audit that begins when it is run.
    pub fn new(settings: Settings) -> Arc<Auditor> {
        let pace = Arc::new(Pace::new(settings.requests_per_second));
        let book = Book::new(
            settings.home.clone(),
            settings.format,
            pace.clone(),
            settings.metrics.clone(),
        );
        let state = State {
            view: View::since(moment()),
            found: Some(HashMap::new()),
            ..State::default()
        };
        Arc::new(Auditor {
            home: settings.home,
            cluster: settings.cluster,
            preparer: settings.preparer,
            scope: settings.scope,
            controller: settings.controller,
            is_alone: settings.is_alone,
            verify: settings.verify,
            metrics: settings.metrics,
            pace,
            book,
            agenda: Agenda::default(),
            errands: Agenda::default(),
            chores: Agenda::default(),
            turns: Arc::new(Turns::new(settings.parallel)),
            rests: Arc::default(),
            state: Mutex::new(state),
            crew: Crew::new(),
            news: AtomicBool::new(false),
        })
    }

    /// Audits until `stop`. It is run once.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        // Tasks of their own, so that they share the processors.
        let mut tasks = JoinSet::new();
        for queue in self.crew.take_queues() {
            let (auditor, stop) = (self.clone(), stop.clone());
            tasks.spawn(async move {
                let work = |job| auditor.work(job);
                auditor.crew.work_off(queue, &work, &stop).await;
            });
        }
        for _ in 0..RUNNERS {
            let (auditor, stop) = (self.clone(), stop.clone());
            tasks.spawn(async move { auditor.run_errands(&auditor.errands, &stop).await });
        }
        let (auditor, ending) = (self.clone(), stop.clone());
        tasks.spawn(async move { auditor.run_errands(&auditor.chores, &ending).await });
        let panics = &self.metrics.panics;
        tokio::join!(
            panics.restart("audit", "watch", || self.follow(&stop), &stop),
            panics.restart("audit", "policies", || self.keep(&stop), &stop),
            panics.restart("audit", "status", || self.tell(&stop), &stop),
        );
        while tasks.join_next().await.is_some() {}
    }

    /// Hands an object to whoever works on it; waits while there is too much to do.
    pub(crate) async fn hand(&self, uid: &str, job: Job) {
        self.crew.hand(uid, job).await;
    }

    /// Wants something done after a while.
    pub(crate) fn want(&self, task: Task, after: Duration) {
        self.agenda_of(&task).want(task, after);
    }

    fn agenda_of(&self, task: &Task) -> &Agenda {
        match task {
            Task::Sweep(..) | Task::Doubt(_) => &self.errands,
            Task::Look(_) | Task::Retry(_) | Task::Leave => &self.chores,
            _ => &self.agenda,
        }
    }

    /// The next decision.
    pub(crate) async fn decision(&self) -> Task {
        self.agenda.next().await
    }

    /// The next chore.
    #[cfg(test)]
    pub(crate) async fn chore(&self) -> Task {
        self.chores.next().await
    }

    /// How much is under way, or about to be.
    pub(crate) fn pending(&self) -> usize {
        let soon = Duration::from_secs(1);
        let state = self.state();
        let beginning = usize::from(state.found.is_some()) + state.preparing;
        drop(state);
        let agendas = [&self.agenda, &self.errands, &self.chores];
        let wanted: usize = agendas.map(|one| one.due_within(soon)).iter().sum();
        self.crew.waiting() + wanted + beginning
    }

    /// What is known. It is held for as long as a thought takes, never while waiting.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The policies have something new to tell.
    pub(crate) fn told(&self) {
        self.news.store(true, Ordering::Relaxed);
    }

    /// Whether they have, since it was last asked.
    pub(crate) fn take_news(&self) -> bool {
        self.news.swap(false, Ordering::Relaxed)
    }

    /// Deletes the reports on what is served and nobody is interested in any longer. Of what is not
    /// served nobody knows whether it is gone, or its server is.
    pub(crate) async fn leave(&self) {
        let left = {
            let state = self.state();
            let orphaned: BTreeSet<&Place> = state
                .ledger
                .places()
                .filter(|place| state.view.is_served(place))
                .filter(|place| state.view.interest(place).is_none())
                .collect();
            state
                .ledger
                .find(|_, entry| orphaned.contains(&entry.at.place))
        };
        for uid in left {
            self.hand(&uid, Job::Left(uid.clone())).await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
