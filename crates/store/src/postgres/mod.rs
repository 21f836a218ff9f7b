//! The store on PostgreSQL, shared by any number of processes. The database decides everything:
//! this process keeps connections, hints, and nothing else. The files beside this one are its
//! verbs.

mod backup;
mod blobs;
mod body;
mod compact;
mod computed;
pub(crate) mod connections;
mod events;
pub(crate) mod fault;
mod follow;
mod incarnation;
mod list;
mod lookup;
mod open;
mod options;
mod pending;
mod plan;
mod restore;
mod schema;
mod text;
mod write;

pub(crate) use backup::backup;
pub(crate) use restore::restore;

pub use open::OpenError;
pub use options::{Options, Tls};

use crate::clock::{Clock, Origin};
use crate::hints::Hints;
use async_trait::async_trait;
use bytes::Bytes;
use connections::Connections;
use fault::during;
use muster_apiserver::store::{
    Detail, Event, Key, ListQuery, Page, Resource, Store, StoreError, Stored, Write,
};
use muster_kind::{Body, Digest};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, broadcast, watch};
use tokio::task::JoinHandle;

/// Own writes that a listener may be behind with; beyond, it misses some.
const WRITTEN: usize = 1024;

/// Objects, their history and their blobs in a PostgreSQL database. Made with
/// [`PostgresStore::open`] or [`PostgresStore::open_when_ready`].
///
/// It works through a database that goes away and comes back: meanwhile requests fail with
/// [`StoreError::Unavailable`]. A write that failed so has happened whole or not at all. Between
/// this process and the server nothing may share server connections among clients per transaction
/// (PgBouncer works in session mode).
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) connections: Arc<Connections>,
    /// Writers wait for the clock's row with their connection in hand; others need some too.
    writers: Semaphore,
    hints: Hints,
    nudged: Arc<Notify>,
    written: broadcast::Sender<(Resource, u64)>,
    /// Some reports still have to be told of a change.
    left: Arc<Notify>,
    tasks: [JoinHandle<()>; 2],
}

impl PostgresStore {
    fn start(connections: Connections, hints: Hints) -> Self {
        let writers = (connections.options.max_connections / 2).max(1) as usize;
        let connections = Arc::new(connections);
        let nudged = Arc::new(Notify::new());
        let follower = follow::follow(connections.clone(), hints.clone(), nudged.clone());
        let written = broadcast::Sender::new(WRITTEN);
        let left = Arc::new(Notify::new());
        let pending = pending::Pending {
            connections: connections.clone(),
            hints: hints.clone(),
            written: written.clone(),
            left: left.clone(),
        };
        PostgresStore {
            connections,
            writers: Semaphore::new(writers),
            hints,
            nudged,
            written,
            left,
            tasks: [tokio::spawn(follower), tokio::spawn(pending.run())],
        }
    }

    /// Somebody says that a resource has reached a revision. If that is news to those who follow
    /// it, the clocks are read now and not at the next interval.
    pub fn nudge(&self, resource: &Resource, revision: u64) {
        if self.hints.lags(resource, revision) {
            self.nudged.notify_one();
        }
    }

    /// Hears of the writes made through this store, so that other processes can be nudged. Who
    /// listens too slowly misses some, which costs latency and never an event.
    pub fn written(&self) -> broadcast::Receiver<(Resource, u64)> {
        self.written.subscribe()
    }

