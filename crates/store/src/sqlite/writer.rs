//! The one task that writes. It takes what is queued, makes it in one transaction and answers
//! when that is on disk, so many writers share one sync of the disk. What it has taken it
//! finishes, whether or not the caller still listens. The queue is bounded: who writes faster than
//! the disk waits.

use super::apply::{Identifiers, apply};
use super::compact::{self, Step};
use super::fault::{damaged, during};
use super::{Hints, incarnation, open, touch};
use crate::computed::WORKLOADS;
use crate::prepare::{Outcome, Prepared};
use muster_apiserver::store::{Resource, StoreError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use std::collections::BTreeMap;
use std::fs::File;
use tokio::sync::{mpsc, oneshot};

/// Writes that wait at most; beyond, callers wait for a place.
pub(super) const QUEUE: usize = 256;
/// Writes in one transaction at most.
const GROUP: usize = 128;

/// What the writer is asked to do.
pub(super) enum Job {
    /// A write.
    Write(Box<Prepared>, oneshot::Sender<Result<Outcome, StoreError>>),
    /// A step of compaction; answers how many rows it was about.
    Compact(Step, oneshot::Sender<Result<u64, StoreError>>),
    /// Begins a new incarnation; answers its number.
    Renew(oneshot::Sender<Result<u64, StoreError>>),
    /// Takes nothing more, finishes what is queued, and ends.
    Close,
}

type Pending = (Box<Prepared>, oneshot::Sender<Result<Outcome, StoreError>>);

/// The writing connection and what goes with it.
#[derive(Debug)]
pub(super) struct Writer {
    connection: SqliteConnection,
    options: SqliteConnectOptions,
    identifiers: Identifiers,
    hints: Hints,
    /// Whether a change may not have reached all reports yet.
    unfinished: bool,
    /// Whether telling them failed, and nothing has gone well since.
    resting: bool,
    /// Held until the last write is done, also when the store is dropped and not closed.
    lock: File,
}

const LAST_BODY: &str = "SELECT COALESCE(MAX(id), 0) FROM body";
const LAST_BLOB: &str = "SELECT COALESCE(MAX(id), 0) FROM blob";
const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

impl Writer {
    /// Takes over a connection to a database of the known schema.
    pub(super) async fn new(
        mut connection: SqliteConnection,
        options: SqliteConnectOptions,
        hints: Hints,
        lock: File,
    ) -> Result<Self, sqlx::Error> {
        let body = sqlx::query_scalar(LAST_BODY)
            .fetch_one(&mut connection)
            .await?;
        let blob = sqlx::query_scalar(LAST_BLOB)
            .fetch_one(&mut connection)
            .await?;
        let identifiers = Identifiers { body, blob };
        Ok(Writer {
            connection,
            options,
            identifiers,
            hints,
            // What a process before us left.
            unfinished: true,
            resting: false,
            lock,
        })
    }

    /// Works until it is told to close or nobody can ask any more.
    pub(super) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) -> Self {
        let mut taken = Vec::with_capacity(GROUP);
        loop {
            // Whoever waits has its turn between two portions.
            let more = tokio::select! {
                biased;
                count = jobs.recv_many(&mut taken, GROUP) => count > 0,
                () = std::future::ready(()), if self.unfinished && !self.resting => true,
            };
            if !more {
                break;
            }
            let mut group: Vec<Pending> = Vec::with_capacity(taken.len());
            for job in taken.drain(..) {
                match job {
                    Job::Write(write, answer) => group.push((write, answer)),
                    Job::Compact(step, answer) => {
                        self.commit(std::mem::take(&mut group)).await;
                        let done = self.compact(step).await;
                        let _ = answer.send(done.map_err(during("compacting")));
                    }
                    Job::Renew(answer) => {
                        self.commit(std::mem::take(&mut group)).await;
                        let done = self.renew().await;
                        let attempt = during("beginning a new incarnation");
                        let _ = answer.send(done.map_err(attempt));
                    }
                    Job::Close => jobs.close(),
                }
            }
            self.commit(group).await;
            if self.unfinished && !self.resting {
                self.resume().await;
            }
        }
        self
    }

    /// Moves the log into the database and lets go of both.
    pub(super) async fn end(mut self) -> Result<(), sqlx::Error> {
        sqlx::query(CHECKPOINT)
            .execute(&mut self.connection)
            .await?;
        self.connection.close().await?;
        drop(self.lock);
        Ok(())
    }

    /// Makes a group of writes and answers them. If the engine refuses the group, each write is
    /// tried alone, so that one that cannot be made takes no other with it.
    async fn commit(&mut self, group: Vec<Pending>) {
        if group.is_empty() {
            return;
        }
        let writes: Vec<&Prepared> = group.iter().map(|(write, _)| &**write).collect();
        match self.transaction(&writes).await {
            Ok(outcomes) => {
                for ((_, answer), outcome) in group.into_iter().zip(outcomes) {
                    let _ = answer.send(Ok(outcome));
                }
            }
            Err(error) => {
                tracing::warn!(%error, writes = group.len(), "a group of writes was not made");
                for (write, answer) in group {
                    let made = self.transaction(&[&write]).await.map_err(during("writing"));
                    let _ = answer.send(made.and_then(|mut outcomes| {
                        outcomes
                            .pop()
                            .ok_or_else(|| damaged("a write had no outcome"))
                    }));
                }
            }
        }
    }

    async fn transaction(&mut self, writes: &[&Prepared]) -> Result<Vec<Outcome>, sqlx::Error> {
        self.begin().await?;
        let made = match self.make(writes).await {
            Ok(outcomes) => self.execute(COMMIT).await.map(|()| outcomes),
            Err(error) => Err(error),
        };
        match made {
            Ok(outcomes) => {
                self.resting = false;
                self.unfinished |= outcomes.iter().any(Outcome::is_unfinished);
                self.tell(writes, &outcomes);
                Ok(outcomes)
            }
            Err(error) => {
                self.recover().await;
                Err(error)
            }
        }
    }

    async fn make(&mut self, writes: &[&Prepared]) -> Result<Vec<Outcome>, sqlx::Error> {
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            outcomes.push(apply(&mut self.connection, write, &mut self.identifiers).await?);
        }
        Ok(outcomes)
    }

    async fn compact(&mut self, step: Step) -> Result<u64, sqlx::Error> {
        if let Step::Shrink = step {
            return compact::shrink(&mut self.connection).await;
        }
        self.begin().await?;
        let made = match compact::step(&mut self.connection, step).await {
            Ok(rows) => self.execute(COMMIT).await.map(|()| rows),
            Err(error) => Err(error),
        };
        match made {
            Ok(_) => self.resting = false,
            Err(_) => self.recover().await,
        }
        made
    }

    /// Tells some more reports of a change. If that fails, it is tried again after the next
    /// write or compaction that does not.
    async fn resume(&mut self) {
        let made = match self.begin().await {
            Ok(()) => match touch::resume(&mut self.connection, &mut self.identifiers).await {
                Ok(touched) => self.execute(COMMIT).await.map(|()| touched),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        match made {
            Ok(touched) => {
                self.unfinished = touched.unfinished;
                if let Some(revision) = touched.last {
                    self.hints.raise(&Resource::from(WORKLOADS), revision);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "reports wait to be told of a change");
                self.resting = true;
                self.recover().await;
            }
        }
    }

    async fn renew(&mut self) -> Result<u64, sqlx::Error> {
        self.begin().await?;
        let made = match incarnation::renew(&mut self.connection).await {
            Ok(number) => self.execute(COMMIT).await.map(|()| number),
            Err(error) => Err(error),
        };
        match made {
            Ok(_) => self.hints.refresh(&mut self.connection).await?,
            Err(_) => self.recover().await,
        }
        made
    }

    fn tell(&self, writes: &[&Prepared], outcomes: &[Outcome]) {
        let workloads = Resource::from(WORKLOADS);
        let mut newest: BTreeMap<&Resource, u64> = BTreeMap::new();
        for (write, outcome) in writes.iter().zip(outcomes) {
            if let Outcome::Done(revision, touched) = outcome {
                newest.insert(&write.resource, *revision);
                newest.extend(touched.last.map(|revision| (&workloads, revision)));
            }
        }
        for (resource, revision) in newest {
            self.hints.raise(resource, revision);
        }
    }

    // Transactions are plain statements here and not the library's: when a disk is full the engine
    // may roll back by itself, and the library's count of open transactions would be wrong for ever.
    async fn begin(&mut self) -> Result<(), sqlx::Error> {
        if self.execute(BEGIN).await.is_ok() {
            return Ok(());
        }
        self.recover().await;
        self.execute(BEGIN).await
    }

    async fn execute(&mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        sqlx::query(statement)
            .execute(&mut self.connection)
            .await
            .map(drop)
    }

    /// Leaves no transaction open. A connection that cannot roll back is replaced; if that fails
    /// too, the next write tries again.
    async fn recover(&mut self) {
        if self.execute(ROLLBACK).await.is_ok() {
            return;
        }
        match open::reconnect(&self.options).await {
            Ok(connection) => self.connection = connection,
            Err(error) => tracing::error!(%error, "the database cannot be opened anew"),
        }
    }
}
