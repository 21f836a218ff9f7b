//! What is to be started on a Registry, and when to look again: a function of the Registry, of the
//! jobs that there are, and of the time. At most one thing is started at a time, because one job at a
//! time works on a Registry, and the most wanted first: what somebody asked for, what is new, what
//! is due.

use super::growth::{self, Parts};
use super::retry::Last;
use super::run::{Outcome, Run};
use super::targets::{REQUEST, Targets};
use crate::message::JobKind;
use crate::schedule::{self, Calendar};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::guard;
use serde_json::Value;
use std::collections::BTreeMap;

/// A Registry is often created together with its first ScanJob: that one comes first.
const SETTLE: SignedDuration = SignedDuration::from_secs(3);

/// What is known of a Registry.
#[derive(Clone, Debug)]
pub(crate) struct Registry<'a> {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    created: Timestamp,
    managed: bool,
    pub(crate) spec: &'a Value,
    pub(crate) status: &'a Value,
    /// When the Secret with its credentials was last written, if that matters.
    pub(crate) secret_written: Option<Timestamp>,
    /// Who asked for a scan, and of what.
    requests: BTreeMap<String, String>,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) start: Option<Start>,
    /// What a scan has been started for, or need not be.
    pub(crate) covered: Option<Parts>,
    /// Discoveries that are of the past.
    pub(crate) forget: Vec<String>,
    /// When the next scan by interval is due.
    pub(crate) next_scan: Option<Timestamp>,
    /// When the next discovery by the calendar is due.
    pub(crate) next_discovery: Option<Timestamp>,
    /// When to look again, if nothing happens.
    pub(crate) wake: Option<Timestamp>,
}

/// Something to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// A ScanJob.
    Scan { why: Why, targets: Targets },
    /// A RegistryDiscovery, noticed to be due at a check.
    Discovery { check: Timestamp },
}

/// Why a scan is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was asked for by these annotations.
    Requested(BTreeMap<String, String>),
    /// There is something new in this generation of the spec.
    Grown { generation: i64 },
    /// The interval is over.
    Due { at: Timestamp },
    /// The last scan failed.
    Retry { at: Timestamp },
}

impl<'a> Registry<'a> {
    pub(crate) fn read(object: &'a DynamicObject) -> Self {
        let created = object.creation_timestamp().map(|time| time.0);
        let named = |key: &str| {
            key.strip_prefix(REQUEST)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let requests = object.annotations().iter().filter(|(key, _)| named(key));
        let labels = object.labels();
        let managed = labels
            .get(guard::MANAGED_BY)
            .is_some_and(|by| by == guard::MANAGER)
            || labels
                .get(guard::WORKLOAD_SCAN)
                .is_some_and(|value| value == "true");
        Registry {
            uid: object.uid().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            created: created.unwrap_or(Timestamp::UNIX_EPOCH),
            managed,
            spec: &object.data["spec"],
            status: &object.data["status"],
            secret_written: None,
            requests: requests
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        }
    }

    fn covered(&self) -> Option<Parts> {
        let list = self.status["covered"].as_array()?;
        Some(
            list.iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        )
    }

    /// A condition of its status.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a Value> {
        let conditions = self.status["conditions"].as_array()?;
        conditions
            .iter()
            .find(|condition| condition["type"] == kind)
    }

    fn time(&self, pointer: &str) -> Option<Timestamp> {
        self.status.pointer(pointer)?.as_str()?.parse().ok()
    }

    fn limit(&self, name: &str, default: usize) -> usize {
        let limit = self.spec["discoveryJob"][name].as_u64();
        limit.map_or(default, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        })
    }
}

