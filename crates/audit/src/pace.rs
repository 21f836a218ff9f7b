//! How fast the API server is asked: at most so many requests a second, so that an audit of everything
//! leaves it to others as well. What waits, waits in turn.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A pace.
#[derive(Debug)]
pub struct Pace {
    /// The time from one request to the next; none if nobody has to wait.
    step: Option<Duration>,
    next: Mutex<Option<Instant>>,
}

impl Pace {
    /// At most so many requests a second; 0 is as many as there are.
    pub fn new(per_second: u32) -> Pace {
        Pace {
            step: Duration::from_secs(1).checked_div(per_second),
            next: Mutex::new(None),
        }
    }

    /// Waits for one's turn.
    pub async fn turn(&self) {
        let Some(step) = self.step else {
            return;
        };
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let at = next.map_or(now, |next| next.max(now));
            *next = Some(at + step);
            at
        };
        tokio::time::sleep_until(at).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_come_no_faster_than_they_may() {
        let (slow, fast) = (Pace::new(10), Pace::new(0));
        let begun = Instant::now();
        for _ in 0..11 {
            slow.turn().await;
            fast.turn().await;
        }
        assert_eq!(begun.elapsed().as_millis(), 1000);
        // Time that nobody used is not saved up.
        tokio::time::advance(Duration::from_secs(10)).await;
        let begun = Instant::now();
        slow.turn().await;
        slow.turn().await;
        assert_eq!(begun.elapsed().as_millis(), 100);
    }
}
