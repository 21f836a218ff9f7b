//! Many processes on one PostgreSQL database (here: many stores), and a server that is killed under
//! them.

use crate::postgres::{assert_sound, fresh, open, options, server, wait_for};
use crate::suite::*;
use muster_apiserver::store::{Expect, Store, StoreError};
use muster_store::PostgresStore;
use muster_testkit::etcd::Durability;
use muster_testkit::postgres::Postgres;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const REPLICAS: usize = 3;
const WRITERS: usize = 4;
const WRITES: usize = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_sees_every_write_of_every_replica_once_and_in_order() {
    let (database, follower) = fresh().await;
    let replicas =
        futures::future::join_all((0..REPLICAS).map(|_| open(server(), &database))).await;
    let writers: Vec<_> = (0..REPLICAS * WRITERS)
        .map(|writer| {
            let store: Shared = replicas[writer % REPLICAS].clone();
            tokio::spawn(async move { write_many(&store, writer).await })
        })
        .collect();
    let compactor = {
        let store: Shared = replicas[0].clone();
        tokio::spawn(async move { while store.compact(3600, 0).await.unwrap() == 0 {} })
    };
    let all = REPLICAS * WRITERS * WRITES * 2;
    let mut hint = follower.hint(&things());
    let mut seen = BTreeMap::new();
    let mut last = 1;
    while seen.len() < all {
        for event in follower.events(&things(), last, 40).await.unwrap() {
            assert_eq!(event.revision, last + 1, "a gap or a step back");
            last = event.revision;
            seen.insert(last, event.key.name);
        }
        // Only the hints of others' writes wake it; a deadline says if they stop.
        if seen.len() < all && *hint.borrow_and_update() <= last {
            let woken = tokio::time::timeout(Duration::from_secs(60), hint.changed()).await;
            woken.expect("no hint came").unwrap();
        }
    }
    for writer in writers {
        for (revision, name) in writer.await.unwrap() {
            assert_eq!(seen.get(&revision), Some(&name));
        }
    }
    compactor.abort();
    for store in replicas.into_iter().chain([follower]) {
        store.close().await;
    }
    assert_sound(server(), &database);
}

