//! Blobs, and the caller's part of a write: compressing happens here, before the queue, so that
//! the writer only moves bytes. A blob the store has already is not compressed again; should it be
//! swept in between, the writer says so and the write is prepared once more with the bytes.

use super::SqliteStore;
use super::apply::{Outcome, Prepared};
use super::body::{BodyRow, compress, expand};
use super::facts::Facts;
use super::fault::during;
use super::writer::Job;
use bytes::Bytes;
use muster_apiserver::store::{Change, StoreError, Write};
use muster_kind::Digest;
use sqlx::sqlite::SqlitePool;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::oneshot;

/// Work on more bytes than this goes to a blocking thread.
const BLOCKING_FROM: usize = 64 * 1024;

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

/// Prepares a write, queues it and waits until it is durable.
pub(super) async fn write(store: &SqliteStore, write: Write) -> Result<u64, StoreError> {
    let known = known(&store.readers, &write).await?;
    let first = prepare(write.clone(), known).await?;
    let outcome = match submit(store, first).await? {
        Outcome::BlobMissing => {
            let again = prepare(write, BTreeSet::new()).await?;
            submit(store, again).await?
        }
        outcome => outcome,
    };
    match outcome {
        Outcome::Done(revision) => Ok(revision),
        Outcome::Refused(refusal) => Err(refusal),
        Outcome::BlobMissing => Err(StoreError::Engine {
            attempt: "writing an object",
            source: "it refers to a blob that is neither stored nor given".into(),
        }),
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

async fn prepare(write: Write, known: BTreeSet<Digest>) -> Result<Prepared, StoreError> {
    let work = match &write.change {
        Change::Delete { body } => body.text.len(),
        Change::Put { body, blobs, .. } => {
            let new = blobs.iter().filter(|(digest, _)| !known.contains(digest));
            body.text.len() + new.map(|(_, bytes)| bytes.len()).sum::<usize>()
        }
    };
    blocking(work, move || pack(write, &known)).await
}

fn pack(write: Write, known: &BTreeSet<Digest>) -> Result<Prepared, StoreError> {
    let Write {
        resource,
        key,
        expect,
        change,
    } = write;
    let (row, next, given) = match change {
        Change::Delete { body } => (BodyRow::pack(&body)?, None, BTreeMap::new()),
        Change::Put { body, index, blobs } => {
            let uid = index.uid.clone();
            (BodyRow::pack(&body)?, Some((uid, Facts::of(index))), blobs)
        }
    };
    let mut blobs = BTreeMap::new();
    // What the object does not refer to would only wait for the sweep.
    for (digest, bytes) in given
        .iter()
        .filter(|(digest, _)| row.digests.contains(digest))
    {
        let packed = match known.contains(digest) {
            true => None,
            false => Some((compress(bytes)?, bytes.len())),
        };
        blobs.insert(*digest, packed);
    }
    Ok(Prepared {
        resource,
        key,
        expect,
        row,
        next,
        blobs,
    })
}

/// Does work on so many bytes where it hinders nobody.
async fn blocking<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    if bytes < BLOCKING_FROM {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|source| StoreError::Engine {
        attempt: "waiting for a thread",
        source: source.into(),
    })?
}
