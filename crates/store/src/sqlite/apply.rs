//! One write inside a transaction. Everything that can refuse it is read first; only then rows
//! change, by one script. A refused write leaves nothing behind.

use super::script::Script;
use super::{computed, origin};
use crate::computed::{Touched, is_source};
use crate::facts::Facts;
use crate::prepare::{Outcome, Prepared, refusal};
use sqlx::SqliteConnection;

/// The identifiers of new rows; one writer gives them all.
#[derive(Debug)]
pub(super) struct Identifiers {
    pub(super) body: i64,
    pub(super) blob: i64,
}

/// The object as it is, and its clock.
#[derive(Default)]
pub(super) struct Current {
    pub(super) resource: i64,
    pub(super) clock: i64,
    pub(super) revision: Option<i64>,
    pub(super) body: Option<i64>,
    pub(super) facts: Option<String>,
}

const CURRENT: &str = "
SELECT c.id, c.rv, o.rv, o.body, b.facts
FROM clock c
LEFT JOIN object o ON o.resource = c.id AND o.namespace = $2 AND o.name = $3
LEFT JOIN body b ON b.id = o.body
WHERE c.resource = $1";

const NEW_CLOCK: &str = "
INSERT INTO clock (resource, rv, compacted_rv)
VALUES ($1, $2, $3)";

/// Makes one write in the transaction that is open on `connection`.
pub(super) async fn apply(
    connection: &mut SqliteConnection,
    write: &Prepared,
    identifiers: &mut Identifiers,
) -> Result<Outcome, sqlx::Error> {
    let current = current(connection, write).await?;
    let revision = current.as_ref().and_then(|current| current.revision);
    if let Some(refusal) = refusal(write.expect, revision) {
        return Ok(Outcome::Refused(refusal));
    }
    if !blobs_present(connection, write).await? {
        return Ok(Outcome::BlobMissing);
    }
    let current = match current {
        Some(current) => current,
        None => {
            let clock = origin(connection).await?.clock();
            let made = sqlx::query(NEW_CLOCK)
                .bind(&*write.resource)
                .bind(clock.revision)
                .bind(clock.compacted)
                .execute(&mut *connection)
                .await?;
            let resource = made.last_insert_rowid();
            Current {
                resource,
                clock: clock.revision,
                ..Current::default()
            }
        }
    };
    let revision = current.clock + 1;
    let mut script = Script::default();
    script.blobs(write, identifiers)?;
    script.state(write, &current, revision, identifiers)?;
    let old = Facts::read(current.facts.as_deref())
        .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    script.facts(write, current.resource, &old)?;
    script.run(&mut *connection).await?;
    let touched = match is_source(&write.resource) {
        true => computed::settle(connection, write, &old, current.resource, identifiers).await?,
        false => Touched::default(),
    };
    Ok(Outcome::Done(revision as u64, touched))
}

async fn current(
    connection: &mut SqliteConnection,
    write: &Prepared,
) -> Result<Option<Current>, sqlx::Error> {
    let found = sqlx::query_as(CURRENT)
        .bind(&*write.resource)
        .bind(&*write.key.namespace)
        .bind(&*write.key.name)
        .fetch_optional(connection)
        .await?;
    Ok(
        found.map(|(resource, clock, revision, body, facts)| Current {
            resource,
            clock,
            revision,
            body,
            facts,
        }),
    )
}

const BLOB_PRESENT: &str = "
SELECT COUNT(*)
FROM blob
WHERE sha256 = $1";

/// Whether every blob the state refers to is stored or comes with the write.
async fn blobs_present(
    connection: &mut SqliteConnection,
    write: &Prepared,
) -> Result<bool, sqlx::Error> {
    for digest in &write.row.digests {
        if let Some(Some(_)) = write.blobs.get(digest) {
            continue;
        }
        let found: i64 = sqlx::query_scalar(BLOB_PRESENT)
            .bind(&digest.0[..])
            .fetch_one(&mut *connection)
            .await?;
        if found == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
