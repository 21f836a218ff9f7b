//! The loop of a worker: takes messages, runs a handler on so many at once, prolongs their leases
//! meanwhile, and says what became of each. What to say is a pure function of the outcome.

use crate::queue::{Delivery, Queue, QueueError};
use bytes::Bytes;
use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// A message as a handler sees it.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its subject.
    pub subject: String,
    /// Its id.
    pub id: String,
    /// Its content.
    pub payload: Bytes,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// Whether there is no further one.
    pub last: bool,
}

/// Why a handler did not do its work.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// It may work later.
    Transient {
        /// What happened.
        reason: String,
        /// Not before this time, where somebody said so.
        after: Option<Duration>,
    },
    /// It never will.
    Permanent {
        /// What is wrong.
        reason: String,
    },
}

/// The pauses between tries.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    /// The pause after the first failure; it doubles with each further one.
    pub first: Duration,
    /// The longest pause of our own choice.
    pub longest: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(300),
        }
    }
}

impl Backoff {
    /// The pause after the `attempt`-th try. `random` is from 0 to 1 and takes or adds a fifth.
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let doubled = 2u32.saturating_pow(attempt.saturating_sub(1));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        full.mul_f64(0.8 + 0.4 * random.clamp(0.0, 1.0))
    }
}

/// What is said of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Done.
    Ack,
    /// Again, after this pause.
    Nak(Duration, String),
    /// Never again.
    Term(String),
}

/// What to say of a message after its handler ended.
pub fn verdict(
    outcome: Result<(), Failure>,
    attempt: u32,
    backoff: &Backoff,
    random: f64,
) -> Verdict {
    match outcome {
        Ok(()) => Verdict::Ack,
        Err(Failure::Permanent { reason }) => Verdict::Term(reason),
        Err(Failure::Transient { reason, after }) => {
            let own = backoff.delay(attempt, random);
            Verdict::Nak(after.map_or(own, |after| after.max(own)), reason)
        }
    }
}

/// How a worker works.
#[derive(Clone, Debug)]
pub struct Worker {
    /// How many handlers run at once.
    pub concurrency: usize,
    /// How often a lease is prolonged; well below its length.
    pub heartbeat: Duration,
    /// The pauses between tries.
    pub backoff: Backoff,
    /// How long one question for messages waits; ending takes up to this long.
    pub wait: Duration,
    /// How long handlers may go on after the end was asked for.
    pub grace: Duration,
}

impl Default for Worker {
    fn default() -> Self {
        Worker {
            concurrency: 4,
            heartbeat: Duration::from_secs(15),
            backoff: Backoff::default(),
            wait: Duration::from_secs(2),
            grace: Duration::from_secs(30),
        }
    }
}

/// Handles the messages of a subject until `cancel`. Then nothing more is taken, what was taken is
/// finished, and what is not finished within the grace is given up: it comes again when its lease
/// is over. A handler that panics has failed its message and nothing else.
pub async fn consume<H, F>(
    queue: Arc<dyn Queue>,
    subject: &str,
    worker: Worker,
    handler: H,
    cancel: CancellationToken,
) where
    H: Fn(Job) -> F,
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(worker.concurrency.max(1)));
    let mut running = JoinSet::new();
    let mut troubles = 0;
    while !cancel.is_cancelled() {
        // One place first, then as many messages as there are places: nothing is hoarded.
        let first = tokio::select! {
            place = places.clone().acquire_owned() => place,
            () = cancel.cancelled() => break,
        };
        let Ok(first) = first else { break };
        let mut held = vec![first];
        while let Ok(place) = places.clone().try_acquire_owned() {
            held.push(place);
        }
        // Not cut short by the end: a message on its way would be lost for a whole lease.
        match queue.pull(subject, held.len(), worker.wait).await {
            Ok(deliveries) => {
                troubles = 0;
                for (delivery, place) in deliveries.into_iter().zip(held) {
                    let future = handler(job(&delivery));
                    running.spawn(attend(
                        queue.clone(),
                        worker.clone(),
                        delivery,
                        future,
                        place,
                    ));
                }
            }
            Err(QueueError::Closed) => break,
            Err(error) => {
                troubles += 1;
                tracing::warn!(%error, subject, "no messages can be had");
                let pause = Backoff {
                    first: Duration::from_millis(100),
                    longest: Duration::from_secs(10),
                };
                let pause = pause.delay(troubles, rand::random());
                tokio::select! {
                    () = sleep(pause) => {}
                    () = cancel.cancelled() => {}
                }
            }
        }
        while running.try_join_next().is_some() {}
    }
    let finish = async { while running.join_next().await.is_some() {} };
    if timeout(worker.grace, finish).await.is_err() {
        tracing::warn!(subject, count = running.len(), "handlers are given up");
        running.shutdown().await;
    }
}

