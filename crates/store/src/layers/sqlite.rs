//! Inventories in a file of their own, apart from the state: it may be thrown away at any time, and
//! is, when it cannot be opened. The whole of it is not checked then: that could take longer than
//! all else at the start, and whoever is refused reads the layer itself. It is synced less often
//! than the state: a power loss may cost the newest entries and nothing else.

use super::{
    LayerAbout, LayerKey, LayerLimits, LayerPut, Layers, NOTED, Packed, STEP, Weight, about,
    milliseconds, surplus, unpack,
};
use crate::sqlite::fault::during;
use crate::sqlite::open::{OpenError, create, engine, reading, writing};
use async_trait::async_trait;
use bytes::Bytes;
use muster_apiserver::store::StoreError;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

/// The version of the file; one of another version is thrown away.
const VERSION: i64 = 1;
/// How many read at once.
const READERS: u32 = 2;
/// Free pages that are given back to the file system after a step.
const VACUUM: &str = "PRAGMA incremental_vacuum(2000)";

const SCHEMA: &str = "
BEGIN IMMEDIATE;
CREATE TABLE layer (
    diff_id BLOB NOT NULL,
    analyzers TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    size INTEGER NOT NULL,
    packed INTEGER NOT NULL,
    used INTEGER NOT NULL,
    zstd BLOB NOT NULL,
    PRIMARY KEY (diff_id, analyzers)
) STRICT;
CREATE INDEX layer_used ON layer (used, packed);
PRAGMA user_version = 1;
COMMIT";

/// Inventories in a file of this machine.
#[derive(Debug)]
pub struct SqliteLayers {
    /// None once it is closed.
    writer: Mutex<Option<SqliteConnection>>,
    readers: SqlitePool,
}

impl SqliteLayers {
    /// Opens the file, making it if it is not there, and anew if that shows damage or another
    /// version. The caller sees to it that no other process has it.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        match SqliteLayers::try_open(path).await {
            Err(error @ (OpenError::Damaged { .. } | OpenError::Newer { .. })) => {
                tracing::warn!(%error, "starting with no inventories of layers");
                discard(path)?;
                SqliteLayers::try_open(path).await
            }
            opened => opened,
        }
    }

    async fn try_open(path: &Path) -> Result<Self, OpenError> {
        create(path)?;
        let failed = |attempt| engine(attempt, path);
        let mut writer = writing(path, None)
            .synchronous(SqliteSynchronous::Normal)
            .connect()
            .await
            .map_err(failed("opening"))?;
        let found: i64 = sqlx::query_scalar("PRAGMA user_version")
            .fetch_one(&mut writer)
            .await
            .map_err(failed("reading the version of"))?;
        match found {
            VERSION => {}
            0 => {
                let made = sqlx::raw_sql(SCHEMA).execute(&mut writer).await;
                made.map_err(failed("preparing"))?;
            }
            found => {
                let _ = writer.close().await;
                return Err(OpenError::Newer {
                    path: path.into(),
                    found,
                    known: VERSION,
                });
            }
        }
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_with(reading(path))
            .await
            .map_err(failed("opening"))?;
        Ok(SqliteLayers {
            writer: Mutex::new(Some(writer)),
            readers,
        })
    }

    /// Finishes what is running, refuses what comes later, and ends the connections.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        match self.writer.lock().await.take() {
            Some(writer) => writer.close().await.map_err(during("closing the layers")),
            None => Ok(()),
        }
    }

    async fn writer(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, StoreError> {
        let writer = MutexGuard::try_map(self.writer.lock().await, Option::as_mut);
        writer.map_err(|_| StoreError::Closed)
    }

    async fn note(&self, key: &LayerKey) -> Result<(), StoreError> {
        let mut writer = self.writer().await?;
        sqlx::query(NOTE)
            .bind(&key.diff_id.0[..])
            .bind(&key.analyzers)
            .bind(now())
            .bind(milliseconds(NOTED))
            .execute(&mut *writer)
            .await
            .map_err(during("noting that a layer is used"))?;
        Ok(())
    }

    async fn remove(&self, key: &LayerKey, sha256: Option<&[u8]>) -> Result<bool, StoreError> {
        let mut writer = self.writer().await?;
        let done = sqlx::query(FORGET)
            .bind(&key.diff_id.0[..])
            .bind(&key.analyzers)
            .bind(sha256)
            .execute(&mut *writer)
            .await
            .map_err(during("forgetting a layer"))?;
        Ok(done.rows_affected() > 0)
    }
}

