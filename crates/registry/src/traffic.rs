//! How much is asked of each host at once, by every client of the process together: so many
//! requests, so many transfers, and nothing while the host wants a pause.

use crate::error::Error;
use crate::memory::Memory;
use crate::retry::MAX_RETRY_AFTER;
use crate::tally::{Counts, Tally};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// How many hosts are remembered before those that nobody uses are forgotten.
const HOSTS: usize = 1024;

/// The gates of all hosts. Clones are the same gates; a process has one.
#[derive(Clone, Debug)]
pub struct Traffic {
    hosts: Arc<Mutex<HashMap<String, Arc<Gate>>>>,
    requests: usize,
    transfers: usize,
    tally: Arc<Tally>,
    memory: Arc<Memory>,
    clients: Arc<AtomicU64>,
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic::new(8, 4)
    }
}

impl Traffic {
    /// So many requests and, beside them, so many transfers of layers at once for each host.
    pub fn new(requests: usize, transfers: usize) -> Traffic {
        Traffic {
            hosts: Arc::default(),
            requests: requests.max(1),
            transfers: transfers.max(1),
            tally: Arc::default(),
            memory: Arc::default(),
            clients: Arc::default(),
        }
    }

    /// How much was asked of all hosts together.
    pub fn counts(&self) -> Counts {
        self.tally.counts()
    }

    /// What clients have read lately.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// A number that no other client has.
    pub(crate) fn number(&self) -> u64 {
        self.clients.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// For how long a host wants to be left alone.
    pub fn pause_of(&self, host: &str) -> Option<Duration> {
        let until = self.gate(host).paused_until()?;
        until.checked_duration_since(Instant::now())
    }

    pub(crate) fn gate(&self, host: &str) -> Arc<Gate> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = hosts.get(host) {
            return gate.clone();
        }
        if hosts.len() >= HOSTS {
            let now = Instant::now();
            hosts.retain(|_, gate| {
                Arc::strong_count(gate) > 1 || gate.paused_until().is_some_and(|until| until > now)
            });
        }
        let gate = Arc::new(Gate {
            requests: Arc::new(Semaphore::new(self.requests)),
            transfers: Arc::new(Semaphore::new(self.transfers)),
            paused: Mutex::new(None),
            tally: self.tally.clone(),
        });
        hosts.insert(host.into(), gate.clone());
        gate
    }
}

/// The gate of one host.
#[derive(Debug)]
pub(crate) struct Gate {
    requests: Arc<Semaphore>,
    transfers: Arc<Semaphore>,
    paused: Mutex<Option<Instant>>,
    tally: Arc<Tally>,
}

/// A place at a host, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

/// The host wants to be left alone for longer than anybody would wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed(Duration);

impl Closed {
    /// As an error of a call that was not made.
    pub(crate) fn over(self, attempt: &str) -> Error {
        Error::RateLimited {
            attempt: attempt.into(),
            reason: format!(
                "the host wants no requests for another {} s",
                self.0.as_secs()
            ),
            retry_after: Some(self.0),
        }
    }
}

/// What a place is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A request with a small answer.
    Request,
    /// The transfer of a layer.
    Transfer,
}

impl Gate {
    /// Waits for a place, and for the end of a pause; a pause longer than the patience is not
    /// waited for.
    pub(crate) async fn enter(&self, purpose: Use, patience: Duration) -> Result<Place, Closed> {
        let places = match purpose {
            Use::Request => &self.requests,
            Use::Transfer => &self.transfers,
        };
        // A semaphore that is never closed always gives.
        let permit = places.clone().acquire_owned().await.ok();
        while let Some(until) = self.paused_until()
            && let Some(rest) = until.checked_duration_since(Instant::now())
            && !rest.is_zero()
        {
            if rest > patience {
                return Err(Closed(rest));
            }
            self.tally.wait();
            sleep_until(until).await;
        }
        Ok(Place { _permit: permit })
    }

    /// Sends nothing more to the host for this long, at most [`MAX_RETRY_AFTER`]. A pause that ends later
    /// stands.
    pub(crate) fn pause(&self, pause: Duration) {
        let Some(until) = Instant::now().checked_add(pause.min(MAX_RETRY_AFTER)) else {
            return;
        };
        let mut paused = self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        if paused.is_none_or(|standing| standing < until) {
            *paused = Some(until);
        }
    }

    fn paused_until(&self) -> Option<Instant> {
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_pause_holds_every_call_to_that_host_and_no_other() {
        let traffic = Traffic::new(2, 1);
        let gate = traffic.gate("a");
        let pause = Duration::from_millis(200);
        gate.pause(pause);
        gate.pause(pause / 4);
        let before = Instant::now();
        let _other = traffic.gate("b").enter(Use::Request, PATIENCE).await;
        assert!(traffic.clone().pause_of("b").is_none());
        let impatient = gate.enter(Use::Request, Duration::ZERO).await;
        assert!(
            impatient.is_err(),
            "who does not want to wait is told at once"
        );
        assert_eq!(traffic.counts().waits, 0);
        let _place = traffic.gate("a").enter(Use::Transfer, PATIENCE).await;
        assert_eq!(traffic.counts().waits, 1);
        assert!(before.elapsed() >= pause);
    }

    #[test]
    fn the_longest_pause_there_is_ends_within_a_day() {
        let traffic = Traffic::default();
        traffic.gate("a").pause(Duration::MAX);
        assert!(traffic.pause_of("a").expect("a pause") <= MAX_RETRY_AFTER);
    }

    #[tokio::test]
    async fn places_are_bounded_and_given_back() {
        let traffic = Traffic::new(1, 1);
        let gate = traffic.gate("a");
        let first = gate.enter(Use::Request, PATIENCE).await;
        assert!(gate.enter(Use::Request, PATIENCE).now_or_never().is_none());
        assert!(gate.enter(Use::Transfer, PATIENCE).now_or_never().is_some());
        drop(first.expect("a place"));
        assert!(gate.enter(Use::Request, PATIENCE).now_or_never().is_some());
    }

    #[test]
    fn hosts_that_nobody_uses_are_forgotten() {
        let traffic = Traffic::default();
        let used = traffic.gate("used");
        traffic.gate("paused").pause(Duration::from_secs(3600));
        for host in 0..3 * HOSTS {
            traffic.gate(&host.to_string());
        }
        let hosts = traffic.hosts.lock().expect("a lock");
        assert!(hosts.len() <= HOSTS);
        assert!(Arc::ptr_eq(&hosts["used"], &used) && hosts.contains_key("paused"));
    }
}
