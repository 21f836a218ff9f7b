//! How a list finds its objects: in the order of keys over the whole resource, or along the index
//! of one label or field that the selectors require. Both give candidates in the order of keys;
//! the selectors are judged on each of them afterwards, so a plan decides speed and never content.

use super::fault::during;
pub(super) use crate::selection::Scope;
use crate::selection::{Entries, SORTED};
use muster_apiserver::store::{ListQuery, StoreError};
use sqlx::{QueryBuilder, Sqlite, SqliteConnection};

/// Where candidates come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan<'a> {
    /// The objects.
    Walk,
    /// The entries of an index.
    Index(Entries<'a>),
}

impl Scope<'_> {
    /// Adds the conditions on a table that has the columns of a key.
    fn conditions(&self, builder: &mut QueryBuilder<Sqlite>, alias: &'static str) {
        builder
            .push(" WHERE ")
            .push(alias)
            .push(".resource = ")
            .push_bind(self.resource);
        if let Some(namespace) = self.namespace {
            builder.push(" AND ").push(alias).push(".namespace = ");
            builder.push_bind(namespace.to_owned());
        }
        if let Some(name) = self.name {
            builder
                .push(" AND ")
                .push(alias)
                .push(".name = ")
                .push_bind(name.to_owned());
        }
        let Some(after) = self.after else { return };
        if self.namespace == Some(&after.namespace) {
            // A range of one column is one the engine can walk to directly.
            builder
                .push(" AND ")
                .push(alias)
                .push(".name > ")
                .push_bind(after.name.clone());
        } else {
            builder
                .push(" AND (")
                .push(alias)
                .push(".namespace, ")
                .push(alias)
                .push(".name) > (");
            builder.push_bind(after.namespace.clone()).push(", ");
            builder.push_bind(after.name.clone()).push(")");
        }
    }
}

impl<'a> Plan<'a> {
    /// Chooses: a name is a lookup in any case; else the index with the fewest entries.
    pub(super) async fn choose(
        connection: &mut SqliteConnection,
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
            let count = entries.count(connection, scope).await?;
            if count > SORTED && !entries.in_order() {
                continue;
            }
            if best.as_ref().is_none_or(|(least, _)| count < *least) {
                best = Some((count, entries));
            }
        }
        Ok(best.map_or(Plan::Walk, |(_, entries)| Plan::Index(entries)))
    }

    /// The statement that gives `namespace, name, body, facts` in the order of keys.
    pub(super) fn statement(&self, scope: &Scope<'_>, facts: bool) -> QueryBuilder<Sqlite> {
        let mut builder = QueryBuilder::default();
        self.candidates(&mut builder, scope, facts);
        builder
    }

    /// The first candidates, as a table in the middle of another statement.
    pub(super) fn around(
        &self,
        head: String,
        scope: &Scope<'_>,
        limit: i64,
        tail: &'static str,
    ) -> QueryBuilder<Sqlite> {
        let mut builder = QueryBuilder::new(head);
        self.candidates(&mut builder, scope, false);
        builder.push(" LIMIT ").push_bind(limit).push(tail);
        builder
    }

    fn candidates(&self, builder: &mut QueryBuilder<Sqlite>, scope: &Scope<'_>, facts: bool) {
        builder.push("SELECT o.namespace, o.name, o.body, ");
        builder
            .push(if facts { "b.facts" } else { "NULL" })
            .push(" FROM ");
        // CROSS JOIN keeps the engine from turning the order of tables around.
        if let Plan::Index(entries) = self {
            builder.push(entries.table).push(
                " l CROSS JOIN object o ON o.resource = l.resource \
                 AND o.namespace = l.namespace AND o.name = l.name",
            );
        } else if scope.name.is_some() && scope.namespace.is_none() {
            // Left alone, the engine takes the order of keys for worth more than the lookup.
            builder.push("object o INDEXED BY object_name");
        } else {
            builder.push("object o");
        }
        if facts {
            builder.push(" CROSS JOIN body b ON b.id = o.body");
        }
        match self {
            Plan::Walk => {
                scope.conditions(builder, "o");
                builder.push(" ORDER BY o.namespace, o.name");
            }
            Plan::Index(entries) => {
                scope.conditions(builder, "l");
                entries.conditions(builder);
                builder.push(" ORDER BY l.namespace, l.name");
            }
        }
    }
}

impl Entries<'_> {
    fn conditions(&self, builder: &mut QueryBuilder<Sqlite>) {
        builder.push(" AND l.key = ").push_bind(self.key.to_owned());
        match self.values.as_deref() {
            None => {}
            // Not IN: with one value the engine shall see that the rest is in order.
            Some([value]) => {
                builder
                    .push(" AND l.value = ")
                    .push_bind((*value).to_owned());
            }
            Some(values) => {
                builder.push(" AND l.value IN (");
                let mut list = builder.separated(", ");
                for value in values {
                    list.push_bind((*value).to_owned());
                }
                builder.push(")");
            }
        }
    }

    /// How many entries there are, counted no further than it matters.
    async fn count(
        &self,
        connection: &mut SqliteConnection,
        scope: &Scope<'_>,
    ) -> Result<i64, StoreError> {
        let mut builder = QueryBuilder::new("SELECT COUNT(*) FROM (SELECT 1 FROM ");
        builder.push(self.table).push(" l");
        scope.conditions(&mut builder, "l");
        self.conditions(&mut builder);
        builder.push(" LIMIT ").push_bind(SORTED + 1).push(")");
        let count = builder.build_query_scalar().fetch_one(connection).await;
        count.map_err(during("weighing the indexes of a list"))
    }
}

