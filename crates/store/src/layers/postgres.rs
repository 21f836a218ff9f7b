//! Inventories in the store's database, shared by all replicas. They pass through the store's own
//! connections, but never more than a few at once: they are large, and nobody who asks for objects
//! shall wait for them.

use super::{
    LayerAbout, LayerKey, LayerLimits, LayerPut, Layers, NOTED, Packed, STEP, Weight, about,
    milliseconds, surplus, unpack,
};
use crate::postgres::PostgresStore;
use crate::postgres::fault::during;
use async_trait::async_trait;
use bytes::Bytes;
use muster_apiserver::store::StoreError;
use sqlx::{Connection, PgConnection};
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How often an entry that comes and goes is looked at again.
const ATTEMPTS: usize = 3;

/// Inventories in PostgreSQL.
#[derive(Debug)]
pub struct PostgresLayers {
    store: Arc<PostgresStore>,
    turns: Semaphore,
}

const ABOUT: &str = "
SELECT sha256, size, used < now_1() - $3
FROM layer
WHERE diff_id = $1 AND analyzers = $2";

const GET: &str = "
SELECT sha256, size, used < now_1() - $3, zstd
FROM layer
WHERE diff_id = $1 AND analyzers = $2";

const NOTE: &str = "
UPDATE layer
SET used = now_1()
WHERE diff_id = $1 AND analyzers = $2 AND used < now_1() - $3";

const PUT: &str = "
INSERT INTO layer (diff_id, analyzers, sha256, size, packed, used, zstd)
VALUES ($1, $2, $3, $4, $5, now_1(), $6)
ON CONFLICT (diff_id, analyzers) DO NOTHING";

const FORGET: &str = "
DELETE FROM layer
WHERE diff_id = $1 AND analyzers = $2 AND ($3::BYTEA IS NULL OR sha256 = $3)";

impl PostgresLayers {
    /// Inventories beside the objects of a store.
    pub fn new(store: Arc<PostgresStore>) -> Self {
        let turns = (store.connections.options.max_connections / 4).max(1);
        PostgresLayers {
            store,
            turns: Semaphore::new(turns as usize),
        }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        self.turns.acquire().await.map_err(|_| StoreError::Closed)
    }

    /// Removes an entry; if a digest is given, only one with that content.
    async fn remove(&self, key: &LayerKey, sha256: Option<&[u8]>) -> Result<bool, StoreError> {
        let mut lease = self.store.connections.lease().await?;
        let done = sqlx::query(FORGET)
            .bind(&key.diff_id.0[..])
            .bind(&key.analyzers)
            .bind(sha256)
            .execute(lease.connection())
            .await
            .map_err(during("forgetting a layer"))?;
        lease.done();
        Ok(done.rows_affected() > 0)
    }
}

async fn known(
    connection: &mut PgConnection,
    key: &LayerKey,
) -> Result<Option<LayerAbout>, sqlx::Error> {
    let row: Option<(Vec<u8>, i64, bool)> = sqlx::query_as(ABOUT)
        .bind(&key.diff_id.0[..])
        .bind(&key.analyzers)
        .bind(milliseconds(NOTED))
        .fetch_optional(&mut *connection)
        .await?;
    let Some((sha256, size, stale)) = row else {
        return Ok(None);
    };
    if stale {
        note(connection, key).await?;
    }
    Ok(about(&sha256, size))
}

async fn note(connection: &mut PgConnection, key: &LayerKey) -> Result<(), sqlx::Error> {
    sqlx::query(NOTE)
        .bind(&key.diff_id.0[..])
        .bind(&key.analyzers)
        .bind(milliseconds(NOTED))
        .execute(connection)
        .await?;
    Ok(())
}

#[async_trait]
impl Layers for PostgresLayers {
    async fn get(&self, key: &LayerKey) -> Result<Option<(LayerAbout, Bytes)>, StoreError> {
        const ATTEMPT: &str = "reading a layer";
        let work = async {
            let _turn = self.turn().await?;
            let mut lease = self.store.connections.lease().await?;
            let row: Option<(Vec<u8>, i64, bool, Vec<u8>)> = sqlx::query_as(GET)
                .bind(&key.diff_id.0[..])
                .bind(&key.analyzers)
                .bind(milliseconds(NOTED))
                .fetch_optional(lease.connection())
                .await
                .map_err(during(ATTEMPT))?;
            let Some((sha256, size, stale, packed)) = row else {
                lease.done();
                return Ok(None);
            };
            if stale {
                let noted = note(lease.connection(), key).await;
                noted.map_err(during(ATTEMPT))?;
            }
            lease.done();
            if let Some(about) = about(&sha256, size)
                && let Some(bytes) = unpack(about, packed).await?
            {
                return Ok(Some((about, bytes)));
            }
            tracing::warn!(layer = %key, "a damaged inventory is forgotten");
            self.remove(key, Some(&sha256)).await?;
            Ok(None)
        };
        self.store.bounded(ATTEMPT, work).await
    }

