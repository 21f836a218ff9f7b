//! Lists. One snapshot gives the clock and the objects, so the clock's revision is the exact
//! revision of the page. Candidates are read in pieces, because the server sends all that a
//! statement finds; then the states of the chosen ones, all in one statement.

use super::body;
use super::clock;
use super::connections::Connections;
use super::fault::during;
use super::plan::{Plan, overlay};
use super::text::possible;
use crate::clock::{Clock, signed};
use crate::fault::damaged;
use crate::page::{Candidate, Choice};
use crate::selection::Scope;
use muster_apiserver::store::{Key, ListQuery, Page, StoreError, Stored};
use muster_kind::Body;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Postgres, QueryBuilder, Row};
use std::collections::HashMap;

const ATTEMPT: &str = "reading a list";
/// The fewest candidates read at once where selectors may refuse some, and the most in any case.
const PIECE: (usize, usize) = (200, 10_000);

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const END: &str = "COMMIT";

pub(super) async fn list(connections: &Connections, query: ListQuery) -> Result<Page, StoreError> {
    let mut lease = connections.lease().await?;
    let connection = lease.connection();
    execute(connection, BEGIN).await?;
    let clock = clock(connection, &query.resource).await?;
    let checked = match query.at {
        None => Ok(clock.revision),
        Some(at) => clock.check(at).map(|()| signed(at)),
    };
    // A refusal ends the snapshot in order, too.
    let page = match checked {
        Err(refusal) => Err(refusal),
        Ok(at) => Ok(page(connection, &query, &clock, at).await?),
    };
    execute(connection, END).await?;
    lease.done();
    page
}

async fn execute(connection: &mut PgConnection, statement: &'static str) -> Result<(), StoreError> {
    let done = sqlx::raw_sql(statement).execute(connection).await;
    done.map(drop).map_err(during(ATTEMPT))
}

async fn page(
    connection: &mut PgConnection,
    query: &ListQuery,
    clock: &Clock,
    at: i64,
) -> Result<Page, StoreError> {
    let scope = Scope::of(query, clock.resource);
    let within = |text: Option<&str>| possible(text.unwrap_or_default(), "");
    if !within(scope.namespace) || !within(scope.name) {
        return Ok(Page {
            revision: at as u64,
            items: Vec::new(),
            more: false,
        });
    }
    let past = match at == clock.revision {
        true => Vec::new(),
        false => {
            let statement = overlay(&scope, at, Choice::needs_facts(query));
            candidates(connection, statement).await?
        }
    };
    let mut choice = Choice::new(query, past);
    walk(connection, query, scope, &mut choice).await?;
    let (chosen, more) = choice.finish()?;
    Ok(Page {
        revision: at as u64,
        items: load(connection, chosen).await?,
        more,
    })
}

/// Offers today's objects until the page is full or there are no more.
async fn walk(
    connection: &mut PgConnection,
    query: &ListQuery,
    scope: Scope<'_>,
    choice: &mut Choice<'_>,
) -> Result<(), StoreError> {
    let facts = Choice::needs_facts(query);
    let plan = Plan::choose(connection, query, &scope).await?;
    let mut behind: Option<Key> = None;
    while !choice.is_full() {
        let piece = choice.lacks().clamp(PIECE.0, PIECE.1);
        let scope = Scope {
            after: behind.as_ref().or(scope.after),
            ..scope
        };
        let statement = plan.statement(&scope, facts, piece as i64);
        let found = candidates(connection, statement).await?;
        let last = found.last().map(|candidate| candidate.key.clone());
        let complete = found.len() < piece;
        for candidate in found {
            if choice.is_full() {
                break;
            }
            choice.offer(candidate)?;
        }
        if complete {
            break;
        }
        behind = last;
    }
    Ok(())
}

async fn candidates(
    connection: &mut PgConnection,
    mut statement: QueryBuilder<Postgres>,
) -> Result<Vec<Candidate>, StoreError> {
    let rows = statement
        .build()
        .fetch_all(connection)
        .await
        .map_err(during(ATTEMPT))?;
    rows.iter().map(candidate).collect()
}

fn candidate(row: &PgRow) -> Result<Candidate, StoreError> {
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

const LOAD: &str = "
SELECT b.id, b.rv, b.revision_at, b.form, b.blobs, b.text
FROM body b
WHERE b.id = ANY ($1)";

async fn load(
    connection: &mut PgConnection,
    chosen: Vec<(Key, i64)>,
) -> Result<Vec<Stored>, StoreError> {
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let failed = during(ATTEMPT);
    let numbers: Vec<i64> = chosen.iter().map(|(_, body)| *body).collect();
    let rows = sqlx::query(LOAD)
        .bind(numbers)
        .fetch_all(connection)
        .await
        .map_err(&failed)?;
    let mut states: HashMap<i64, (u64, Body)> = HashMap::with_capacity(rows.len());
    for row in &rows {
        let id: i64 = row.try_get(0).map_err(&failed)?;
        let revision: i64 = row.try_get(1).map_err(&failed)?;
        states.insert(id, (revision as u64, body::read(row, 2)?));
    }
    chosen
        .into_iter()
        .map(|(key, body)| {
            let state = states.remove(&body);
            let (revision, body) = state.ok_or_else(|| damaged("an object has no body"))?;
            Ok(Stored {
                key,
                revision,
                body,
            })
        })
        .collect()
}