fn job(delivery: &Delivery) -> Job {
    Job {
        subject: delivery.subject.clone(),
        id: delivery.id.clone(),
        payload: delivery.payload.clone(),
        attempt: delivery.attempt,
        last: delivery.last,
    }
}

async fn attend<F>(
    queue: Arc<dyn Queue>,
    worker: Worker,
    delivery: Delivery,
    handler: F,
    _place: OwnedSemaphorePermit,
) where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    // A task of its own, so that a panic ends there. Dropping the set ends the task.
    let mut task = JoinSet::new();
    task.spawn(handler);
    let mut beats = interval(worker.heartbeat.max(Duration::from_millis(1)));
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats.tick().await;
    let outcome = loop {
        tokio::select! {
            ended = task.join_next() => break ended,
            _ = beats.tick() => match queue.progress(&delivery).await {
                // Another has it: going on would be doing the work twice.
                Err(error @ QueueError::Lost { .. }) => {
                    tracing::warn!(%error, "a handler is given up");
                    return;
                }
                Err(error) => tracing::warn!(%error, "a lease could not be prolonged"),
                Ok(()) => {}
            }
        }
    };
    let outcome = match outcome {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => Err(Failure::Transient {
            reason: panicked(error),
            after: None,
        }),
        None => return,
    };
    let said = match verdict(outcome, delivery.attempt, &worker.backoff, rand::random()) {
        Verdict::Ack => queue.ack(&delivery).await,
        Verdict::Nak(delay, reason) => queue.nak(&delivery, delay, &reason).await,
        Verdict::Term(reason) => queue.term(&delivery, &reason).await,
    };
    if let Err(error) = said {
        // The lease ends by itself, and the message comes again.
        tracing::warn!(%error, id = delivery.id, "what became of a message could not be said");
    }
}

fn panicked(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("the handler panicked: {}", words(&*panic)),
        Err(error) => format!("the handler was ended: {error}"),
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no words)")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_within_a_fifth_and_end_at_the_longest() {
        let backoff = Backoff {
            first: 10 * SECOND,
            longest: 60 * SECOND,
        };
        for (attempt, middle) in [(0, 10), (1, 10), (2, 20), (3, 40), (4, 60), (u32::MAX, 60)] {
            let middle = middle * SECOND;
            assert_eq!(backoff.delay(attempt, 0.5), middle, "{attempt}");
            assert_eq!(backoff.delay(attempt, 0.0), middle.mul_f64(0.8));
            assert_eq!(backoff.delay(attempt, 1.0), middle.mul_f64(1.2));
        }
    }

    #[test]
    fn the_outcome_decides_what_is_said() {
        let backoff = Backoff {
            first: SECOND,
            longest: 60 * SECOND,
        };
        let say = |outcome| verdict(outcome, 2, &backoff, 0.5);
        assert_eq!(say(Ok(())), Verdict::Ack);
        let permanent = Failure::Permanent { reason: "x".into() };
        assert_eq!(say(Err(permanent)), Verdict::Term("x".into()));
        for (after, delay) in [(None, 2), (Some(1), 2), (Some(90), 90)] {
            let after = after.map(|seconds| seconds * SECOND);
            let failure = Failure::Transient {
                reason: "y".into(),
                after,
            };
            assert_eq!(say(Err(failure)), Verdict::Nak(delay * SECOND, "y".into()));
        }
    }
}
