//! Blobs. They are stored before the write that refers to them, in a transaction of their own, so
//! that nobody waits for their bytes with a clock in hand. A blob whose write never came is swept;
//! a blob that is swept before its write comes is noticed by the write.

use super::connections::Connections;
use super::fault::during;
use crate::body::{expand, expand_all};
use crate::clock::signed;
use crate::prepare::{Prepared, blocking};
use bytes::Bytes;
use muster_apiserver::store::{Change, StoreError};
use muster_kind::Digest;
use sqlx::PgConnection;
use std::collections::{BTreeSet, HashMap};

const BLOB: &str = "
SELECT zstd
FROM blob
WHERE sha256 = $1";

pub(super) async fn blob(
    connections: &Connections,
    digest: &Digest,
) -> Result<Option<Bytes>, StoreError> {
    let mut lease = connections.lease().await?;
    let found = read(lease.connection(), digest).await?;
    lease.done();
    Ok(found)
}

pub(super) async fn read(
    connection: &mut PgConnection,
    digest: &Digest,
) -> Result<Option<Bytes>, StoreError> {
    let packed: Option<Vec<u8>> = sqlx::query_scalar(BLOB)
        .bind(&digest.0[..])
        .fetch_optional(connection)
        .await
        .map_err(during("reading a blob"))?;
    match packed {
        None => Ok(None),
        Some(packed) => {
            let size = packed.len();
            blocking(size, move || expand(&packed)).await.map(Some)
        }
    }
}

// The sizes are added up first, in the order asked for; what does not fit is not read.
const BLOBS: &str = "
SELECT b.sha256, b.zstd
FROM (
    SELECT k.id, v.place, SUM(k.size) OVER (ORDER BY v.place) AS total
    FROM unnest($1::BYTEA[]) WITH ORDINALITY v (sha256, place)
    JOIN blob k ON k.sha256 = v.sha256
) f
JOIN blob b ON b.id = f.id
WHERE f.total <= $2 OR f.place = 1";

pub(super) async fn blobs(
    connections: &Connections,
    digests: &[Digest],
    most: u64,
) -> Result<HashMap<Digest, Bytes>, StoreError> {
    let asked: Vec<&[u8]> = digests.iter().map(|digest| &digest.0[..]).collect();
    let mut lease = connections.lease().await?;
    let rows: Vec<(Vec<u8>, Vec<u8>)> = sqlx::query_as(BLOBS)
        .bind(asked)
        .bind(signed(most))
        .fetch_all(lease.connection())
        .await
        .map_err(during("reading blobs"))?;
    lease.done();
    expand_all(rows).await
}

// In the order of their digests, so that two who touch the same do not wait for each other.
const TOUCH: &str = "
WITH known AS (
    SELECT id
    FROM blob
    WHERE sha256 = ANY ($1)
    ORDER BY sha256
    FOR NO KEY UPDATE
)
UPDATE blob b
SET touched = now_1()
FROM known k
WHERE b.id = k.id
RETURNING b.sha256";

/// Which of the blobs given with a change are stored; they are touched, so that they stay.
pub(super) async fn known(
    connection: &mut PgConnection,
    change: &Change,
) -> Result<BTreeSet<Digest>, StoreError> {
    let Change::Put { blobs, .. } = change else {
        return Ok(BTreeSet::new());
    };
    if blobs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let digests: Vec<&[u8]> = blobs.keys().map(|digest| &digest.0[..]).collect();
    let found: Vec<Vec<u8>> = sqlx::query_scalar(TOUCH)
        .bind(digests)
        .fetch_all(connection)
        .await
        .map_err(during("looking for a blob"))?;
    let digests = found.iter().filter_map(|bytes| bytes.first_chunk());
    Ok(digests.map(|bytes| Digest(*bytes)).collect())
}

const STORE: &str = "
INSERT INTO blob (sha256, size, touched, zstd)
VALUES ($1, $2, now_1(), $3)
ON CONFLICT (sha256) DO UPDATE SET touched = excluded.touched";

/// Stores the blobs that come with a write and were not known.
pub(super) async fn store(
    connection: &mut PgConnection,
    write: &Prepared,
) -> Result<(), StoreError> {
    for (digest, given) in &write.blobs {
        let Some((packed, size)) = given else {
            continue;
        };
        sqlx::query(STORE)
            .bind(&digest.0[..])
            .bind(*size as i64)
            .bind(&packed[..])
            .execute(&mut *connection)
            .await
            .map_err(during("storing a blob"))?;
    }
    Ok(())
}
