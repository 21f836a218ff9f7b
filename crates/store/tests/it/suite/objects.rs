//! Single objects: what a write does, and when it is refused.

use super::*;

pub(crate) async fn a_created_object_is_read_back_as_it_was_written(store: Shared) {
    let thing = Thing::new("a", "x").label("k", "v");
    let revision = thing.create(&store).await;
    let found = store.get(&things(), &thing.key).await.unwrap().unwrap();
    assert_eq!(
        found,
        Stored {
            key: thing.key.clone(),
            revision,
            body: thing.body()
        }
    );
    let tree = found.body.tree(found.revision);
    assert_eq!(tree["metadata"]["resourceVersion"], revision.to_string());
}

pub(crate) async fn the_empty_state_is_revision_one_and_every_change_takes_the_next(store: Shared) {
    let thing = Thing::new("a", "x");
    assert_eq!(store.revision(&things()).await.unwrap(), 1);
    assert_eq!(thing.create(&store).await, 2);
    assert_eq!(thing.update(&store, 2).await, 3);
    assert_eq!(thing.delete(&store, 3).await, 4);
    assert_eq!(store.revision(&things()).await.unwrap(), 4);
}

pub(crate) async fn each_resource_has_its_own_clock(store: Shared) {
    for round in 2..=4 {
        for resource in ["a.example.com", "b.example.com"] {
            let thing = Thing::new("n", &format!("x{round}")).of(resource);
            assert_eq!(thing.create(&store).await, round);
        }
    }
    assert_eq!(store.revision(&resource("c.example.com")).await.unwrap(), 1);
}

pub(crate) async fn creating_what_exists_is_refused_and_leaves_no_trace(store: Shared) {
    let thing = Thing::new("a", "x").number(1);
    thing.create(&store).await;
    let other = thing.clone().number(2).label("late", "yes");
    let refused = store.write(other.write(Expect::Absent)).await;
    assert!(matches!(refused, Err(StoreError::Exists)), "{refused:?}");
    assert_eq!(store.revision(&things()).await.unwrap(), 2);
    assert_eq!(store.events(&things(), 0, 10).await.unwrap().len(), 1);
    assert_eq!(names(&store, labelled("late")).await, "");
    let found = store.get(&things(), &thing.key).await.unwrap().unwrap();
    assert_eq!(number(&found.body), 1);
}

pub(crate) async fn what_is_missing_is_none_and_cannot_be_changed(store: Shared) {
    let thing = Thing::new("a", "x");
    assert_eq!(store.get(&things(), &thing.key).await.unwrap(), None);
    let refused = store.write(thing.write(Expect::Revision(1))).await;
    assert!(matches!(refused, Err(StoreError::Missing)), "{refused:?}");
    let refused = thing.try_delete(&store, 1).await;
    assert!(matches!(refused, Err(StoreError::Missing)), "{refused:?}");
    Thing::new("a", "y").create(&store).await;
    assert_eq!(store.get(&things(), &thing.key).await.unwrap(), None);
    let refused = thing.try_delete(&store, 2).await;
    assert!(matches!(refused, Err(StoreError::Missing)), "{refused:?}");
    assert_eq!(store.revision(&things()).await.unwrap(), 2);
}

pub(crate) async fn an_update_of_another_revision_is_a_conflict(store: Shared) {
    let thing = Thing::new("a", "x");
    thing.create(&store).await;
    thing.clone().number(1).update(&store, 2).await;
    for stale in [0, 1, 2, 4, u64::MAX] {
        let refused = store.write(thing.write(Expect::Revision(stale))).await;
        assert!(
            matches!(refused, Err(StoreError::Conflict)),
            "{stale}: {refused:?}"
        );
    }
    let found = store.get(&things(), &thing.key).await.unwrap().unwrap();
    assert_eq!((found.revision, number(&found.body)), (3, 1));
}

pub(crate) async fn a_delete_of_another_revision_is_a_conflict(store: Shared) {
    let thing = Thing::new("a", "x");
    thing.create(&store).await;
    thing.update(&store, 2).await;
    let refused = thing.try_delete(&store, 2).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    assert!(store.get(&things(), &thing.key).await.unwrap().is_some());
    thing.delete(&store, 3).await;
    assert_eq!(store.get(&things(), &thing.key).await.unwrap(), None);
}

pub(crate) async fn what_is_created_again_has_a_larger_revision(store: Shared) {
    let thing = Thing::new("a", "x");
    assert_eq!(thing.create(&store).await, 2);
    assert_eq!(thing.delete(&store, 2).await, 3);
    assert_eq!(thing.create(&store).await, 4);
    let refused = thing.try_delete(&store, 2).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
}

