//! The log: every change once, in order, with what was before.

use super::*;
use muster_apiserver::store::{Event, EventType};
use std::collections::HashSet;
use std::time::Duration;

fn described(events: &[Event]) -> Vec<String> {
    let of = |event: &Event| {
        let Event {
            revision,
            event: verb,
            key,
            body,
            before,
        } = event;
        let before = before.as_ref().map(number);
        format!(
            "{revision} {verb:?} {}/{} {before:?}->{}",
            key.namespace,
            key.name,
            number(body)
        )
    };
    events.iter().map(of).collect()
}

pub(crate) async fn the_log_has_every_change_with_the_state_before(store: Shared) {
    let thing = Thing::new("a", "x");
    thing.clone().number(1).create(&store).await;
    thing.clone().number(2).update(&store, 2).await;
    thing.clone().number(3).delete(&store, 3).await;
    thing.clone().number(4).create(&store).await;
    Thing::new("b", "y").create(&store).await;
    let events = store.events(&things(), 0, 10).await.unwrap();
    let expected = [
        "2 Added a/x None->1",
        "3 Modified a/x Some(1)->2",
        "4 Deleted a/x Some(2)->3",
        "5 Added a/x None->4",
        "6 Added b/y None->0",
    ];
    assert_eq!(described(&events), expected);
    assert_eq!(events[0].body, thing.number(1).body());
}

pub(crate) async fn the_log_is_read_from_any_revision_in_pieces(store: Shared) {
    for number in 1..=5 {
        Thing::new("a", &format!("x{number}")).create(&store).await;
    }
    let revisions = async |after, limit| {
        let events = store.events(&things(), after, limit).await.unwrap();
        events
            .iter()
            .map(|event| event.revision)
            .collect::<Vec<_>>()
    };
    assert_eq!(revisions(0, 100).await, [2, 3, 4, 5, 6]);
    assert_eq!(revisions(1, 100).await, [2, 3, 4, 5, 6]);
    assert_eq!(revisions(4, 100).await, [5, 6]);
    assert_eq!(revisions(2, 2).await, [3, 4]);
    assert!(revisions(6, 100).await.is_empty());
    assert_eq!(revisions(0, usize::MAX).await.len(), 5);
    for after in [0, 1] {
        let events = store.events(&resource("other"), after, 10).await.unwrap();
        assert_eq!(events.len(), 0);
    }
}

pub(crate) async fn a_delete_event_carries_the_revision_of_the_delete(store: Shared) {
    let thing = Thing::new("a", "x");
    thing.create(&store).await;
    Thing::new("a", "y").create(&store).await;
    let revision = thing.clone().number(7).delete(&store, 2).await;
    let events = store.events(&things(), 3, 10).await.unwrap();
    assert_eq!(revision, 4);
    assert_eq!(
        (events[0].revision, events[0].event),
        (4, EventType::Deleted)
    );
    assert_eq!(events[0].body, thing.clone().number(7).body());
    assert_eq!(events[0].before, Some(thing.body()));
}

pub(crate) async fn a_hint_follows_the_clock(store: Shared) {
    let mut hint = store.hint(&things());
    assert_eq!(*hint.borrow_and_update(), 1);
    Thing::new("a", "x")
        .of("other.example.com")
        .create(&store)
        .await;
    assert!(!hint.has_changed().unwrap());
    Thing::new("a", "x").create(&store).await;
    assert!(hint.has_changed().unwrap());
    assert_eq!(*hint.borrow_and_update(), 2);
    let refused = store
        .write(Thing::new("a", "x").write(Expect::Absent))
        .await;
    assert!(refused.is_err());
    assert!(!hint.has_changed().unwrap());
    assert_eq!(*store.hint(&things()).borrow(), 2);
}

const WRITERS: usize = 16;
const WRITES: usize = 30;
const RESOURCES: [&str; 3] = ["a.example.com", "b.example.com", "c.example.com"];

pub(crate) async fn a_reader_behind_the_log_misses_nothing_under_many_writers(store: Shared) {
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move { write_many(&store, writer).await })
        })
        .collect();
    let readers: Vec<_> = RESOURCES
        .iter()
        .map(|name| {
            let store = store.clone();
            tokio::spawn(async move { tail(&store, &resource(name)).await })
        })
        .collect();
    let mut acknowledged = HashSet::new();
    for writer in writers {
        for revision in writer.await.unwrap() {
            assert!(
                acknowledged.insert(revision),
                "{revision:?} was given twice"
            );
        }
    }
    assert_eq!(acknowledged.len(), WRITERS * WRITES);
    for reader in readers {
        for seen in reader.await.unwrap() {
            assert!(
                acknowledged.remove(&seen),
                "{seen:?} was never acknowledged"
            );
        }
    }
    assert!(acknowledged.is_empty(), "{acknowledged:?} was not seen");
}

async fn write_many(store: &Shared, writer: usize) -> Vec<(usize, u64)> {
    let mut revisions = Vec::new();
    for number in 0..WRITES {
        let which = (writer + number) % RESOURCES.len();
        let thing = Thing::new("n", &format!("{writer}-{number}")).of(RESOURCES[which]);
        revisions.push((which, thing.create(store).await));
    }
    revisions
}

async fn tail(store: &Shared, resource: &Resource) -> Vec<(usize, u64)> {
    let which = RESOURCES
        .iter()
        .position(|name| **name == **resource)
        .unwrap();
    let all = WRITERS * WRITES / RESOURCES.len();
    let mut hint = store.hint(resource);
    let mut seen: Vec<(usize, u64)> = Vec::new();
    while seen.len() < all {
        let last = seen.last().map_or(1, |(_, revision)| *revision);
        for event in store.events(resource, last, 7).await.unwrap() {
            let expected = seen.last().map_or(1, |(_, revision)| *revision) + 1;
            assert_eq!(event.revision, expected, "a gap in {resource}");
            seen.push((which, event.revision));
        }
        let _ = tokio::time::timeout(Duration::from_millis(5), hint.changed()).await;
    }
    seen
}
