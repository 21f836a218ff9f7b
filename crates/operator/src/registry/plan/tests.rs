use super::*;
use kube::api::ApiResource;
use serde_json::json;

const CREATED: &str = "2026-01-01T12:00:00Z";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn object(spec: Value, status: Value) -> DynamicObject {
    let resource = ApiResource {
        group: String::new(),
        version: String::new(),
        api_version: String::new(),
        kind: String::new(),
        plural: String::new(),
    };
    let mut object = DynamicObject::new("hub", &resource);
    object.metadata = serde_json::from_value(json!({
        "name": "hub", "uid": "uid", "generation": 1, "creationTimestamp": CREATED,
    }))
    .unwrap();
    object.data = json!({"spec": spec, "status": status});
    object
}

fn run(kind: JobKind, full: bool, created: &str, ended: Option<&str>) -> Run {
    Run {
        kind,
        name: format!("job-{created}"),
        full,
        created: time(created),
        ended: ended.map(time),
        outcome: ended.map(|_| Outcome::Succeeded),
        generation: None,
        status: Value::Null,
    }
}

/// A spec that starts nothing by itself.
fn quiet() -> Value {
    json!({"uri": "r", "discoveryJob": {"suspend": true}})
}

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

fn covered(spec: &Value) -> Value {
    json!({"covered": growth::parts(spec)})
}

fn started(object: &DynamicObject, runs: &[Run], now: &str) -> Option<Start> {
    plan(&Registry::read(object), runs, time(now)).start
}

fn grown(generation: i64, targets: Targets) -> Option<Start> {
    let why = Why::Grown { generation };
    Some(Start::Scan { why, targets })
}

#[test]
fn a_new_registry_is_scanned_once() {
    let new = object(quiet(), Value::Null);
    let scan = |ended| run(JobKind::ScanJob, true, CREATED, ended);
    let late = "2026-01-01T12:00:05Z";
    assert_eq!(
        started(&new, &[], "2026-01-01T12:00:01Z"),
        None,
        "its first job may follow"
    );
    let early = plan(&Registry::read(&new), &[], time("2026-01-01T12:00:01Z"));
    assert_eq!(early.wake, Some(time("2026-01-01T12:00:03Z")));
    assert_eq!(started(&new, &[], late), grown(1, Targets::All));
    let busy = plan(&Registry::read(&new), &[scan(None)], time(late));
    assert_eq!(
        (busy.start, busy.covered),
        (None, Some(growth::parts(&quiet())))
    );
    let targeted = run(JobKind::ScanJob, false, CREATED, Some(late));
    assert_eq!(started(&new, &[targeted], late), grown(1, Targets::All));
    let unwanted = object(with(quiet(), "scanOnChange", json!(false)), Value::Null);
    let plan = plan(&Registry::read(&unwanted), &[], time(late));
    assert_eq!(plan.start, None);
    assert!(
        plan.covered.is_some(),
        "what is there when it is wanted again is not new"
    );
    let mut managed = object(quiet(), Value::Null);
    managed
        .labels_mut()
        .insert(guard::MANAGED_BY.into(), guard::MANAGER.into());
    assert_eq!(started(&managed, &[], late), None);
}

#[test]
fn a_registry_that_grew_is_scanned_for_what_is_new() {
    let before = with(quiet(), "repositories", json!([{"name": "a"}]));
    let after = with(
        quiet(),
        "repositories",
        json!([{"name": "a"}, {"name": "b"}]),
    );
    let mut registry = object(after.clone(), covered(&before));
    registry.metadata.generation = Some(2);
    let b = Targets::repository("b".into(), []);
    let (scan, now) = (JobKind::ScanJob, "2026-01-02T00:00:00Z");
    assert_eq!(started(&registry, &[], now), grown(2, b.clone()));
    assert_eq!(
        started(&registry, &[run(scan, true, CREATED, None)], now),
        None,
        "another runs"
    );
    assert_eq!(
        started(&registry, &[run(scan, true, CREATED, Some(CREATED))], now),
        grown(2, b)
    );
    let shrunk = object(before.clone(), covered(&after));
    let plan = plan(&Registry::read(&shrunk), &[], time(now));
    assert_eq!(
        (plan.start, plan.covered),
        (None, Some(growth::parts(&before)))
    );
}

#[test]
fn a_request_is_answered_when_nothing_runs() {
    let mut registry = object(quiet(), covered(&quiet()));
    let a = r#"{"repositories":[{"name":"a"}]}"#;
    let b = r#"{"repositories":[{"name":"b"}]}"#;
    registry.annotations_mut().insert(REQUEST.into(), a.into());
    registry
        .annotations_mut()
        .insert(format!("{REQUEST}-1"), b.into());
    registry
        .annotations_mut()
        .insert(format!("{REQUEST}ed"), b.into());
    let now = "2026-01-02T00:00:00Z";
    let both = Targets::parse(a).unite(Targets::parse(b));
    let requests = BTreeMap::from([
        (REQUEST.to_owned(), a.to_owned()),
        (format!("{REQUEST}-1"), b.to_owned()),
    ]);
    let scan = |targets| {
        let why = Why::Requested(requests.clone());
        Some(Start::Scan { why, targets })
    };
    assert_eq!(started(&registry, &[], now), scan(both));
    for kind in [JobKind::ScanJob, JobKind::RegistryDiscovery] {
        assert_eq!(
            started(&registry, &[run(kind, true, CREATED, None)], now),
            None,
            "{kind:?}"
        );
    }
}

