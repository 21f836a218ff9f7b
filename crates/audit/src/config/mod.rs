//! The configuration audit: policies in Rego that ConfigMaps bind to kinds, beside our own, and a
//! ConfigAuditReport for every object of those kinds. It is level-triggered: the two hashes on a report say
//! whether it is right, so nothing has to be remembered but the reports themselves; and a report that is
//! not right is replaced by its successor in one write, so that no object is ever without one.
//!
//! ConfigMaps and reports are watched ([`follow`]); from the policies in force follows a sheet for each
//! kind, and so what is watched and looked at ([`settle`]); every object goes through [`look`]; a report
//! whose successor could not be made is marked ([`stale`]); what cannot be in force is told ([`tell`]).

mod changed;
mod follow;
mod look;
mod metrics;
mod settle;
mod shelf;
mod stale;
mod status;
mod tell;
#[cfg(test)]
mod testing;
mod unlisted;

pub use metrics::ConfigMetrics;

use crate::agenda::Agenda;
use crate::crew::Crew;
use crate::ledger::{Place, Whereabouts};
use crate::pace::Pace;
use crate::scope::Scope;
use jiff::Timestamp;
use kube::Client;
use look::Job;
use muster_checks::force::{Choice, Force};
use muster_checks::report::Hashes;
use muster_checks::{Kind, Sheet};
use muster_policy::Served;
use shelf::Shelf;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The component, as panics are counted.
const COMPONENT: &str = "config-audit";
/// How many errands are run at once: a resource that cannot be listed holds up no other.
const RUNNERS: usize = 3;

/// What a configuration audit is told.
#[derive(Clone)]
pub struct ConfigSettings {
    /// Where policies are, and reports are kept.
    pub home: Client,
    /// Where the objects are.
    pub cluster: Client,
    /// The namespace of Muster itself: policies are read there, and it is told there how they are.
    pub installation: String,
    /// Other namespaces whose ConfigMaps are policies.
    pub namespaces: Vec<String>,
    /// What is audited.
    pub scope: Scope,
    /// Which policies of our own are wanted, and which none at all.
    pub choice: Choice,
    /// Objects with one of these labels are left alone.
    pub skip_labels: BTreeSet<String>,
    /// Whether exceptions count that are annotations of objects.
    pub exceptions: bool,
    /// Whether reports tell of checks that are kept, too.
    pub all: bool,
    /// How many objects are judged at once.
    pub parallel: usize,
    /// How many requests a second the API server is asked at most; 0 is as many as there are.
    pub requests_per_second: u32,
    /// How often everything is looked at, whether or not anything was said to have changed.
    pub verify: Duration,
    /// What is counted.
    pub metrics: ConfigMetrics,
}

/// A configuration audit.
pub struct ConfigAuditor {
    settings: ConfigSettings,
    pace: Arc<Pace>,
    shelf: Shelf,
    /// What is decided about.
    agenda: Agenda<Task>,
    /// What is looked at, which may take long.
    errands: Agenda<Task>,
    judging: Arc<Semaphore>,
    crew: Crew<Job>,
    state: Mutex<State>,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Ask the cluster what it serves.
    Discover,
    /// Find out which policies are in force, and about what.
    Settle,
    /// See whether there is a policy by now about a kind that had none.
    Reconcile(Place),
    /// Tell how policies are.
    Tell,
    /// Look at all objects of a resource.
    Sweep(Place),
    /// Look at one object.
    Look(Whereabouts),
    /// See whether somebody else wrote a report.
    Doubt(ReportName),
    /// Look again at all objects whose reports have errors.
    Revisit,
    /// Look at everything.
    Verify,
}

/// The namespace and the name of a report.
type ReportName = (Option<String>, String);

/// A ConfigMap with policies.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    namespace: String,
    name: String,
    uid: String,
    schema: Option<String>,
    data: BTreeMap<String, String>,
}

