//! A resource's clock and the numbers around it, as both engines keep them.

use muster_apiserver::store::{EventType, StoreError};

/// The revision of a resource that was never written; its first write gets the next. It is not 0,
/// which clients of Kubernetes read as "any".
pub(crate) const BEGINNING: i64 = 1;

/// How far every clock jumps when the database is not the one it was: farther than any clock
/// could have run in the life that was lost.
pub(crate) const JUMP: i64 = 1 << 32;

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
    /// The clock of a resource that was never written.
    pub(crate) const NEW: Clock = Clock {
        resource: 0,
        revision: BEGINNING,
        compacted: 0,
    };

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
