//! How far a ScanJob has come, decided from what is there: its Registry, its Images and their
//! outcomes. The phase becomes the four conditions of its status, exactly one of which holds.

use crate::object::condition;
use serde_json::{Value, json};
use std::borrow::Cow;

/// What is known of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Its Registry exists.
    pub(crate) registry: bool,
    /// How many images were found; none until all are.
    pub(crate) images: Option<usize>,
    /// How many of them have their findings.
    pub(crate) scanned: usize,
    /// How many of them have their bill.
    pub(crate) bills: usize,
    /// How many had to be read for it, because nothing was known of them.
    pub(crate) read: usize,
    /// How many had to be matched, because they or the data are new.
    pub(crate) matched: usize,
    /// Why some others will never have theirs.
    pub(crate) failures: Vec<String>,
    /// How many were found once and are gone.
    pub(crate) gone: usize,
    /// Work on it has begun.
    pub(crate) started: bool,
}

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Scheduled,
    /// Another job, which it names, works on the Registry.
    Waiting(String),
    Catalog,
    Bills,
    Scanning,
    NoImages,
    Complete,
    Failed {
        reason: &'static str,
        message: String,
    },
}

/// Decides how far a job has come.
pub(crate) fn phase(facts: &Facts) -> Phase {
    let Some(images) = facts.images else {
        return match (facts.registry, facts.started) {
            (false, _) => Phase::Failed {
                reason: "RegistryNotFound",
                message: "The Registry of this ScanJob does not exist".into(),
            },
            (true, false) => Phase::Scheduled,
            (true, true) => Phase::Catalog,
        };
    };
    let failed = facts.failures.len().saturating_add(facts.gone);
    let gone = || (facts.gone > 0).then(|| "an image was deleted meanwhile".to_owned());
    match facts.failures.first().cloned().or_else(gone) {
        _ if images == 0 => Phase::NoImages,
        _ if failed.saturating_add(facts.scanned.max(facts.bills)) < images => Phase::Bills,
        _ if failed.saturating_add(facts.scanned) < images => Phase::Scanning,
        None => Phase::Complete,
        Some(first) => Phase::Failed {
            reason: "InternalError",
            message: format!(
                "{failed} of {images} images could not be scanned; the first: {first}"
            ),
        },
    }
}

/// How many reasons a status tells in full.
const TOLD: usize = 5;

/// The counts of a status, and the first reasons of failures.
pub(crate) fn counts(facts: &Facts) -> Value {
    let failed = facts.failures.len().saturating_add(facts.gone);
    let told: Vec<&String> = facts.failures.iter().take(TOLD).collect();
    json!({
        "imagesCount": facts.images.unwrap_or_default(),
        "scannedImagesCount": facts.scanned,
        "failedImagesCount": failed,
        "readImagesCount": facts.read,
        "matchedImagesCount": facts.matched,
        "errors": told,
    })
}

impl Phase {
    pub(crate) fn has_ended(&self) -> bool {
        matches!(
            self,
            Phase::NoImages | Phase::Complete | Phase::Failed { .. }
        )
    }

    /// The condition that holds, its reason and message, and what the others say meanwhile.
    fn words(
        &self,
    ) -> (
        &'static str,
        &'static str,
        Cow<'_, str>,
        &'static str,
        &'static str,
    ) {
        const SCHEDULED: &str = "ScanJob is scheduled";
        const RUNNING: &str = "ScanJob is in progress";
        const DONE: &str = "ScanJob completed successfully";
        let running = |reason, message| {
            (
                "InProgress",
                reason,
                Cow::Borrowed(message),
                "InProgress",
                RUNNING,
            )
        };
        match self {
            Phase::Scheduled => (
                "Scheduled",
                "Scheduled",
                SCHEDULED.into(),
                "Scheduled",
                SCHEDULED,
            ),
            Phase::Waiting(other) => (
                "Scheduled",
                "Scheduled",
                format!("{SCHEDULED}; it waits for {other}").into(),
                "Scheduled",
                SCHEDULED,
            ),
            Phase::Catalog => running("CatalogCreationInProgress", "Catalog creation in progress"),
            Phase::Bills => running("SBOMGenerationInProgress", "SBOM generation in progress"),
            Phase::Scanning => running("ImageScanInProgress", "Image scan in progress"),
            Phase::NoImages => (
                "Complete",
                "NoImagesToScan",
                "No images to process".into(),
                "Complete",
                DONE,
            ),
            Phase::Complete => (
                "Complete",
                "AllImagesScanned",
                "All images scanned successfully".into(),
                "Complete",
                DONE,
            ),
            Phase::Failed { reason, message } => {
                ("Failed", reason, message.into(), "Failed", "ScanJob failed")
            }
        }
    }

