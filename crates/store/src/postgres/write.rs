//! A write. What is needed of the state before, and the blobs, are seen to first and without any
//! lock; then one statement does it all, so the clock is held no longer than the server needs. The
//! statement checks again what was seen before, so whatever happens in between is a refusal and
//! never a mixture.

use super::fault::{during, is_collision};
use super::text::{indexed, possible};
use super::{PostgresStore, blobs, computed};
use crate::clock::signed;
use crate::computed::{Touched, WORKLOADS, is_source};
use crate::facts::{Facts, added, added_fields};
use crate::fault::damaged;
use crate::prepare::{Outcome, Prepared, findings_elsewhere, missing_blob, prepare, refusal};
use muster_apiserver::store::{Expect, Key, Resource, StoreError, Write};
use sqlx::PgConnection;
use std::collections::BTreeSet;
use std::time::Duration;

const ATTEMPT: &str = "writing";
/// How often a write is tried that others got into the way of.
const ATTEMPTS: u32 = 6;
/// How often its blobs are stored again if a sweep takes them first. One that keeps nothing and
/// never pauses can do so several times in a row.
const SWEPT: u32 = 100;
/// The pause before it is tried again; it grows.
const PAUSE: Duration = Duration::from_millis(2);

pub(super) async fn write(store: &PostgresStore, write: Write) -> Result<u64, StoreError> {
    if !possible(&write.key.namespace, &write.key.name) {
        return Err(StoreError::Engine {
            attempt: "writing an object",
            source: "a name cannot contain NUL".into(),
        });
    }
    let _turn = store
        .writers
        .acquire()
        .await
        .map_err(|_| StoreError::Closed)?;
    let mut lease = store.connections.lease().await?;
    let resource = write.resource.clone();
    let outcome = make(lease.connection(), write).await?;
    lease.done();
    match outcome {
        Outcome::Done(revision, touched) => {
            if touched.unfinished {
                store.left.notify_one();
            }
            let touched = touched.last.map(|last| (Resource::from(WORKLOADS), last));
            for (resource, revision) in [Some((resource, revision)), touched].into_iter().flatten()
            {
                store.hints.raise(&resource, revision);
                // Nobody may be listening.
                let _ = store.written.send((resource, revision));
            }
            Ok(revision)
        }
        Outcome::Refused(refusal) => Err(refusal),
        Outcome::BlobMissing => Err(missing_blob()),
    }
}

async fn make(connection: &mut PgConnection, write: Write) -> Result<Outcome, StoreError> {
    let old = match before(connection, &write).await? {
        Ok(old) => old,
        Err(refusal) => return Ok(Outcome::Refused(refusal)),
    };
    let mut known = blobs::known(connection, &write.change).await?;
    let results = match findings_elsewhere(&write) {
        Some(digest) => blobs::read(connection, &digest).await?,
        None => None,
    };
    for attempt in 1.. {
        let prepared = prepare(write.clone(), std::mem::take(&mut known), results.clone()).await?;
        blobs::store(connection, &prepared).await?;
        let called = match is_source(&write.resource) {
            true => computed::call(connection, &prepared, &old).await,
            false => call(connection, &prepared, &old).await,
        };
        match called {
            // Swept since it was seen: now its bytes are sent.
            Ok(Outcome::BlobMissing) if attempt < SWEPT && !prepared.blobs.is_empty() => {}
            Err(error) if attempt < ATTEMPTS && is_collision(&error) => {
                tokio::time::sleep(PAUSE * (1 << attempt)).await;
            }
            other => return other.map_err(during(ATTEMPT)),
        }
    }
    Err(damaged("a write had no outcome"))
}

const BEFORE: &str = "
SELECT o.rv, b.facts
FROM clock c
JOIN object o ON o.resource = c.id
JOIN body b ON b.id = o.body
WHERE c.resource = $1 AND o.namespace = $2 AND o.name = $3";

/// The facts of the state that the write expects, or its refusal. An object's revision only ever
/// grows: what is refused here would be refused later too.
async fn before(
    connection: &mut PgConnection,
    write: &Write,
) -> Result<Result<Facts, StoreError>, StoreError> {
    // There is nothing to know of what is not there; the write itself finds out.
    let Expect::Revision(_) = write.expect else {
        return Ok(Ok(Facts::default()));
    };
    let found: Option<(i64, Option<String>)> = sqlx::query_as(BEFORE)
        .bind(&*write.resource)
        .bind(&*write.key.namespace)
        .bind(&*write.key.name)
        .fetch_optional(connection)
        .await
        .map_err(during(ATTEMPT))?;
    let (revision, facts) = match found {
        None => (None, None),
        Some((revision, facts)) => (Some(revision), facts),
    };
    match refusal(write.expect, revision) {
        Some(refusal) => Ok(Err(refusal)),
        None => Facts::read(facts.as_deref()).map(Ok),
    }
}

const WRITE: &str = "
SELECT outcome, revision
FROM write_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
    $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)";

pub(super) async fn call(
    connection: &mut PgConnection,
    write: &Prepared,
    old: &Facts,
) -> Result<Outcome, sqlx::Error> {
    let Key { namespace, name } = &write.key;
    let expected = match write.expect {
        Expect::Absent => None,
        Expect::Revision(revision) => Some(signed(revision)),
    };
    let none = Facts::default();
    let (uid, new) = match &write.next {
        None => (None, &none),
        Some((uid, facts)) => (Some(indexed(uid)), facts),
    };
    let row = &write.row;
    let digests: Vec<&[u8]> = row.digests.iter().map(|digest| &digest.0[..]).collect();
    let mut query = sqlx::query_as(WRITE)
        .bind(&*write.resource)
        .bind(namespace)
        .bind(name)
        .bind(expected)
        .bind(uid)
        .bind(row.revision_at)
        .bind(row.form)
        .bind(new.write())
        .bind(row.blobs.as_deref())
        .bind(&row.text[..])
        .bind(digests);
    for entries in [
        added(&new.labels, &old.labels),
        added(&old.labels, &new.labels),
        added_fields(new, old),
        added_fields(old, new),
    ] {
        let (keys, values) = columns(entries);
        query = query.bind(keys).bind(values);
    }
    for (one, other) in [(&new.owners, &old.owners), (&old.owners, &new.owners)] {
        let uids: BTreeSet<String> = other.difference(one).map(|uid| indexed(uid)).collect();
        query = query.bind(uids.into_iter().collect::<Vec<_>>());
    }
    let (outcome, revision): (String, Option<i64>) = query.fetch_one(connection).await?;
    let strange = || sqlx::Error::Protocol(format!("a write had the outcome {outcome}"));
    match (outcome.as_str(), revision) {
        ("done", Some(revision)) => Ok(Outcome::Done(revision as u64, Touched::default())),
        ("blob missing", _) => Ok(Outcome::BlobMissing),
        ("refused", found) => refusal(write.expect, found)
            .map(Outcome::Refused)
            .ok_or_else(strange),
        _ => Err(strange()),
    }
}

fn columns(entries: Vec<(&str, &str)>) -> (Vec<String>, Vec<String>) {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (indexed(key), indexed(value)))
        .unzip()
}
