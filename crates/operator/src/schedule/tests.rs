use super::*;
use proptest::prelude::*;
use serde_json::json;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn calendar(cron: Value, minute: i8) -> Calendar {
    let cron = Cron::deserialize(cron).unwrap();
    Calendar { cron, minute }
}

#[test]
fn a_calendar_knows_its_times() {
    for (cron, now, last, next) in [
        // Every day at midnight and some minutes.
        (
            json!({}),
            "2026-03-01T00:29:59Z",
            "2026-02-28T00:30:00Z",
            "2026-03-01T00:30:00Z",
        ),
        (
            json!({}),
            "2026-03-01T00:30:00Z",
            "2026-03-01T00:30:00Z",
            "2026-03-02T00:30:00Z",
        ),
        (
            json!({"hour": null}),
            "2026-01-01T00:00:00Z",
            "2025-12-31T00:30:00Z",
            "2026-01-01T00:30:00Z",
        ),
        (
            json!({"hour": 23}),
            "2026-01-01T23:00:00Z",
            "2025-12-31T23:30:00Z",
            "2026-01-01T23:30:00Z",
        ),
        // Months that have no such day are passed over.
        (
            json!({"dayOfMonth": 31}),
            "2026-04-15T12:00:00Z",
            "2026-03-31T00:30:00Z",
            "2026-05-31T00:30:00Z",
        ),
        (
            json!({"dayOfMonth": 29, "month": 2}),
            "2026-01-01T00:00:00Z",
            "2024-02-29T00:30:00Z",
            "2028-02-29T00:30:00Z",
        ),
        (
            json!({"dayOfMonth": 29, "month": 2}),
            "2100-01-01T00:00:00Z",
            "2096-02-29T00:30:00Z",
            "2104-02-29T00:30:00Z",
        ),
        (
            json!({"month": 12}),
            "2026-06-01T00:00:00Z",
            "2025-12-31T00:30:00Z",
            "2026-12-01T00:30:00Z",
        ),
        (
            json!({"dayOfMonth": 1, "hour": 6}),
            "2026-06-01T06:30:00Z",
            "2026-06-01T06:30:00Z",
            "2026-07-01T06:30:00Z",
        ),
        // The first of January 2026 is a Thursday, 0 is Sunday.
        (
            json!({"dayOfWeek": 0}),
            "2026-01-01T00:00:00Z",
            "2025-12-28T00:30:00Z",
            "2026-01-04T00:30:00Z",
        ),
        (
            json!({"dayOfWeek": 6, "hour": 5}),
            "2026-01-01T00:00:00Z",
            "2025-12-27T05:30:00Z",
            "2026-01-03T05:30:00Z",
        ),
        // Either of two days will do.
        (
            json!({"dayOfWeek": 1, "dayOfMonth": 3}),
            "2026-01-01T00:00:00Z",
            "2025-12-29T00:30:00Z",
            "2026-01-03T00:30:00Z",
        ),
        (
            json!({"dayOfWeek": 1, "dayOfMonth": 3}),
            "2026-01-04T00:00:00Z",
            "2026-01-03T00:30:00Z",
            "2026-01-05T00:30:00Z",
        ),
    ] {
        let calendar = calendar(cron.clone(), 30);
        assert_eq!(
            calendar.last(time(now)),
            Some(time(last)),
            "last of {cron} at {now}"
        );
        assert_eq!(
            calendar.next(time(now)),
            Some(time(next)),
            "next of {cron} at {now}"
        );
    }
}

#[test]
fn a_time_that_never_comes_is_none() {
    let calendar = calendar(json!({"dayOfMonth": 31, "month": 2}), 0);
    assert_eq!(calendar.next(time("2026-01-01T00:00:00Z")), None);
    assert_eq!(calendar.last(time("2026-01-01T00:00:00Z")), None);
    let daily = Calendar {
        cron: Cron::default(),
        minute: 0,
    };
    assert_eq!(daily.next(Timestamp::MAX), None);
    assert_eq!(daily.last(Timestamp::MIN), None);
}

