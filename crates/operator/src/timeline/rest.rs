//! Namespaces rest after they were looked at, so that one that never stops changing is neither read nor
//! written without end. Whoever rests is not forgotten: what changes meanwhile is seen together,
//! afterwards. What has been quiet does not rest, so its first change is seen at once.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// The shortest rest.
const SHORTEST: Duration = Duration::from_secs(10);
/// How many times as long as a look the rest after it is: at most this part of all time is spent on
/// looking at one thing.
const TIMES: u32 = 10;

/// How long to rest after a look.
fn rest(took: Duration) -> Duration {
    took.saturating_mul(TIMES).max(SHORTEST)
}

/// Who rests, and until when.
#[derive(Debug)]
pub(super) struct Rests<K>(HashMap<K, Instant>);

impl<K> Default for Rests<K> {
    fn default() -> Self {
        Rests(HashMap::new())
    }
}

impl<K: Clone + Eq + Hash> Rests<K> {
    /// How much of its rest a thing has left; none if it does not rest.
    pub(super) fn left(&self, key: &K, now: Instant) -> Option<Duration> {
        let left = self.0.get(key)?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// A look that took so long is over. Whoever has rested is forgotten.
    pub(super) fn begin(&mut self, key: &K, took: Duration, now: Instant) {
        self.0.retain(|_, until| *until > now);
        self.0.insert(key.clone(), now + rest(took));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_takes_longer_to_look_at_rests_longer() {
        for (took, expected) in [
            (Duration::ZERO, SHORTEST),
            (SECOND / 10, SHORTEST),
            (SECOND * 6, SECOND * 60),
            (Duration::MAX, Duration::MAX),
        ] {
            assert_eq!(rest(took), expected, "{took:?}");
        }
    }

    #[test]
    fn a_thing_rests_once_it_was_looked_at_and_no_other_does() {
        let mut rests = Rests::default();
        let now = Instant::now();
        assert_eq!(rests.left(&"a", now), None, "it has been quiet");
        rests.begin(&"a", SECOND, now);
        assert_eq!(rests.left(&"a", now), Some(SHORTEST));
        assert_eq!(rests.left(&"a", now + SECOND), Some(SHORTEST - SECOND));
        assert_eq!(rests.left(&"b", now), None);
        assert_eq!(rests.left(&"a", now + SHORTEST), None);
        rests.begin(&"b", SECOND, now + SHORTEST);
        assert_eq!(rests.0.len(), 1, "whoever has rested is forgotten");
    }
}
