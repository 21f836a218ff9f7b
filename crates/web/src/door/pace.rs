//! How often somebody may knock. Whose a token is, kube-apiserver says, and strangers must not be able to
//! have it asked without end.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many may come at once.
const AT_ONCE: u32 = 20;
/// After that, one in so much time.
const EACH: Duration = Duration::from_millis(200);

/// Counts those who come.
pub(super) struct Pace {
    /// When everybody who came would have come, had they kept to the pace.
    until: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Pace {
            until: Mutex::new(now),
        }
    }

    /// Whether another may come now; if so, they are counted.
    pub(super) fn allows(&self, now: Instant) -> bool {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = (*until).max(now);
        if begin.duration_since(now) >= EACH * AT_ONCE {
            return false;
        }
        *until = begin + EACH;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_comes_in_at_once_and_after_it_one_by_one() {
        let start = Instant::now();
        let pace = Pace::new(start);
        let at = |moment: u32| start + EACH * moment;
        let let_in = (0..100).filter(|_| pace.allows(at(0))).count();
        assert_eq!(let_in, 20);
        assert!(pace.allows(at(1)) && !pace.allows(at(1)));
        assert!(pace.allows(at(2)));
        let later = (0..100).filter(|_| pace.allows(at(1000))).count();
        assert_eq!(later, 20);
    }
}
