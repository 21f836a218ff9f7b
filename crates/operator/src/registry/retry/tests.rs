use super::super::plan::{Start, Why, plan};
use super::super::status::{Probe, spell, status};
use super::*;
use crate::progress::laid_over;
use kube::api::DynamicObject;
use serde_json::json;

const CREATED: &str = "2026-01-01T12:00:00Z";
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn minutes(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

/// A Registry of this generation with this status.
fn object(generation: i64, status: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Registry",
        "metadata": {
            "name": "hub", "uid": "uid", "generation": generation, "creationTimestamp": CREATED,
            "labels": {"sbomscanner.kubewarden.io/workloadscan": "true"},
        },
        "spec": {"uri": "r.test", "scanInterval": "24h"}, "status": status,
    }))
    .unwrap()
}

/// A full scan of the first generation.
fn scan(ended: Timestamp, outcome: Outcome, scanned: u64) -> Run {
    let kind = match outcome {
        Outcome::Succeeded => "Complete",
        _ => "Failed",
    };
    Run {
        kind: JobKind::ScanJob,
        name: format!("job-{ended}"),
        full: true,
        created: ended,
        ended: Some(ended),
        outcome: Some(outcome),
        generation: Some(1),
        status: json!({
            "completionTime": spell(ended), "imagesCount": 40, "scannedImagesCount": scanned,
            "conditions": [{"type": kind, "status": "True", "message": "it ended"}],
        }),
    }
}

#[test]
fn the_pause_follows_from_how_the_last_scan_ended_and_what_changed_since() {
    let ended = at("2026-01-02T00:00:00Z");
    let later = ended + minutes(5);
    let failing = |ago: i64| json!({"type": "UpToDate", "status": "False", "lastTransitionTime": spell(ended - minutes(ago))});
    let reachable = |status: &str, since| json!({"type": "Reachable", "status": status, "lastTransitionTime": spell(since)});
    let (failed, fine) = (Outcome::Failed, Outcome::Succeeded);
    let up = json!({"type": "UpToDate", "status": "True", "lastTransitionTime": CREATED});
    for (what, outcome, scanned, conditions, generation, written, expected) in [
        ("success", fine, 40, vec![up.clone()], 2, Some(later), DAY),
        ("first failure", failed, 0, vec![up], 1, None, minutes(1)),
        (
            "nothing is noted yet",
            failed,
            0,
            vec![],
            1,
            None,
            minutes(1),
        ),
        (
            "second failure",
            failed,
            0,
            vec![failing(1)],
            1,
            None,
            minutes(1),
        ),
        (
            "third failure",
            failed,
            0,
            vec![failing(7)],
            1,
            None,
            minutes(7),
        ),
        (
            "a long outage",
            failed,
            0,
            vec![failing(600)],
            1,
            None,
            minutes(60),
        ),
        // Most of such a scan is done again each time.
        (
            "some images failed",
            failed,
            39,
            vec![failing(600)],
            1,
            None,
            minutes(600),
        ),
        (
            "some images fail for long",
            failed,
            39,
            vec![failing(9000)],
            1,
            None,
            DAY,
        ),
        (
            "a clock that was wrong",
            failed,
            0,
            vec![failing(-600)],
            1,
            None,
            minutes(1),
        ),
        (
            "away",
            failed,
            0,
            vec![failing(600), reachable("False", later)],
            1,
            None,
            minutes(60),
        ),
        (
            "back",
            failed,
            0,
            vec![failing(600), reachable("True", later)],
            1,
            None,
            minutes(1),
        ),
        (
            "never away",
            failed,
            0,
            vec![failing(600), reachable("True", at(CREATED))],
            1,
            None,
            minutes(60),
        ),
        (
            "another spec",
            failed,
            0,
            vec![failing(600)],
            2,
            None,
            minutes(1),
        ),
        (
            "another Secret",
            failed,
            0,
            vec![failing(600)],
            1,
            Some(later),
            minutes(1),
        ),
        (
            "the Secret of then",
            failed,
            0,
            vec![failing(600)],
            1,
            Some(at(CREATED)),
            minutes(60),
        ),
    ] {
        let object = object(generation, json!({"conditions": conditions}));
        let mut registry = Registry::read(&object);
        registry.secret_written = written;
        let runs = [scan(ended, outcome, scanned)];
        let last = Last::of(&registry, &runs).unwrap();
        assert_eq!(last.pause(&registry, DAY), expected, "{what}");
    }
}

