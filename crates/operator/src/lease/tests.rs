use super::*;

fn holder(kind: JobKind, name: &str, uid: &str) -> Holder {
    Holder {
        kind,
        namespace: "default".into(),
        name: name.into(),
        uid: uid.into(),
    }
}

#[test]
fn a_claim_is_worth_what_its_holder_is_worth() {
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let soon = now + SignedDuration::from_secs(1);
    let past = now - SignedDuration::from_secs(1);
    let me = holder(JobKind::ScanJob, "me", "1");
    let before = holder(JobKind::ScanJob, "me", "");
    let namesake = holder(JobKind::RegistryDiscovery, "me", "1");
    let reborn = holder(JobKind::ScanJob, "me", "2");
    let other = holder(JobKind::ScanJob, "other", "3");
    let claim = |holder: &Holder, until| {
        let holder = holder.clone();
        Some(Claim { holder, until })
    };
    for (claim, life, verdict, case) in [
        (None, Life::Absent, Verdict::Take, "nobody has it"),
        (claim(&me, None), Life::Running, Verdict::Keep, "it is mine"),
        (
            claim(&me, Some(past)),
            Life::Running,
            Verdict::Take,
            "it was kept for me, long ago",
        ),
        (
            claim(&before, Some(soon)),
            Life::Running,
            Verdict::Take,
            "it was kept for my name",
        ),
        (
            claim(&before, None),
            Life::Running,
            Verdict::Wait,
            "nobody is without a UID",
        ),
        (
            claim(&other, None),
            Life::Running,
            Verdict::Wait,
            "another works on it",
        ),
        (
            claim(&other, None),
            Life::Ended,
            Verdict::Take,
            "another is done with it",
        ),
        (
            claim(&other, None),
            Life::Absent,
            Verdict::Take,
            "another is gone",
        ),
        (
            claim(&other, Some(soon)),
            Life::Absent,
            Verdict::Wait,
            "another is about to be created",
        ),
        (
            claim(&other, Some(past)),
            Life::Absent,
            Verdict::Take,
            "another was never created",
        ),
        (
            claim(&other, Some(past)),
            Life::Running,
            Verdict::Wait,
            "another is there but late",
        ),
        (
            claim(&other, Some(soon)),
            Life::Ended,
            Verdict::Take,
            "another ended at once",
        ),
        (
            claim(&namesake, None),
            Life::Running,
            Verdict::Wait,
            "a discovery of my name works on it",
        ),
        (
            claim(&reborn, None),
            Life::Absent,
            Verdict::Take,
            "an older one of my name had it",
        ),
        (
            claim(&reborn, Some(soon)),
            Life::Absent,
            Verdict::Wait,
            "one of my name was refused",
        ),
    ] {
        assert_eq!(
            decide(claim.as_ref(), &me, life, None, now),
            verdict,
            "{case}"
        );
    }
}

#[test]
fn who_was_there_before_waits_for_nobody_who_only_announces_himself() {
    let now: Timestamp = "2026-01-01T00:00:05Z".parse().unwrap();
    let claim = Claim {
        holder: holder(JobKind::ScanJob, "other", "b"),
        until: Some("2026-01-01T00:00:14Z".parse().unwrap()),
    };
    let me = holder(JobKind::ScanJob, "mine", "a");
    for (since, verdict) in [
        (None, Verdict::Wait),
        (Some("2026-01-01T00:00:03Z"), Verdict::Take),
        (Some("2026-01-01T00:00:04Z"), Verdict::Wait),
        (Some("2026-01-01T00:00:05Z"), Verdict::Wait),
    ] {
        let time = since.map(|since| since.parse().unwrap());
        let decided = decide(Some(&claim), &me, Life::Absent, time, now);
        assert_eq!(decided, verdict, "{since:?}");
    }
}

#[test]
fn a_lease_says_who_holds_it_and_until_when() {
    let place = Place {
        namespace: "default",
        registry: "hub",
    };
    let now: Timestamp = "2026-01-02T03:04:05.678901Z".parse().unwrap();
    let me = holder(JobKind::RegistryDiscovery, "hub-1", "1-2-3");
    let firm = written(place, &me, None, None, now);
    assert_eq!(
        firm.data["spec"],
        json!({
            "holderIdentity": "RegistryDiscovery/default/hub-1/1-2-3", "leaseTransitions": 0,
            "acquireTime": "2026-01-02T03:04:05.678901Z", "renewTime": "2026-01-02T03:04:05.678901Z",
        })
    );
    assert_eq!(firm.annotations()[ABOUT], "default/hub");
    let claim = Claim {
        holder: me.clone(),
        until: None,
    };
    assert_eq!(read(&firm), Some(claim));

    let before = holder(JobKind::ScanJob, "scan", "");
    let pending = written(place, &before, Some(PENDING), Some(&firm), now);
    assert_eq!(pending.data["spec"]["leaseTransitions"], 1);
    let claim = Claim {
        holder: before,
        until: Some(now + PENDING),
    };
    assert_eq!(read(&pending), Some(claim));
}

#[test]
fn a_lease_that_says_nothing_is_free() {
    let place = Place {
        namespace: "default",
        registry: "hub",
    };
    let me = holder(JobKind::ScanJob, "scan", "1");
    let mut lease = written(place, &me, None, None, Timestamp::UNIX_EPOCH);
    for spec in [
        json!({}),
        json!({"holderIdentity": ""}),
        json!({"holderIdentity": "kubelet"}),
        json!({"holderIdentity": "Pod/default/scan/1"}),
    ] {
        lease.data = json!({ "spec": spec });
        assert_eq!(read(&lease), None, "{}", lease.data);
    }
    let timeless = json!({"holderIdentity": identity(&me), "leaseDurationSeconds": i64::MAX});
    lease.data = json!({ "spec": timeless });
    assert!(read(&lease).is_some());
    let now = Timestamp::UNIX_EPOCH;
    for (seconds, lasts) in [(15, 15), (i64::MAX, MAX_SECONDS), (i64::MIN, 0)] {
        lease.data["spec"]["leaseDurationSeconds"] = json!(seconds);
        lease.data["spec"]["renewTime"] = json!(now.to_string());
        let until = Some(now + SignedDuration::from_secs(lasts));
        assert_eq!(read(&lease).unwrap().until, until, "{seconds}");
    }
}