    /// Finishes what is running, refuses what comes later, and ends the connections.
    pub async fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.connections.close().await;
    }

    /// The end of everything that is asked of the database: a server that is silent for longer
    /// than its own limits is gone.
    pub(crate) async fn bounded<T>(
        &self,
        attempt: &'static str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let patience: Duration = self.connections.options.patience();
        let done = tokio::time::timeout(patience, work).await;
        done.unwrap_or_else(|_| {
            Err(StoreError::Unavailable {
                attempt,
                source: format!("no answer within {patience:?}").into(),
            })
        })
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn get(&self, resource: &Resource, key: &Key) -> Result<Option<Stored>, StoreError> {
        let work = lookup::get(&self.connections, resource, key);
        self.bounded("reading an object", work).await
    }

    async fn list(&self, query: ListQuery) -> Result<Page, StoreError> {
        let work = list::list(&self.connections, query);
        self.bounded("reading a list", work).await
    }

    async fn count(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        after: Option<&Key>,
    ) -> Result<u64, StoreError> {
        let work = lookup::count(&self.connections, resource, namespace, after);
        self.bounded("counting objects", work).await
    }

    async fn write(&self, write: Write) -> Result<u64, StoreError> {
        self.bounded("writing", write::write(self, write)).await
    }

    async fn events(
        &self,
        resource: &Resource,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let work = events::events(&self.connections, resource, after, limit);
        self.bounded("reading the log", work).await
    }

    async fn compute(
        &self,
        resource: &Resource,
        bodies: Vec<Body>,
        detail: Detail,
    ) -> Result<Vec<Body>, StoreError> {
        let work = computed::compute(&self.connections, resource, bodies, detail);
        self.bounded("computing a report", work).await
    }

    async fn revision(&self, resource: &Resource) -> Result<u64, StoreError> {
        let work = async {
            let mut lease = self.connections.lease().await?;
            let clock = clock(lease.connection(), resource).await?;
            lease.done();
            Ok(clock.revision as u64)
        };
        self.bounded("reading a clock", work).await
    }

    fn hint(&self, resource: &Resource) -> watch::Receiver<u64> {
        self.hints.follow(resource)
    }

    async fn blob(&self, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
        let work = blobs::blob(&self.connections, digest);
        self.bounded("reading a blob", work).await
    }

    async fn blobs(
        &self,
        digests: &[Digest],
        most: u64,
    ) -> Result<HashMap<Digest, Bytes>, StoreError> {
        let work = blobs::blobs(&self.connections, digests, most);
        self.bounded("reading blobs", work).await
    }

    async fn owned(&self, uid: &str, limit: usize) -> Result<Vec<(Resource, Key)>, StoreError> {
        let work = lookup::owned(&self.connections, uid, limit);
        self.bounded("reading the objects of an owner", work).await
    }

    async fn unlinked(&self, resource: &Resource) -> Result<Vec<Key>, StoreError> {
        let work = lookup::unlinked(&self.connections, resource);
        self.bounded("looking for objects without links", work)
            .await
    }

    async fn uid_exists(&self, uid: &str) -> Result<bool, StoreError> {
        let work = lookup::uid_exists(&self.connections, uid);
        self.bounded("looking for a UID", work).await
    }

    async fn dangling(&self, limit: usize) -> Result<Vec<(Resource, Key)>, StoreError> {
        let work = lookup::dangling(&self.connections, limit);
        self.bounded("looking for objects without their owner", work)
            .await
    }

    async fn compact(&self, keep_seconds: u64, keep_events: u64) -> Result<u64, StoreError> {
        compact::compact(self, keep_seconds, keep_events).await
    }
}

const CLOCK: &str = "
SELECT i.origin, c.id, c.rv, c.compacted_rv
FROM incarnation i
LEFT JOIN clock c ON c.resource = $1";

async fn clock(connection: &mut PgConnection, resource: &Resource) -> Result<Clock, StoreError> {
    let failed = during("reading a clock");
    let row = sqlx::query(CLOCK)
        .bind(&**resource)
        .fetch_one(connection)
        .await
        .map_err(&failed)?;
    read_clock(&row).map_err(&failed)
}

/// The clock of a row that begins with the origin and the clock's columns, if it has a clock.
fn read_clock(row: &PgRow) -> Result<Clock, sqlx::Error> {
    let resource: Option<i64> = row.try_get(1)?;
    Ok(match resource {
        None => Origin(row.try_get(0)?).clock(),
        Some(resource) => Clock {
            resource,
            revision: row.try_get(2)?,
            compacted: row.try_get(3)?,
        },
    })
}
