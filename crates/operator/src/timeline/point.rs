//! The points of a history. Each says what there was from its time on, so they are in order of time
//! and no two neighbours say the same. Pure.

use jiff::Timestamp;
use muster_kind::time::rfc3339;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// For so long every point is kept; before that, the last of each day.
const FRESH: i64 = 2 * DAY;
/// For so long anything is kept. What held at its beginning is needed to tell the rest.
const LONGEST: i64 = 90 * DAY;
/// If more are fresh, only the last of each hour is kept of those too.
const CROWDED: usize = 100;

/// Findings by severity, as reports count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    pub(super) critical: u64,
    pub(super) high: u64,
    pub(super) medium: u64,
    pub(super) low: u64,
    pub(super) unknown: u64,
    pub(super) suppressed: u64,
}

/// What there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// In how many workloads; nothing if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) workloads: Option<u64>,
    #[serde(default)]
    pub(super) summary: Summary,
}

/// What there was from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    /// In seconds since 1970.
    #[serde(serialize_with = "spell", deserialize_with = "read")]
    pub(super) time: i64,
    #[serde(flatten)]
    pub(super) tally: Tally,
}

impl Tally {
    /// What nothing comes to in a namespace.
    pub(super) fn nothing() -> Self {
        Tally {
            workloads: Some(0),
            summary: Summary::default(),
        }
    }

    /// Counts a workload.
    pub(super) fn add(&mut self, one: &Summary) {
        let sum = &mut self.summary;
        for (sum, more) in [
            (&mut sum.critical, one.critical),
            (&mut sum.high, one.high),
            (&mut sum.medium, one.medium),
            (&mut sum.low, one.low),
            (&mut sum.unknown, one.unknown),
            (&mut sum.suppressed, one.suppressed),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.workloads = Some(self.workloads.unwrap_or_default().saturating_add(1));
    }
}

/// The points once it is known what there is now; none if that is nothing new. A clock that went back
/// changes what is said of the last moment, never the order.
pub(super) fn record(points: &[Point], tally: Tally, now: Timestamp) -> Option<Vec<Point>> {
    let last = points.last();
    if last.is_some_and(|last| last.tally == tally) {
        return None;
    }
    let time = last.map_or(i64::MIN, |last| last.time).max(now.as_second());
    let earlier = points.iter().filter(|point| point.time < time);
    let mut points: Vec<Point> = earlier.copied().collect();
    points.push(Point { time, tally });
    Some(thin(&points, time))
}

/// As few points as are worth keeping.
fn thin(points: &[Point], now: i64) -> Vec<Point> {
    let fresh = points.iter().filter(|point| point.time > now - FRESH);
    let is_crowded = fresh.count() > CROWDED;
    // Of neighbours in the same span only the last is kept.
    let span = |at: usize, time: i64| match time > now - FRESH {
        true if is_crowded => (HOUR, time.div_euclid(HOUR)),
        true => (0, i64::try_from(at).unwrap_or(i64::MAX)),
        false => (DAY, time.div_euclid(DAY)),
    };
    let is_kept = |(at, point): &(usize, &Point)| {
        points.get(at + 1).is_none_or(|next| {
            next.time > now - LONGEST && span(*at, point.time) != span(at + 1, next.time)
        })
    };
    let kept = points.iter().enumerate().filter(is_kept);
    let mut kept: Vec<Point> = kept.map(|(_, point)| *point).collect();
    kept.dedup_by(|later, earlier| later.tally == earlier.tally);
    kept
}

/// The points of a stored history.
pub(super) fn points(history: &Value) -> Result<Vec<Point>, serde_json::Error> {
    match &history["points"] {
        Value::Null => Ok(Vec::new()),
        points => serde_json::from_value(points.clone()),
    }
}

fn spell<S: Serializer>(time: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    let time = Timestamp::from_second(*time).map_err(serde::ser::Error::custom)?;
    serializer.serialize_str(&rfc3339(time))
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let time: Timestamp = text.parse().map_err(serde::de::Error::custom)?;
    Ok(time.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tally(critical: u64) -> Tally {
        let summary = Summary {
            critical,
            ..Summary::default()
        };
        Tally {
            workloads: None,
            summary,
        }
    }

    fn at(time: i64) -> Timestamp {
        Timestamp::from_second(time).unwrap()
    }

    fn told(points: &[Point]) -> Vec<(i64, u64)> {
        let told = |point: &Point| (point.time, point.tally.summary.critical);
        points.iter().map(told).collect()
    }

    #[test]
    fn a_point_is_added_only_when_something_changes_and_never_before_the_last() {
        let first = record(&[], tally(1), at(100)).unwrap();
        assert_eq!(told(&first), [(100, 1)]);
        assert_eq!(record(&first, tally(1), at(200)), None);
        for (now, critical, expected) in [
            (200, 2, &[(100, 1), (200, 2)][..]),
            (100, 2, &[(100, 2)]),
            // The clock went back.
            (50, 2, &[(100, 2)]),
        ] {
            let after = record(&first, tally(critical), at(now)).unwrap();
            assert_eq!(told(&after), expected, "{now}");
        }
        // What came and went within a second was not.
        let second = record(&first, tally(2), at(200)).unwrap();
        let third = record(&second, tally(1), at(200)).unwrap();
        assert_eq!(told(&third), [(100, 1)]);
    }

    #[test]
    fn of_older_days_the_last_point_is_kept_and_what_held_when_the_time_began() {
        let now = 1000 * DAY;
        let ago = |days: i64, hours: i64, critical: u64| Point {
            time: now - days * DAY + hours * HOUR,
            tally: tally(critical),
        };
        let points = [
            ago(200, 0, 1),
            ago(100, 0, 2),
            ago(80, 1, 3),
            ago(80, 2, 4),
            ago(80, 3, 5),
            ago(1, 1, 6),
            ago(1, 2, 7),
        ];
        let kept: Vec<u64> = thin(&points, now)
            .iter()
            .map(|point| point.tally.summary.critical)
            .collect();
        assert_eq!(kept, [2, 5, 6, 7]);
        let alone = [ago(400, 0, 1)];
        assert_eq!(thin(&alone, now), alone, "it holds until today");
    }

    #[test]
    fn points_are_written_as_kubernetes_writes_times() {
        let mut sum = Tally::nothing();
        sum.add(&tally(2).summary);
        sum.add(&tally(1).summary);
        let point = Point {
            time: 1_767_225_600,
            tally: sum,
        };
        let written = json!([{
            "time": "2026-01-01T00:00:00Z", "workloads": 2,
            "summary": {"critical": 3, "high": 0, "medium": 0, "low": 0, "unknown": 0, "suppressed": 0},
        }]);
        assert_eq!(json!([point]), written);
        assert_eq!(points(&json!({ "points": written })).unwrap(), [point]);
        assert_eq!(points(&json!({})).unwrap(), []);
    }

    proptest! {
        #[test]
        fn whatever_happens_a_history_is_short_ordered_and_ends_with_what_there_is(
            steps in prop::collection::vec((-4000i64..200_000, 0u64..4), 0..600),
        ) {
            let (mut now, mut points) = (1_000_000_000, Vec::new());
            for (step, critical) in steps {
                now += step;
                if let Some(after) = record(&points, tally(critical), at(now)) {
                    points = after;
                }
                prop_assert_eq!(points.last().map(|point| point.tally), Some(tally(critical)));
                prop_assert!(points.len() <= muster_api::history::MOST);
                prop_assert!(points.is_sorted_by(|a, b| a.time < b.time && a.tally != b.tally));
            }
        }
    }
}
