//! The store on SQLite: one writer task, a few readers, and the hints between them. The files
//! beside this one are its verbs.

mod apply;
mod backup;
mod blobs;
mod body;
mod compact;
mod computed;
mod events;
pub(crate) mod fault;
mod frame;
mod incarnation;
mod list;
mod lookup;
pub(crate) mod open;
mod plan;
mod restore;
mod schema;
mod script;
mod touch;
mod writer;

pub(crate) use backup::{backup, blank};
pub(crate) use fault::is_damaged;
pub(crate) use incarnation::{incarnation, origin};
pub(crate) use open::look;
pub(crate) use restore::restore;
pub(crate) use schema::{KNOWN, tables, tables_of, version};

use crate::clock::{Clock, Origin, event_number, event_type, signed};
use crate::hints::Hints;
use async_trait::async_trait;
use bytes::Bytes;
use fault::during;
use muster_apiserver::store::{
    Detail, Event, Key, ListQuery, Page, Resource, Store, StoreError, Stored, Write,
};
use muster_kind::{Body, Digest};
use sqlx::sqlite::SqlitePool;
use sqlx::{SqliteConnection, SqliteExecutor};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use writer::{Job, Writer};

/// Objects, their history and their blobs in a directory of this machine. Made with
/// [`SqliteStore::open`]; [`SqliteStore::close`] ends it in order, and dropping it finishes what
/// is queued as long as the runtime lives.
#[derive(Debug)]
pub struct SqliteStore {
    jobs: mpsc::Sender<Job>,
    readers: SqlitePool,
    hints: Hints,
    blob_idle: Duration,
    writer: Mutex<Option<JoinHandle<Writer>>>,
}

impl SqliteStore {
    fn start(writer: Writer, readers: SqlitePool, hints: Hints, blob_idle: Duration) -> Self {
        let (jobs, queue) = mpsc::channel(writer::QUEUE);
        let writer = Mutex::new(Some(tokio::spawn(writer.run(queue))));
        SqliteStore {
            jobs,
            readers,
            hints,
            blob_idle,
            writer,
        }
    }

    /// Finishes the writes that are queued, refuses later ones, moves the log into the database
    /// and lets the directory go. Closing again does nothing.
    pub async fn close(&self) -> Result<(), StoreError> {
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(writer) = writer else { return Ok(()) };
        // A writer that is gone already has closed its end.
        let _ = self.jobs.send(Job::Close).await;
        let writer = writer.await;
        // The log can be moved whole only when nobody reads it.
        self.readers.close().await;
        match writer {
            Ok(writer) => writer.end().await.map_err(during("closing the database")),
            Err(source) => Err(StoreError::Engine {
                attempt: "ending the writer",
                source: source.into(),
            }),
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn get(&self, resource: &Resource, key: &Key) -> Result<Option<Stored>, StoreError> {
        lookup::get(&self.readers, resource, key).await
    }

    async fn list(&self, query: ListQuery) -> Result<Page, StoreError> {
        list::list(&self.readers, query).await
    }

    async fn count(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        after: Option<&Key>,
    ) -> Result<u64, StoreError> {
        lookup::count(&self.readers, resource, namespace, after).await
    }

    async fn write(&self, write: Write) -> Result<u64, StoreError> {
        blobs::write(self, write).await
    }

    async fn events(
        &self,
        resource: &Resource,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        events::events(&self.readers, resource, after, limit).await
    }

    async fn compute(
        &self,
        resource: &Resource,
        bodies: Vec<Body>,
        detail: Detail,
    ) -> Result<Vec<Body>, StoreError> {
        computed::compute(&self.readers, resource, bodies, detail).await
    }

    async fn revision(&self, resource: &Resource) -> Result<u64, StoreError> {
        Ok(clock(&self.readers, resource).await?.revision as u64)
    }

    fn hint(&self, resource: &Resource) -> watch::Receiver<u64> {
        self.hints.follow(resource)
    }

    async fn blob(&self, digest: &Digest) -> Result<Option<Bytes>, StoreError> {
        blobs::blob(&self.readers, digest).await
    }

    async fn blobs(
        &self,
        digests: &[Digest],
        most: u64,
    ) -> Result<HashMap<Digest, Bytes>, StoreError> {
        blobs::blobs(&self.readers, digests, most).await
    }

    async fn owned(&self, uid: &str, limit: usize) -> Result<Vec<(Resource, Key)>, StoreError> {
        lookup::owned(&self.readers, uid, limit).await
    }

    async fn unlinked(&self, resource: &Resource) -> Result<Vec<Key>, StoreError> {
        lookup::unlinked(&self.readers, resource).await
    }

    async fn uid_exists(&self, uid: &str) -> Result<bool, StoreError> {
        lookup::uid_exists(&self.readers, uid).await
    }

    async fn dangling(&self, limit: usize) -> Result<Vec<(Resource, Key)>, StoreError> {
        lookup::dangling(&self.readers, limit).await
    }

    async fn compact(&self, keep_seconds: u64, keep_events: u64) -> Result<u64, StoreError> {
        compact::compact(self, keep_seconds, keep_events).await
    }
}

const CLOCK: &str = "
SELECT c.id, c.rv, c.compacted_rv,
    CASE WHEN c.id IS NULL THEN (SELECT value FROM meta WHERE key = 'origin') END
FROM (SELECT 1)
LEFT JOIN clock c ON c.resource = $1";

async fn clock<'e>(
    executor: impl SqliteExecutor<'e>,
    resource: &Resource,
) -> Result<Clock, StoreError> {
    type Found = (Option<i64>, Option<i64>, Option<i64>, Option<i64>);
    let found: Found = sqlx::query_as(CLOCK)
        .bind(&**resource)
        .fetch_one(executor)
        .await
        .map_err(during("reading a clock"))?;
    Ok(match found {
        (Some(resource), Some(revision), Some(compacted), _) => Clock {
            resource,
            revision,
            compacted,
        },
        (.., origin) => origin.map_or(Origin::FIRST, Origin).clock(),
    })
}

const CLOCKS: &str = "
SELECT resource, rv
FROM clock";

impl Hints {
    async fn read(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let hints = Hints::default();
        hints.refresh(connection).await?;
        Ok(hints)
    }

    async fn refresh(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        self.raise_all(origin(connection).await?);
        let clocks: Vec<(String, i64)> = sqlx::query_as(CLOCKS).fetch_all(connection).await?;
        for (resource, revision) in clocks {
            self.raise(&resource.into(), revision as u64);
        }
        Ok(())
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
