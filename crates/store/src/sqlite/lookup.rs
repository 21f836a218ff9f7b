//! Questions that one statement answers.

use super::body::BodyRow;
use super::fault::during;
use super::signed;
use crate::computed::REPORTS;
use crate::facts::LINK;
use muster_apiserver::store::{Key, Resource, StoreError, Stored};
use sqlx::Row;
use sqlx::sqlite::SqlitePool;

const GET: &str = "
SELECT o.rv, b.revision_at, b.form, b.blobs, b.text
FROM clock c
CROSS JOIN object o ON o.resource = c.id
CROSS JOIN body b ON b.id = o.body
WHERE c.resource = $1 AND o.namespace = $2 AND o.name = $3";

pub(super) async fn get(
    readers: &SqlitePool,
    resource: &Resource,
    key: &Key,
) -> Result<Option<Stored>, StoreError> {
    let failed = during("reading an object");
    let row = sqlx::query(GET)
        .bind(&**resource)
        .bind(&*key.namespace)
        .bind(&*key.name)
        .fetch_optional(readers)
        .await
        .map_err(&failed)?;
    let Some(row) = row else { return Ok(None) };
    let revision: i64 = row.try_get(0).map_err(&failed)?;
    let body = BodyRow::unpack(&row, 1)?;
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
    readers: &SqlitePool,
    resource: &Resource,
    namespace: Option<&str>,
    after: Option<&Key>,
) -> Result<u64, StoreError> {
    let statement = if namespace.is_some() { COUNT_IN } else { COUNT };
    let (after_namespace, after_name) =
        after.map_or(("", ""), |key| (key.namespace.as_str(), key.name.as_str()));
    let count: i64 = sqlx::query_scalar(statement)
        .bind(&**resource)
        .bind(after_namespace)
        .bind(after_name)
        .bind(namespace)
        .fetch_one(readers)
        .await
        .map_err(during("counting objects"))?;
    Ok(count as u64)
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
    readers: &SqlitePool,
    resource: &Resource,
) -> Result<Vec<Key>, StoreError> {
    let query = match &**resource == REPORTS {
        true => sqlx::query_as(UNCOUNTED).bind(&**resource),
        false => sqlx::query_as(UNLINKED).bind(&**resource).bind(LINK),
    };
    let found: Vec<(String, String)> = query
        .fetch_all(readers)
        .await
        .map_err(during("looking for objects without links"))?;
    let keys = found.into_iter();
    Ok(keys
        .map(|(namespace, name)| Key { namespace, name })
        .collect())
}

const OWNED: &str = "
SELECT c.resource, w.namespace, w.name
FROM owner w
CROSS JOIN clock c ON c.id = w.resource
WHERE w.uid = $1
ORDER BY w.resource, w.namespace, w.name
LIMIT $2";

pub(super) async fn owned(
    readers: &SqlitePool,
    uid: &str,
    limit: usize,
) -> Result<Vec<(Resource, Key)>, StoreError> {
    let rows = sqlx::query_as(OWNED)
        .bind(uid)
        .bind(signed(limit as u64))
        .fetch_all(readers)
        .await
        .map_err(during("reading the objects of an owner"))?;
    Ok(keys(rows))
}

// From owner to owner along the index, and one lookup for each: work grows with the owners, not
// with what they own.
const DANGLING: &str = "
WITH RECURSIVE named (uid) AS (
    SELECT MIN(uid) FROM owner
    UNION ALL
    SELECT (SELECT MIN(w.uid) FROM owner w WHERE w.uid > n.uid)
    FROM named n
    WHERE n.uid IS NOT NULL
)
SELECT DISTINCT c.resource, w.namespace, w.name
FROM named n
CROSS JOIN owner w ON w.uid = n.uid
CROSS JOIN clock c ON c.id = w.resource
WHERE NOT EXISTS (SELECT 1 FROM object o WHERE o.uid = n.uid)
LIMIT $1";

pub(super) async fn dangling(
    readers: &SqlitePool,
    limit: usize,
) -> Result<Vec<(Resource, Key)>, StoreError> {
    let rows = sqlx::query_as(DANGLING)
        .bind(signed(limit as u64))
        .fetch_all(readers)
        .await
        .map_err(during("looking for objects without their owner"))?;
    Ok(keys(rows))
}

fn keys(rows: Vec<(String, String, String)>) -> Vec<(Resource, Key)> {
    let key = |(resource, namespace, name): (String, String, String)| {
        (resource.into(), Key { namespace, name })
    };
    rows.into_iter().map(key).collect()
}

const UID_EXISTS: &str = "
SELECT EXISTS (SELECT 1 FROM object WHERE uid = $1)";

pub(super) async fn uid_exists(readers: &SqlitePool, uid: &str) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar(UID_EXISTS)
        .bind(uid)
        .fetch_one(readers)
        .await;
    found.map_err(during("looking for a UID"))
}
