//! What a Registry's status says: whether it answers, what was last found and how, and when it is
//! looked through next. Everything is told from the jobs and from asking the registry; what is no
//! longer there to be read, because old jobs are forgotten, stays as it was last told.

use super::plan::{Plan, Registry};
use super::run::{Outcome, Run};
use crate::message::JobKind;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// How often a registry is asked whether it answers.
const PROBE: SignedDuration = SignedDuration::from_mins(10);
/// How often one that did not answer is asked. (One that rejects the credentials is asked as rarely as
/// others: many registries lock an account after too many wrong passwords.)
const PROBE_AWAY: SignedDuration = SignedDuration::from_mins(1);

/// What a registry answered when it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) reachable: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Whether a registry is to be asked: its spec changed, or the last answer is old or older than the
/// end of a job, which may have met something else; or it was not reachable before this process began, which may
/// have other CA certificates and mirrors.
pub(crate) fn is_due(
    registry: &Registry<'_>,
    runs: &[Run],
    began: Timestamp,
    now: Timestamp,
) -> bool {
    let known = registry.condition("Reachable");
    let same = known.is_some_and(|known| known["observedGeneration"] == registry.generation);
    let asked = registry.status["lastProbeTime"].as_str();
    let Some(asked) = asked.and_then(|time| time.parse().ok()).filter(|_| same) else {
        return true;
    };
    let ended = runs.iter().filter_map(|run| run.ended).max();
    let is_away = known.is_some_and(|known| known["status"] == "False");
    now.duration_since(asked) >= pause(known)
        || ended.is_some_and(|ended| ended > asked)
        || is_away && asked < began
}

/// Pause between two questions to a registry, given its condition `Reachable`.
fn pause(known: Option<&Value>) -> SignedDuration {
    let reason = known.and_then(|known| known["reason"].as_str());
    match reason {
        Some("Unreachable" | "TimedOut") => PROBE_AWAY,
        _ => PROBE,
    }
}

/// When to look at a Registry again at the latest, given its status: soon while a scan or the registry
/// fails, since the reason may be gone at any time.
pub(crate) fn look_after(status: &Value, usual: Duration) -> Duration {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let is_failing = conditions
        .into_iter()
        .any(|known| known["status"] == "False");
    match is_failing {
        true => usual.min(PROBE_AWAY.unsigned_abs()),
        false => usual,
    }
}

/// The status as a patch: what is null is not known, or not so any more.
pub(crate) fn status(
    registry: &Registry<'_>,
    runs: &[Run],
    plan: &Plan,
    probe: Option<&Probe>,
    now: Timestamp,
) -> Value {
    let before = registry.status;
    let now = spell(now);
    let time = |time: Option<Timestamp>| time.map(spell);
    let scan = last(runs, JobKind::ScanJob, "completionTime").map(scan);
    let discovery = last(runs, JobKind::RegistryDiscovery, "finishedAt").map(discovery);
    let scan = newer(scan, &before["lastScan"], "completionTime");
    let discovery = newer(discovery, &before["lastDiscovery"], "finishedAt");
    let reachable = probe.map(|probe| {
        let status = if probe.reachable { "True" } else { "False" };
        (status.to_owned(), probe.reason, probe.message.clone())
    });
    let told = |kind: &str, said: Option<(String, &str, String)>| {
        let known = before["conditions"].as_array().into_iter().flatten();
        let known = known.clone().find(|known| known["type"] == kind);
        let Some((status, reason, message)) = said else {
            return known.cloned();
        };
        let since = known
            .filter(|known| known["status"] == status.as_str())
            .and_then(|known| known["lastTransitionTime"].as_str());
        Some(json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since.unwrap_or(&now), "observedGeneration": registry.generation,
        }))
    };
    let conditions = [
        told("Reachable", reachable),
        told("UpToDate", Some(fresh(&scan))),
    ];
    let counts = [&discovery, &scan].into_iter().max_by_key(|run| {
        let end = run["completionTime"]
            .as_str()
            .or(run["finishedAt"].as_str());
        end.unwrap_or_default().to_owned()
    });
    let mut status = json!({
        "observedGeneration": registry.generation,
        "conditions": conditions.into_iter().flatten().collect::<Vec<_>>(),
        "lastScan": scan, "lastDiscovery": discovery,
        "nextScanTime": time(plan.next_scan), "nextScheduledTime": time(plan.next_discovery),
        "imagesCount": counts.map(|run| &run["imagesCount"]),
    });
    if probe.is_some() {
        status["lastProbeTime"] = json!(now);
    }
    status
}

/// The time as objects tell it.
pub(crate) fn spell(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The job of a kind that ended last; of scans only those of everything.
fn last<'a>(runs: &'a [Run], kind: JobKind, end: &str) -> Option<&'a Run> {
    let ended = runs.iter().filter(|run| {
        run.kind == kind && run.full && run.outcome.is_some() && run.status[end].is_string()
    });
    ended.max_by_key(|run| (run.status[end].as_str().map(str::to_owned), &run.name))
}

/// What is told of a run, or what was told before if that is newer. Times sort as text.
fn newer(run: Option<Value>, before: &Value, end: &str) -> Value {
    let run = run.unwrap_or_default();
    match before[end].as_str() > run[end].as_str() {
        true => before.clone(),
        false => run,
    }
}

fn scan(run: &Run) -> Value {
    let status = &run.status;
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut holding = conditions.filter(|condition| condition["status"] == "True");
    let holding = holding.next().cloned().unwrap_or_default();
    json!({
        "name": run.name, "result": word(run.outcome), "message": holding["message"],
        "startTime": status["startTime"], "completionTime": status["completionTime"],
        "imagesCount": status["imagesCount"], "scannedImagesCount": status["scannedImagesCount"],
        "failedImagesCount": status["failedImagesCount"],
    })
}

fn discovery(run: &Run) -> Value {
    let status = &run.status;
    json!({
        "name": run.name, "result": word(run.outcome), "message": status["conditions"][1]["message"],
        "startedAt": status["startedAt"], "finishedAt": status["finishedAt"],
        "imagesCount": status["imagesCount"], "sbomsCount": status["sbomsCount"],
    })
}

fn word(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        Some(Outcome::Succeeded) => "Succeeded",
        Some(Outcome::Failed) => "Failed",
        Some(Outcome::Canceled) => "Canceled",
        None => "Running",
    }
}

/// Whether the findings are those of a whole scan.
fn fresh(scan: &Value) -> (String, &'static str, String) {
    let message = scan["message"].as_str().unwrap_or_default().to_owned();
    match scan["result"].as_str() {
        Some("Succeeded") => ("True".into(), "ScanComplete", message),
        Some(_) => ("False".into(), "ScanFailed", message),
        None => {
            let message = "The Registry has not been scanned yet";
            ("Unknown".into(), "NeverScanned", message.into())
        }
    }
}

#[cfg(test)]
mod tests;
