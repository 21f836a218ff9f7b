//! A job as its Registry sees it: of which kind, over all of it or not, since when, and how it ended.

use crate::message::JobKind;
use crate::object::{SNAPSHOT, noted};
use crate::{discovery, job};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
    Canceled,
}

/// A job.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) kind: JobKind,
    pub(crate) name: String,
    /// Nothing of the Registry was left out on purpose.
    pub(crate) full: bool,
    pub(crate) created: Timestamp,
    /// When it ended, as it says itself.
    pub(crate) ended: Option<Timestamp>,
    /// None while it waits or works.
    pub(crate) outcome: Option<Outcome>,
    /// Generation of the Registry when it was started, if it notes that.
    pub(crate) generation: Option<i64>,
    pub(crate) status: Value,
}

impl Run {
    /// Reads a ScanJob or a RegistryDiscovery.
    pub(crate) fn read(kind: JobKind, object: &DynamicObject) -> Self {
        let status = &object.data["status"];
        let time = |field: &str| status[field].as_str().and_then(|time| time.parse().ok());
        let created = object.creation_timestamp().map(|time| time.0);
        let (outcome, ended) = match kind {
            JobKind::ScanJob => {
                let conditions = status["conditions"].as_array().into_iter().flatten();
                let mut failed = conditions.filter(|condition| condition["type"] == "Failed");
                let outcome = match failed.any(|condition| condition["status"] == "True") {
                    true => Outcome::Failed,
                    false => Outcome::Succeeded,
                };
                let ended = job::has_ended(status);
                (ended.then_some(outcome), time("completionTime"))
            }
            JobKind::RegistryDiscovery => {
                let outcome = match status["currentStatus"].as_str() {
                    Some("Succeeded") => Outcome::Succeeded,
                    Some("Cancel") => Outcome::Canceled,
                    _ => Outcome::Failed,
                };
                let ended = discovery::has_ended(status);
                let last = time("completedAt").or_else(|| time("finishedAt"));
                (ended.then_some(outcome), last)
            }
        };
        let targets = object.data["spec"]["repositories"].as_array();
        Run {
            kind,
            name: object.name_any(),
            full: targets.is_none_or(Vec::is_empty),
            created: created.unwrap_or(Timestamp::UNIX_EPOCH),
            ended,
            outcome,
            generation: generation(object),
            status: status.clone(),
        }
    }
}

/// The generation of the Registry that a ScanJob has a copy of.
fn generation(object: &DynamicObject) -> Option<i64> {
    let copy = noted(&object.metadata, SNAPSHOT)?;
    let copy: Value = serde_json::from_str(copy).ok()?;
    copy.pointer("/metadata/generation")?.as_i64()
}
