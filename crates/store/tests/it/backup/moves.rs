//! Stores that are written to while they are copied, and what comes of the copies.

use super::*;
use muster_apiserver::store::{EventType, StoreError};
use muster_store::restore;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

type Acknowledged = Arc<Mutex<Vec<(u64, String)>>>;

async fn write_on(store: Shared, writer: usize, done: Acknowledged, stop: Arc<AtomicBool>) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("{writer}-{number}");
        let bytes = format!("{{\"n\": {}}}", number / 2).into();
        let thing = Thing::new("busy", &name).label("w", &writer.to_string());
        let revision = thing.blob(&bytes).create(&store).await;
        done.lock().unwrap().push((revision, name));
    }
}

/// Takes a backup of a store that is being written to, and restores it elsewhere.
async fn moves(from: Engine, into: Engine) {
    let open = from.open().await;
    let store = open.store();
    furnish(&store).await;
    let (done, stop) = (Acknowledged::default(), Arc::new(AtomicBool::new(false)));
    let writers: Vec<_> = (0..4)
        .map(|writer| tokio::spawn(write_on(store.clone(), writer, done.clone(), stop.clone())))
        .collect();
    while done.lock().unwrap().len() < 60 {
        tokio::task::yield_now().await;
    }
    let before = done.lock().unwrap().clone();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    let content = backup(&from.place(), &file).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    open.close().await;
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);

    let newest = assert_replays(&file, &before).await;
    assert_eq!(restore(&file, &into.place()).await.unwrap(), content);
    let open = into.open().await;
    let store = open.store();
    for (revision, name) in &before {
        let found = store.get(&things(), &key("busy", name)).await.unwrap();
        assert_eq!(found.unwrap().revision, *revision);
    }
    let origin = store.revision(&things()).await.unwrap();
    assert_is_of_now(origin);
    let refused = store.events(&things(), newest, 1).await;
    assert!(
        matches!(refused, Err(StoreError::Compacted { .. })),
        "{refused:?}"
    );
    assert_furnished(&store).await;
    let next = Thing::new("busy", "next").create(&store).await;
    assert_eq!(next, origin + 1);
    store.compact(0, 0).await.unwrap();
    open.close().await;
    into.assert_sound().await;
    from.assert_sound().await;
}

/// Replaying the log of a backup gives its objects; all of these are among them. Gives the clock.
async fn assert_replays(file: &Path, expected: &[(u64, String)]) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(file, directory.path().join("state.db")).unwrap();
    let store = SqliteStore::open(Options::new(directory.path()))
        .await
        .unwrap();
    let store = Arc::new(store);
    let shared: Shared = store.clone();
    let page = shared.list(all()).await.unwrap();
    let listed = page.items.into_iter().map(|item| (item.key, item.revision));
    let listed: BTreeMap<_, _> = listed.collect();
    let mut replayed = BTreeMap::new();
    let mut last = 1;
    for event in shared.events(&things(), 0, usize::MAX).await.unwrap() {
        assert_eq!(event.revision, last + 1);
        last = event.revision;
        match event.event {
            EventType::Deleted => replayed.remove(&event.key),
            _ => replayed.insert(event.key, event.revision),
        };
    }
    assert_eq!(last, page.revision);
    assert_eq!(replayed, listed);
    for (revision, name) in expected {
        assert_eq!(listed.get(&key("busy", name)), Some(revision));
    }
    store.close().await.unwrap();
    sqlite::assert_sound(directory.path()).await;
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_in_use_moves_into_a_directory() {
    moves(Engine::sqlite(), Engine::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_in_use_moves_into_a_database() {
    moves(Engine::sqlite(), Engine::postgres()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_in_use_moves_into_a_directory() {
    moves(Engine::postgres(), Engine::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_in_use_moves_into_a_database() {
    moves(Engine::postgres(), Engine::postgres()).await;
}
