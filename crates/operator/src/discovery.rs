//! How far a RegistryDiscovery has come, decided from what is there: its Registry, its Images and
//! their SBOMs. It has succeeded when the last Image exists; what it holds, it holds until every
//! Image has its SBOM, or cannot have one.

pub(crate) mod reconcile;

use crate::object::condition;
use serde_json::{Value, json};

/// What is known of a discovery that nobody called off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Work on it has begun.
    pub(crate) started: bool,
    /// How many images were found; none until all are.
    pub(crate) images: Option<usize>,
    /// How many of them have their bill.
    pub(crate) bills: usize,
    /// How many of them may still get theirs.
    pub(crate) open: usize,
    /// Why some others will never have theirs.
    pub(crate) failures: Vec<String>,
    /// What of the registry could not be listed.
    pub(crate) unlisted: Vec<String>,
}

/// How far a discovery has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is done yet; another may have to end first.
    Pending { waits_for: Option<String> },
    /// Images are being looked for.
    Running,
    /// It cannot even begin.
    Refused { why: String },
    /// It cannot be finished.
    Failed { why: String },
    /// It was called off.
    Canceled,
    /// All images are found; `done` when nothing more will be known of them.
    Succeeded { done: bool },
}

/// Decides how far a discovery has come.
pub(crate) fn phase(facts: &Facts) -> Phase {
    match (facts.images, facts.unlisted.first()) {
        (None, _) if facts.started => Phase::Running,
        (None, _) => Phase::Pending { waits_for: None },
        (Some(_), None) => Phase::Succeeded {
            done: facts.open == 0,
        },
        // What was found is worth its bill all the same.
        (Some(_), Some(_)) if facts.open > 0 => Phase::Running,
        (Some(_), Some(first)) => Phase::Failed {
            why: format!(
                "{} images could not be listed; the first: {first}",
                facts.unlisted.len()
            ),
        },
    }
}

impl Phase {
    /// Whether nothing is left to do.
    pub(crate) fn has_ended(&self) -> bool {
        match self {
            Phase::Pending { .. } | Phase::Running => false,
            Phase::Refused { .. } | Phase::Failed { .. } | Phase::Canceled => true,
            Phase::Succeeded { done } => *done,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Phase::Pending { .. } => "Pending",
            Phase::Running => "Running",
            Phase::Refused { .. } | Phase::Failed { .. } => "FailStopped",
            Phase::Canceled => "Cancel",
            Phase::Succeeded { .. } => "Succeeded",
        }
    }