#[test]
fn the_default_is_daily_and_only_for_who_has_nothing_else() {
    let day = json!({"cron": {"dayOfMonth": 1}});
    for (spec, managed, scheduled) in [
        (json!({}), false, true),
        (json!({}), true, false),
        (json!({"scanInterval": "1h"}), false, false),
        (
            json!({"scanInterval": "1h", "discoveryJob": {"failedJobsHistoryLimit": 1}}),
            false,
            false,
        ),
        (
            json!({"scanInterval": "1h", "discoveryJob": day}),
            false,
            true,
        ),
        (json!({"scanInterval": ""}), false, true),
        (json!({"discoveryJob": day}), true, true),
        (json!({"discoveryJob": {"suspend": true}}), false, false),
        (
            json!({"discoveryJob": {"suspend": true, "cron": {"hour": 1}}}),
            false,
            false,
        ),
        (json!({"discoveryJob": {"suspend": false}}), false, true),
    ] {
        let calendar = Calendar::of(&spec, "uid", managed);
        assert_eq!(calendar.is_some(), scheduled, "{spec} {managed}");
    }
}

#[test]
fn checks_are_at_the_quarters_of_an_hour() {
    for (now, at) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:14:59.9Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T23:45:00Z", "2026-01-01T23:45:00Z"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:45:00Z"),
    ] {
        assert_eq!(check(time(now)), time(at), "{now}");
    }
    assert_eq!(
        Calendar::noticed(time("2026-01-01T00:17:00Z")),
        time("2026-01-01T00:30:00Z")
    );
    assert_eq!(
        Calendar::noticed(time("2026-01-01T00:30:00Z")),
        time("2026-01-01T00:30:00Z")
    );
}

#[test]
fn an_interval_is_a_positive_duration() {
    for (text, seconds) in [
        ("1h", Some(3600)),
        ("90s", Some(90)),
        ("", None),
        ("0s", None),
        ("-1h", None),
        ("daily", None),
        ("2562047h", Some(9_223_369_200)),
        ("2562048h", None),
        ("99999999999999999999h", None),
    ] {
        let spec = json!({"scanInterval": text});
        assert_eq!(interval(&spec).map(|i| i.as_secs()), seconds, "{text}");
    }
    assert_eq!(interval(&json!({})), None);
    for longest in [SignedDuration::from_hours(2_562_047), SignedDuration::MAX] {
        let due = scan_due(Timestamp::MAX, longest, "uid");
        assert_eq!(due, Timestamp::MAX);
    }
}

#[test]
fn a_hundred_registries_are_spread() {
    let start = time("2026-01-01T00:00:00Z");
    let hour = SignedDuration::from_hours(1);
    let uids: Vec<String> = (0..100).map(|number| format!("uid-{number}")).collect();
    let mut due: Vec<_> = uids.iter().map(|uid| scan_due(start, hour, uid)).collect();
    due.sort();
    due.dedup();
    assert!(due.len() > 60, "{}", due.len());
    assert!(due[0] >= start + hour);
    assert!(due[due.len() - 1] < start + hour + SignedDuration::from_mins(3));
    let minutes = uids
        .iter()
        .filter_map(|uid| Calendar::of(&json!({}), uid, false));
    let minutes: std::collections::BTreeSet<i8> = minutes.map(|calendar| calendar.minute).collect();
    assert!(minutes.len() > 35 && minutes.iter().all(|minute| (0..60).contains(minute)));
}

proptest! {
    #[test]
    fn between_last_and_next_there_is_no_time(
        seconds in 0i64..6_000_000_000,
        day_of_week in proptest::option::of(0i8..7),
        month in proptest::option::of(1i8..13),
        day_of_month in proptest::option::of(1i8..29),
        hour in proptest::option::of(0i8..24),
        minute in 0i8..60,
    ) {
        let cron = Cron { day_of_week, month, day_of_month, hour };
        let calendar = Calendar { cron, minute };
        let now = Timestamp::from_second(seconds).unwrap();
        let last = calendar.last(now).unwrap();
        let next = calendar.next(now).unwrap();
        prop_assert!(last <= now && now < next);
        prop_assert_eq!(calendar.next(last), Some(next));
        prop_assert_eq!(calendar.last(next), Some(next));
        for found in [last, next] {
            let date = found.to_zoned(TimeZone::UTC);
            prop_assert_eq!(date.hour(), hour.unwrap_or(0));
            prop_assert_eq!(date.minute(), minute);
            prop_assert!(month.is_none_or(|wanted| date.month() == wanted));
        }
    }
}
