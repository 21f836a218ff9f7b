//! How fast it is here: `cargo test --release -p muster-store -- --ignored speed --nocapture`.

use crate::suite::*;
use muster_apiserver::store::ListQuery;
use muster_store::{Options, SqliteStore};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn say(what: &str, count: usize, took: Duration) {
    let rate = count as f64 / took.as_secs_f64();
    let line = format!("{what}: {count} in {took:.1?}, {rate:.0}/s\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

fn thing(writer: usize, number: usize) -> Thing {
    let mut thing = Thing::new(
        &format!("team-{}", number % 20),
        &format!("x-{writer}-{number}"),
    )
    .label("app.kubernetes.io/managed-by", "muster")
    .label("team", &format!("t{}", number % 100));
    let text = |n: usize| format!("sha256:{:064x}", (n + 1) * 0x9e37_79b9 * (number + 1));
    thing.tree["layers"] = (0..20).map(text).collect::<Vec<_>>().into();
    thing
}

async fn write(store: &Shared, writers: usize, each: usize, first: usize) {
    let started = Instant::now();
    let tasks = (0..writers).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..each {
                thing(first + writer, number).create(&store).await;
            }
        })
    });
    futures::future::join_all(tasks).await;
    say(
        &format!("creates, {writers} writers"),
        writers * each,
        started.elapsed(),
    );
}

async fn list(store: &Shared, what: &str, query: ListQuery) {
    let started = Instant::now();
    let (mut query, mut count) = (query, 0);
    loop {
        let page = store.list(query.clone()).await.unwrap();
        count += page.items.len();
        if !page.more {
            break;
        }
        query.at = Some(page.revision);
        query.after = page.items.last().map(|item| item.key.clone());
    }
    say(what, count, started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn speed() {
    let directory = tempfile::tempdir_in(std::env::var("SPEED_DIR").unwrap_or("/tmp".into()));
    let directory = directory.unwrap();
    let store = Arc::new(
        SqliteStore::open(Options::new(directory.path()))
            .await
            .unwrap(),
    );
    let shared: Shared = store.clone();
    write(&shared, 1, 800, 0).await;
    write(&shared, 16, 575, 1).await;
    for _ in 0..2 {
        list(&shared, "list of all", all()).await;
        list(
            &shared,
            "list in pages of 500",
            ListQuery {
                limit: 500,
                ..all()
            },
        )
        .await;
        list(
            &shared,
            "list of one label in a hundred",
            labelled("team=t7"),
        )
        .await;
        let all_of_them = labelled("app.kubernetes.io/managed-by=muster");
        list(
            &shared,
            "pages of all by label",
            ListQuery {
                limit: 500,
                ..all_of_them
            },
        )
        .await;
        list(
            &shared,
            "pages of all by !=",
            ListQuery {
                limit: 500,
                ..labelled("team!=t7")
            },
        )
        .await;
        list(&shared, "one by name", fielded("metadata.name=x-3-77")).await;
    }
    let at = Some(5001);
    list(
        &shared,
        "5 000 events back, in pages",
        ListQuery {
            limit: 500,
            at,
            ..all()
        },
    )
    .await;
    let started = Instant::now();
    for number in 0..1000 {
        let key = &thing(3, number % 500).key;
        assert!(shared.get(&things(), key).await.unwrap().is_some());
    }
    say("gets, one after the other", 1000, started.elapsed());
    let started = Instant::now();
    let events = shared.events(&things(), 0, usize::MAX).await.unwrap();
    say("events", events.len(), started.elapsed());
    let started = Instant::now();
    let gone = shared.compact(0, 0).await.unwrap();
    say("compaction", gone as usize, started.elapsed());
    let size = std::fs::metadata(directory.path().join("state.db"))
        .unwrap()
        .len();
    say("bytes of the file", size as usize, Duration::from_secs(1));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"))
    {
        std::io::stderr()
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }
    store.close().await.unwrap();
}
