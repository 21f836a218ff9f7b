//! Telling workloads' reports that what they are computed from has changed: each gets its next
//! revision and an event. A change that concerns many reaches some of them in its own transaction
//! and notes the rest, which follow in portions, so that no transaction is long; what is noted
//! outlives the process. A report that has changed since the note was made was told by that.

use super::apply::Identifiers;
use super::now;
use crate::clock::event_number;
use crate::computed::{PORTION, Touched, WORKLOADS};
use crate::facts::LINK;
use muster_apiserver::store::EventType;
use sqlx::SqliteConnection;
use std::collections::BTreeSet;

const CLOCK: &str = "
SELECT id, rv
FROM clock
WHERE resource = $1";

const NOTE: &str = "
INSERT INTO pending (link, bound, namespace, name)
VALUES ($1, $2, $3, $4)";

/// Begins with the reports that have one of these links.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    links: &BTreeSet<&str>,
    identifiers: &mut Identifiers,
) -> Result<Touched, sqlx::Error> {
    let mut touched = Touched::default();
    let clock: Option<(i64, i64)> = sqlx::query_as(CLOCK)
        .bind(WORKLOADS)
        .fetch_optional(&mut *connection)
        .await?;
    let Some((resource, bound)) = clock else {
        return Ok(touched);
    };
    let mut room = PORTION;
    let mut revision = bound;
    for link in links {
        let mut note = Note::new(link, bound);
        room -= note
            .portion(connection, resource, room, &mut revision, identifiers)
            .await?;
        if room == 0 {
            let query = sqlx::query(NOTE).bind(*link).bind(bound);
            let query = query.bind(&note.namespace).bind(&note.name);
            query.execute(&mut *connection).await?;
            touched.unfinished = true;
        }
    }
    if revision > bound {
        tick(connection, resource, revision).await?;
        touched.last = Some(revision as u64);
    }
    Ok(touched)
}

const FIRST: &str = "
SELECT id, link, bound, namespace, name
FROM pending
ORDER BY id
LIMIT 1";

const MOVE: &str = "
UPDATE pending
SET namespace = $2, name = $3
WHERE id = $1";

const DROP: &str = "
DELETE FROM pending
WHERE id = $1";

/// Goes on with the oldest change that has not reached all; unfinished as long as there was one.
pub(super) async fn resume(
    connection: &mut SqliteConnection,
    identifiers: &mut Identifiers,
) -> Result<Touched, sqlx::Error> {
    let found: Option<(i64, String, i64, String, String)> = sqlx::query_as(FIRST)
        .fetch_optional(&mut *connection)
        .await?;
    let Some((id, link, bound, namespace, name)) = found else {
        return Ok(Touched::default());
    };
    let mut note = Note {
        link,
        bound,
        namespace,
        name,
    };
    let (resource, before): (i64, i64) = sqlx::query_as(CLOCK)
        .bind(WORKLOADS)
        .fetch_one(&mut *connection)
        .await?;
    let mut revision = before;
    let count = note
        .portion(connection, resource, PORTION, &mut revision, identifiers)
        .await?;
    let query = match count < PORTION {
        true => sqlx::query(DROP).bind(id),
        false => sqlx::query(MOVE)
            .bind(id)
            .bind(&note.namespace)
            .bind(&note.name),
    };
    query.execute(&mut *connection).await?;
    tick(connection, resource, revision).await?;
    Ok(Touched {
        last: (revision > before).then_some(revision as u64),
        unfinished: true,
    })
}

const TICK: &str = "
UPDATE clock
SET rv = $1
WHERE id = $2";

async fn tick(
    connection: &mut SqliteConnection,
    resource: i64,
    revision: i64,
) -> Result<(), sqlx::Error> {
    let tick = sqlx::query(TICK).bind(revision).bind(resource);
    tick.execute(connection).await.map(drop)
}

/// Which reports a change still has to reach: those behind a key, as old as the bound.
struct Note {
    link: String,
    bound: i64,
    namespace: String,
    name: String,
}

const AFFECTED: &str = "
SELECT o.namespace, o.name, o.body
FROM field f
CROSS JOIN object o ON o.resource = f.resource AND o.namespace = f.namespace AND o.name = f.name
WHERE f.resource = $1 AND f.key = $2 AND f.value = $3
AND (f.namespace, f.name) > ($4, $5) AND o.rv <= $6
ORDER BY f.namespace, f.name
LIMIT $7";

const COPY: &str = "
INSERT INTO body (id, rv, revision_at, form, facts, blobs, text)
SELECT $1, $2, revision_at, form, facts, blobs, text
FROM body
WHERE id = $3";

const EVENT: &str = "
INSERT INTO event (resource, rv, type, namespace, name, body, before, time)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const OBJECT: &str = "
UPDATE object
SET rv = $1, body = $2
WHERE resource = $3 AND namespace = $4 AND name = $5";

impl Note {
    fn new(link: &str, bound: i64) -> Self {
        Note {
            link: link.into(),
            bound,
            namespace: String::new(),
            name: String::new(),
        }
    }

    /// Reaches the next few; says how many there were.
    async fn portion(
        &mut self,
        connection: &mut SqliteConnection,
        resource: i64,
        room: i64,
        revision: &mut i64,
        identifiers: &mut Identifiers,
    ) -> Result<i64, sqlx::Error> {
        let affected: Vec<(String, String, i64)> = sqlx::query_as(AFFECTED)
            .bind(resource)
            .bind(LINK)
            .bind(&self.link)
            .bind(&self.namespace)
            .bind(&self.name)
            .bind(self.bound)
            .bind(room)
            .fetch_all(&mut *connection)
            .await?;
        let count = affected.len() as i64;
        for (namespace, name, before) in affected {
            *revision += 1;
            identifiers.body += 1;
            let body = identifiers.body;
            let copy = sqlx::query(COPY).bind(body).bind(*revision).bind(before);
            copy.execute(&mut *connection).await?;
            let event = sqlx::query(EVENT)
                .bind(resource)
                .bind(*revision)
                .bind(event_number(EventType::Modified))
                .bind(&namespace)
                .bind(&name)
                .bind(body)
                .bind(before)
                .bind(now());
            event.execute(&mut *connection).await?;
            let object = sqlx::query(OBJECT)
                .bind(*revision)
                .bind(body)
                .bind(resource)
                .bind(&namespace)
                .bind(&name);
            object.execute(&mut *connection).await?;
            (self.namespace, self.name) = (namespace, name);
        }
        Ok(count)
    }
}
