//! Lists. One snapshot gives the clock and the objects, so the clock's revision is the exact
//! revision of the page. A past revision is today's objects overlaid with what the log says was
//! there before their first change since. Where the keys alone choose the page, one statement reads
//! it; else the keys are chosen first, with the small columns only, and then their states read.

use super::body::BodyRow;
use super::fault::during;
use super::frame::{FRAME, Framed, cut};
use super::plan::{Plan, Scope, overlay};
use super::{clock, signed};
use crate::fault::damaged;
use crate::page::{Candidate, Choice};
use futures::TryStreamExt;
use muster_apiserver::store::{Key, ListQuery, Page, StoreError, Stored};
use muster_kind::Body;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{Row, SqliteConnection};
use std::collections::HashMap;

const ATTEMPT: &str = "reading a list";

pub(super) async fn list(readers: &SqlitePool, query: ListQuery) -> Result<Page, StoreError> {
    let mut transaction = readers.begin().await.map_err(during(ATTEMPT))?;
    let clock = clock(&mut *transaction, &query.resource).await?;
    let at = match query.at {
        None => clock.revision,
        Some(at) => {
            clock.check(at)?;
            signed(at)
        }
    };
    let scope = Scope::of(&query, clock.resource);
    let facts = Choice::needs_facts(&query);
    let past = match at == clock.revision {
        true => Vec::new(),
        false => past(&mut transaction, &scope, at, facts).await?,
    };
    let plan = Plan::choose(&mut transaction, &query, &scope).await?;
    let everything = query.labels.is_empty() && query.fields.is_empty();
    if everything && past.is_empty() {
        let mut items = straight(&mut transaction, plan, &scope, query.limit).await?;
        let more = items.len() > query.limit;
        items.truncate(query.limit);
        return Ok(Page {
            revision: at as u64,
            items,
            more,
        });
    }
    let mut choice = Choice::new(&query, past);
    {
        let mut statement = plan.statement(&scope, facts);
        let mut rows = statement.build().fetch(&mut *transaction);
        while !choice.is_full() {
            let Some(row) = rows.try_next().await.map_err(during(ATTEMPT))? else {
                break;
            };
            choice.offer(candidate(&row)?)?;
        }
    }
    let (chosen, more) = choice.finish()?;
    let items = load(&mut transaction, chosen).await?;
    Ok(Page {
        revision: at as u64,
        items,
        more,
    })
}

async fn past(
    connection: &mut SqliteConnection,
    scope: &Scope<'_>,
    at: i64,
    facts: bool,
) -> Result<Vec<Candidate>, StoreError> {
    let mut statement = overlay(scope, at, facts);
    let rows = statement
        .build()
        .fetch_all(connection)
        .await
        .map_err(during(ATTEMPT))?;
    rows.iter().map(candidate).collect()
}

fn candidate(row: &SqliteRow) -> Result<Candidate, StoreError> {
    let failed = during(ATTEMPT);
    Ok(Candidate {
        key: Key {
            namespace: row.try_get(0).map_err(&failed)?,
            name: row.try_get(1).map_err(&failed)?,
        },
        body: row.try_get(2).map_err(&failed)?,
        facts: row.try_get(3).map_err(&failed)?,
    })
}

/// Reads a page whose conditions are all the statement's own, and one object more.
async fn straight(
    connection: &mut SqliteConnection,
    plan: Plan<'_>,
    scope: &Scope<'_>,
    limit: usize,
) -> Result<Vec<Stored>, StoreError> {
    let mut statement = plan.around(
        format!("SELECT group_concat({FRAME}, '') FROM ("),
        scope,
        signed(limit as u64).saturating_add(1),
        ") k CROSS JOIN body b ON b.id = k.body",
    );
    let joined = statement.build_query_scalar().fetch_one(&mut *connection);
    let joined: Option<Vec<u8>> = joined.await.map_err(during(ATTEMPT))?;
    let framed = cut(joined.unwrap_or_default().into())?;
    let packed = framed.iter().filter(|framed| framed.body.is_none());
    let mut packed = unpack(connection, packed.map(|framed| framed.id).collect()).await?;
    let mut items = Vec::with_capacity(framed.len());
    for Framed {
        key,
        id,
        revision,
        body,
    } in framed
    {
        let body = body.or_else(|| packed.remove(&id));
        items.push(Stored {
            key,
            revision,
            body: body.ok_or_else(|| damaged("an object has no body"))?,
        });
    }
    // The engine joins in the order of the rows, but does not promise it.
    items.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(items)
}

/// Reads the states of chosen keys.
async fn load(
    connection: &mut SqliteConnection,
    chosen: Vec<(Key, i64)>,
) -> Result<Vec<Stored>, StoreError> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let statement = format!(
        "SELECT group_concat({FRAME}, '') \
         FROM (SELECT '' AS namespace, '' AS name, value FROM json_each($1)) k \
         CROSS JOIN body b ON b.id = k.value"
    );
    let numbers = json_array(chosen.iter().map(|(_, body)| *body));
    let joined = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .bind(numbers)
        .fetch_one(&mut *connection);
    let joined: Option<Vec<u8>> = joined.await.map_err(during(ATTEMPT))?;
    let framed = cut(joined.unwrap_or_default().into())?;
    let packed = framed.iter().filter(|framed| framed.body.is_none());
    let mut bodies = unpack(connection, packed.map(|framed| framed.id).collect()).await?;
    let mut revisions = HashMap::with_capacity(framed.len());
    for framed in framed {
        revisions.insert(framed.id, framed.revision);
        bodies.extend(framed.body.map(|body| (framed.id, body)));
    }
    let item = |(key, id): (Key, i64)| {
        let state = revisions.get(&id).copied().zip(bodies.remove(&id));
        let (revision, body) = state.ok_or_else(|| damaged("an object has no body"))?;
        Ok(Stored {
            key,
            revision,
            body,
        })
    };
    chosen.into_iter().map(item).collect()
}

const UNPACK: &str = "
SELECT b.id, b.revision_at, b.form, b.blobs, b.text
FROM json_each($1) j
CROSS JOIN body b ON b.id = j.value";

/// Reads compressed bodies.
async fn unpack(
    connection: &mut SqliteConnection,
    numbers: Vec<i64>,
) -> Result<HashMap<i64, Body>, StoreError> {
    let mut bodies = HashMap::new();
    if numbers.is_empty() {
        return Ok(bodies);
    }
    let failed = during(ATTEMPT);
    let numbers = json_array(numbers.into_iter());
    let mut rows = sqlx::query(UNPACK).bind(numbers).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        let id: i64 = row.try_get(0).map_err(&failed)?;
        bodies.insert(id, BodyRow::unpack(&row, 1)?);
    }
    Ok(bodies)
}

fn json_array(numbers: impl Iterator<Item = i64>) -> String {
    serde_json::Value::from_iter(numbers).to_string()
}
