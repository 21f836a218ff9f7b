//! When a Registry is to be looked through: by the calendar for discoveries, by an interval for
//! scans. All times are UTC, and all of it is arithmetic: nothing here knows what time it is.
//!
//! A calendar has no minutes: every Registry has its own, the same on every day, so that many
//! Registries with one schedule are spread over the hour.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use muster_api::GoDuration;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How often the calendar is looked at.
pub(crate) const CHECK: SignedDuration = SignedDuration::from_mins(15);
/// The 29th of February is at most eight years away (there is none in 2100), on a given day of the
/// week, which is one of two ways to be due, a week.
const HORIZON_DAYS: usize = 9 * 366;
/// The part of an interval over which its ends are spread.
const SPREAD: i64 = 20;
/// The most they are spread over.
const WIDEST: SignedDuration = SignedDuration::from_mins(5);

/// When a Registry is discovered, as its spec says: `cron` of a discovery job. Unset is every one,
/// except for the hour: unset it is midnight.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Cron {
    day_of_week: Option<i8>,
    month: Option<i8>,
    day_of_month: Option<i8>,
    hour: Option<i8>,
}

/// A calendar with the minute of one Registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calendar {
    cron: Cron,
    minute: i8,
}

impl Calendar {
    /// The calendar of a Registry; none if it is not discovered by schedule. Without a discovery
    /// job and without an interval it is discovered daily, unless something else manages it.
    pub(crate) fn of(spec: &Value, uid: &str, managed: bool) -> Option<Self> {
        let job = &spec["discoveryJob"];
        let interval = interval(spec).is_some();
        let wanted = job["cron"].is_object() || job.is_object() && !interval;
        let default = !interval && !managed;
        if job["suspend"] == true || !wanted && !default {
            return None;
        }
        Some(Calendar {
            cron: Cron::deserialize(&job["cron"]).unwrap_or_default(),
            minute: spread(uid, 60) as i8,
        })
    }

    /// The last time at `now` or before it.
    pub(crate) fn last(&self, now: Timestamp) -> Option<Timestamp> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let days = std::iter::successors(Some(today), |day| day.yesterday().ok());
        self.times(days).find(|time| *time <= now)
    }

    /// The first time after `now`.
    pub(crate) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let days = std::iter::successors(Some(today), |day| day.tomorrow().ok());
        self.times(days).find(|time| *time > now)
    }

    /// The check at which a time is noticed.
    pub(crate) fn noticed(time: Timestamp) -> Timestamp {
        match check(time) {
            same if same == time => time,
            before => before.saturating_add(CHECK).unwrap_or(before),
        }
    }

    fn times(&self, days: impl Iterator<Item = Date>) -> impl Iterator<Item = Timestamp> {
        let due = days.take(HORIZON_DAYS).filter(|day| self.holds(*day));
        due.filter_map(|day| {
            let hour = self.cron.hour.unwrap_or(0).clamp(0, 23);
            let time = day.at(hour, self.minute, 0, 0);
            time.to_zoned(TimeZone::UTC)
                .ok()
                .map(|time| time.timestamp())
        })
    }

    /// Whether a day is one of the calendar's. As in any cron, where both a day of the week and one
    /// of the month are given, either will do.
    fn holds(&self, day: Date) -> bool {
        let Cron {
            day_of_week,
            month,
            day_of_month,
            ..
        } = self.cron;
        let weekday = |wanted| day.weekday().to_sunday_zero_offset() == wanted;
        let date = |wanted| day.day() == wanted;
        let right = match (day_of_week, day_of_month) {
            (Some(week), Some(month)) => weekday(week) || date(month),
            (Some(week), None) => weekday(week),
            (None, Some(month)) => date(month),
            (None, None) => true,
        };
        right && month.is_none_or(|wanted| day.month() == wanted)
    }
}

/// The check at `now` or before it: the hour and its quarters.
pub(crate) fn check(now: Timestamp) -> Timestamp {
    let past = now.as_second().rem_euclid(CHECK.as_secs());
    Timestamp::from_second(now.as_second() - past).unwrap_or(now)
}

/// The time between two scans; none if a Registry is not scanned by itself.
pub(crate) fn interval(spec: &Value) -> Option<SignedDuration> {
    let text = spec["scanInterval"].as_str()?;
    let interval: GoDuration = text.parse().ok()?;
    let interval = SignedDuration::from_nanos(interval.nanoseconds());
    interval.is_positive().then_some(interval)
}

/// When the next scan is due after one that ended at `last`. It comes a little late, by a part of
/// the interval that is each Registry's own.
pub(crate) fn scan_due(last: Timestamp, interval: SignedDuration, uid: &str) -> Timestamp {
    let widest = (interval / SPREAD as i32).min(WIDEST);
    let late = spread(uid, widest.as_secs().unsigned_abs().max(1));
    let wait = interval.saturating_add(SignedDuration::from_secs(late as i64));
    last.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// A number below `bound` that is always the same for a Registry and differs between them.
fn spread(uid: &str, bound: u64) -> u64 {
    let hash = Sha256::digest(uid);
    let number = hash
        .iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    number % bound
}

#[cfg(test)]
mod tests;