#[test]
fn an_interval_below_a_pause_is_kept() {
    let object = object(1, Value::Null);
    let registry = Registry::read(&object);
    let runs = [scan(at(CREATED), Outcome::Failed, 0)];
    let last = Last::of(&registry, &runs).unwrap();
    let second = SignedDuration::from_secs(1);
    assert_eq!(last.pause(&registry, second), second);
}

#[test]
fn a_scan_whose_job_is_gone_is_remembered() {
    let ended = at("2026-01-02T00:00:00Z");
    let noted = |result: &str, end: Timestamp| json!({"lastScan": {"completionTime": spell(end), "result": result, "scannedImagesCount": 0}});
    for (status, runs, failed) in [
        (noted("Failed", ended), vec![], true),
        (noted("Succeeded", ended), vec![], false),
        (
            noted("Failed", ended),
            vec![scan(ended + minutes(1), Outcome::Succeeded, 40)],
            false,
        ),
        (
            noted("Succeeded", ended),
            vec![scan(ended + minutes(1), Outcome::Failed, 0)],
            true,
        ),
        (
            noted("Failed", ended),
            vec![scan(ended - minutes(1), Outcome::Succeeded, 40)],
            true,
        ),
    ] {
        let object = object(1, status.clone());
        let last = Last::of(&Registry::read(&object), &runs)
            .unwrap()
            .has_failed;
        assert_eq!(last, failed, "{status}");
    }
    let never = object(1, Value::Null);
    assert!(Last::of(&Registry::read(&never), &[]).is_none());
}

/// A clock that a test moves: a registry that is away for hours is tried again ever more rarely, the status
/// says when, and the first scan after its return is at once.
#[test]
fn a_registry_that_is_away_is_scanned_when_its_status_says_so_and_at_once_when_it_is_back() {
    let probe = |reachable| Probe {
        reachable,
        reason: if reachable { "Answered" } else { "Unreachable" },
        message: String::new(),
    };
    let mut now = at(CREATED);
    let mut known = json!({});
    let mut runs = vec![];
    let mut pauses = vec![];
    let mut names = std::collections::BTreeSet::new();
    while now < at(CREATED) + SignedDuration::from_hours(8) {
        // A scan fails, and its job is forgotten.
        runs.clear();
        runs.push(scan(now, Outcome::Failed, 0));
        let mut next = None;
        for _ in 0..2 {
            let object = object(1, known.clone());
            let registry = Registry::read(&object);
            let planned = plan(&registry, &runs, now);
            assert_eq!(planned.start, None, "{now}");
            known = laid_over(
                &known,
                &status(&registry, &runs, &planned, Some(&probe(false)), now),
            );
            next = planned.next_scan;
        }
        let next = next.unwrap();
        assert_eq!(known["nextScanTime"], spell(next));
        pauses.push(next.duration_since(now).as_mins());
        now = next;
        let object = object(1, known.clone());
        let start = plan(&Registry::read(&object), &runs, now).start;
        let Some(Start::Scan {
            why: Why::Retry { at },
            ..
        }) = start
        else {
            panic!("{start:?}");
        };
        assert!(names.insert(at), "two jobs would have one name");
    }
    assert!(pauses.is_sorted() && pauses.len() < 20, "{pauses:?}");
    assert_eq!(
        (pauses.first(), pauses.last()),
        (Some(&1), Some(&60)),
        "{pauses:?}"
    );

    // The last scan failed just now.
    runs = vec![scan(now, Outcome::Failed, 0)];
    let back = now + minutes(2);
    let away = object(1, known.clone());
    let registry = Registry::read(&away);
    let planned = plan(&registry, &runs, back);
    assert_eq!(planned.start, None);
    known = laid_over(
        &known,
        &status(&registry, &runs, &planned, Some(&probe(true)), back),
    );
    let object = object(1, known);
    let start = plan(&Registry::read(&object), &runs, back).start;
    assert!(
        matches!(
            start,
            Some(Start::Scan {
                why: Why::Retry { .. },
                ..
            })
        ),
        "{start:?}"
    );
}