/// The statement that gives, for every key that changed behind a revision, its state at that
/// revision as `namespace, name, body, facts`; `body` is null where there was no object. The
/// engine takes the other columns from the row that has the least revision.
pub(super) fn overlay(scope: &Scope<'_>, at: i64, facts: bool) -> QueryBuilder<Sqlite> {
    let mut builder = QueryBuilder::new("SELECT c.namespace, c.name, c.before, ");
    builder.push(if facts { "b.facts" } else { "NULL" });
    builder.push(" FROM (SELECT e.namespace, e.name, e.before, MIN(e.rv) FROM event e");
    scope.conditions(&mut builder, "e");
    builder.push(" AND e.rv > ").push_bind(at);
    builder.push(" GROUP BY e.namespace, e.name) c");
    if facts {
        builder.push(" LEFT JOIN body b ON b.id = c.before");
    }
    builder.push(" ORDER BY c.namespace, c.name");
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;
    use muster_apiserver::store::Key;
    use muster_kind::selector::{FieldSelector, LabelSelector};
    use sqlx::{Connection, Row};

    async fn steps(namespace: Option<&str>, labels: &str, fields: &str, after: bool) -> String {
        let mut connection = SqliteConnection::connect(":memory:").await.unwrap();
        schema::migrate(&mut connection, 0, schema::KNOWN)
            .await
            .unwrap();
        let query = ListQuery {
            resource: "r".into(),
            namespace: namespace.map(str::to_owned),
            labels: LabelSelector::parse(labels).unwrap(),
            fields: FieldSelector::parse(fields).unwrap(),
            at: None,
            after: after.then(|| Key {
                namespace: "n".into(),
                name: "a".into(),
            }),
            limit: 10,
        };
        let scope = Scope::of(&query, 1);
        let plan = Plan::choose(&mut connection, &query, &scope).await.unwrap();
        let statement = plan.statement(&scope, true);
        let mut explain = QueryBuilder::<Sqlite>::new("EXPLAIN QUERY PLAN ");
        explain.push(statement.sql().as_str());
        // The values do not matter to the plan, their number does.
        let rows = sqlx::query(sqlx::AssertSqlSafe(explain.sql().as_str()))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        rows.iter()
            .map(|row| row.get::<String, _>(3))
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[tokio::test]
    async fn lists_walk_an_index_in_order_and_never_sort() {
        for (namespace, labels, fields, after, expected) in [
            (
                None,
                "",
                "",
                false,
                "SEARCH o USING PRIMARY KEY (resource=?)",
            ),
            (
                None,
                "",
                "",
                true,
                "SEARCH o USING PRIMARY KEY (resource=? AND (namespace,name)>(?,?))",
            ),
            (
                Some("n"),
                "",
                "",
                true,
                "SEARCH o USING PRIMARY KEY (resource=? AND namespace=? AND name>?)",
            ),
            (
                Some("n"),
                "",
                "metadata.name=x",
                false,
                "SEARCH o USING PRIMARY KEY (resource=? AND namespace=? AND name=?)",
            ),
            (
                None,
                "",
                "metadata.name=x",
                false,
                "SEARCH o USING INDEX object_name (resource=? AND name=?)",
            ),
            (
                None,
                "a=b",
                "",
                true,
                "SEARCH l USING PRIMARY KEY (resource=? AND key=? AND value=? AND (namespace,name)>(?,?))",
            ),
            (
                Some("n"),
                "a=b",
                "",
                true,
                "SEARCH l USING PRIMARY KEY (resource=? AND key=? AND value=? AND namespace=? AND name>?)",
            ),
            (
                None,
                "",
                "spec.x=b",
                false,
                "SEARCH l USING PRIMARY KEY (resource=? AND key=? AND value=?)",
            ),
        ] {
            let steps = steps(namespace, labels, fields, after).await;
            assert!(
                steps.starts_with(expected),
                "{namespace:?} {labels} {fields}: {steps}"
            );
            assert!(
                !steps.contains("TEMP B-TREE"),
                "{namespace:?} {labels} {fields}: {steps}"
            );
            assert!(
                !steps.contains("SCAN"),
                "{namespace:?} {labels} {fields}: {steps}"
            );
        }
    }

    #[tokio::test]
    async fn only_what_every_selected_object_has_chooses_an_index() {
        for (labels, fields, indexes) in [
            ("a!=b", "", 0),
            ("a notin (b)", "", 0),
            ("!a", "", 0),
            ("", "spec.x!=y", 0),
            ("", "spec.x=", 0),
            ("", "metadata.namespace=n", 0),
            ("a in (b,c),d", "spec.x=y", 3),
        ] {
            let query = ListQuery {
                resource: "r".into(),
                namespace: None,
                labels: LabelSelector::parse(labels).unwrap(),
                fields: FieldSelector::parse(fields).unwrap(),
                at: None,
                after: None,
                limit: 10,
            };
            assert_eq!(
                Entries::required(&query).len(),
                indexes,
                "{labels} {fields}"
            );
        }
    }
}