pub(crate) async fn concurrent_updates_of_one_object_lose_none(store: Shared) {
    let thing = Thing::new("a", "x");
    thing.create(&store).await;
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (store, thing) = (store.clone(), thing.clone());
            tokio::spawn(async move { increment(&store, &thing, 5).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let found = store.get(&things(), &thing.key).await.unwrap().unwrap();
    assert_eq!((number(&found.body), found.revision), (80, 82));
}

async fn increment(store: &Shared, thing: &Thing, times: u32) {
    for _ in 0..times {
        loop {
            let found = store
                .get(&thing.resource, &thing.key)
                .await
                .unwrap()
                .unwrap();
            let next = thing.clone().number(number(&found.body) + 1);
            match store
                .write(next.write(Expect::Revision(found.revision)))
                .await
            {
                Ok(_) => break,
                Err(StoreError::Conflict) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

pub(crate) async fn large_and_odd_bodies_come_back_byte_for_byte(store: Shared) {
    for (at, text) in ["\u{0}\u{1f600}\\", "", &"long \u{fc}".repeat(200_000)]
        .iter()
        .enumerate()
    {
        let mut thing = Thing::new("a", &format!("x{at}"));
        thing.tree["text"] = (*text).into();
        thing.create(&store).await;
        let found = store.get(&things(), &thing.key).await.unwrap().unwrap();
        assert_eq!(found.body, thing.body());
        assert_eq!(found.body.tree(0)["text"], *text);
    }
}

pub(crate) async fn owners_find_what_they_own_in_every_resource(store: Shared) {
    let first = Thing::new("a", "x").owner("boss").owner("other");
    let second = Thing::new("b", "y").of("parts.example.com").owner("boss");
    first.create(&store).await;
    second.create(&store).await;
    let mut owned = store.owned("boss", 10).await.unwrap();
    owned.sort();
    let mut expected = vec![
        (things(), first.key.clone()),
        (second.resource.clone(), second.key),
    ];
    expected.sort();
    assert_eq!(owned, expected);
    assert_eq!(store.owned("boss", 1).await.unwrap().len(), 1);
    assert_eq!(store.owned("nobody", 10).await.unwrap(), []);

    Thing::new("a", "x").owner("other").update(&store, 2).await;
    assert_eq!(store.owned("boss", 10).await.unwrap().len(), 1);
    assert_eq!(
        store.owned("other", 10).await.unwrap(),
        [(things(), first.key.clone())]
    );
    first.delete(&store, 3).await;
    assert_eq!(store.owned("other", 10).await.unwrap(), []);
}

pub(crate) async fn objects_dangle_when_one_of_their_owners_is_gone(store: Shared) {
    let boss = Thing::new("a", "boss").of("bosses.example.com");
    boss.create(&store).await;
    let kept = Thing::new("a", "kept").owner("uid-a-boss");
    let lost = Thing::new("a", "lost")
        .owner("uid-a-boss")
        .owner("gone-1")
        .owner("gone-2");
    kept.create(&store).await;
    lost.create(&store).await;
    Thing::new("a", "free").create(&store).await;
    assert_eq!(
        store.dangling(10).await.unwrap(),
        [(things(), lost.key.clone())]
    );
    boss.delete(&store, 2).await;
    let mut dangling = store.dangling(10).await.unwrap();
    dangling.sort();
    assert_eq!(
        dangling,
        [(things(), kept.key.clone()), (things(), lost.key.clone())]
    );
    assert_eq!(store.dangling(1).await.unwrap().len(), 1);
    lost.delete(&store, 3).await;
    boss.create(&store).await;
    assert_eq!(store.dangling(10).await.unwrap(), []);
}

pub(crate) async fn an_owner_named_twice_is_one_owner(store: Shared) {
    let thing = Thing::new("a", "x").owner("boss").owner("boss");
    thing.create(&store).await;
    assert_eq!(store.owned("boss", 10).await.unwrap().len(), 1);
    thing.delete(&store, 2).await;
    assert_eq!(store.owned("boss", 10).await.unwrap(), []);
}

pub(crate) async fn a_uid_exists_as_long_as_its_object(store: Shared) {
    let thing = Thing::new("a", "x");
    assert!(!store.uid_exists("uid-a-x").await.unwrap());
    thing.create(&store).await;
    assert!(store.uid_exists("uid-a-x").await.unwrap());
    thing.delete(&store, 2).await;
    assert!(!store.uid_exists("uid-a-x").await.unwrap());
}
