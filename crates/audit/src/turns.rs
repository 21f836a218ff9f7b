//! Who judges when: so many questions at once, whoever they are about. A namespace in which policies use
//! up their time is never given all of them, so that the others are judged meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a namespace counts as slow after the last time that it was.
const REMEMBERED: Duration = Duration::from_secs(600);

/// A turn; it ends when dropped.
pub(crate) struct Turn {
    _narrow: Option<OwnedSemaphorePermit>,
    _turn: Option<OwnedSemaphorePermit>,
}

/// The turns that there are.
#[derive(Debug)]
pub(crate) struct Turns {
    all: Arc<Semaphore>,
    parallel: usize,
    slow: Mutex<HashMap<String, (Instant, Arc<Semaphore>)>>,
}

impl Turns {
    /// So many at once.
    pub(crate) fn new(parallel: usize) -> Turns {
        let parallel = parallel.max(1);
        Turns {
            all: Arc::new(Semaphore::new(parallel)),
            parallel,
            slow: Mutex::default(),
        }
    }

    /// Waits for a turn to judge something in a namespace, or in none.
    pub(crate) async fn take(&self, namespace: Option<&str>) -> Turn {
        let narrow = namespace.and_then(|name| self.narrow(name, Instant::now()));
        // They are never closed.
        let narrow = match narrow {
            Some(narrow) => narrow.acquire_owned().await.ok(),
            None => None,
        };
        Turn {
            _narrow: narrow,
            _turn: self.all.clone().acquire_owned().await.ok(),
        }
    }

    /// Notes that a policy used up its time on something in a namespace.
    pub(crate) fn slowed(&self, namespace: Option<&str>, now: Instant) {
        if let (Some(name), 2..) = (namespace, self.parallel) {
            let mut slow = self.slow();
            let narrow = || Arc::new(Semaphore::new(self.parallel - 1));
            let known = slow.entry(name.to_owned());
            known.or_insert_with(|| (now, narrow())).0 = now;
        }
    }

    fn narrow(&self, namespace: &str, now: Instant) -> Option<Arc<Semaphore>> {
        let mut slow = self.slow();
        if slow.is_empty() {
            return None;
        }
        slow.retain(|_, (since, _)| now.saturating_duration_since(*since) < REMEMBERED);
        slow.get(namespace).map(|(_, narrow)| narrow.clone())
    }

    fn slow(&self) -> MutexGuard<'_, HashMap<String, (Instant, Arc<Semaphore>)>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_slow_namespace_never_has_all_turns() {
        let turns = Turns::new(2);
        let both = (turns.take(Some("a")).await, turns.take(Some("a")).await);
        assert!(turns.take(Some("b")).now_or_never().is_none(), "all taken");
        drop(both);
        turns.slowed(Some("a"), Instant::now());
        let one = turns.take(Some("a")).await;
        assert!(turns.take(Some("a")).now_or_never().is_none());
        let other = turns.take(Some("b")).now_or_never();
        assert!(other.is_some(), "there is one for others");
        drop((one, other));
        assert!(turns.take(Some("a")).now_or_never().is_some());
        // It is forgotten after a while.
        let later = Instant::now() + REMEMBERED;
        assert!(turns.narrow("a", later).is_none());
    }

    #[tokio::test]
    async fn where_there_is_one_turn_everybody_has_it() {
        let turns = Turns::new(0);
        turns.slowed(Some("a"), Instant::now());
        turns.slowed(None, Instant::now());
        assert!(turns.take(Some("a")).now_or_never().is_some());
        assert!(turns.take(None).now_or_never().is_some());
    }
}
