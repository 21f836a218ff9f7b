//! The one task that has the file. What is queued is done in one transaction and answered when
//! that is on disk; if the engine refuses the group, each order is tried alone.

use super::open::Opened;
use super::{milliseconds, now, span, statements};
use crate::queue::{Dead, Delivery, Depth, Published, QueueError, Receipt, Settings, unfinished};
use bytes::Bytes;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::fs::File;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot, watch};

/// Orders that wait at most; beyond, callers wait for a place.
pub(super) const QUEUE: usize = 256;
/// Orders in one transaction at most.
const GROUP: usize = 128;
/// Messages given out by one order at most.
const BATCH: usize = 1000;

/// What the writer is asked.
pub(super) enum Job {
    Do(Order, oneshot::Sender<Result<Answer, QueueError>>),
    /// Takes nothing more, finishes what is queued, and ends.
    Close,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Publish {
        subject: String,
        id: String,
        payload: Bytes,
    },
    Pull {
        subject: String,
        limit: usize,
    },
    Ack {
        message: i64,
        lease: i64,
    },
    Nak {
        message: i64,
        lease: i64,
        delay: Duration,
        reason: String,
    },
    Progress {
        message: i64,
        lease: i64,
    },
    Bury {
        message: i64,
        lease: i64,
        reason: String,
    },
    Depth {
        subject: String,
    },
    Dead {
        subject: String,
        limit: usize,
    },
}

/// What was done.
#[derive(Debug)]
pub(super) enum Answer {
    Published(Published),
    /// The messages, and when the next one becomes visible.
    Pulled(Vec<Delivery>, Option<i64>),
    /// Whether the message was still in the caller's hands.
    Held(bool),
    Depth(Depth),
    Dead(Vec<Dead>),
}

type Pending = (Order, oneshot::Sender<Result<Answer, QueueError>>);

/// The connection and what goes with it.
#[derive(Debug)]
pub(super) struct Writer {
    connection: SqliteConnection,
    options: SqliteConnectOptions,
    settings: Settings,
    news: watch::Sender<u64>,
    /// Leases are numbered from a random start, so that one of an earlier process is never ours.
    lease: i64,
    lock: File,
}

struct Held {
    subject: String,
    id: String,
    payload: Vec<u8>,
    attempts: i64,
    published: i64,
}