    async fn about(&self, key: &LayerKey) -> Result<Option<LayerAbout>, StoreError> {
        const ATTEMPT: &str = "looking for a layer";
        let work = async {
            let mut lease = self.store.connections.lease().await?;
            let found = known(lease.connection(), key).await;
            let found = found.map_err(during(ATTEMPT))?;
            lease.done();
            Ok(found)
        };
        self.store.bounded(ATTEMPT, work).await
    }

    async fn put(&self, key: &LayerKey, bytes: Bytes) -> Result<LayerPut, StoreError> {
        const ATTEMPT: &str = "keeping a layer";
        let work = async {
            let _turn = self.turn().await?;
            let packed = Packed::pack(bytes).await?;
            let mut lease = self.store.connections.lease().await?;
            for _ in 0..ATTEMPTS {
                let connection = lease.connection();
                // Most are there already, and then their bytes need not travel.
                let known = known(connection, key).await.map_err(during(ATTEMPT))?;
                if let Some(known) = known {
                    lease.done();
                    return Ok(match known == packed.about {
                        true => LayerPut::Same,
                        false => LayerPut::Different,
                    });
                }
                let done = sqlx::query(PUT)
                    .bind(&key.diff_id.0[..])
                    .bind(&key.analyzers)
                    .bind(&packed.about.digest.0[..])
                    .bind(packed.about.size as i64)
                    .bind(packed.zstd.len() as i64)
                    .bind(&packed.zstd[..])
                    .execute(connection)
                    .await
                    .map_err(during(ATTEMPT))?;
                if done.rows_affected() > 0 {
                    lease.done();
                    return Ok(LayerPut::New);
                }
            }
            Err(StoreError::Unavailable {
                attempt: ATTEMPT,
                source: "it comes and goes".into(),
            })
        };
        self.store.bounded(ATTEMPT, work).await
    }

    async fn forget(&self, key: &LayerKey) -> Result<bool, StoreError> {
        let work = self.remove(key, None);
        self.store.bounded("forgetting a layer", work).await
    }

    async fn upkeep(&self, limits: LayerLimits) -> Result<u64, StoreError> {
        const ATTEMPT: &str = "forgetting layers";
        let mut gone = 0;
        loop {
            let work = async {
                let mut lease = self.store.connections.lease().await?;
                let step = step(lease.connection(), limits).await;
                let step = step.map_err(during(ATTEMPT))?;
                lease.done();
                Ok(step)
            };
            let (went, more) = self.store.bounded(ATTEMPT, work).await?;
            gone += went;
            if !more {
                return Ok(gone);
            }
        }
    }
}

// One replica at a time: two would both make room for the same bytes.
const LOCK: &str = "
SELECT pg_try_advisory_xact_lock(hashtextextended('muster forgets layers ' || current_schema(), 0))";

const TOTAL: &str = "
SELECT COALESCE(SUM(packed), 0)::BIGINT, now_1()
FROM layer";

const OLDEST: &str = "
SELECT used, packed, diff_id, analyzers
FROM layer
ORDER BY used, diff_id, analyzers
LIMIT $1";

// Not one that was used meanwhile.
const EXPIRE: &str = "
DELETE FROM layer
WHERE diff_id = $1 AND analyzers = $2 AND used = $3";

/// Forgets a few; how many, and whether there may be more.
async fn step(
    connection: &mut PgConnection,
    limits: LayerLimits,
) -> Result<(u64, bool), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let ours: bool = sqlx::query_scalar(LOCK)
        .fetch_one(&mut *transaction)
        .await?;
    if !ours {
        transaction.rollback().await?;
        return Ok((0, false));
    }
    let (total, now): (i64, i64) = sqlx::query_as(TOTAL).fetch_one(&mut *transaction).await?;
    let oldest: Vec<(i64, i64, Vec<u8>, String)> = sqlx::query_as(OLDEST)
        .bind(STEP)
        .fetch_all(&mut *transaction)
        .await?;
    let weights = oldest.iter().map(|row| Weight {
        used: row.0,
        packed: row.1,
    });
    let since = now.saturating_sub(milliseconds(limits.unused));
    let count = surplus(weights, since, total, limits.bytes);
    let mut gone = 0;
    for (used, _, diff_id, analyzers) in oldest.iter().take(count) {
        let done = sqlx::query(EXPIRE)
            .bind(diff_id)
            .bind(analyzers)
            .bind(used)
            .execute(&mut *transaction)
            .await?;
        gone += done.rows_affected();
    }
    transaction.commit().await?;
    Ok((gone, count as i64 == STEP))
}
