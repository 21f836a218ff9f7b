//! How a list finds its objects: in the order of keys over the whole resource, or along the index
//! of one label or field that the selectors require. Both give candidates in the order of keys;
//! the selectors are judged on each of them afterwards, so a plan decides speed and never content.

use super::fault::during;
use super::text::{indexed, place};
use crate::selection::{Entries, SORTED, Scope};
use muster_apiserver::store::{ListQuery, StoreError};
use sqlx::{PgConnection, Postgres, QueryBuilder};

type Builder = QueryBuilder<Postgres>;

/// Where candidates come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan<'a> {
    /// The objects.
    Walk,
    /// The entries of an index.
    Index(Entries<'a>),
}

impl<'a> Plan<'a> {
    /// Chooses: a name is a lookup in any case; else the index with the fewest entries.
    pub(super) async fn choose(
        connection: &mut PgConnection,
        query: &'a ListQuery,
        scope: &Scope<'_>,
    ) -> Result<Self, StoreError> {
        if scope.name.is_some() {
            return Ok(Plan::Walk);
        }
        let mut candidates = Entries::required(query);
        if let [entries] = &candidates[..]
            && entries.in_order()
        {
            return Ok(Plan::Index(candidates.remove(0)));
        }
        let mut best: Option<(i64, Entries<'a>)> = None;
        for entries in candidates {
            let count = count(connection, scope, &entries).await?;
            if count > SORTED && !entries.in_order() {
                continue;
            }
            if best.as_ref().is_none_or(|(least, _)| count < *least) {
                best = Some((count, entries));
            }
        }
        Ok(best.map_or(Plan::Walk, |(_, entries)| Plan::Index(entries)))
    }

    /// The statement that gives `namespace, name, body, facts` of at most `limit` candidates in the
    /// order of keys.
    pub(super) fn statement(&self, scope: &Scope<'_>, facts: bool, limit: i64) -> Builder {
        let mut builder = Builder::new("SELECT o.namespace, o.name, o.body, ");
        builder.push(match facts {
            true => "b.facts",
            false => "NULL::TEXT",
        });
        match self {
            Plan::Walk => {
                builder.push(" FROM object o");
                join_facts(&mut builder, facts);
                within(&mut builder, scope, "o");
                builder.push(" ORDER BY o.namespace, o.name");
            }
            Plan::Index(entries) => {
                // An entry leads to its object by a lookup. As a plain join the engine may hold
                // all entries of a namespace against all its objects instead.
                builder.push(" FROM ").push(entries.table).push(
                    " l CROSS JOIN LATERAL (SELECT o.namespace, o.name, o.body FROM object o \
                     WHERE o.resource = l.resource AND o.namespace = l.namespace \
                     AND o.name = l.name OFFSET 0) o",
                );
                join_facts(&mut builder, facts);
                within(&mut builder, scope, "l");
                with_entries(&mut builder, entries);
                builder.push(" ORDER BY l.namespace, l.name");
            }
        }
        builder.push(" LIMIT ").push_bind(limit);
        builder
    }
}

fn join_facts(builder: &mut Builder, facts: bool) {
    if facts {
        builder.push(" JOIN body b ON b.id = o.body");
    }
}

/// Adds the conditions on a table that has the columns of a key.
fn within(builder: &mut Builder, scope: &Scope<'_>, alias: &'static str) {
    builder.push(" WHERE ").push(alias).push(".resource = ");
    builder.push_bind(scope.resource);
    if let Some(namespace) = scope.namespace {
        builder.push(" AND ").push(alias).push(".namespace = ");
        builder.push_bind(namespace.to_owned());
    }
    if let Some(name) = scope.name {
        builder.push(" AND ").push(alias).push(".name = ");
        builder.push_bind(name.to_owned());
    }
    let Some(after) = scope.after else { return };
    let after = place(after);
    if scope.namespace == Some(&after.namespace) {
        // A range of one column is one the engine can walk to directly.
        builder.push(" AND ").push(alias).push(".name > ");
        builder.push_bind(after.name);
    } else {
        builder.push(" AND (").push(alias).push(".namespace, ");
        builder.push(alias).push(".name) > (");
        builder.push_bind(after.namespace).push(", ");
        builder.push_bind(after.name).push(")");
    }
}

fn with_entries(builder: &mut Builder, entries: &Entries<'_>) {
    builder
        .push(" AND l.key = ")
        .push_bind(indexed(entries.key));
    match entries.values.as_deref() {
        None => {}
        // Not ANY: with one value the engine shall see that the rest is in order.
        Some([value]) => {
            builder.push(" AND l.value = ").push_bind(indexed(value));
        }
        Some(values) => {
            let values: Vec<String> = values.iter().map(|value| indexed(value)).collect();
            builder.push(" AND l.value = ANY (").push_bind(values);
            builder.push(")");
        }
    }
}

/// How many entries there are, counted no further than it matters.
async fn count(
    connection: &mut PgConnection,
    scope: &Scope<'_>,
    entries: &Entries<'_>,
) -> Result<i64, StoreError> {
    let mut builder = Builder::new("SELECT COUNT(*) FROM (SELECT 1 FROM ");
    builder.push(entries.table).push(" l");
    within(&mut builder, scope, "l");
    with_entries(&mut builder, entries);
    builder.push(" LIMIT ").push_bind(SORTED + 1).push(") c");
    let count = builder.build_query_scalar().fetch_one(connection).await;
    count.map_err(during("weighing the indexes of a list"))
}

/// The statement that gives, for every key that changed behind a revision, its state at that
/// revision as `namespace, name, body, facts`; `body` is null where there was no object.
pub(super) fn overlay(scope: &Scope<'_>, at: i64, facts: bool) -> Builder {
    let mut builder = Builder::new("SELECT c.namespace, c.name, c.before, ");
    builder.push(match facts {
        true => "b.facts",
        false => "NULL::TEXT",
    });
    builder.push(
        " FROM (SELECT DISTINCT ON (e.namespace, e.name) e.namespace, e.name, e.before FROM event e",
    );
    within(&mut builder, scope, "e");
    builder.push(" AND e.rv > ").push_bind(at);
    builder.push(" ORDER BY e.namespace, e.name, e.rv) c");
    if facts {
        builder.push(" LEFT JOIN body b ON b.id = c.before");
    }
    builder.push(" ORDER BY c.namespace, c.name");
    builder
}
