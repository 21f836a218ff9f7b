//! What runs in the cluster, and what must be fixed in it. Pods are watched; what they run becomes
//! conditions of managed Registries ([`ladder`]), which are then scanned like any other, and one
//! report for each workload ([`report`]), which the server completes with what the scans find.
//!
//! It is all level-triggered. Watches keep a [`view`] and put on the [`agenda`] what is worth looking
//! at: a namespace ([`reconcile`]), or a managed Registry ([`settle`]). Both compare what is with what
//! should be and write the difference, so whatever is lost is made up for at the next look. Only the
//! leader does this.

pub(crate) mod agenda;
mod configuration;
mod ladder;
mod managed;
mod owner;
mod pod;
mod reconcile;
mod report;
mod reuse;
mod seen;
mod settle;
mod view;
mod watch;

use crate::usage::{self, Usage};
use crate::work::{OPERATOR, Operator, WORKLOAD_SCAN};
use agenda::{Agenda, Next};
use futures::future::join_all;
use kube::Client;
use muster_control::delay;
use owner::Owners;
use report::Place;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use view::View;
use watch::Seen;

/// How many things are looked at at once.
const AT_ONCE: usize = 8;
/// Changes so close to one another are looked at together.
const TOGETHER: Duration = Duration::from_millis(250);
/// How long after the namespaces all Registries are looked at.
const AFTERWARDS: Duration = Duration::from_secs(1);
/// How often everything is looked at.
const AROUND: Duration = Duration::from_secs(3600);
/// How soon a Registry is written once a namespace wants something else of it.
const SOON: Duration = Duration::from_millis(100);

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Task {
    Namespace(String),
    Registry(Place),
    /// A Registry that somebody else made.
    Other(Place),
    /// What the configuration says of itself.
    Configuration,
}

/// The workload scan of one leader's term.
struct Workloads {
    operator: Arc<Operator>,
    usage: Arc<Usage>,
    owners: Owners,
    view: Mutex<View>,
    agenda: Mutex<Agenda<Task>>,
    /// There is something new on the agenda.
    news: Notify,
    stop: CancellationToken,
}

/// Scans workloads until `stop`.
pub(crate) async fn run(operator: Arc<Operator>, stop: CancellationToken) {
    let usage = Arc::new(Usage::default());
    let workloads = Workloads {
        operator: operator.clone(),
        usage: usage.clone(),
        owners: Owners::default(),
        view: Mutex::default(),
        agenda: Mutex::default(),
        news: Notify::new(),
        stop: stop.clone(),
    };
    tokio::join!(
        workloads.work_when_ready(&stop),
        usage::run(operator, usage, stop.clone()),
    );
}

impl Workloads {
    fn home(&self) -> &Client {
        self.operator.client()
    }

    fn cluster(&self) -> &Client {
        self.operator.cluster()
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda<Task>> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something on the agenda.
    fn want(&self, task: Task, after: Duration) {
        self.agenda()
            .want(task, delay::after(Instant::now(), after));
        self.news.notify_one();
    }

    fn want_everything(&self) {
        let (namespaces, registries) = {
            let view = self.view();
            (view.everywhere(), view.managed())
        };
        for namespace in namespaces {
            self.want(Task::Namespace(namespace), TOGETHER);
        }
        for place in registries {
            // Once the namespaces have said what they want.
            self.want(Task::Registry(place), AFTERWARDS);
        }
        self.want(Task::Configuration, TOGETHER);
    }

    /// Watches, and works once everything has been seen: what is not known to be there must not be
    /// taken for gone.
    async fn work_when_ready(&self, stop: &CancellationToken) {
        let seen = Seen::default();
        let working = async {
            tokio::select! {
                () = stop.cancelled() => return,
                () = seen.all() => {}
            }
            self.want_everything();
            let at_work = join_all((0..AT_ONCE).map(|_| self.work(stop)));
            tokio::join!(at_work, self.look_around(stop));
        };
        tokio::join!(self.watch(&seen, stop), working);
    }

    /// Looks at everything from time to time: an operator that led before may have written late.
    async fn look_around(&self, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(AROUND) => self.want_everything(),
            }
        }
    }

    /// Does what is on the agenda.
    async fn work(&self, stop: &CancellationToken) {
        loop {
            let next = self.agenda().next(Instant::now());
            let wait = match next {
                Next::Do(task) => {
                    // Whoever else waits looks at the agenda too.
                    self.news.notify_one();
                    let outcome = self.attempt(&task).await;
                    self.agenda().done(&task, outcome, Instant::now());
                    self.news.notify_one();
                    if stop.is_cancelled() {
                        return;
                    }
                    continue;
                }
                Next::Wait(at) => at.saturating_duration_since(Instant::now()),
                Next::Nothing => Duration::from_secs(3600),
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.news.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks at something; says when to look again, or that it failed.
    async fn attempt(&self, task: &Task) -> Result<Option<Duration>, ()> {
        let work = async {
            match task {
                Task::Namespace(name) => self.namespace(name).await,
                Task::Registry(place) => self.settle(place).await,
                Task::Other(place) => self.see(place).await,
                Task::Configuration => self.tell().await,
            }
        };
        let outcome = self.operator.catch(OPERATOR, WORKLOAD_SCAN, work).await;
        // By now every report there is has been told, or could not be written.
        if matches!(task, Task::Namespace(_)) && self.view().has_come_round() {
            self.usage.complete();
        }
        match outcome {
            Ok(again) => Ok(again),
            Err(trouble) if trouble.is_conflict() => Ok(Some(SOON)),
            Err(trouble) => {
                tracing::warn!(%trouble, ?task, "scanning workloads");
                Err(())
            }
        }
    }
}
