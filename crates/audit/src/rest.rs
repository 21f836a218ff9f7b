//! Policies that use up their time on one object after the other would take it from all others: a few
//! such policies and ten thousand objects are days. Such a policy is given a rest, and what it would
//! have been asked meanwhile is an error that says so; then it is tried on one object.

use crate::note::{Key, Stamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many objects in a row a policy may use up its time on.
const STRIKES: u32 = 5;
/// How often the policies of one namespace may, whichever of them.
const STRIKES_TOGETHER: u32 = 20;
/// How long the first rest is; each further one is twice as long, up to the longest.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// What is said of an object that a policy was not asked about.
pub const RESTS: &str = "the policy was not asked: it used up its time on several objects in a row";

/// What stands for the policies of a namespace.
const SHARED: Stamp = Stamp::NONE;

fn together(namespace: &str) -> Key {
    Key::of(&format!("namespaces/{namespace}"))
}

#[derive(Debug)]
struct Record {
    stamp: Stamp,
    strikes: u32,
    until: Option<Instant>,
    /// The rest is over, and one object is tried.
    tried: bool,
}

/// Which policies rest.
#[derive(Debug, Default)]
pub struct Rests(Mutex<HashMap<Key, Record>>);

impl Rests {
    /// For how long a policy, which may be of a namespace, is not to be asked; none if it may be.
    pub fn left_of(
        &self,
        key: Key,
        stamp: Stamp,
        namespace: Option<&str>,
        now: Instant,
    ) -> Option<Duration> {
        let together = namespace.and_then(|name| self.left(together(name), SHARED, now));
        together.or_else(|| self.left(key, stamp, now))
    }

    /// Notes whether a policy, which may be of a namespace, used up its time.
    pub fn note_of(
        &self,
        key: Key,
        stamp: Stamp,
        namespace: Option<&str>,
        slow: bool,
        now: Instant,
    ) {
        self.note(key, stamp, slow, now);
        let Some(shared) = namespace.map(together) else {
            return;
        };
        // Many policies could take turns in being slow, so a good answer of one forgives the others
        // only after a rest.
        let rested = || {
            let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            records.get(&shared).is_some_and(|one| one.tried)
        };
        if slow || rested() {
            self.strike(shared, SHARED, slow, STRIKES_TOGETHER, now);
        }
    }

    /// For how long a policy is not to be asked; none if it may be.
    fn left(&self, key: Key, stamp: Stamp, now: Instant) -> Option<Duration> {
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
            record.tried = true;
            return None;
        }
        Some(left)
    }

    /// Notes whether a policy used up its time.
    fn note(&self, key: Key, stamp: Stamp, slow: bool, now: Instant) {
        self.strike(key, stamp, slow, STRIKES, now);
    }

    fn strike(&self, key: Key, stamp: Stamp, slow: bool, most: u32, now: Instant) {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !slow {
            records.remove(&key);
            return;
        }
        let record = records.entry(key).or_insert(Record {
            stamp,
            strikes: 0,
            until: None,
            tried: false,
        });
        if record.stamp != stamp {
            record.stamp = stamp;
            record.strikes = 0;
        }
        record.strikes = record.strikes.saturating_add(1);
        record.tried = false;
        record.until = record.strikes.checked_sub(most).map(|more| {
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

    #[test]
    fn many_slow_policies_of_one_namespace_rest_together() {
        let (rests, now) = (Rests::default(), Instant::now());
        let stamp = Stamp::new(1, 1);
        let key = |number: u32| Key::of(&number.to_string());
        for number in 0..STRIKES_TOGETHER {
            // A new one each time, and good answers in between.
            assert_eq!(rests.left_of(key(number), stamp, Some("a"), now), None);
            rests.note_of(key(number), stamp, Some("a"), true, now);
            rests.note_of(key(1000), stamp, Some("a"), false, now);
        }
        assert_eq!(rests.left_of(key(999), stamp, Some("a"), now), Some(FIRST));
        assert_eq!(rests.left_of(key(999), stamp, Some("b"), now), None);
        assert_eq!(rests.left_of(key(999), stamp, None, now), None);
        // One that answers well after the rest forgives all.
        let later = now + FIRST;
        assert_eq!(rests.left_of(key(999), stamp, Some("a"), later), None);
        rests.note_of(key(999), stamp, Some("a"), false, later);
        assert_eq!(rests.left_of(key(998), stamp, Some("a"), later), None);
    }
}
