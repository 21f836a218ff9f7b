//! Blobs, and the caller's part of a write: compressing happens here, before the queue, so that
//! the writer only moves bytes. A blob the store has already is not compressed again; should it be
//! swept in between, the writer says so and the write is prepared once more with the bytes.

use super::SqliteStore;
use super::body::{expand, expand_all};
use super::fault::during;
use super::writer::Job;
use crate::clock::signed;
use crate::prepare::{Outcome, Prepared, blocking, findings_elsewhere, missing_blob, prepare};
use bytes::Bytes;
use muster_apiserver::store::{Change, StoreError, Write};
use muster_kind::Digest;
use sqlx::sqlite::SqlitePool;
use std::collections::{BTreeSet, HashMap};
use tokio::sync::oneshot;

const BLOB: &str = "
SELECT y.zstd
FROM blob b
CROSS JOIN blob_bytes y ON y.id = b.id
WHERE b.sha256 = $1";

pub(super) async fn blob(
    readers: &SqlitePool,
    digest: &Digest,
) -> Result<Option<Bytes>, StoreError> {
    let packed: Option<Vec<u8>> = sqlx::query_scalar(BLOB)
        .bind(&digest.0[..])
        .fetch_optional(readers)
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
SELECT f.sha256, y.zstd
FROM (
    SELECT b.id, b.sha256, j.key AS place, SUM(b.size) OVER (ORDER BY j.key) AS total
    FROM json_each($1) j
    CROSS JOIN blob b ON b.sha256 = unhex(substr(j.value, 8))
) f
CROSS JOIN blob_bytes y ON y.id = f.id
WHERE f.total <= $2 OR f.place = 0";

pub(super) async fn blobs(
    readers: &SqlitePool,
    digests: &[Digest],
    most: u64,
) -> Result<HashMap<Digest, Bytes>, StoreError> {
    let asked = digests.iter().map(ToString::to_string);
    let asked = serde_json::Value::from_iter(asked).to_string();
    let rows: Vec<(Vec<u8>, Vec<u8>)> = sqlx::query_as(BLOBS)
        .bind(asked)
        .bind(signed(most))
        .fetch_all(readers)
        .await
        .map_err(during("reading blobs"))?;
    expand_all(rows).await
}

/// Prepares a write, queues it and waits until it is durable.
pub(super) async fn write(store: &SqliteStore, write: Write) -> Result<u64, StoreError> {
    let known = known(&store.readers, &write).await?;
    let results = match findings_elsewhere(&write) {
        Some(digest) => blob(&store.readers, &digest).await?,
        None => None,
    };
    let first = prepare(write.clone(), known, results.clone()).await?;
    let outcome = match submit(store, first).await? {
        Outcome::BlobMissing => {
            let again = prepare(write, BTreeSet::new(), results).await?;
            submit(store, again).await?
        }
        outcome => outcome,
    };
    match outcome {
        Outcome::Done(revision, _) => Ok(revision),
        Outcome::Refused(refusal) => Err(refusal),
        Outcome::BlobMissing => Err(missing_blob()),
    }
}

async fn submit(store: &SqliteStore, write: Prepared) -> Result<Outcome, StoreError> {
    let (answer, outcome) = oneshot::channel();
    let job = Job::Write(Box::new(write), answer);
    store.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
    outcome.await.map_err(|_| StoreError::Closed)?
}

const KNOWN: &str = "
SELECT COUNT(*)
FROM blob
WHERE sha256 = $1";

/// Which of the given blobs the store has.
async fn known(readers: &SqlitePool, write: &Write) -> Result<BTreeSet<Digest>, StoreError> {
    let mut known = BTreeSet::new();
    if let Change::Put { blobs, .. } = &write.change {
        for digest in blobs.keys() {
            let found: i64 = sqlx::query_scalar(KNOWN)
                .bind(&digest.0[..])
                .fetch_one(readers)
                .await
                .map_err(during("looking for a blob"))?;
            if found > 0 {
                known.insert(*digest);
            }
        }
    }
    Ok(known)
}
