//! The queue in a SQLite file of its own. One process has it; one task does every statement, many
//! callers to a transaction, and answers when that is on disk. Workers are in the same process,
//! so that whoever waits is woken when there is something to do. Leases of a process that was
//! killed are over when the file is opened again.

mod open;
mod statements;
mod writer;

use crate::queue::{
    Dead, Delivery, Depth, Published, Queue, QueueError, Receipt, Settings, check, check_subject,
    one_line,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use writer::{Answer, Job, Order, Writer};

/// The longest wait between two looks, in case a clock was set back.
const LOOK: Duration = Duration::from_secs(30);

/// A queue in a file of this machine. [`EmbeddedQueue::close`] ends it in order; dropping it
/// finishes what is queued as long as the runtime lives.
#[derive(Debug)]
pub struct EmbeddedQueue {
    jobs: mpsc::Sender<Job>,
    settings: Settings,
    /// Raised whenever a message may have become visible.
    news: watch::Receiver<u64>,
    writer: Mutex<Option<JoinHandle<Writer>>>,
}

impl EmbeddedQueue {
    /// Opens the queue of a file, which is made if it is not there.
    pub async fn open(path: &Path, settings: Settings) -> Result<EmbeddedQueue, QueueError> {
        let (opened, lock) = open::open(path).await?;
        let (news, hear) = watch::channel(0);
        let (jobs, queue) = mpsc::channel(writer::QUEUE);
        let writer = Writer::new(opened, settings.clone(), news, lock);
        let writer = Mutex::new(Some(tokio::spawn(writer.run(queue))));
        Ok(EmbeddedQueue {
            jobs,
            settings,
            news: hear,
            writer,
        })
    }

    /// Finishes what is queued, refuses what comes later, and lets the file go.
    pub async fn close(&self) -> Result<(), QueueError> {
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(writer) = writer else { return Ok(()) };
        let _ = self.jobs.send(Job::Close).await;
        match writer.await {
            Ok(writer) => writer.end().await,
            Err(error) => Err(QueueError::unavailable("ending the queue's writer", error)),
        }
    }

    async fn order(&self, order: Order) -> Result<Answer, QueueError> {
        let (answer, hear) = oneshot::channel();
        let job = Job::Do(order, answer);
        self.jobs.send(job).await.map_err(|_| QueueError::Closed)?;
        hear.await.map_err(|_| QueueError::Closed)?
    }

    /// An order about a delivery, which must still be ours.
    async fn settle(&self, delivery: &Delivery, order: Order) -> Result<(), QueueError> {
        match self.order(order).await? {
            Answer::Held(true) => Ok(()),
            _ => Err(QueueError::lost(delivery)),
        }
    }
}

fn receipt(delivery: &Delivery) -> Result<(i64, i64), QueueError> {
    match delivery.receipt {
        Receipt::Embedded { message, lease } => Ok((message, lease)),
        Receipt::Nats(_) => Err(QueueError::lost(delivery)),
    }
}

#[async_trait]
impl Queue for EmbeddedQueue {
    async fn publish(
        &self,
        subject: &str,
        id: &str,
        payload: Bytes,
    ) -> Result<Published, QueueError> {
        check(subject, id, payload.len(), self.settings.largest)?;
        let (subject, id) = (subject.into(), id.into());
        match self
            .order(Order::Publish {
                subject,
                id,
                payload,
            })
            .await?
        {
            Answer::Published(published) => Ok(published),
            _ => Err(QueueError::Closed),
        }
    }

    async fn pull(
        &self,
        subject: &str,
        limit: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, QueueError> {
        check_subject(subject)?;
        let deadline = Instant::now() + wait;
        let mut news = self.news.clone();
        loop {
            // Marked before looking: what becomes visible after the look is news.
            news.mark_unchanged();
            let order = Order::Pull {
                subject: subject.into(),
                limit,
            };
            let Answer::Pulled(deliveries, next) = self.order(order).await? else {
                return Err(QueueError::Closed);
            };
            let now = Instant::now();
            if !deliveries.is_empty() || now >= deadline || limit == 0 {
                return Ok(deliveries);
            }
            let next = next.map_or(LOOK, |next| until(next).min(LOOK));
            let until = deadline.min(now + next);
            if timeout(until - now, news.changed())
                .await
                .is_ok_and(|news| news.is_err())
            {
                // The writer is gone; the next order says so.
                sleep_until(now).await;
            }
        }
    }

    async fn ack(&self, delivery: &Delivery) -> Result<(), QueueError> {
        let (message, lease) = receipt(delivery)?;
        self.settle(delivery, Order::Ack { message, lease }).await
    }

    async fn nak(
        &self,
        delivery: &Delivery,
        delay: Duration,
        reason: &str,
    ) -> Result<(), QueueError> {
        let (message, lease) = receipt(delivery)?;
        let reason = one_line(reason);
        let order = match delivery.last {
            true => Order::Bury {
                message,
                lease,
                reason,
            },
            false => Order::Nak {
                message,
                lease,
                delay,
                reason,
            },
        };
        self.settle(delivery, order).await
    }

    async fn progress(&self, delivery: &Delivery) -> Result<(), QueueError> {
        let (message, lease) = receipt(delivery)?;
        self.settle(delivery, Order::Progress { message, lease })
            .await
    }

    async fn term(&self, delivery: &Delivery, reason: &str) -> Result<(), QueueError> {
        let (message, lease) = receipt(delivery)?;
        let reason = one_line(reason);
        self.settle(
            delivery,
            Order::Bury {
                message,
                lease,
                reason,
            },
        )
        .await
    }

    async fn depth(&self, subject: &str) -> Result<Depth, QueueError> {
        check_subject(subject)?;
        match self
            .order(Order::Depth {
                subject: subject.into(),
            })
            .await?
        {
            Answer::Depth(depth) => Ok(depth),
            _ => Err(QueueError::Closed),
        }
    }

    async fn dead(&self, subject: &str, limit: usize) -> Result<Vec<Dead>, QueueError> {
        check_subject(subject)?;
        match self
            .order(Order::Dead {
                subject: subject.into(),
                limit,
            })
            .await?
        {
            Answer::Dead(dead) => Ok(dead),
            _ => Err(QueueError::Closed),
        }
    }
}

/// Milliseconds since the epoch: what the file keeps.
fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn now() -> i64 {
    milliseconds(SystemTime::now())
}

fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// How long it is until a time that the file keeps; a moment longer, so that it is over then.
fn until(time: i64) -> Duration {
    let rest = u64::try_from(time.saturating_sub(now())).unwrap_or(0);
    Duration::from_millis(rest.saturating_add(1))
}
