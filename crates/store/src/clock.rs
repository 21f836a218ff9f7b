//! A resource's clock and the numbers around it, as both engines keep them.

use muster_apiserver::store::{EventType, StoreError};

/// The revision of a resource that was never written; its first write gets the next. It is not 0,
/// which clients of Kubernetes read as "any".
const BEGINNING: i64 = 1;

/// Farther than any clock could have run in a life that was lost.
const JUMP: i64 = 1 << 32;

/// The latest second that counts, in the year 2242: revisions stay below 2^53, up to which every
/// reader of JSON can count.
const LATEST: i64 = (1 << 33) - 1;

/// The revision at which all clocks begin in this life of the database, those of resources that
/// are first written later too. PostgreSQL has the same rule in its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Origin(pub(crate) i64);

impl Origin {
    /// That of the first life.
    pub(crate) const FIRST: Origin = Origin(BEGINNING);

    /// That of a new life, given the highest revision known of those before. The time moves it on
    /// by a million revisions each second, more than any clock is written: so it lies behind all
    /// that the lost life gave, and one backup restored twice is two lives that share no
    /// revision. Where the time is not ahead, as within one second or with a clock put back, a
    /// jump has to do.
    pub(crate) fn after(highest: i64, milliseconds: i64) -> Self {
        let by_time = (milliseconds / 1000).clamp(0, LATEST) << 20;
        match by_time > highest {
            true => Origin(by_time),
            false => Origin(highest.saturating_add(JUMP)),
        }
    }

    /// The clock of a resource that was never written. Of a life before nothing is promised; the
    /// first has none before.
    pub(crate) fn clock(self) -> Clock {
        Clock {
            resource: 0,
            revision: self.0,
            compacted: match self == Origin::FIRST {
                true => 0,
                false => self.0,
            },
        }
    }
}

/// A resource's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The resource's number in the other tables; of a resource never written, one that is in
    /// none.
    pub(crate) resource: i64,
    /// The newest revision.
    pub(crate) revision: i64,
    /// The newest revision that the log no longer has; 0 if it still has all.
    pub(crate) compacted: i64,
}

impl From<(i64, i64, i64)> for Clock {
    fn from((resource, revision, compacted): (i64, i64, i64)) -> Self {
        Clock {
            resource,
            revision,
            compacted,
        }
    }
}

impl Clock {
    /// Refuses what lies outside of the log.
    pub(crate) fn check(&self, asked: u64) -> Result<(), StoreError> {
        if signed(asked) > self.revision {
            return Err(StoreError::Future {
                asked,
                current: self.revision as u64,
            });
        }
        if signed(asked) < self.compacted {
            return Err(StoreError::Compacted {
                asked,
                compacted: self.compacted as u64,
            });
        }
        Ok(())
    }

    /// The newest revision that a compaction forgets, given the first entry that is too young to
    /// go. Every revision behind the compacted one has its entry, so counting entries is counting
    /// revisions.
    pub(crate) fn cut(&self, first_to_keep: Option<i64>, keep_events: i64) -> i64 {
        let by_age = first_to_keep.map_or(self.revision, |first| first - 1);
        let to = by_age.min(self.revision.saturating_sub(keep_events));
        // The beginning has no entry: where only it would go, nothing goes.
        match to > BEGINNING {
            true => to.max(self.compacted),
            false => self.compacted,
        }
    }
}

/// A number as the engines keep it; what is too large is larger than anything stored.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number the log keeps for what happened.
pub(crate) fn event_number(event: EventType) -> i64 {
    match event {
        EventType::Added => 0,
        EventType::Modified => 1,
        EventType::Deleted => 2,
    }
}

/// What happened, by the number the log keeps for it.
pub(crate) fn event_type(number: i64) -> Option<EventType> {
    match number {
        0 => Some(EventType::Added),
        1 => Some(EventType::Modified),
        2 => Some(EventType::Deleted),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_life_begins_behind_all_that_was_given_and_at_its_second() {
        let second = 1 << 20;
        for (highest, milliseconds, expected) in [
            (1, 1_700_000_000_000, 1_700_000_000 * second),
            (1, 1_700_000_000_999, 1_700_000_000 * second),
            (
                1_699_999_999 * second + 5,
                1_700_000_000_000,
                1_700_000_000 * second,
            ),
            (
                1_700_000_000 * second,
                1_700_000_000_999,
                1_700_000_000 * second + JUMP,
            ),
            (
                1_800_000_000 * second,
                1_700_000_000_000,
                1_800_000_000 * second + JUMP,
            ),
            (7, 0, 7 + JUMP),
            (7, -1, 7 + JUMP),
            (7, i64::MAX, LATEST << 20),
            (LATEST << 20, i64::MAX, (LATEST << 20) + JUMP),
        ] {
            let origin = Origin::after(highest, milliseconds);
            assert_eq!(origin, Origin(expected), "{highest} at {milliseconds}");
            assert_eq!(origin.clock().compacted, expected);
        }
        assert_eq!(Origin::FIRST.clock().compacted, 0);
    }
}