async fn write_many(store: &Shared, writer: usize) -> Vec<(u64, String)> {
    let mut acknowledged = Vec::new();
    for number in 0..WRITES {
        let name = format!("{writer}-{number}");
        let thing = Thing::new("n", &name).label("writer", &writer.to_string());
        let created = thing.create(store).await;
        let changed = thing.number(1).update(store, created).await;
        acknowledged.extend([(created, name.clone()), (changed, name)]);
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_increment_one_number_lose_nothing() {
    let (database, first) = fresh().await;
    let second = open(server(), &database).await;
    let thing = Thing::new("a", "x");
    thing.create(&(first.clone() as Shared)).await;
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let store: Shared = match task % 2 {
                0 => first.clone(),
                _ => second.clone(),
            };
            let thing = thing.clone();
            tokio::spawn(async move {
                let mut done = 0;
                while done < 10 {
                    let found = store.get(&things(), &thing.key).await.unwrap().unwrap();
                    let next = thing.clone().number(number(&found.body) + 1);
                    let write = next.write(Expect::Revision(found.revision));
                    match store.write(write).await {
                        Ok(_) => done += 1,
                        Err(StoreError::Conflict) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let found = first.get(&things(), &thing.key).await.unwrap().unwrap();
    assert_eq!((number(&found.body), found.revision), (80, 82));
    first.close().await;
    second.close().await;
    assert_sound(server(), &database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_open_an_empty_database_at_once_all_work() {
    let database = server().database().unwrap();
    let opened = (0..6).map(|_| tokio::spawn(PostgresStore::open(options(server(), &database))));
    let mut revisions = Vec::new();
    let mut stores = Vec::new();
    for (number, opened) in opened.collect::<Vec<_>>().into_iter().enumerate() {
        let store = Arc::new(opened.await.unwrap().unwrap());
        let thing = Thing::new("a", &format!("x{number}"));
        revisions.push(thing.create(&(store.clone() as Shared)).await);
        stores.push(store);
    }
    assert_eq!(revisions, [2, 3, 4, 5, 6, 7]);
    for store in stores {
        store.close().await;
    }
    assert_sound(server(), &database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nudge_is_looked_up_at_once_and_own_writes_are_told() {
    let database = server().database().unwrap();
    let mut slow = options(server(), &database);
    slow.poll = Duration::from_secs(3600);
    let follower = PostgresStore::open(slow).await.unwrap();
    let writer = open(server(), &database).await;
    let mut hint = follower.hint(&things());
    let mut written = writer.written();
    Thing::new("a", "x")
        .create(&(writer.clone() as Shared))
        .await;
    let (resource, revision) = written.recv().await.unwrap();
    assert_eq!((&resource, revision), (&things(), 2));
    // More than is true is said: the hint is what the database has.
    follower.nudge(&resource, revision + 1000);
    let waited = hint.wait_for(|known| *known > 1);
    let waited = tokio::time::timeout(Duration::from_secs(60), waited).await;
    assert_eq!(*waited.expect("the nudge was lost").unwrap(), 2);
    follower.close().await;
    writer.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sweep_takes_no_blob_that_another_replica_is_writing() {
    let (database, sweeper) = fresh().await;
    let writer = open(server(), &database).await;
    let over = Arc::new(AtomicBool::new(false));
    let sweeping = {
        let over = over.clone();
        tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                sweeper.compact(0, 0).await.unwrap();
            }
            sweeper.close().await;
        })
    };
    let writers: Vec<_> = (0..4)
        .map(|number| {
            let store: Shared = writer.clone();
            tokio::spawn(async move {
                let blob = bytes::Bytes::from_static(b"the same bytes again and again");
                for _ in 0..15 {
                    let thing = Thing::new("a", &format!("x{number}")).blob(&blob);
                    let revision = thing.create(&store).await;
                    let (_, digest) = thing.body().blobs[0];
                    assert_eq!(store.blob(&digest).await.unwrap().as_ref(), Some(&blob));
                    thing.delete(&store, revision).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    sweeping.await.unwrap();
    writer.close().await;
    assert_sound(server(), &database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let mut alone = Postgres::start(Durability::Unsynced).unwrap();
    let database = alone.database().unwrap();
    let stores = [open(&alone, &database).await, open(&alone, &database).await];
    let acknowledged: Arc<Mutex<Vec<(u64, String)>>> = Arc::default();
    let failures = Arc::new(AtomicUsize::new(0));
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store: Shared = stores[writer % 2].clone();
            let (acknowledged, failures) = (acknowledged.clone(), failures.clone());
            let over = over.clone();
            tokio::spawn(async move {
                for number in 0.. {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("{writer}-{number}");
                    let write = Thing::new("n", &name)
                        .label("k", &name)
                        .write(Expect::Absent);
                    match store.write(write).await {
                        Ok(revision) => acknowledged.lock().unwrap().push((revision, name)),
                        // It may have happened or not; the next name is another matter.
                        Err(StoreError::Unavailable { .. }) => {
                            failures.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(other) => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    for _ in 0..3 {
        let so_far = acknowledged.lock().unwrap().len();
        wait_for("more writes", async || {
            acknowledged.lock().unwrap().len() > so_far + 40
        })
        .await;
        let failed = failures.load(Ordering::Relaxed);
        alone.kill9().unwrap();
        wait_for("a failure", async || {
            failures.load(Ordering::Relaxed) > failed
        })
        .await;
        alone.restart().unwrap();
    }
    let so_far = acknowledged.lock().unwrap().len();
    wait_for("the recovery of all", async || {
        acknowledged.lock().unwrap().len() > so_far + 40
    })
    .await;
    over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let events = stores[0].events(&things(), 1, usize::MAX).await.unwrap();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event.revision, at as u64 + 2);
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    for (revision, name) in &acknowledged {
        assert_eq!(&events[*revision as usize - 2].key.name, name);
    }
    assert_eq!(
        stores[1].revision(&things()).await.unwrap(),
        events.len() as u64 + 1
    );
    for store in stores {
        store.close().await;
    }
    assert_sound(&alone, &database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_took_over_is_noticed_by_running_replicas() {
    let mut alone = Postgres::start(Durability::Unsynced).unwrap();
    let database = alone.database().unwrap();
    let stores = [open(&alone, &database).await, open(&alone, &database).await];
    let thing = Thing::new("a", "x");
    let shared: Shared = stores[0].clone();
    thing.create(&shared).await;
    alone.restart_as_standby().unwrap();
    for store in &stores {
        wait_for("the refusal of a standby", async || {
            let read = store.revision(&things()).await;
            matches!(read, Err(StoreError::Unavailable { .. }))
        })
        .await;
    }
    alone.sql("postgres", "SELECT pg_promote()").unwrap();
    for store in &stores {
        wait_for("the return of the database", async || {
            store.revision(&things()).await.is_ok()
        })
        .await;
    }
    assert_jumped(&shared, &thing, 2).await;
    let number = alone
        .sql(&database, "SELECT number FROM incarnation")
        .unwrap();
    assert_eq!(number, "2", "once for all replicas");
    for store in stores {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_replica_left_untold_is_told_once_by_others() {
    let (database, first) = fresh().await;
    let shared: Shared = first.clone();
    let before = computed::crowd(&shared).await;
    // No portion behind the first one can be committed: so dies whoever makes them.
    let block = "CREATE FUNCTION die() RETURNS TRIGGER LANGUAGE plpgsql AS
        'BEGIN RAISE EXCEPTION ''killed''; END';
        CREATE TRIGGER die BEFORE UPDATE OR DELETE ON pending
        FOR EACH ROW EXECUTE FUNCTION die()";
    server().sql(&database, block).unwrap();
    computed::stir(&shared).await;
    let told = || {
        let count = format!(
            "SELECT COUNT(*) FROM event e JOIN clock c ON c.id = e.resource
             WHERE c.resource LIKE 'workloadscanreports.%' AND e.rv > {before}"
        );
        server().sql(&database, &count).unwrap()
    };
    assert_eq!(told(), "500");
    // One that changes meanwhile is told by that.
    computed::change_last(&shared).await;
    first.close().await;
    drop((shared, first));
    assert_eq!(told(), "501");
    server()
        .sql(&database, "DROP TRIGGER die ON pending")
        .unwrap();
    // Each begins at once with what it finds.
    let others = futures::future::join_all((0..2).map(|_| open(server(), &database))).await;
    computed::assert_told_once(&(others[0].clone() as Shared), before).await;
    wait_for("the end of the work", async || {
        let left = server().sql(&database, "SELECT COUNT(*) FROM pending");
        left.unwrap() == "0"
    })
    .await;
    assert_eq!(told(), "1100");
    for store in others {
        store.close().await;
    }
    assert_sound(server(), &database);
}
