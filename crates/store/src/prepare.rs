//! The part of a write that needs no database: laying bodies out and compressing, before anything
//! is locked, and on a thread of its own where that takes time; and the judgement whether what is
//! there is what the write expects.

use crate::body::{BodyRow, compress};
use crate::clock::signed;
use crate::computed::findings::Findings;
use crate::computed::{REPORTS, Touched};
use crate::facts::Facts;
use bytes::Bytes;
use muster_apiserver::store::{Change, Expect, Key, Resource, StoreError, Write};
use muster_kind::Digest;
use std::collections::{BTreeMap, BTreeSet};

/// Work on more bytes than this goes to a blocking thread.
const BLOCKING_FROM: usize = 64 * 1024;

/// A write with all work done that needs no transaction.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) resource: Resource,
    pub(crate) key: Key,
    pub(crate) expect: Expect,
    /// The state to keep: the object's next, or the last one of an object that goes.
    pub(crate) row: BodyRow,
    /// UID and facts of the next state; none if the object goes.
    pub(crate) next: Option<(String, Facts)>,
    /// Blobs given with the write: compressed bytes and plain size, or nothing where the store
    /// had them when it was asked.
    pub(crate) blobs: BTreeMap<Digest, Option<(Bytes, usize)>>,
    /// What a report of findings found, if this is one.
    pub(crate) findings: Option<Findings>,
}

/// What became of a write.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It happened, at this revision, and this was done about the workloads' reports.
    Done(u64, Touched),
    /// It was refused.
    Refused(StoreError),
    /// It refers to a blob the store does not have.
    BlobMissing,
}

impl Outcome {
    /// Whether reports are still to be told of it.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self, Outcome::Done(_, touched) if touched.unfinished)
    }
}

/// Whether a write happens that expects this and finds that.
pub(crate) fn refusal(expect: Expect, revision: Option<i64>) -> Option<StoreError> {
    match (expect, revision) {
        (Expect::Absent, None) => None,
        (Expect::Absent, Some(_)) => Some(StoreError::Exists),
        (Expect::Revision(_), None) => Some(StoreError::Missing),
        (Expect::Revision(expected), Some(found)) => {
            (signed(expected) != found).then_some(StoreError::Conflict)
        }
    }
}

/// The refusal of a write whose blob nobody has.
pub(crate) fn missing_blob() -> StoreError {
    StoreError::Engine {
        attempt: "writing an object",
        source: "it refers to a blob that is neither stored nor given".into(),
    }
}

/// The blob with the findings that a write would need to have read for it.
pub(crate) fn findings_elsewhere(write: &Write) -> Option<Digest> {
    match &write.change {
        Change::Put { body, blobs, .. } if &*write.resource == REPORTS => {
            let (_, digest) = body.blobs.first()?;
            (!blobs.contains_key(digest)).then_some(*digest)
        }
        _ => None,
    }
}

/// Prepares a write; the blobs that are known are not compressed again. `results` are the bytes
/// of [`findings_elsewhere`].
pub(crate) async fn prepare(
    write: Write,
    known: BTreeSet<Digest>,
    results: Option<Bytes>,
) -> Result<Prepared, StoreError> {
    let work = match &write.change {
        Change::Delete { body } => body.text.len(),
        Change::Put { body, blobs, .. } => {
            let new = blobs.iter().filter(|(digest, _)| !known.contains(digest));
            body.text.len() + new.map(|(_, bytes)| bytes.len()).sum::<usize>()
        }
    };
    let work = work + results.as_ref().map_or(0, Bytes::len);
    blocking(work, move || pack(write, &known, results)).await
}

/// The findings of a report; one whose results are not what they should be has none.
fn findings(write: &Write, results: Option<Bytes>) -> Option<Findings> {
    let Change::Put { body, blobs, .. } = &write.change else {
        return None;
    };
    if &*write.resource != REPORTS {
        return None;
    }
    let given = body.blobs.first().and_then(|(_, digest)| blobs.get(digest));
    let Some(results) = given.or(results.as_ref()) else {
        return Some(Findings::default());
    };
    let read = Findings::read(results);
    Some(read.unwrap_or_else(|error| {
        let Key { namespace, name } = &write.key;
        tracing::warn!(namespace, name, %error, "the findings of a report cannot be counted");
        Findings::default()
    }))
}

fn pack(
    write: Write,
    known: &BTreeSet<Digest>,
    results: Option<Bytes>,
) -> Result<Prepared, StoreError> {
    let findings = findings(&write, results);
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
        findings,
    })
}

/// Does work on so many bytes where it hinders nobody.
pub(crate) async fn blocking<T: Send + 'static>(
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
