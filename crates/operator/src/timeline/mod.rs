//! How findings came and went. Whenever reports of workloads change, their namespace is looked at as a
//! whole: what its reports say now is compared with what its histories said last ([`plan`]), and those
//! that have something new to say get a point ([`point`]), by compare and swap. What was written last
//! decides, so losing this process loses nothing, and while nothing changes nothing is written. Between
//! two looks a namespace rests ([`rest`]). Only the leader does this.

mod plan;
mod point;
mod rest;
mod write;

use crate::object::{FINDING_HISTORY, WORKLOAD_REPORT};
use crate::work::{OPERATOR, Operator, Trouble};
use crate::workload::agenda::{Agenda, Next};
use futures::TryStreamExt;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use muster_api::history::{LABEL, OF_NAMESPACE};
use muster_control::delay;
use rest::Rests;
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Changes so close to one another make one point.
const TOGETHER: Duration = Duration::from_secs(5);
/// How often everything is looked at.
const AROUND: Duration = Duration::from_secs(3600);
/// How soon a namespace is looked at again if somebody else wrote meanwhile.
const SOON: Duration = Duration::from_secs(1);

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Task {
    Namespace(String),
    /// Every namespace that has reports, or had some.
    Everything,
}

/// The histories of one leader's term.
struct Timeline {
    operator: Arc<Operator>,
    agenda: Mutex<Agenda<Task>>,
    /// There is something new on the agenda.
    news: Notify,
}

/// Keeps histories until `stop`.
pub(crate) async fn run(operator: Arc<Operator>, stop: CancellationToken) {
    let timeline = Timeline {
        operator,
        agenda: Mutex::default(),
        news: Notify::new(),
    };
    timeline.want(Task::Everything, TOGETHER);
    tokio::select! {
        () = stop.cancelled() => {}
        () = timeline.follow() => {}
        () = timeline.work() => {}
    }
}

impl Timeline {
    fn agenda(&self) -> MutexGuard<'_, Agenda<Task>> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self, task: Task, after: Duration) {
        self.agenda()
            .want(task, delay::after(Instant::now(), after));
        self.news.notify_one();
    }

    /// Follows the reports, by their metadata: whatever changes what they say gives them a revision.
    async fn follow(&self) {
        let client = self.operator.client().clone();
        let api: Api<PartialObjectMeta<DynamicObject>> =
            Api::all_with(client, &WORKLOAD_REPORT.resource());
        let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
        loop {
            match events.try_next().await {
                Ok(Some(
                    Event::InitApply(report) | Event::Apply(report) | Event::Delete(report),
                )) => {
                    let namespace = report.namespace().unwrap_or_default();
                    self.want(Task::Namespace(namespace), TOGETHER);
                }
                // What went while nobody watched is not told.
                Ok(Some(Event::InitDone)) => self.want(Task::Everything, TOGETHER),
                Ok(Some(Event::Init)) => {}
                Ok(None) => return,
                Err(error) => tracing::warn!(%error, "watching WorkloadScanReports"),
            }
        }
    }

    /// Does what is on the agenda, one after the other: nobody waits for it.
    async fn work(&self) {
        let mut rests = Rests::default();
        loop {
            let next = self.agenda().next(Instant::now());
            let wait = match next {
                Next::Do(task) => {
                    let outcome = self.attempt_rested(&task, &mut rests).await;
                    self.agenda().done(&task, outcome, Instant::now());
                    continue;
                }
                Next::Wait(at) => at.saturating_duration_since(Instant::now()),
                Next::Nothing => AROUND,
            };
            tokio::select! {
                () = self.news.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks at something, unless it rests; says when to look again, or that it failed.
    async fn attempt_rested(
        &self,
        task: &Task,
        rests: &mut Rests<Task>,
    ) -> Result<Option<Duration>, ()> {
        let begun = Instant::now();
        if let Some(left) = rests.left(task, begun) {
            return Ok(Some(left));
        }
        let outcome = self.attempt(task).await;
        // What is to be looked at again has its own time for that.
        if outcome == Ok(None) {
            rests.begin(task, begun.elapsed(), Instant::now());
        }
        outcome
    }

    /// Looks at something; says when to look again, or that it failed.
    async fn attempt(&self, task: &Task) -> Result<Option<Duration>, ()> {
        let work = async {
            match task {
                Task::Namespace(name) => {
                    let written = write::namespace(self.operator.client(), name).await;
                    written.map(|()| None)
                }
                Task::Everything => self.everything().await.map(|()| Some(AROUND)),
            }
        };
        match self.operator.catch(OPERATOR, "FindingHistory", work).await {
            Err(trouble) if trouble.is_conflict() => Ok(Some(SOON)),
            Err(trouble) => {
                tracing::warn!(%trouble, ?task, "keeping the history of findings");
                Err(())
            }
            again => again.map_err(drop),
        }
    }

    /// Wants every namespace looked at.
    async fn everything(&self) -> Result<(), Trouble> {
        let client = self.operator.client();
        let of_namespaces = ListParams::default().labels(&format!("{LABEL}={OF_NAMESPACE}"));
        let reports = WORKLOAD_REPORT.metadata_anywhere(client, ListParams::default());
        let histories = FINDING_HISTORY.metadata_anywhere(client, of_namespaces);
        let (reports, histories) = (reports.await?, histories.await?);
        let all = reports.into_iter().chain(histories);
        let namespaces: BTreeSet<String> = all.filter_map(|one| one.namespace).collect();
        for namespace in namespaces {
            self.want(Task::Namespace(namespace), Duration::ZERO);
        }
        Ok(())
    }
}
