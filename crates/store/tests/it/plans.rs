//! How PostgreSQL answers: the server itself explains every statement that the store sends while
//! it does all it can, and none may read a table from end to end, or read much to use little.

use crate::postgres::{fresh, open, server, wait_for};
use crate::suite::*;
use bytes::Bytes;
use muster_apiserver::store::ListQuery;

const OBJECTS: usize = 2000;
/// A statement is planned anew a few times before the server may keep a plan for all values.
const ROUNDS: u64 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_reads_a_table_from_end_to_end() {
    let (database, store) = fresh().await;
    populate(&(store.clone() as Shared)).await;
    store.close().await;
    let sql = |text: &str| server().sql(&database, text).unwrap();
    for (name, value) in [
        ("session_preload_libraries", "auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_analyze", "on"),
        ("auto_explain.log_timing", "off"),
        ("auto_explain.log_nested_statements", "on"),
    ] {
        sql(&format!(
            "LOAD 'auto_explain'; ALTER DATABASE {database} SET {name} = '{value}'"
        ));
    }
    let store = open(server(), &database).await;
    // A table may be filled long before the server counts what is in it.
    for round in 0..ROUNDS {
        computed::everything(&(store.clone() as Shared), 100 + round).await;
    }
    sql("ANALYZE");
    for round in 0..ROUNDS {
        everything(&(store.clone() as Shared), round).await;
    }
    store.close().await;
    // The last statement's plan says that the log is complete.
    sql("SELECT 'the end of all plans'");
    wait_for("the plans", async || {
        server().log().unwrap().contains("the end of all plans")
    })
    .await;
    let log = server().log().unwrap();
    let plans = plans(&log, &database);
    for table in [
        "object",
        "event",
        "label",
        "field",
        "owner",
        "blob",
        "body",
        "body_blob",
        "finding",
        "tally",
    ] {
        let on = format!(" on {table} ");
        assert!(
            plans.iter().any(|plan| plan.contains(&on)),
            "no plan is about {table}"
        );
    }
    let wrong: Vec<String> = plans.iter().filter_map(|plan| fault(plan)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

async fn populate(store: &Shared) {
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in (task..OBJECTS).step_by(4) {
                    let blob = Bytes::from(format!("blob {}", number % 500));
                    let thing = Thing::new(&format!("n{}", number % 20), &format!("x{number}"))
                        .label("parity", &(number % 2).to_string())
                        .label("tenth", &(number % 10).to_string())
                        .label("name", &format!("x{number}"))
                        .field("spec.x", &format!("v{}", number % 300))
                        .owner(&format!("uid-n{}-x{}", number % 20, number % 400))
                        .blob(&blob);
                    let revision = thing.create(&store).await;
                    if number % 4 == 0 {
                        thing.number(1).update(&store, revision).await;
                        computed::sample(&store, number).await;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// All that a store can be asked.
async fn everything(store: &Shared, round: u64) {
    let now = store.revision(&things()).await.unwrap();
    let hint = store.hint(&things());
    let name = format!("x{}", 100 + round);
    let namespace = format!("n{}", (100 + round) % 20);
    let here = key(&namespace, &name);
    store.get(&things(), &here).await.unwrap().unwrap();
    for selector in [
        "",
        "parity=1",
        "name=x77",
        "tenth in (1,2)",
        "name",
        "parity=0,tenth=4",
        "parity!=0",
    ] {
        for namespace in [None, Some("n3".to_owned())] {
            for after in [None, Some(key("n3", "x1"))] {
                for at in [None, Some(now - 5)] {
                    let query = ListQuery {
                        namespace: namespace.clone(),
                        after: after.clone(),
                        at,
                        limit: 20,
                        ..labelled(selector)
                    };
                    store.list(query).await.unwrap();
                }
            }
        }
    }
    for selector in [
        "spec.x=v7",
        "metadata.name=x9",
        "metadata.name=x9,metadata.namespace=n9",
    ] {
        store.list(fielded(selector)).await.unwrap();
    }
    store.list(all()).await.unwrap();
    for namespace in [None, Some("n3")] {
        for after in [None, Some(key("n3", "x1"))] {
            store
                .count(&things(), namespace, after.as_ref())
                .await
                .unwrap();
        }
    }
    store.events(&things(), now - 10, 100).await.unwrap();
    let (owner, blob) = ("uid-n1-x1", Bytes::from(format!("new {round}")));
    store.owned(owner, 10).await.unwrap();
    assert!(store.uid_exists(owner).await.unwrap());
    store.dangling(10).await.unwrap();
    let thing = Thing::new("new", &name)
        .label("a", "b")
        .field("f", "g")
        .owner("o")
        .blob(&blob);
    let revision = thing.create(store).await;
    let next = Thing::new("new", &name)
        .label("a", "c")
        .field("f", "h")
        .owner("p")
        .blob(&blob);
    let revision = next.update(store, revision).await;
    next.delete(store, revision).await;
    assert!(
        store
            .blob(&muster_kind::Digest::of(&blob))
            .await
            .unwrap()
            .is_some()
    );
    let blobs: Vec<_> = (0..200)
        .map(|number| muster_kind::Digest::of(format!("blob {number}").as_bytes()))
        .collect();
    let found = store.blobs(&blobs, 1 << 20).await.unwrap();
    assert_eq!(found.len(), blobs.len());
    computed::everything(store, round).await;
    store.compact(0, 100).await.unwrap();
    assert!(*hint.borrow() >= now);
}

/// The plans that the server has logged for a database.
fn plans<'a>(log: &'a str, database: &str) -> Vec<&'a str> {
    let mark = format!(" {database} LOG:  duration: ");
    let mut plans = Vec::new();
    let mut rest = log;
    while let Some(at) = rest.find(&mark) {
        let plan = &rest[at..];
        // What belongs to it is indented.
        let end = plan
            .match_indices('\n')
            .find(|(at, _)| !plan[at + 1..].starts_with('\t'))
            .map_or(plan.len(), |(at, _)| at);
        plans.push(&plan[..end]);
        rest = &plan[end..];
    }
    plans
}

/// What is wrong with a plan.
fn fault(plan: &str) -> Option<String> {
    let lines: Vec<&str> = plan.lines().collect();
    for (at, node) in lines.iter().enumerate() {
        if !node.contains("(cost=") {
            continue;
        }
        let about: Vec<&str> = lines[at + 1..]
            .iter()
            .take_while(|line| !line.contains("(cost="))
            .map(|line| line.trim())
            .collect();
        let says = |what: &str| about.iter().any(|line| line.starts_with(what));
        let small = ["clock", "incarnation", "pending", "schema_version", "pg_"];
        let small = small
            .iter()
            .any(|table| node.contains(&format!(" on {table}")));
        if node.contains("Seq Scan on") && !small {
            return Some(format!("a table is scanned: {plan}"));
        }
        let indexed = node.contains("Scan using") || node.contains("Bitmap Index Scan on");
        // The walk from owner to owner begins at the first.
        let first = node.contains("owner_pkey on owner") && plan.contains("RECURSIVE named");
        // Where all is old a sweep wants everything, and any index serves; what it reads in vain is
        // counted below.
        let swept = node.contains(" on blob ") && says("Filter: ((touched <=");
        if indexed && !small && !first && !swept && !says("Index Cond") {
            return Some(format!("an index is read from end to end: {plan}"));
        }
        // What a compaction forgets it reads.
        let by_age = says("Filter: (\"time\" >") || node.contains("CTE Scan on gone");
        let removed = about
            .iter()
            .filter_map(|line| line.strip_prefix("Rows Removed by "))
            .find_map(|line| {
                let join = line.strip_prefix("Join Filter: ");
                join.or_else(|| line.strip_prefix("Filter: "))
            });
        if removed.is_some_and(|rows| rows.parse::<u64>().unwrap() > 50) && !by_age && !small {
            return Some(format!("much is read to use little: {plan}"));
        }
    }
    None
}
