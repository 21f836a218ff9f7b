//! A store that was restored, or taken over, is never taken for the one that was lost: whatever
//! position a client holds of that one, it is told to begin anew.

use super::*;
use muster_apiserver::store::{Resource, StoreError};
use muster_store::restore;
use std::path::Path;
use std::time::Duration;

const LATE: &str = "latecomers.example.com";

fn late() -> Resource {
    resource(LATE)
}

/// Writes what the backup will not know of; gives the newest revision.
async fn write_late(store: &Shared, count: u64) -> u64 {
    for number in 0..count {
        let thing = Thing::new("a", &format!("late-{number}"));
        thing.of(LATE).create(store).await;
    }
    store.revision(&late()).await.unwrap()
}

/// Whatever was held of a resource that this life has never written is refused; gives the origin.
async fn assert_begins_anew(store: &Shared, held: u64) -> u64 {
    let origin = store.revision(&late()).await.unwrap();
    assert!(origin > held, "{origin}");
    let mut query = all();
    query.resource = late();
    let page = store.list(query.clone()).await.unwrap();
    assert_eq!((page.revision, page.items.len()), (origin, 0));
    for held in [0, 1, held, origin - 1] {
        query.at = Some(held);
        for refused in [
            store.events(&late(), held, 10).await.map(drop),
            store.list(query.clone()).await.map(drop),
        ] {
            assert!(
                matches!(refused, Err(StoreError::Compacted { compacted, .. }) if compacted == origin),
                "{held}: {refused:?}"
            );
        }
    }
    assert_eq!(store.events(&late(), origin, 10).await.unwrap().len(), 0);
    origin
}

/// What is written now follows the origin, and is all that is seen from there.
async fn assert_goes_on(store: &Shared, held: u64, origin: u64) {
    assert_eq!(write_late(store, 3).await, origin + 3);
    let events = store.events(&late(), origin, 10).await.unwrap();
    let revisions: Vec<u64> = events.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [origin + 1, origin + 2, origin + 3]);
    assert_eq!(*store.hint(&late()).borrow(), origin + 3);
    let refused = store.events(&late(), held, 10).await;
    assert!(
        matches!(refused, Err(StoreError::Compacted { .. })),
        "{refused:?}"
    );
    store.compact(0, 1).await.unwrap();
    let kept = store.events(&late(), origin + 2, 10).await.unwrap();
    assert_eq!(kept.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_first_written_after_the_backup_is_not_waited_for() {
    for from in Engine::both() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("backup");
        let open = from.open().await;
        Thing::new("a", "x").create(&open.store()).await;
        backup(&from.place(), &file).await.unwrap();
        let held = write_late(&open.store(), 20).await;
        assert_eq!(held, 21);
        open.close().await;
        for into in Engine::both() {
            restore(&file, &into.place()).await.unwrap();
            let open = into.open().await;
            let store = open.store();
            assert_is_of_now(*store.hint(&late()).borrow());
            let origin = assert_begins_anew(&store, held).await;
            assert_is_of_now(origin);
            assert_eq!(store.revision(&things()).await.unwrap(), origin);
            assert_goes_on(&store, held, origin).await;
            open.close().await;
            into.assert_sound().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_store_begins_anew_also_where_nothing_was_written() {
    for engine in Engine::both() {
        let open = engine.open().await;
        let store = open.store();
        let mut hint = store.hint(&late());
        assert_eq!(*hint.borrow_and_update(), 1);
        assert_eq!(store.events(&late(), 0, 10).await.unwrap().len(), 0);
        let mut held = 21;
        // Three lives, and likely two within one second.
        for number in 2..5 {
            assert_eq!(open.renew().await, number);
            let origin = assert_begins_anew(&store, held).await;
            let told = hint.wait_for(|known| *known == origin);
            let told = tokio::time::timeout(Duration::from_secs(60), told).await;
            told.expect("who follows is told").unwrap();
            held = origin;
        }
        assert_goes_on(&store, held - 1, held).await;
        open.close().await;
        let open = engine.open().await;
        let unwritten = open.store().revision(&things()).await.unwrap();
        assert_eq!(unwritten, held, "it is remembered");
        open.close().await;
        engine.assert_sound().await;
    }
}

/// Restores a backup into a new place and writes there; gives the revisions of two resources.
async fn live(file: &Path, into: &Engine) -> [std::ops::RangeInclusive<u64>; 2] {
    restore(file, &into.place()).await.unwrap();
    let open = into.open().await;
    let store = open.store();
    let mut lived = Vec::new();
    for (resource, thing) in [
        (things(), Thing::new("a", "new")),
        (late(), Thing::new("a", "new").of(LATE)),
    ] {
        let from = store.revision(&resource).await.unwrap();
        lived.push(from..=thing.create(&store).await);
    }
    open.close().await;
    lived.try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_backup_restored_twice_gives_no_revision_twice() {
    for (from, young) in [
        (Engine::sqlite(), false),
        (Engine::sqlite(), true),
        (Engine::postgres(), false),
        (Engine::postgres(), true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("backup");
        let open = from.open().await;
        if young {
            // Its life is not much older than the two that follow.
            open.renew().await;
        }
        Thing::new("a", "x").create(&open.store()).await;
        backup(&from.place(), &file).await.unwrap();
        open.close().await;
        for into in [Engine::sqlite, Engine::postgres] {
            let first = live(&file, &into()).await;
            let then = seconds();
            postgres::wait_for("the next second", async || seconds() > then).await;
            let second = live(&file, &into()).await;
            for (first, second) in first.iter().zip(&second) {
                let apart = first.end() < second.start() || second.end() < first.start();
                assert!(apart, "{first:?} {second:?} young: {young}");
            }
        }
    }
}
