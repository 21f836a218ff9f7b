//! What of a change of status people care about: told once for every transition, because it is read
//! from the status as it was and as it is. Pure: who hears of it, and how, is decided elsewhere.

use crate::message::JobKind;
use serde_json::Value;

/// Something worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    /// Whether it calls for somebody.
    pub(crate) is_bad: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl News {
    pub(crate) fn good(reason: &'static str, message: impl Into<String>) -> Self {
        News {
            is_bad: false,
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn bad(reason: &'static str, message: impl Into<String>) -> Self {
        News {
            is_bad: true,
            ..News::good(reason, message)
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) reason: String,
    pub(crate) failure: Option<String>,
}

/// What a job's status says that it did not say before.
pub(crate) fn of_job(kind: JobKind, before: &Value, after: &Value) -> Option<News> {
    match kind {
        JobKind::ScanJob => of_scan(before, after),
        JobKind::RegistryDiscovery => of_discovery(before, after),
    }
}

/// How a job has just ended; none if it goes on, or ended before.
pub(crate) fn end_of_job(kind: JobKind, before: &Value, after: &Value) -> Option<End> {
    let end = match kind {
        JobKind::ScanJob => scan_end,
        JobKind::RegistryDiscovery => discovery_end,
    };
    match end(before) {
        Some(_) => None,
        None => end(after),
    }
}

fn scan_end(status: &Value) -> Option<End> {
    let (kind, reason, message) = holding(status)?;
    let failure = match kind {
        "Complete" => None,
        "Failed" => Some(message.to_owned()),
        _ => return None,
    };
    let reason = reason.to_owned();
    Some(End { reason, failure })
}

fn discovery_end(status: &Value) -> Option<End> {
    let last = &status["conditions"][1];
    let said = |field: &str| last[field].as_str().unwrap_or_default().to_owned();
    let (reason, failure) = match status["currentStatus"].as_str()? {
        "Succeeded" if status["completedAt"].is_string() => (said("reason"), None),
        "FailStopped" => (said("reason"), Some(said("message"))),
        "Cancel" => ("DiscoveryCanceled".to_owned(), None),
        _ => return None,
    };
    Some(End { reason, failure })
}

/// The condition of a ScanJob that holds: its type, reason and message.
fn holding(status: &Value) -> Option<(&str, &str, &str)> {
    let mut conditions = status["conditions"].as_array()?.iter();
    let holding = conditions.find(|condition| condition["status"] == "True")?;
    let said = |field: &str| holding[field].as_str().unwrap_or_default();
    Some((said("type"), said("reason"), said("message")))
}

fn of_scan(before: &Value, after: &Value) -> Option<News> {
    let has_begun = |status: &Value| status["startTime"].is_string();
    if has_begun(after) && !has_begun(before) {
        return Some(News::good("Started", "The scan has begun"));
    }
    let (was, is) = (holding(before), holding(after)?);
    let had = was.map(|(kind, _, _)| kind);
    let (kind, reason, message) = is;
    let count = |field: &str| after[field].as_u64().unwrap_or_default();
    match kind {
        "Scheduled" => {
            let waits = message.contains("it waits for") && was != Some(is);
            waits.then(|| News::good("Waiting", message))
        }
        _ if had == Some(kind) => None,
        "Complete" if reason == "NoImagesToScan" => Some(News::good("Complete", message)),
        "Complete" => Some(News::good(
            "Complete",
            format!(
                "{message}: {} of {}, of which {} had to be read and {} matched",
                count("scannedImagesCount"),
                count("imagesCount"),
                count("readImagesCount"),
                count("matchedImagesCount"),
            ),
        )),
        "Failed" => Some(News::bad("Failed", format!("{reason}: {message}"))),
        _ => None,
    }
}

fn of_discovery(before: &Value, after: &Value) -> Option<News> {
    let (was, is) = (&before["currentStatus"], &after["currentStatus"]);
    let last = &after["conditions"][1];
    let said = |field: &str| last[field].as_str().unwrap_or_default();
    let count = |field: &str| after[field].as_u64().unwrap_or_default();
    let is_complete = |status: &Value| status["completedAt"].is_string();
    match is.as_str()? {
        "Pending" => {
            let waits = said("message").contains("until") && last != &before["conditions"][1];
            waits.then(|| News::good("Waiting", said("message")))
        }
        "Succeeded" if is_complete(after) && !is_complete(before) => Some(News::good(
            "Complete",
            format!(
                "{} of {} images have their SBOM",
                count("sbomsCount"),
                count("imagesCount")
            ),
        )),
        _ if was == is => None,
        "Running" => Some(News::good("Started", "The discovery has begun")),
        "Succeeded" => Some(News::good(
            "Discovered",
            format!("{} images found", count("imagesCount")),
        )),
        "Cancel" => Some(News::good("Canceled", said("message"))),
        "FailStopped" => {
            let why = format!("{}: {}", said("reason"), said("message"));
            Some(News::bad("Failed", why))
        }
        _ => None,
    }
}

/// A condition of a status.
fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut found = conditions.filter(|condition| condition["type"] == kind);
    found.next().unwrap_or(&Value::Null)
}

/// What a Registry's status says that it did not say before.
pub(crate) fn of_registry(before: &Value, after: &Value) -> Option<News> {
    let (was, is) = (
        condition(before, "Reachable"),
        condition(after, "Reachable"),
    );
    let message = is["message"].as_str().unwrap_or_default();
    match (was["status"].as_str(), is["status"].as_str()?) {
        (Some("False"), "True") => Some(News::good("Reachable", message)),
        (was, "False") if was != Some("False") => Some(News::bad("Unreachable", message)),
        _ => None,
    }
}

/// What a VEXHub's status says that it did not say before.
pub(crate) fn of_hub(before: &Value, after: &Value) -> Option<News> {
    let (was, is) = (condition(before, "Ready"), condition(after, "Ready"));
    let message = is["message"].as_str().unwrap_or_default();
    match (was["reason"].as_str(), is["reason"].as_str()?) {
        (Some("FetchFailed"), "Fetched") => Some(News::good("Fetched", message)),
        (was, "FetchFailed") if was != Some("FetchFailed") => {
            Some(News::bad("FetchFailed", message))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{discovery, job};
    use serde_json::json;

    fn scan(phase: &job::Phase) -> Value {
        let mut status = job::counts(&job::Facts {
            images: Some(3),
            scanned: 3,
            read: 2,
            matched: 1,
            ..job::Facts::default()
        });
        status["conditions"] = phase.conditions(&Value::Null, 1, "now");
        status
    }

    #[test]
    fn a_scan_is_told_of_once_for_every_step() {
        let (none, waiting) = (Value::Null, job::Phase::Waiting("ScanJob a/b".into()));
        let other = job::Phase::Waiting("ScanJob a/c".into());
        let failed = job::Phase::Failed {
            reason: "InternalError",
            message: "1 of 3 images".into(),
        };
        let told = |before: &Value, after: &job::Phase| {
            let after = scan(after);
            let news = of_job(JobKind::ScanJob, before, &after);
            let end = end_of_job(JobKind::ScanJob, before, &after);
            (news.map(|news| (news.reason, news.is_bad)), end)
        };
        let ended = |reason: &str, failure: Option<&str>| {
            let (reason, failure) = (reason.to_owned(), failure.map(str::to_owned));
            Some(End { reason, failure })
        };
        use job::Phase::{Bills, Catalog, Complete, NoImages, Scanning, Scheduled};
        for (before, after, news, end) in [
            (none.clone(), &Scheduled, None, None),
            (none.clone(), &waiting, Some(("Waiting", false)), None),
            (scan(&waiting), &waiting, None, None),
            (scan(&waiting), &other, Some(("Waiting", false)), None),
            (scan(&waiting), &Scheduled, None, None),
            (scan(&Scheduled), &Catalog, None, None),
            (scan(&Catalog), &Bills, None, None),
            (scan(&Bills), &Scanning, None, None),
            (
                scan(&Scanning),
                &Complete,
                Some(("Complete", false)),
                ended("AllImagesScanned", None),
            ),
            (
                none.clone(),
                &NoImages,
                Some(("Complete", false)),
                ended("NoImagesToScan", None),
            ),
            (scan(&Complete), &Complete, None, None),
            (
                scan(&Bills),
                &failed,
                Some(("Failed", true)),
                ended("InternalError", Some("1 of 3 images")),
            ),
            (scan(&failed), &failed, None, None),
        ] {
            assert_eq!(told(&before, after), (news, end), "{before} {after:?}");
        }
        // A scan may be over before anybody has seen it at work.
        let begun = json!({"startTime": "now"});
        let started = of_scan(&Value::Null, &begun).unwrap();
        assert_eq!(started.reason, "Started");
        assert_eq!(of_scan(&begun, &begun), None);
        let complete = of_scan(&Value::Null, &scan(&Complete)).unwrap();
        assert!(complete.message.contains("3 of 3"), "{complete:?}");
        assert!(complete.message.contains("2 had to be read and 1 matched"));
    }

    #[test]
    fn a_discovery_is_told_of_once_for_every_step() {
        use discovery::{Facts, Phase};
        let status = |phase: &Phase| {
            let facts = Facts {
                images: Some(2),
                bills: 2,
                ..Facts::default()
            };
            phase.status(&facts, &Value::Null, 1, "now")
        };
        let pending = Phase::Pending { waits_for: None };
        let waiting = Phase::Pending {
            waits_for: Some("ScanJob a/b".into()),
        };
        let (found, done) = (
            Phase::Succeeded { done: false },
            Phase::Succeeded { done: true },
        );
        let failed = Phase::Failed { why: "no".into() };
        let refused = Phase::Refused { why: "no".into() };
        for (before, after, news, end) in [
            (None, &pending, None, None),
            (Some(&pending), &waiting, Some("Waiting"), None),
            (Some(&waiting), &waiting, None, None),
            (Some(&waiting), &Phase::Running, Some("Started"), None),
            (Some(&Phase::Running), &Phase::Running, None, None),
            (Some(&Phase::Running), &found, Some("Discovered"), None),
            (Some(&found), &found, None, None),
            (
                Some(&found),
                &done,
                Some("Complete"),
                Some("DiscoveryFinished"),
            ),
            (Some(&done), &done, None, None),
            (
                Some(&Phase::Running),
                &Phase::Canceled,
                Some("Canceled"),
                Some("DiscoveryCanceled"),
            ),
            (
                Some(&Phase::Running),
                &failed,
                Some("Failed"),
                Some("DiscoveryFailed"),
            ),
            (
                None,
                &refused,
                Some("Failed"),
                Some("FailedToRequestDiscovery"),
            ),
        ] {
            let before = before.map(status).unwrap_or_default();
            let (kind, after) = (JobKind::RegistryDiscovery, status(after));
            let told = of_job(kind, &before, &after);
            assert_eq!(told.map(|told| told.reason), news, "{before} {after}");
            let ended = end_of_job(kind, &before, &after).map(|end| end.reason);
            assert_eq!(ended.as_deref(), end, "{before} {after}");
        }
    }

    #[test]
    fn a_registry_and_a_hub_are_told_of_when_they_fail_and_when_they_are_back() {
        let registry = |status: &str| {
            json!({"conditions": [
                {"type": "UpToDate", "status": "Unknown"},
                {"type": "Reachable", "status": status, "message": "so it is"},
            ]})
        };
        let told = |before: Value, after: &str| {
            of_registry(&before, &registry(after)).map(|news| (news.reason, news.is_bad))
        };
        assert_eq!(told(Value::Null, "True"), None);
        assert_eq!(told(Value::Null, "False"), Some(("Unreachable", true)));
        assert_eq!(told(registry("True"), "False"), Some(("Unreachable", true)));
        assert_eq!(told(registry("False"), "False"), None);
        assert_eq!(told(registry("False"), "True"), Some(("Reachable", false)));
        assert_eq!(told(registry("True"), "True"), None);
        let hub = |reason: &str| json!({"conditions": [{"type": "Ready", "reason": reason}]});
        let told = |before: Value, after: &str| {
            of_hub(&before, &hub(after)).map(|news| (news.reason, news.is_bad))
        };
        assert_eq!(told(Value::Null, "Fetched"), None);
        assert_eq!(
            told(hub("Fetched"), "FetchFailed"),
            Some(("FetchFailed", true))
        );
        assert_eq!(told(hub("FetchFailed"), "FetchFailed"), None);
        assert_eq!(
            told(hub("FetchFailed"), "Fetched"),
            Some(("Fetched", false))
        );
        assert_eq!(told(hub("FetchFailed"), "Disabled"), None);
    }
}
