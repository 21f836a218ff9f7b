//! A new life for a store that was restored from a copy. The copy lacks the last writes, so their
//! revisions would be given again, with other content, to clients that have seen them. Every clock
//! jumps to a new origin, and the log before it counts as compacted, so that all who watch begin
//! anew. A directory cannot tell that it is a copy: who restores it says so.

use super::writer::Job;
use super::{SqliteStore, now};
use crate::clock::Origin;
use muster_apiserver::store::StoreError;
use sqlx::SqliteConnection;
use tokio::sync::oneshot;

const HIGHEST: &str = "
SELECT COALESCE(MAX(rv), 0)
FROM clock";

const LEAP: &str = "
UPDATE clock
SET rv = $1, compacted_rv = $1";

const ORIGIN: &str = "
INSERT INTO meta (key, value)
VALUES ('origin', $1)
ON CONFLICT (key) DO UPDATE SET value = excluded.value";

const NUMBER: &str = "
INSERT INTO meta (key, value)
VALUES ('incarnation', 2)
ON CONFLICT (key) DO UPDATE SET value = value + 1
RETURNING value";

/// Begins a new life in the transaction that is open on `connection`; gives its number.
pub(super) async fn renew(connection: &mut SqliteConnection) -> Result<u64, sqlx::Error> {
    let highest: i64 = sqlx::query_scalar(HIGHEST)
        .fetch_one(&mut *connection)
        .await?;
    let Origin(before) = origin(connection).await?;
    let Origin(next) = Origin::after(highest.max(before), now());
    for statement in [LEAP, ORIGIN] {
        let query = sqlx::query(statement).bind(next);
        query.execute(&mut *connection).await?;
    }
    let number: i64 = sqlx::query_scalar(NUMBER).fetch_one(connection).await?;
    Ok(number as u64)
}

const READ: &str = "
SELECT COALESCE(MAX(value), 1)
FROM meta
WHERE key = 'incarnation'";

/// Which life a database lives; the first is 1.
pub(crate) async fn incarnation(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(READ).fetch_one(connection).await
}

const READ_ORIGIN: &str = "
SELECT MAX(value)
FROM meta
WHERE key = 'origin'";

/// Where the clocks of a database began.
pub(crate) async fn origin(connection: &mut SqliteConnection) -> Result<Origin, sqlx::Error> {
    let found: Option<i64> = sqlx::query_scalar(READ_ORIGIN)
        .fetch_one(connection)
        .await?;
    Ok(found.map_or(Origin::FIRST, Origin))
}

impl SqliteStore {
    /// Begins a new life, for a store that was restored from a copy: every clock jumps, and all
    /// who watch begin anew. Gives the number of the new life; the first is 1.
    pub async fn renew_incarnation(&self) -> Result<u64, StoreError> {
        let (answer, number) = oneshot::channel();
        let job = Job::Renew(answer);
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        number.await.map_err(|_| StoreError::Closed)?
    }
}