/// Removes the file and what the engine keeps beside it.
fn discard(path: &Path) -> Result<(), OpenError> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(&name) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(OpenError::Io {
                    attempt: "removing",
                    path: name.into(),
                    source,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    milliseconds(since.unwrap_or(Duration::ZERO))
}

fn is_stale(used: i64) -> bool {
    used < now().saturating_sub(milliseconds(NOTED))
}

const ABOUT: &str = "
SELECT sha256, size, used
FROM layer
WHERE diff_id = $1 AND analyzers = $2";

const GET: &str = "
SELECT sha256, size, used, zstd
FROM layer
WHERE diff_id = $1 AND analyzers = $2";

const NOTE: &str = "
UPDATE layer
SET used = $3
WHERE diff_id = $1 AND analyzers = $2 AND used < $3 - $4";

const PUT: &str = "
INSERT INTO layer (diff_id, analyzers, sha256, size, packed, used, zstd)
VALUES ($1, $2, $3, $4, $5, $6, $7)";

const FORGET: &str = "
DELETE FROM layer
WHERE diff_id = $1 AND analyzers = $2 AND ($3 IS NULL OR sha256 = $3)";

const TOTAL: &str = "
SELECT COALESCE(SUM(packed), 0)
FROM layer";

const OLDEST: &str = "
SELECT rowid, used, packed
FROM layer
ORDER BY used
LIMIT $1";

const EXPIRE: &str = "
DELETE FROM layer
WHERE rowid = $1";

async fn known(
    executor: impl sqlx::SqliteExecutor<'_>,
    key: &LayerKey,
) -> Result<Option<(LayerAbout, bool)>, StoreError> {
    let row: Option<(Vec<u8>, i64, i64)> = sqlx::query_as(ABOUT)
        .bind(&key.diff_id.0[..])
        .bind(&key.analyzers)
        .fetch_optional(executor)
        .await
        .map_err(during("looking for a layer"))?;
    let row = row.and_then(|(sha256, size, used)| Some((about(&sha256, size)?, is_stale(used))));
    Ok(row)
}

#[async_trait]
impl Layers for SqliteLayers {
    async fn get(&self, key: &LayerKey) -> Result<Option<(LayerAbout, Bytes)>, StoreError> {
        let row: Option<(Vec<u8>, i64, i64, Vec<u8>)> = sqlx::query_as(GET)
            .bind(&key.diff_id.0[..])
            .bind(&key.analyzers)
            .fetch_optional(&self.readers)
            .await
            .map_err(during("reading a layer"))?;
        let Some((sha256, size, used, packed)) = row else {
            return Ok(None);
        };
        if let Some(about) = about(&sha256, size)
            && let Some(bytes) = unpack(about, packed).await?
        {
            if is_stale(used) {
                self.note(key).await?;
            }
            return Ok(Some((about, bytes)));
        }
        tracing::warn!(layer = %key, "a damaged inventory is forgotten");
        self.remove(key, Some(&sha256)).await?;
        Ok(None)
    }

    async fn about(&self, key: &LayerKey) -> Result<Option<LayerAbout>, StoreError> {
        let Some((about, stale)) = known(&self.readers, key).await? else {
            return Ok(None);
        };
        if stale {
            self.note(key).await?;
        }
        Ok(Some(about))
    }

    async fn put(&self, key: &LayerKey, bytes: Bytes) -> Result<LayerPut, StoreError> {
        let packed = Packed::pack(bytes).await?;
        let mut writer = self.writer().await?;
        if let Some((about, stale)) = known(&mut *writer, key).await? {
            drop(writer);
            if stale {
                self.note(key).await?;
            }
            return Ok(match about == packed.about {
                true => LayerPut::Same,
                false => LayerPut::Different,
            });
        }
        // Nobody else writes: what was not there is not there now.
        sqlx::query(PUT)
            .bind(&key.diff_id.0[..])
            .bind(&key.analyzers)
            .bind(&packed.about.digest.0[..])
            .bind(packed.about.size as i64)
            .bind(packed.zstd.len() as i64)
            .bind(now())
            .bind(&packed.zstd[..])
            .execute(&mut *writer)
            .await
            .map_err(during("keeping a layer"))?;
        Ok(LayerPut::New)
    }

    async fn forget(&self, key: &LayerKey) -> Result<bool, StoreError> {
        self.remove(key, None).await
    }

    async fn upkeep(&self, limits: LayerLimits) -> Result<u64, StoreError> {
        let failed = during("forgetting layers");
        let mut gone = 0;
        loop {
            // Others have their turn between two steps.
            let mut writer = self.writer().await?;
            let total: i64 = sqlx::query_scalar(TOTAL)
                .fetch_one(&mut *writer)
                .await
                .map_err(&failed)?;
            let oldest: Vec<(i64, i64, i64)> = sqlx::query_as(OLDEST)
                .bind(STEP)
                .fetch_all(&mut *writer)
                .await
                .map_err(&failed)?;
            let weights = oldest
                .iter()
                .map(|&(_, used, packed)| Weight { used, packed });
            let since = now().saturating_sub(milliseconds(limits.unused));
            let count = surplus(weights, since, total, limits.bytes);
            for (row, ..) in oldest.iter().take(count) {
                let done = sqlx::query(EXPIRE).bind(row).execute(&mut *writer).await;
                gone += done.map_err(&failed)?.rows_affected();
            }
            if count > 0 {
                sqlx::raw_sql(VACUUM)
                    .execute(&mut *writer)
                    .await
                    .map_err(&failed)?;
            }
            if (count as i64) < STEP {
                return Ok(gone);
            }
        }
    }
}
