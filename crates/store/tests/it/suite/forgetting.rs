//! Compaction: what is forgotten, what is kept, and how it shows.

use super::*;

async fn five_changes(store: &Shared) {
    let thing = Thing::new("a", "x");
    thing.create(store).await;
    for revision in 2..6 {
        thing.clone().number(revision).update(store, revision).await;
    }
}

pub(crate) async fn a_compacted_revision_is_refused_and_later_ones_are_not(store: Shared) {
    five_changes(&store).await;
    assert_eq!(store.compact(0, 2).await.unwrap(), 3);
    for gone in 0..4 {
        let refused = store.events(&things(), gone, 10).await;
        assert!(
            matches!(refused, Err(StoreError::Compacted { asked, compacted: 4 }) if asked == gone),
            "{refused:?}"
        );
        let refused = store
            .list(ListQuery {
                at: Some(gone),
                ..all()
            })
            .await;
        assert!(
            matches!(refused, Err(StoreError::Compacted { compacted: 4, .. })),
            "{refused:?}"
        );
    }
    let events = store.events(&things(), 4, 10).await.unwrap();
    assert_eq!(
        events
            .iter()
            .map(|event| event.revision)
            .collect::<Vec<_>>(),
        [5, 6]
    );
    assert_eq!(number(events[0].before.as_ref().unwrap()), 3);
    for at in 4..=6 {
        let page = store
            .list(ListQuery {
                at: Some(at),
                ..all()
            })
            .await
            .unwrap();
        assert_eq!(
            (page.items[0].revision, number(&page.items[0].body)),
            (at, at - 1)
        );
    }
}

pub(crate) async fn what_is_young_is_kept_whatever_its_number(store: Shared) {
    five_changes(&store).await;
    assert_eq!(store.compact(3600, 0).await.unwrap(), 0);
    for after in [0, 1] {
        assert_eq!(store.events(&things(), after, 10).await.unwrap().len(), 5);
    }
}

pub(crate) async fn the_newest_entries_are_kept_whatever_their_age(store: Shared) {
    five_changes(&store).await;
    assert_eq!(store.compact(0, 5).await.unwrap(), 0);
    assert_eq!(store.compact(0, 100).await.unwrap(), 0);
    assert_eq!(store.compact(0, u64::MAX).await.unwrap(), 0);
    for after in [0, 1] {
        assert_eq!(store.events(&things(), after, 10).await.unwrap().len(), 5);
    }
}

pub(crate) async fn objects_and_the_clock_survive_a_log_that_is_empty(store: Shared) {
    five_changes(&store).await;
    Thing::new("a", "y")
        .label("k", "v")
        .of("other.example.com")
        .create(&store)
        .await;
    assert_eq!(store.compact(0, 0).await.unwrap(), 6);
    assert_eq!(store.compact(0, 0).await.unwrap(), 0);
    let found = store.get(&things(), &key("a", "x")).await.unwrap().unwrap();
    assert_eq!((found.revision, number(&found.body)), (6, 5));
    assert_eq!(store.events(&things(), 6, 10).await.unwrap().len(), 0);
    let revision = Thing::new("a", "x").delete(&store, 6).await;
    assert_eq!(revision, 7);
    assert_eq!(store.compact(0, 0).await.unwrap(), 1);
    assert_eq!(Thing::new("a", "x").create(&store).await, 8);
    let query = ListQuery {
        resource: resource("other.example.com"),
        ..labelled("k=v")
    };
    assert_eq!(names(&store, query).await, "a/y");
}

pub(crate) async fn a_reader_and_writers_go_on_while_the_log_is_compacted(store: Shared) {
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            let thing = Thing::new("a", "x");
            let mut revision = thing.create(&store).await;
            while revision < 400 {
                revision = thing
                    .clone()
                    .number(revision)
                    .update(&store, revision)
                    .await;
            }
        })
    };
    let mut last = 1;
    while last < 400 {
        store.compact(0, 20).await.unwrap();
        match store.events(&things(), last, 50).await {
            Ok(events) => {
                for event in events {
                    assert_eq!(event.revision, last + 1);
                    last = event.revision;
                }
            }
            Err(StoreError::Compacted { asked, compacted }) => {
                assert!(asked == last && compacted > last);
                // As a client does: list again and go on from there.
                let page = store.list(all()).await.unwrap();
                assert_eq!(page.items[0].revision, page.revision);
                last = page.revision;
            }
            Err(other) => panic!("{other}"),
        }
    }
    writer.await.unwrap();
}
