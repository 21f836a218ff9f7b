//! Which life of the database this is. A database that was restored from a backup, or taken over
//! by a standby that lacked the last writes, would give revisions again that clients have seen
//! with other content. So the database remembers where it lived: when it finds itself elsewhere, it
//! counts a new life. With that, by a trigger and so whichever build counts, every clock jumps to a
//! new origin, and the log before it counts as compacted, so that all who watch begin anew. Every
//! connection looks before it is used, and one transaction decides for all processes.

use super::PostgresStore;
use super::fault::{during, is_forbidden};
use muster_apiserver::store::StoreError;
use sqlx::{Connection, PgConnection};

// The cluster, and how often it was taken over; as the server writes now, not as of the last
// checkpoint.
const CLUSTER: &str = "
SELECT system_identifier::TEXT || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
FROM pg_control_system()";

// A dump that is restored makes the database or at least the table anew.
const TABLE: &str = "
SELECT d.oid::TEXT || '/' || to_regclass('clock')::OID::TEXT
FROM pg_database d
WHERE d.datname = current_database()";

/// Where the database lives, as far as the server tells.
pub(super) async fn place(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    let cluster = sqlx::query_scalar(CLUSTER)
        .fetch_one(&mut *connection)
        .await;
    let cluster: String = match cluster {
        Ok(cluster) => cluster,
        Err(error) if is_forbidden(&error) => "unknown".into(),
        Err(error) => return Err(error),
    };
    let table: String = sqlx::query_scalar(TABLE).fetch_one(connection).await?;
    Ok(format!("{cluster}/{table}"))
}

const READ: &str = "
SELECT number, place
FROM incarnation
FOR UPDATE";

const WRITE: &str = "
UPDATE incarnation
SET number = $1, place = $2";

/// Makes the place known to the database, with a new life if it was elsewhere before.
pub(super) async fn settle(connection: &mut PgConnection, here: &str) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let (number, place): (i64, Option<String>) =
        sqlx::query_as(READ).fetch_one(&mut *transaction).await?;
    if place.as_deref() == Some(here) {
        return transaction.rollback().await;
    }
    let number = match &place {
        None => number,
        Some(was) => {
            tracing::warn!(
                was,
                is = here,
                "the database was restored or taken over; watches begin anew"
            );
            number + 1
        }
    };
    write(&mut transaction, number, Some(here)).await?;
    transaction.commit().await
}

async fn write(
    connection: &mut PgConnection,
    number: i64,
    place: Option<&str>,
) -> Result<(), sqlx::Error> {
    let query = sqlx::query(WRITE).bind(number).bind(place);
    query.execute(connection).await.map(drop)
}

const ATTEMPT: &str = "beginning a new incarnation";

impl PostgresStore {
    /// Begins a new life whatever the database says of itself, for a caller who knows better:
    /// every clock jumps, and all who watch begin anew. Gives the number of the new life.
    pub async fn renew_incarnation(&self) -> Result<u64, StoreError> {
        let mut lease = self.connections.lease().await?;
        let renewed = renew(lease.connection()).await.map_err(during(ATTEMPT))?;
        lease.done();
        self.nudged.notify_one();
        Ok(renewed as u64)
    }
}

async fn renew(connection: &mut PgConnection) -> Result<i64, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let (number, place): (i64, Option<String>) =
        sqlx::query_as(READ).fetch_one(&mut *transaction).await?;
    write(&mut transaction, number + 1, place.as_deref()).await?;
    transaction.commit().await?;
    Ok(number + 1)
}