/// Decides what is to be done about a Registry that is there to stay.
pub(crate) fn plan(registry: &Registry<'_>, runs: &[Run], now: Timestamp) -> Plan {
    let mut plan = Plan {
        forget: past(registry, runs),
        ..Plan::default()
    };
    let busy = runs.iter().any(|run| run.outcome.is_none());
    let calendar = Calendar::of(registry.spec, &registry.uid, registry.managed);
    plan.next_discovery = calendar
        .and_then(|calendar| calendar.next(now))
        .map(Calendar::noticed);
    let last = Last::of(registry, runs);
    let due = schedule::interval(registry.spec)
        .filter(|_| !busy)
        .map(|interval| due(registry, last.as_ref(), interval));
    plan.next_scan = due;
    plan.wake = plan.next_discovery.into_iter().chain(due).min();
    grow(&mut plan, registry, runs, busy, now);
    if busy {
        plan.start = None;
        return plan;
    }
    if !registry.requests.is_empty() {
        let targets = registry.requests.values().map(|text| Targets::parse(text));
        let targets = targets.reduce(Targets::unite).unwrap_or(Targets::All);
        let why = Why::Requested(registry.requests.clone());
        // What is new waits for the next time, unless it is all.
        plan.covered = (targets == Targets::All).then(|| growth::parts(registry.spec));
        plan.start = Some(Start::Scan { why, targets });
        return plan;
    }
    if plan.start.is_some() {
        return plan;
    }
    if let Some(at) = due.filter(|due| *due <= now) {
        let why = match last.is_some_and(|last| last.has_failed) {
            true => Why::Retry { at },
            false => Why::Due { at },
        };
        plan.covered = Some(growth::parts(registry.spec));
        plan.start = Some(Start::Scan {
            why,
            targets: Targets::All,
        });
        return plan;
    }
    let check = schedule::check(now);
    let since = registry
        .time("/lastScheduledTime")
        .unwrap_or(registry.created);
    let last = calendar.and_then(|calendar| calendar.last(check));
    if last.is_some_and(|last| last > since.max(registry.created)) {
        plan.start = Some(Start::Discovery { check });
    }
    plan
}

/// Scans what is new, unless that is not wanted.
fn grow(plan: &mut Plan, registry: &Registry<'_>, runs: &[Run], busy: bool, now: Timestamp) {
    let parts = growth::parts(registry.spec);
    let covered = registry.covered();
    let unwanted = registry.managed || registry.spec["scanOnChange"] == false;
    let full = |run: &Run| run.kind == JobKind::ScanJob && run.full;
    let first = covered.is_none();
    // The first spec is scanned by whoever scans first; later ones may have come in between.
    if unwanted || first && registry.generation <= 1 && runs.iter().any(full) {
        plan.covered = (covered.as_ref() != Some(&parts)).then_some(parts);
        return;
    }
    let settled = registry.created.saturating_add(SETTLE).unwrap_or(now);
    if first && now < settled {
        plan.wake = Some(plan.wake.map_or(settled, |wake| wake.min(settled)));
        return;
    }
    let targets = match &covered {
        None => Some(Targets::All),
        Some(covered) => growth::growth(registry.spec, covered),
    };
    match targets {
        Some(targets) if !busy => {
            let generation = registry.generation;
            let why = Why::Grown { generation };
            plan.covered = Some(parts);
            plan.start = Some(Start::Scan { why, targets });
        }
        Some(_) => {}
        // What is gone may come again, and is new then.
        None => plan.covered = (covered.as_ref() != Some(&parts)).then_some(parts),
    }
}

/// When the next scan is due: a pause after the last one of everything ended, which is an interval
/// if that succeeded.
fn due(registry: &Registry<'_>, last: Option<&Last<'_>>, interval: SignedDuration) -> Timestamp {
    let (ended, pause) = match last {
        Some(last) => (last.ended, last.pause(registry, interval)),
        // Without one, a little after it was created.
        None => {
            let before = registry.created.checked_sub(interval);
            (before.unwrap_or(Timestamp::MIN), interval)
        }
    };
    schedule::scan_due(ended, pause, &registry.uid)
}

/// The discoveries that are kept no longer.
fn past(registry: &Registry<'_>, runs: &[Run]) -> Vec<String> {
    let mut ended: Vec<&Run> = runs
        .iter()
        .filter(|run| run.kind == JobKind::RegistryDiscovery && run.outcome.is_some())
        .collect();
    ended.sort_by_key(|run| std::cmp::Reverse((run.ended.unwrap_or(run.created), &run.name)));
    let (good, bad): (Vec<_>, Vec<_>) = ended
        .into_iter()
        .partition(|run| run.outcome == Some(Outcome::Succeeded));
    let good = good
        .into_iter()
        .skip(registry.limit("successfulJobsHistoryLimit", 1));
    let bad = bad
        .into_iter()
        .skip(registry.limit("failedJobsHistoryLimit", 2));
    good.chain(bad).map(|run| run.name.clone()).collect()
}

#[cfg(test)]
mod tests;