impl Writer {
    pub(super) fn new(
        opened: Opened,
        settings: Settings,
        news: watch::Sender<u64>,
        lock: File,
    ) -> Writer {
        let lease = i64::from(rand::random::<u32>()) << 30;
        let Opened {
            connection,
            options,
        } = opened;
        Writer {
            connection,
            options,
            settings,
            news,
            lease,
            lock,
        }
    }

    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) -> Writer {
        let mut taken = Vec::with_capacity(GROUP);
        while jobs.recv_many(&mut taken, GROUP).await > 0 {
            let mut group: Vec<Pending> = Vec::with_capacity(taken.len());
            for job in taken.drain(..) {
                match job {
                    Job::Do(order, answer) => group.push((order, answer)),
                    Job::Close => jobs.close(),
                }
            }
            self.commit(group).await;
        }
        self
    }

    pub(super) async fn end(mut self) -> Result<(), QueueError> {
        let attempt = "closing the queue";
        let failed = |error| QueueError::unavailable(attempt, error);
        self.execute(statements::CHECKPOINT).await.map_err(failed)?;
        self.connection.close().await.map_err(failed)?;
        drop(self.lock);
        Ok(())
    }

    async fn commit(&mut self, group: Vec<Pending>) {
        if group.is_empty() {
            return;
        }
        let orders: Vec<&Order> = group.iter().map(|(order, _)| order).collect();
        match self.transaction(&orders).await {
            Ok(answers) => {
                for ((_, hear), answer) in group.into_iter().zip(answers) {
                    let _ = hear.send(Ok(answer));
                }
            }
            Err(error) => {
                tracing::warn!(%error, orders = group.len(), "a group of orders was not done");
                for (order, hear) in group {
                    let done = self.transaction(&[&order]).await;
                    let done =
                        done.map_err(|error| QueueError::unavailable("using the queue", error));
                    let _ = hear
                        .send(done.and_then(|mut answers| answers.pop().ok_or(QueueError::Closed)));
                }
            }
        }
    }

    async fn transaction(&mut self, orders: &[&Order]) -> Result<Vec<Answer>, sqlx::Error> {
        if self.execute("BEGIN IMMEDIATE").await.is_err() {
            self.recover().await;
            self.execute("BEGIN IMMEDIATE").await?;
        }
        let done = match self.all(orders).await {
            Ok(answers) => self.execute("COMMIT").await.map(|()| answers),
            Err(error) => Err(error),
        };
        match &done {
            // Only what is committed is news.
            Ok(_)
                if orders
                    .iter()
                    .any(|order| matches!(order, Order::Publish { .. } | Order::Nak { .. })) =>
            {
                self.news.send_modify(|count| *count += 1);
            }
            Ok(_) => {}
            Err(_) => self.recover().await,
        }
        done
    }

    /// Leaves no transaction open; a connection that cannot roll back is replaced.
    async fn recover(&mut self) {
        if self.execute("ROLLBACK").await.is_ok() {
            return;
        }
        match self.options.connect().await {
            Ok(connection) => self.connection = connection,
            Err(error) => tracing::error!(%error, "the queue cannot be opened anew"),
        }
    }

    async fn execute(&mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        sqlx::query(statement)
            .execute(&mut self.connection)
            .await
            .map(drop)
    }

    async fn all(&mut self, orders: &[&Order]) -> Result<Vec<Answer>, sqlx::Error> {
        let mut answers = Vec::with_capacity(orders.len());
        for order in orders {
            answers.push(self.one(order).await?);
        }
        Ok(answers)
    }

    async fn one(&mut self, order: &Order) -> Result<Answer, sqlx::Error> {
        match order {
            Order::Publish {
                subject,
                id,
                payload,
            } => self.publish(subject, id, payload).await,
            Order::Pull { subject, limit } => self.pull(subject, (*limit).min(BATCH)).await,
            Order::Ack { message, lease } => match self.held(*message, *lease).await? {
                None => Ok(Answer::Held(false)),
                Some(held) => {
                    self.remove(*message, &held).await?;
                    Ok(Answer::Held(true))
                }
            },
            Order::Bury {
                message,
                lease,
                reason,
            } => match self.held(*message, *lease).await? {
                None => Ok(Answer::Held(false)),
                Some(held) => {
                    self.bury(*message, &held, reason).await?;
                    Ok(Answer::Held(true))
                }
            },
            Order::Nak {
                message,
                lease,
                delay,
                reason,
            } => {
                let query = sqlx::query(statements::RETURN).bind(message).bind(lease);
                let query = query.bind(now().saturating_add(span(*delay))).bind(reason);
                let changed = query.execute(&mut self.connection).await?.rows_affected();
                Ok(Answer::Held(changed > 0))
            }
            Order::Progress { message, lease } => {
                let query = sqlx::query(statements::PROLONG).bind(message).bind(lease);
                let query = query.bind(now().saturating_add(span(self.settings.lease)));
                let changed = query.execute(&mut self.connection).await?.rows_affected();
                Ok(Answer::Held(changed > 0))
            }
            Order::Depth { subject } => {
                let query = sqlx::query_as(statements::DEPTH).bind(subject).bind(now());
                let (all, running, dead): (i64, i64, i64) =
                    query.fetch_one(&mut self.connection).await?;
                let waiting = (all - running).max(0) as u64;
                Ok(Answer::Depth(Depth {
                    waiting,
                    running: running.max(0) as u64,
                    dead: dead.max(0) as u64,
                }))
            }
            Order::Dead { subject, limit } => self.dead(subject, *limit).await,
        }
    }

    async fn publish(
        &mut self,
        subject: &str,
        id: &str,
        payload: &Bytes,
    ) -> Result<Answer, sqlx::Error> {
        let now = now();
        sqlx::query(statements::FORGET)
            .bind(now)
            .execute(&mut self.connection)
            .await?;
        let query = sqlx::query_scalar(statements::IS_FINISHED)
            .bind(subject)
            .bind(id)
            .bind(now);
        let finished: i64 = query.fetch_one(&mut self.connection).await?;
        if finished > 0 {
            return Ok(Answer::Published(Published::Duplicate));
        }
        let query = sqlx::query(statements::INSERT).bind(subject).bind(id);
        let query = query.bind(payload.as_ref()).bind(now);
        let added = query.execute(&mut self.connection).await?.rows_affected();
        Ok(Answer::Published(match added {
            0 => Published::Duplicate,
            _ => Published::Accepted,
        }))
    }

    async fn pull(&mut self, subject: &str, limit: usize) -> Result<Answer, sqlx::Error> {
        type Row = (i64, String, Vec<u8>, i64, String, i64);
        let tries = i64::from(self.settings.tries.max(1));
        let mut deliveries = Vec::new();
        while deliveries.len() < limit {
            let now = now();
            let missing = (limit - deliveries.len()) as i64;
            let query = sqlx::query_as(statements::VISIBLE)
                .bind(subject)
                .bind(now)
                .bind(missing);
            let rows: Vec<Row> = query.fetch_all(&mut self.connection).await?;
            if rows.is_empty() {
                break;
            }
            for (number, id, payload, attempts, reason, published) in rows {
                // Its workers were lost, one after the other.
                if attempts >= tries {
                    let reason = unfinished(attempts as u32, Some(&reason));
                    let held = Held {
                        subject: subject.into(),
                        id,
                        payload,
                        attempts,
                        published,
                    };
                    self.bury(number, &held, &reason).await?;
                    continue;
                }
                self.lease += 1;
                let until = now.saturating_add(span(self.settings.lease).max(1));
                let query = sqlx::query(statements::TAKE)
                    .bind(number)
                    .bind(until)
                    .bind(self.lease);
                query.execute(&mut self.connection).await?;
                deliveries.push(Delivery {
                    subject: subject.into(),
                    id,
                    payload: payload.into(),
                    attempt: (attempts + 1) as u32,
                    last: attempts + 1 >= tries,
                    receipt: Receipt::Embedded {
                        message: number,
                        lease: self.lease,
                    },
                });
            }
        }
        let query = sqlx::query_scalar(statements::NEXT).bind(subject);
        let next: Option<i64> = query.fetch_one(&mut self.connection).await?;
        Ok(Answer::Pulled(deliveries, next))
    }

    async fn held(&mut self, message: i64, lease: i64) -> Result<Option<Held>, sqlx::Error> {
        type Row = (String, String, Vec<u8>, i64, i64);
        let query = sqlx::query_as(statements::HELD).bind(message).bind(lease);
        let row: Option<Row> = query.fetch_optional(&mut self.connection).await?;
        Ok(row.map(|(subject, id, payload, attempts, published)| Held {
            subject,
            id,
            payload,
            attempts,
            published,
        }))
    }

    async fn remove(&mut self, message: i64, held: &Held) -> Result<(), sqlx::Error> {
        sqlx::query(statements::DELETE)
            .bind(message)
            .execute(&mut self.connection)
            .await?;
        let until = held.published.saturating_add(span(self.settings.window));
        if until <= now() {
            return Ok(());
        }
        let query = sqlx::query(statements::FINISH)
            .bind(&held.subject)
            .bind(&held.id)
            .bind(until);
        query.execute(&mut self.connection).await.map(drop)
    }

    async fn bury(&mut self, message: i64, held: &Held, reason: &str) -> Result<(), sqlx::Error> {
        let query = sqlx::query(statements::BURY)
            .bind(&held.subject)
            .bind(&held.id);
        let query = query.bind(&held.payload).bind(reason).bind(held.attempts);
        query
            .bind(milliseconds(SystemTime::now()))
            .execute(&mut self.connection)
            .await?;
        let kept = i64::try_from(self.settings.dead).unwrap_or(i64::MAX);
        sqlx::query(statements::EXHUME)
            .bind(kept)
            .execute(&mut self.connection)
            .await?;
        self.remove(message, held).await
    }

    async fn dead(&mut self, subject: &str, limit: usize) -> Result<Answer, sqlx::Error> {
        type Row = (String, Vec<u8>, String, i64, i64);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let query = sqlx::query_as(statements::DEAD).bind(subject).bind(limit);
        let rows: Vec<Row> = query.fetch_all(&mut self.connection).await?;
        let dead = rows
            .into_iter()
            .map(|(id, payload, reason, tries, at)| Dead {
                subject: subject.into(),
                id,
                payload: payload.into(),
                reason,
                tries: tries as u32,
                at: UNIX_EPOCH + Duration::from_millis(at.max(0) as u64),
            });
        Ok(Answer::Dead(dead.collect()))
    }
}
