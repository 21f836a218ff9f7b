//! Times until something is due. They may be computed from numbers of users, so all of them are bounded.

use std::time::{Duration, Instant};

/// The longest delay. Controllers compare with the state when they run, so running early does no harm.
pub const MAX_DELAY: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The delay, or [`MAX_DELAY`] if that is shorter.
pub fn bounded(delay: Duration) -> Duration {
    delay.min(MAX_DELAY)
}

/// The moment after a delay, which is bounded.
pub fn after(now: Instant, delay: Duration) -> Instant {
    now.checked_add(bounded(delay)).unwrap_or(now)
}

/// The pause after a number of failures in a row: `first`, doubled with each failure, up to `longest`.
pub fn backoff(failures: u32, first: Duration, longest: Duration) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    first.saturating_mul(doubled).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_delay_there_is_does_not_panic() {
        let now = Instant::now();
        assert_eq!(after(now, Duration::MAX), now + MAX_DELAY);
        assert_eq!(after(now, Duration::ZERO), now);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let second = Duration::from_secs(1);
        let pauses = [0, 1, 2, 3, 4, u32::MAX].map(|n| backoff(n, second, 5 * second).as_secs());
        assert_eq!(pauses, [1, 1, 2, 4, 5, 5]);
    }
}