#[test]
fn an_interval_begins_with_the_end_of_the_last_whole_scan() {
    let spec = with(json!({"uri": "r"}), "scanInterval", json!("1h"));
    let registry = object(spec.clone(), covered(&spec));
    let scan = |full, ended| run(JobKind::ScanJob, full, CREATED, Some(ended));
    let discovery = run(
        JobKind::RegistryDiscovery,
        true,
        CREATED,
        Some("2026-01-01T15:30:00Z"),
    );
    let runs = [
        scan(true, "2026-01-01T14:00:00Z"),
        scan(false, "2026-01-01T15:50:00Z"),
        discovery,
    ];
    let due = schedule::scan_due(
        time("2026-01-01T14:00:00Z"),
        SignedDuration::from_hours(1),
        "uid",
    );
    let early = plan(
        &Registry::read(&registry),
        &runs,
        time("2026-01-01T14:59:00Z"),
    );
    assert_eq!(
        (early.start, early.next_scan, early.wake),
        (None, Some(due), Some(due))
    );
    let why = Why::Due { at: due };
    let start = Some(Start::Scan {
        why,
        targets: Targets::All,
    });
    assert_eq!(started(&registry, &runs, "2026-01-01T16:00:00Z"), start);
    let busy = run(JobKind::RegistryDiscovery, true, CREATED, None);
    assert_eq!(started(&registry, &[busy], "2026-01-01T16:00:00Z"), None);

    // A scan that is remembered counts, even if its job is forgotten.
    let mut status = covered(&spec);
    status["lastScan"] = json!({"completionTime": "2026-01-01T15:30:00Z"});
    assert_eq!(
        started(&object(spec.clone(), status), &runs, "2026-01-01T16:00:00Z"),
        None
    );

    // Never scanned, it is due at once.
    let first = plan(
        &Registry::read(&registry),
        &[],
        time("2026-01-01T12:05:00Z"),
    );
    assert!(
        matches!(
            first.start,
            Some(Start::Scan {
                why: Why::Due { .. },
                ..
            })
        ),
        "{first:?}"
    );
}

#[test]
fn a_discovery_is_due_when_its_time_has_come_since_the_last() {
    let spec = json!({"uri": "r"});
    let scheduled = |last: Option<&str>| {
        let mut status = covered(&spec);
        status["lastScheduledTime"] = json!(last);
        object(spec.clone(), status)
    };
    let calendar = Calendar::of(&spec, "uid", false).unwrap();
    let next = calendar.next(time(CREATED)).unwrap();
    let check = Calendar::noticed(next);
    let at = |time: Timestamp| {
        let registry = scheduled(None);
        plan(&Registry::read(&registry), &[], time)
    };
    let before = at(time("2026-01-01T23:59:59Z"));
    assert_eq!(
        (before.start, before.next_discovery, before.wake),
        (None, Some(check), Some(check))
    );
    let due = Some(Start::Discovery { check });
    assert_eq!(at(check).start, due);
    assert_eq!(
        at(check + SignedDuration::from_mins(14)).start,
        due,
        "one name for one check"
    );
    let done = scheduled(Some(&check.to_string()));
    assert_eq!(started(&done, &[], &check.to_string()), None);
    // Days that were missed are made up for once.
    let late = started(&done, &[], "2026-01-09T12:10:00Z");
    assert_eq!(
        late,
        Some(Start::Discovery {
            check: time("2026-01-09T12:00:00Z")
        })
    );
    let busy = run(JobKind::ScanJob, true, CREATED, None);
    assert_eq!(started(&scheduled(None), &[busy], &check.to_string()), None);
}

#[test]
fn old_discoveries_are_forgotten_each_kind_for_itself() {
    let discovery = |name: &str, hour: i8, outcome| Run {
        name: name.into(),
        outcome,
        ..run(
            JobKind::RegistryDiscovery,
            true,
            CREATED,
            Some(&format!("2026-01-01T{hour}:00:00Z")),
        )
    };
    let (good, bad, off) = (
        Some(Outcome::Succeeded),
        Some(Outcome::Failed),
        Some(Outcome::Canceled),
    );
    let runs = [
        discovery("good-1", 13, good),
        discovery("good-2", 14, good),
        discovery("bad-1", 13, bad),
        discovery("off-2", 14, off),
        discovery("bad-3", 15, bad),
        discovery("running", 12, None),
        run(JobKind::ScanJob, true, CREATED, Some(CREATED)),
    ];
    let limits = |good: i64, bad: i64| {
        let job = json!({"successfulJobsHistoryLimit": good, "failedJobsHistoryLimit": bad});
        with(quiet(), "discoveryJob", job)
    };
    for (spec, forgotten) in [
        (quiet(), &["good-1", "bad-1"][..]),
        (
            limits(0, 0),
            &["good-2", "good-1", "bad-3", "off-2", "bad-1"],
        ),
        (limits(2, 3), &[]),
    ] {
        let registry = object(spec.clone(), covered(&spec));
        let plan = plan(&Registry::read(&registry), &runs, time(CREATED));
        assert_eq!(plan.forget, forgotten, "{spec}");
    }
}
