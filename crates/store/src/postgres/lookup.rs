//! Questions that one statement answers.

use super::body;
use super::connections::Connections;
use super::fault::during;
use super::text::{indexed, place, possible};
use crate::clock::signed;
use crate::computed::REPORTS;
use crate::facts::LINK;
use muster_apiserver::store::{Key, Resource, StoreError, Stored};
use sqlx::Row;

const GET: &str = "
SELECT o.rv, b.revision_at, b.form, b.blobs, b.text
FROM clock c
JOIN object o ON o.resource = c.id
JOIN body b ON b.id = o.body
WHERE c.resource = $1 AND o.namespace = $2 AND o.name = $3";

pub(super) async fn get(
    connections: &Connections,
    resource: &Resource,
    key: &Key,
) -> Result<Option<Stored>, StoreError> {
    if !possible(&key.namespace, &key.name) {
        return Ok(None);
    }
    let failed = during("reading an object");
    let mut lease = connections.lease().await?;
    let row = sqlx::query(GET)
        .bind(&**resource)
        .bind(&*key.namespace)
        .bind(&*key.name)
        .fetch_optional(lease.connection())
        .await
        .map_err(&failed)?;
    lease.done();
    let Some(row) = row else { return Ok(None) };
    let revision: i64 = row.try_get(0).map_err(&failed)?;
    let body = body::read(&row, 1)?;
    Ok(Some(Stored {
        key: key.clone(),
        revision: revision as u64,
        body,
    }))
}

const COUNT: &str = "
SELECT COUNT(*)
FROM object
WHERE resource = (SELECT id FROM clock WHERE resource = $1)
AND (namespace, name) > ($2, $3)";

const COUNT_IN: &str = "
SELECT COUNT(*)
FROM object
WHERE resource = (SELECT id FROM clock WHERE resource = $1)
AND (namespace, name) > ($2, $3)
AND namespace = $4";

pub(super) async fn count(
    connections: &Connections,
    resource: &Resource,
    namespace: Option<&str>,
    after: Option<&Key>,
) -> Result<u64, StoreError> {
    if namespace.is_some_and(|namespace| !possible(namespace, "")) {
        return Ok(0);
    }
    let after = after.map(place).unwrap_or(Key {
        namespace: String::new(),
        name: String::new(),
    });
    let mut query = sqlx::query_scalar(if namespace.is_some() { COUNT_IN } else { COUNT })
        .bind(&**resource)
        .bind(after.namespace)
        .bind(after.name);
    if let Some(namespace) = namespace {
        query = query.bind(namespace);
    }
    let mut lease = connections.lease().await?;
    let count: i64 = query
        .fetch_one(lease.connection())
        .await
        .map_err(during("counting objects"))?;
    lease.done();
    Ok(count as u64)
}

const OWNED: &str = "
SELECT c.resource, w.namespace, w.name
FROM owner w
JOIN clock c ON c.id = w.resource
WHERE w.uid = $1
ORDER BY w.resource, w.namespace, w.name
LIMIT $2";

pub(super) async fn owned(
    connections: &Connections,
    uid: &str,
    limit: usize,
) -> Result<Vec<(Resource, Key)>, StoreError> {
    let mut lease = connections.lease().await?;
    let rows = sqlx::query_as(OWNED)
        .bind(indexed(uid))
        .bind(signed(limit as u64))
        .fetch_all(lease.connection())
        .await
        .map_err(during("reading the objects of an owner"))?;
    lease.done();
    Ok(keys(rows))
}

// From owner to owner along the index, and one lookup for each: work grows with the owners, not
// with what they own.
const DANGLING: &str = "
WITH RECURSIVE named (uid) AS (
    (SELECT uid FROM owner ORDER BY uid LIMIT 1)
    UNION ALL
    SELECT (SELECT w.uid FROM owner w WHERE w.uid > n.uid ORDER BY w.uid LIMIT 1)
    FROM named n
    WHERE n.uid IS NOT NULL
)
SELECT DISTINCT c.resource, w.namespace, w.name
FROM named n
JOIN owner w ON w.uid = n.uid
JOIN clock c ON c.id = w.resource
WHERE NOT EXISTS (SELECT 1 FROM object o WHERE o.uid = n.uid)
LIMIT $1";

pub(super) async fn dangling(
    connections: &Connections,
    limit: usize,
) -> Result<Vec<(Resource, Key)>, StoreError> {
    let mut lease = connections.lease().await?;
    let rows = sqlx::query_as(DANGLING)
        .bind(signed(limit as u64))
        .fetch_all(lease.connection())
        .await
        .map_err(during("looking for objects without their owner"))?;
    lease.done();
    Ok(keys(rows))
}

fn keys(rows: Vec<(String, String, String)>) -> Vec<(Resource, Key)> {
    let key = |(resource, namespace, name): (String, String, String)| {
        (resource.into(), Key { namespace, name })
    };
    rows.into_iter().map(key).collect()
}

// Two sets are compared as a whole: a lookup for each object would read all links again and again.
const UNLINKED: &str = "
SELECT namespace, name
FROM object
WHERE resource = (SELECT id FROM clock WHERE resource = $1)
EXCEPT
SELECT namespace, name
FROM field
WHERE resource = (SELECT id FROM clock WHERE resource = $1) AND key = $2";

const UNCOUNTED: &str = "
SELECT namespace, name
FROM object
WHERE resource = (SELECT id FROM clock WHERE resource = $1)
EXCEPT
SELECT namespace, name
FROM finding";

pub(super) async fn unlinked(
    connections: &Connections,
    resource: &Resource,
) -> Result<Vec<Key>, StoreError> {
    let query = match &**resource == REPORTS {
        true => sqlx::query_as(UNCOUNTED).bind(&**resource),
        false => sqlx::query_as(UNLINKED).bind(&**resource).bind(LINK),
    };
    let mut lease = connections.lease().await?;
    let found: Vec<(String, String)> = query
        .fetch_all(lease.connection())
        .await
        .map_err(during("looking for objects without links"))?;
    lease.done();
    let keys = found.into_iter();
    Ok(keys
        .map(|(namespace, name)| Key { namespace, name })
        .collect())
}

const UID_EXISTS: &str = "
SELECT EXISTS (SELECT 1 FROM object WHERE uid = $1)";

pub(super) async fn uid_exists(connections: &Connections, uid: &str) -> Result<bool, StoreError> {
    let mut lease = connections.lease().await?;
    let found = sqlx::query_scalar(UID_EXISTS)
        .bind(indexed(uid))
        .fetch_one(lease.connection())
        .await
        .map_err(during("looking for a UID"))?;
    lease.done();
    Ok(found)
}
