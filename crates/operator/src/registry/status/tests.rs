use super::*;
use kube::api::{ApiResource, DynamicObject};

fn object(status: Value) -> DynamicObject {
    let resource = ApiResource {
        group: String::new(),
        version: String::new(),
        api_version: String::new(),
        kind: String::new(),
        plural: String::new(),
    };
    let mut object = DynamicObject::new("hub", &resource);
    object.metadata.generation = Some(3);
    object.data = json!({"spec": {"uri": "r"}, "status": status});
    object
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn scan(name: &str, end: &str, failed: bool, full: bool) -> Run {
    let kind = if failed { "Failed" } else { "Complete" };
    Run {
        kind: JobKind::ScanJob,
        name: name.into(),
        full,
        created: time("2026-01-01T00:00:00Z"),
        ended: Some(time(end)),
        outcome: Some(if failed {
            Outcome::Failed
        } else {
            Outcome::Succeeded
        }),
        generation: None,
        status: json!({
            "conditions": [{"type": kind, "status": "True", "message": format!("{name} said so")}],
            "completionTime": end, "imagesCount": 2, "scannedImagesCount": 1,
        }),
    }
}

#[test]
fn the_status_tells_the_last_whole_scan() {
    let empty = object(Value::Null);
    let now = time("2026-01-02T00:00:00Z");
    let tell = |object: &DynamicObject, runs: &[Run]| {
        status(&Registry::read(object), runs, &Plan::default(), None, now)
    };
    let never = tell(&empty, &[]);
    assert_eq!(never["conditions"][0]["reason"], "NeverScanned");
    assert_eq!(never["lastScan"], Value::Null);
    let runs = [
        scan("one", "2026-01-01T10:00:00Z", false, true),
        scan("two", "2026-01-01T11:00:00Z", true, true),
        scan("part", "2026-01-01T12:00:00Z", false, false),
    ];
    let told = tell(&empty, &runs);
    let condition = &told["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"]),
        (&json!("UpToDate"), &json!("False"))
    );
    assert_eq!(
        (&condition["reason"], &condition["message"]),
        (&json!("ScanFailed"), &json!("two said so"))
    );
    assert_eq!(told["lastScan"]["name"], "two");
    assert_eq!(told["lastScan"]["result"], "Failed");
    assert_eq!(told["imagesCount"], 2);
    // Jobs go, what they found out stays.
    assert_eq!(
        tell(&object(told.clone()), &[])["lastScan"],
        told["lastScan"]
    );
    let good = tell(
        &object(told),
        &[scan("three", "2026-01-01T13:00:00Z", false, true)],
    );
    assert_eq!(good["lastScan"]["name"], "three");
    assert_eq!(good["conditions"][0]["status"], "True");
}

#[test]
fn a_registry_is_asked_when_the_answer_may_have_changed() {
    let asked = |generation: i64| {
        object(json!({
            "conditions": [{"type": "Reachable", "observedGeneration": generation}],
            "lastProbeTime": "2026-01-01T10:00:00Z",
        }))
    };
    let ended = |end| [scan("job", end, false, true)];
    for (object, runs, now, due, case) in [
        (
            object(Value::Null),
            &[][..],
            "2026-01-01T10:00:00Z",
            true,
            "it never was",
        ),
        (asked(3), &[], "2026-01-01T10:09:00Z", false, "it just was"),
        (
            asked(2),
            &[],
            "2026-01-01T10:09:00Z",
            true,
            "its spec is another",
        ),
        (
            asked(3),
            &[],
            "2026-01-01T10:10:00Z",
            true,
            "it was long ago",
        ),
        (
            asked(3),
            &ended("2026-01-01T10:01:00Z"),
            "2026-01-01T10:02:00Z",
            true,
            "a job ended since",
        ),
        (
            asked(3),
            &ended("2026-01-01T09:59:00Z"),
            "2026-01-01T10:02:00Z",
            false,
            "a job ended before",
        ),
    ] {
        assert_eq!(
            is_due(
                &Registry::read(&object),
                runs,
                Timestamp::UNIX_EPOCH,
                time(now)
            ),
            due,
            "{case}"
        );
    }
}

#[test]
fn a_registry_that_is_away_is_asked_more_often_and_when_a_process_begins() {
    let (before, after) = ("2026-01-01T09:00:00Z", "2026-01-01T10:00:10Z");
    for (status, reason, began, now, due) in [
        (
            "False",
            "Unreachable",
            before,
            "2026-01-01T10:00:59Z",
            false,
        ),
        ("False", "Unreachable", before, "2026-01-01T10:01:00Z", true),
        ("False", "TimedOut", before, "2026-01-01T10:01:00Z", true),
        // Asking these often could lock an account, or changes nothing.
        (
            "False",
            "Unauthorized",
            before,
            "2026-01-01T10:09:00Z",
            false,
        ),
        ("False", "Untrusted", before, "2026-01-01T10:09:00Z", false),
        ("True", "Answered", before, "2026-01-01T10:09:00Z", false),
        ("False", "Untrusted", after, "2026-01-01T10:00:11Z", true),
        ("True", "Answered", after, "2026-01-01T10:00:11Z", false),
    ] {
        let object = object(json!({
            "conditions": [{
                "type": "Reachable", "status": status, "reason": reason, "observedGeneration": 3,
            }],
            "lastProbeTime": "2026-01-01T10:00:00Z",
        }));
        let asked = is_due(&Registry::read(&object), &[], time(began), time(now));
        assert_eq!(asked, due, "{reason} {began} {now}");
    }
}

#[test]
fn a_registry_that_fails_is_looked_at_more_often() {
    let usual = Duration::from_secs(300);
    let conditions = |states: &[&str]| {
        let conditions = states.iter().map(|state| json!({"status": state}));
        json!({"conditions": conditions.collect::<Vec<_>>()})
    };
    for (states, expected) in [
        (&[][..], 300),
        (&["True", "Unknown"], 300),
        (&["True", "False"], 60),
        (&["False"], 60),
    ] {
        assert_eq!(
            look_after(&conditions(states), usual).as_secs(),
            expected,
            "{states:?}"
        );
    }
}

#[test]
fn the_status_tells_whether_the_registry_answers() {
    let now = time("2026-01-02T00:00:00Z");
    let probe = |reachable| Probe {
        reachable,
        reason: "Said",
        message: "so".into(),
    };
    let tell = |object: &DynamicObject, probe: Option<&Probe>, now| {
        status(&Registry::read(object), &[], &Plan::default(), probe, now)
    };
    let bad = tell(&object(Value::Null), Some(&probe(false)), now);
    assert_eq!(bad["conditions"][0]["type"], "Reachable");
    assert_eq!(bad["conditions"][0]["status"], "False");
    assert_eq!(bad["lastProbeTime"], "2026-01-02T00:00:00Z");
    let later = time("2026-01-02T01:00:00Z");
    let same = tell(&object(bad.clone()), None, later);
    assert_eq!(same["conditions"], bad["conditions"]);
    let good = tell(&object(bad), Some(&probe(true)), later);
    assert_eq!(good["conditions"][0]["status"], "True");
    assert_eq!(
        good["conditions"][0]["lastTransitionTime"],
        "2026-01-02T01:00:00Z"
    );
}
