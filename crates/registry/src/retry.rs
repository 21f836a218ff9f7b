//! When to try again: pure functions over what the registry said and how often it was asked.

use std::time::{Duration, SystemTime};

/// The longest pause that is read from `Retry-After`. The header is the registry's, so it may say anything.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How patient a client is with trouble that may pass.
#[derive(Clone, Debug)]
pub struct Retry {
    /// How often a request is sent at most.
    pub attempts: u32,
    /// The pause after the first failure; it doubles with each further one.
    pub first: Duration,
    /// The longest pause of our own choice.
    pub longest: Duration,
    /// The longest pause that a registry may ask for; beyond, the call fails and says when to
    /// come back, so that no worker sleeps for hours.
    pub patience: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            attempts: 5,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
            patience: Duration::from_secs(60),
        }
    }
}

/// What to do after a failure that may pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Next {
    /// Try again after this pause.
    After(Duration),
    /// Give up.
    GiveUp,
}

impl Retry {
    /// What follows the `failures`-th failure. `random` is from 0 to 1 and spreads the pauses
    /// over their second half, so that many clients do not come back together.
    pub(crate) fn next(&self, failures: u32, asked: Option<Duration>, random: f64) -> Next {
        if failures >= self.attempts {
            return Next::GiveUp;
        }
        let own = self.pause(failures, random);
        match asked {
            Some(asked) if asked > self.patience => Next::GiveUp,
            // Not a moment before what was asked for.
            Some(asked) => Next::After(asked.max(own)),
            None => Next::After(own),
        }
    }

    fn pause(&self, failures: u32, random: f64) -> Duration {
        let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        full.mul_f64(0.5 + random.clamp(0.0, 1.0) / 2.0)
    }
}

/// Reads `Retry-After`: seconds, or a date; at most [`MAX_RETRY_AFTER`].
pub(crate) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let asked = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than the number can hold are a long pause, too.
        value.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs)
    } else {
        let date = httpdate::parse_http_date(value).ok()?;
        date.duration_since(now).unwrap_or_default()
    };
    Some(asked.min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn retry() -> Retry {
        Retry {
            attempts: 4,
            first: SECOND,
            longest: 3 * SECOND,
            patience: 10 * SECOND,
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_end_with_the_attempts() {
        let steps: Vec<Next> = (1..=4).map(|n| retry().next(n, None, 1.0)).collect();
        let expected = [
            Next::After(SECOND),
            Next::After(2 * SECOND),
            Next::After(3 * SECOND),
            Next::GiveUp,
        ];
        assert_eq!(steps, expected);
        assert_eq!(retry().next(1, None, 0.0), Next::After(SECOND / 2));
        assert_eq!(retry().next(u32::MAX, None, 0.0), Next::GiveUp);
    }

    #[test]
    fn what_the_registry_asks_for_is_kept_up_to_our_patience() {
        assert_eq!(
            retry().next(1, Some(9 * SECOND), 1.0),
            Next::After(9 * SECOND)
        );
        assert_eq!(
            retry().next(1, Some(Duration::ZERO), 1.0),
            Next::After(SECOND)
        );
        assert_eq!(retry().next(1, Some(11 * SECOND), 1.0), Next::GiveUp);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
        for (value, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("86401", Some(86_400)),
            ("18446744073709551615", Some(86_400)),
            ("99999999999999999999999999", Some(86_400)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400)),
            ("-1", None),
            ("+1", None),
            ("", None),
            ("soon", None),
            ("1.5", None),
        ] {
            let seconds = retry_after(value, now).map(|pause| pause.as_secs());
            assert_eq!(seconds, expected, "{value}");
        }
    }
}