/// A resource, and who judges its objects.
#[derive(Clone, Debug)]
struct Desk {
    served: Arc<Served>,
    kind: Kind,
    sheet: Option<Arc<Sheet>>,
}

/// A report that is there.
#[derive(Clone, Debug)]
struct Kept {
    /// What it was made from; none if it has to be made again.
    hashes: Option<Hashes>,
    /// Whether it is marked as stale.
    is_stale: bool,
    /// Whether its object is to be evaluated again though nothing changed. It stays until then.
    is_revisited: bool,
    /// Which object it is about: group, kind, name and identity.
    group: String,
    kind: String,
    name: String,
    uid: String,
    /// The revision that we wrote or took over, and the last that was seen.
    written: u64,
    seen: u64,
}

/// What is known.
#[derive(Debug, Default)]
struct State {
    sources: BTreeMap<String, Source>,
    /// Whether all sources and reports have been seen once, and it is known what is served.
    has_begun: bool,
    served: Vec<Served>,
    kinds: Arc<Vec<Kind>>,
    force: Arc<Force>,
    desks: HashMap<Place, Desk>,
    reports: HashMap<ReportName, Kept>,
    /// What cannot be listed, in which namespace, and why.
    unlisted: BTreeMap<(Place, Option<String>), String>,
    /// How often in a row something could not be done about an object.
    failures: HashMap<Whereabouts, u32>,
}

impl ConfigAuditor {
    /// An audit that begins when it is run.
    pub fn new(settings: ConfigSettings) -> Arc<ConfigAuditor> {
        let pace = Arc::new(Pace::new(settings.requests_per_second));
        let shelf = Shelf::new(
            settings.home.clone(),
            pace.clone(),
            settings.metrics.clone(),
        );
        Arc::new(ConfigAuditor {
            judging: Arc::new(Semaphore::new(settings.parallel.max(1))),
            settings,
            pace,
            shelf,
            agenda: Agenda::default(),
            errands: Agenda::default(),
            crew: Crew::new(),
            state: Mutex::default(),
        })
    }

    /// Audits until `stop`. It is run once.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        if !self.recall(&stop).await {
            return;
        }
        let errands = (0..RUNNERS).map(|_| self.run_errands(&stop));
        let panics = &self.settings.metrics.panics;
        tokio::join!(
            self.crew.run(|job| self.work(job), &stop),
            panics.restart(COMPONENT, "watch", || self.follow(&stop), &stop),
            panics.restart(COMPONENT, "policies", || self.keep(&stop), &stop),
            futures::future::join_all(errands),
            self.count(&stop),
        );
    }

    /// Wants something done after a while.
    fn want(&self, task: Task, after: Duration) {
        let agenda = match task {
            Task::Sweep(_) | Task::Look(_) | Task::Doubt(_) | Task::Revisit => &self.errands,
            _ => &self.agenda,
        };
        agenda.want(task, after);
    }

    /// Says from time to time how much there is to do.
    async fn count(&self, stop: &CancellationToken) {
        let soon = Duration::from_secs(1);
        loop {
            let wanted = self.agenda.due_within(soon) + self.errands.due_within(soon);
            let (beginning, reports) = {
                let state = self.state();
                (usize::from(!state.has_begun), state.reports.len())
            };
            let pending = self.crew.waiting() + wanted + beginning;
            self.settings.metrics.know(reports, pending);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(Duration::from_millis(250)) => {}
            }
        }
    }

    /// What is known. It is held for as long as a thought takes, never while waiting.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What judges a kind, if anything does.
    fn sheet_of(&self, kind: &Kind) -> Option<Arc<Sheet>> {
        let mut desks = self.desks.values();
        let desk =
            desks.find(|desk| desk.kind.group == kind.group && desk.kind.kind == kind.kind)?;
        desk.sheet.clone()
    }
}

fn now() -> Timestamp {
    Timestamp::now()
}