    /// The conditions; a time moves only with its condition.
    pub(crate) fn conditions(&self, before: &Value, generation: i64, now: &str) -> Value {
        let (holds, reason, message, other_reason, other_message) = self.words();
        let condition = |kind: &str| {
            let (reason, message) = match kind == holds {
                true => (reason, &*message),
                false => (other_reason, other_message),
            };
            condition(
                before,
                kind,
                kind == holds,
                reason,
                message,
                generation,
                now,
            )
        };
        json!(["Scheduled", "InProgress", "Complete", "Failed"].map(condition))
    }
}

/// Whether a job's status says that it has ended.
pub(crate) fn has_ended(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut holding = conditions.filter(|condition| condition["status"] == "True");
    holding.any(|condition| condition["type"] == "Complete" || condition["type"] == "Failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_follows_from_what_is_there() {
        let facts = |images, bills, scanned, failures: &[&str]| Facts {
            registry: true,
            started: true,
            images,
            bills,
            scanned,
            read: bills,
            matched: scanned,
            failures: failures.iter().map(|text| (*text).to_owned()).collect(),
            gone: 0,
        };
        for (facts, reason) in [
            (Facts::default(), "RegistryNotFound"),
            (
                Facts {
                    registry: true,
                    ..Facts::default()
                },
                "Scheduled",
            ),
            (facts(None, 0, 0, &[]), "CatalogCreationInProgress"),
            (facts(Some(0), 0, 0, &[]), "NoImagesToScan"),
            (facts(Some(2), 1, 1, &[]), "SBOMGenerationInProgress"),
            (facts(Some(2), 2, 1, &[]), "ImageScanInProgress"),
            (facts(Some(2), 1, 0, &["bad"]), "ImageScanInProgress"),
            (facts(Some(2), 1, 1, &["bad"]), "InternalError"),
            (facts(Some(2), 2, 2, &[]), "AllImagesScanned"),
            (
                Facts {
                    gone: usize::MAX,
                    ..facts(Some(usize::MAX), 0, 0, &["bad"])
                },
                "InternalError",
            ),
        ] {
            let phase = phase(&facts);
            let conditions = phase.conditions(&Value::Null, 1, "now");
            let holding: Vec<_> = conditions.as_array().unwrap().iter().collect();
            let holding: Vec<_> = holding.iter().filter(|c| c["status"] == "True").collect();
            assert_eq!(holding.len(), 1);
            assert_eq!(holding[0]["reason"], reason, "{facts:?}");
            assert_eq!(
                has_ended(&json!({"conditions": conditions})),
                phase.has_ended()
            );
        }
    }

    #[test]
    fn a_status_reads_as_the_specification_shows_it() {
        const RUNNING: (&str, &str) = ("InProgress", "ScanJob is in progress");
        const DONE: (&str, &str) = ("Complete", "ScanJob completed successfully");
        let failed = Phase::Failed {
            reason: "InternalError",
            message: "Failed to create catalog: registry connection timeout".into(),
        };
        for (phase, holds, own, others) in [
            (
                Phase::Scheduled,
                "Scheduled",
                ("Scheduled", "ScanJob is scheduled"),
                ("Scheduled", "ScanJob is scheduled"),
            ),
            (
                Phase::Catalog,
                "InProgress",
                ("CatalogCreationInProgress", "Catalog creation in progress"),
                RUNNING,
            ),
            (
                Phase::Bills,
                "InProgress",
                ("SBOMGenerationInProgress", "SBOM generation in progress"),
                RUNNING,
            ),
            (
                Phase::Scanning,
                "InProgress",
                ("ImageScanInProgress", "Image scan in progress"),
                RUNNING,
            ),
            (
                Phase::Complete,
                "Complete",
                ("AllImagesScanned", "All images scanned successfully"),
                DONE,
            ),
            (
                Phase::NoImages,
                "Complete",
                ("NoImagesToScan", "No images to process"),
                DONE,
            ),
            (
                failed,
                "Failed",
                (
                    "InternalError",
                    "Failed to create catalog: registry connection timeout",
                ),
                ("Failed", "ScanJob failed"),
            ),
        ] {
            let conditions = phase.conditions(&Value::Null, 1, "now");
            let expected = ["Scheduled", "InProgress", "Complete", "Failed"].map(|kind| {
                let (status, (reason, message)) = match kind == holds {
                    true => ("True", own),
                    false => ("False", others),
                };
                json!({
                    "type": kind, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": "now", "observedGeneration": 1,
                })
            });
            assert_eq!(conditions, json!(expected));
        }
        let counts = counts(&Facts::default());
        assert_eq!(counts["imagesCount"], 0);
        assert_eq!(counts["scannedImagesCount"], 0);
    }

    #[test]
    fn times_move_only_with_their_condition() {
        let first = Phase::Catalog.conditions(&Value::Null, 1, "one");
        let second = Phase::Bills.conditions(&first, 1, "two");
        let third = Phase::Complete.conditions(&second, 1, "three");
        let times = |conditions: &Value| -> Vec<String> {
            let list = conditions.as_array().unwrap().iter();
            list.map(|c| c["lastTransitionTime"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(times(&second), ["one", "one", "one", "one"]);
        assert_eq!(times(&third), ["one", "three", "three", "one"]);
    }
}
