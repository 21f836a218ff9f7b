//! Policies that use up their time on one object after the other would take it from all others: a few
//! such policies and ten thousand objects are days. Such a policy is given a rest, and what it would
//! have been asked meanwhile is an error that says so; then it is tried on one object.

use crate::note::{Key, Stamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many objects in a row a policy may use up its time on.
const STRIKES: u32 = 5;
/// How long the first rest is; each further one is twice as long, up to the longest.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// What is said of an object that a policy was not asked about.
pub(crate) const RESTS: &str =
    "the policy was not asked: it used up its time on several objects in a row";

#[derive(Debug)]
struct Record {
    stamp: Stamp,
    strikes: u32,
    until: Option<Instant>,
}

/// Which policies rest.
#[derive(Debug, Default)]
pub(crate) struct Rests(Mutex<HashMap<Key, Record>>);

impl Rests {
    /// For how long a policy is not to be asked; none if it may be.
    pub(crate) fn left(&self, key: Key, stamp: Stamp, now: Instant) -> Option<Duration> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let record = records.get_mut(&key)?;
        if record.stamp != stamp {
            records.remove(&key);
            return None;
        }
        let left = record.until?.saturating_duration_since(now);
        if left.is_zero() {
            // One object is tried; others wait for how that goes.
            record.until = Some(now + FIRST);
            return None;
        }
        Some(left)
    }

    /// Notes whether a policy used up its time.
    pub(crate) fn note(&self, key: Key, stamp: Stamp, slow: bool, now: Instant) {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !slow {
            records.remove(&key);
            return;
        }
        let record = records.entry(key).or_insert(Record {
            stamp,
            strikes: 0,
            until: None,
        });
        if record.stamp != stamp {
            record.stamp = stamp;
            record.strikes = 0;
        }
        record.strikes = record.strikes.saturating_add(1);
        record.until = record.strikes.checked_sub(STRIKES).map(|more| {
            let rest = FIRST.saturating_mul(1 << more.min(10));
            now + rest.min(LONGEST)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_uses_up_its_time_again_and_again_is_given_a_rest() {
        let (rests, start) = (Rests::default(), Instant::now());
        let (key, stamp) = (Key::of("p"), Stamp::new(1, 1));
        let at = |seconds| start + Duration::from_secs(seconds);
        for number in 0..STRIKES {
            assert_eq!(rests.left(key, stamp, start), None, "{number}");
            rests.note(key, stamp, true, start);
        }
        assert_eq!(rests.left(key, stamp, at(0)), Some(FIRST));
        assert_eq!(rests.left(Key::of("q"), stamp, at(0)), None, "another");
        // After it one object is tried, and only one.
        assert_eq!(rests.left(key, stamp, at(60)), None);
        assert!(rests.left(key, stamp, at(60)).is_some());
        rests.note(key, stamp, true, at(62));
        assert_eq!(rests.left(key, stamp, at(62)), Some(2 * FIRST));
        // A changed policy begins anew, and a good answer forgives everything.
        assert_eq!(rests.left(key, Stamp::new(1 << 40, 1), at(63)), None);
        rests.note(key, stamp, true, at(64));
        rests.note(key, stamp, false, at(65));
        assert_eq!(rests.left(key, stamp, at(65)), None);
    }
}