    /// Whether each condition holds, why, and what it says: Discovering, then Discovered. At the
    /// end both hold: that it ran, and that it is over.
    fn words(&self) -> [(bool, &'static str, String); 2] {
        const RUNNING: (&str, &str) = ("DiscoveryRunning", "Registry discovery in progress");
        let both =
            |reason, message: String| [(false, reason, message.clone()), (false, reason, message)];
        let running = |holds| (holds, RUNNING.0, RUNNING.1.to_owned());
        match self {
            Phase::Pending { waits_for: None } => {
                both("DiscoveryPending", "Registry discovery pending".into())
            }
            Phase::Pending {
                waits_for: Some(other),
            } => both(
                "DiscoveryPending",
                format!("Registry discovery pending until {other} has ended"),
            ),
            Phase::Running => [running(true), running(false)],
            Phase::Refused { why } => both("FailedToRequestDiscovery", why.clone()),
            Phase::Failed { why } => both("DiscoveryFailed", why.clone()),
            Phase::Canceled => both("DiscoveryFailed", "Registry discovery canceled".into()),
            Phase::Succeeded { .. } => {
                let finished = "Registry discovery finished".to_owned();
                [running(true), (true, "DiscoveryFinished", finished)]
            }
        }
    }

    /// The status; a time moves only with what it is about.
    pub(crate) fn status(
        &self,
        facts: &Facts,
        before: &Value,
        generation: i64,
        now: &str,
    ) -> Value {
        let kinds = ["Discovering", "Discovered"].into_iter().zip(self.words());
        let conditions = kinds.map(|(kind, (holds, reason, message))| {
            let before = &before["conditions"];
            condition(before, kind, holds, reason, &message, generation, now)
        });
        let mut status = json!({
            "currentStatus": self.word(), "canceled": *self == Phase::Canceled,
            "conditions": conditions.collect::<Vec<_>>(),
        });
        let mut keep = |field: &str| {
            status[field] = json!(before[field].as_str().unwrap_or(now));
        };
        if self.has_ended() || matches!(self, Phase::Succeeded { .. }) {
            keep("finishedAt");
        }
        if matches!(self, Phase::Succeeded { done: true }) {
            keep("completedAt");
        }
        if let Some(images) = facts.images {
            status["imagesCount"] = json!(images);
            status["sbomsCount"] = json!(facts.bills);
            let failed = facts.failures.len().saturating_add(facts.unlisted.len());
            status["failedImagesCount"] = json!(failed);
        }
        status
    }
}

/// Whether a discovery's status says that nothing is left to do: it failed, was called off, or
/// no image waits for its SBOM any more.
pub(crate) fn has_ended(status: &Value) -> bool {
    match status["currentStatus"].as_str() {
        Some("FailStopped" | "Cancel") => true,
        Some("Succeeded") => status["completedAt"].is_string(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(started: bool, images: Option<usize>, bills: usize, open: usize) -> Facts {
        Facts {
            started,
            images,
            bills,
            open,
            ..Facts::default()
        }
    }

    #[test]
    fn the_phase_follows_from_what_is_there() {
        let unlisted = |open| Facts {
            unlisted: vec!["a/b: denied".into(), "a/c: denied".into()],
            ..facts(true, Some(3), 1, open)
        };
        let why = "2 images could not be listed; the first: a/b: denied".to_owned();
        for (facts, phase) in [
            (facts(false, None, 0, 0), Phase::Pending { waits_for: None }),
            (facts(true, None, 0, 0), Phase::Running),
            (facts(true, Some(0), 0, 0), Phase::Succeeded { done: true }),
            (facts(true, Some(2), 1, 1), Phase::Succeeded { done: false }),
            (facts(true, Some(2), 2, 0), Phase::Succeeded { done: true }),
            (unlisted(1), Phase::Running),
            (unlisted(0), Phase::Failed { why }),
        ] {
            assert_eq!(super::phase(&facts), phase, "{facts:?}");
        }
    }

    #[test]
    fn the_status_tells_the_phase_and_when_it_came() {
        let none = Facts::default();
        let pending = Phase::Pending { waits_for: None };
        let pending = pending.status(&none, &Value::Null, 1, "one");
        let running = Phase::Running.status(&none, &pending, 1, "two");
        let found = facts(true, Some(2), 1, 1);
        let succeeded = Phase::Succeeded { done: false }.status(&found, &running, 1, "three");
        let found = facts(true, Some(2), 2, 0);
        let done = Phase::Succeeded { done: true }.status(&found, &succeeded, 1, "four");
        let condition = |kind: &str, status: &str, reason: &str, message: &str, time: &str| {
            json!({
                "type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": time, "observedGeneration": 1,
            })
        };
        let (says, runs) = (
            "Registry discovery pending",
            "Registry discovery in progress",
        );
        assert_eq!(
            pending,
            json!({"currentStatus": "Pending", "canceled": false, "conditions": [
                condition("Discovering", "False", "DiscoveryPending", says, "one"),
                condition("Discovered", "False", "DiscoveryPending", says, "one"),
            ]})
        );
        assert_eq!(
            running,
            json!({"currentStatus": "Running", "canceled": false, "conditions": [
                condition("Discovering", "True", "DiscoveryRunning", runs, "two"),
                condition("Discovered", "False", "DiscoveryRunning", runs, "one"),
            ]})
        );
        let both = json!([
            condition("Discovering", "True", "DiscoveryRunning", runs, "two"),
            condition(
                "Discovered",
                "True",
                "DiscoveryFinished",
                "Registry discovery finished",
                "three"
            ),
        ]);
        assert_eq!(
            succeeded,
            json!({
                "currentStatus": "Succeeded", "canceled": false, "conditions": both,
                "finishedAt": "three", "imagesCount": 2, "sbomsCount": 1, "failedImagesCount": 0,
            })
        );
        assert_eq!(
            done,
            json!({
                "currentStatus": "Succeeded", "canceled": false, "conditions": both,
                "finishedAt": "three", "completedAt": "four",
                "imagesCount": 2, "sbomsCount": 2, "failedImagesCount": 0,
            })
        );
    }

    #[test]
    fn an_end_is_told_from_the_status() {
        let why = || "no".to_owned();
        for (phase, word, ended) in [
            (Phase::Pending { waits_for: None }, "Pending", false),
            (
                Phase::Pending {
                    waits_for: Some(why()),
                },
                "Pending",
                false,
            ),
            (Phase::Running, "Running", false),
            (Phase::Refused { why: why() }, "FailStopped", true),
            (Phase::Failed { why: why() }, "FailStopped", true),
            (Phase::Canceled, "Cancel", true),
            (Phase::Succeeded { done: false }, "Succeeded", false),
            (Phase::Succeeded { done: true }, "Succeeded", true),
        ] {
            let status = phase.status(&Facts::default(), &Value::Null, 1, "now");
            assert_eq!(status["currentStatus"], word);
            assert_eq!(phase.has_ended(), ended, "{phase:?}");
            assert_eq!(has_ended(&status), ended, "{phase:?}");
            assert_eq!(status["canceled"], phase == Phase::Canceled);
        }
        assert!(!has_ended(&Value::Null));
    }
}
