//! Blobs: stored once, found by digest, there as long as anything refers to them.

use super::*;

fn bytes(seed: u32, size: u32) -> Bytes {
    (0..size)
        .map(|n| (n.wrapping_mul(n ^ seed) >> 3) as u8)
        .collect()
}

pub(crate) async fn a_blob_is_found_by_its_digest_and_shared(store: Shared) {
    let large = bytes(1, 300_000);
    let digest = Digest::of(&large);
    assert_eq!(store.blob(&digest).await.unwrap(), None);
    for name in ["x", "y"] {
        let thing = Thing::new("a", name).blob(&large);
        thing.create(&store).await;
        let found = store.get(&things(), &thing.key).await.unwrap().unwrap();
        assert_eq!(found.body, thing.body());
        assert_eq!(found.body.blobs.len(), 1);
    }
    assert_eq!(store.blob(&digest).await.unwrap(), Some(large));
    let empty = Bytes::new();
    Thing::new("a", "z").blob(&empty).create(&store).await;
    assert_eq!(store.blob(&Digest::of(&empty)).await.unwrap(), Some(empty));
}

pub(crate) async fn an_update_may_refer_to_a_stored_blob_without_its_bytes(store: Shared) {
    let thing = Thing::new("a", "x").blob(&bytes(2, 5000));
    thing.create(&store).await;
    let mut next = thing.clone().number(1);
    next.blobs.clear();
    next.update(&store, 2).await;
    let found = store.get(&things(), &thing.key).await.unwrap().unwrap();
    assert_eq!(found.body, next.body());
}

pub(crate) async fn a_write_that_refers_to_unknown_bytes_is_refused(store: Shared) {
    let mut thing = Thing::new("a", "x").blob(&bytes(3, 10));
    thing.blobs.clear();
    let refused = store.write(thing.write(Expect::Absent)).await;
    assert!(
        matches!(refused, Err(StoreError::Engine { .. })),
        "{refused:?}"
    );
    assert_eq!(store.revision(&things()).await.unwrap(), 1);
    Thing::new("a", "y").create(&store).await;
}

/// Needs a store that sweeps blobs at once when nothing refers to them.
pub(crate) async fn a_blob_lives_while_object_or_log_refer_to_it(store: Shared) {
    let shared = bytes(4, 10_000);
    let digest = Digest::of(&shared);
    let (x, y) = (
        Thing::new("a", "x").blob(&shared),
        Thing::new("a", "y").blob(&shared),
    );
    x.create(&store).await;
    y.create(&store).await;
    store.compact(0, 0).await.unwrap();
    assert!(store.blob(&digest).await.unwrap().is_some(), "two objects");
    x.delete(&store, 2).await;
    store.compact(0, 0).await.unwrap();
    assert!(store.blob(&digest).await.unwrap().is_some(), "one object");
    Thing::new("a", "y").update(&store, 3).await;
    store.compact(3600, 0).await.unwrap();
    assert!(store.blob(&digest).await.unwrap().is_some(), "the log");
    store.compact(0, 0).await.unwrap();
    // Letting go touches a blob, so it goes with the next sweep after its time.
    store.compact(0, 0).await.unwrap();
    assert_eq!(store.blob(&digest).await.unwrap(), None, "nothing");
    x.create(&store).await;
    assert_eq!(store.blob(&digest).await.unwrap(), Some(shared));
}

pub(crate) async fn many_blobs_are_read_at_once_as_far_as_they_fit(store: Shared) {
    let blobs: Vec<Bytes> = (0..5).map(|n| vec![b'a' + n; 1000].into()).collect();
    let digests: Vec<Digest> = blobs.iter().map(|bytes| Digest::of(bytes)).collect();
    for (number, bytes) in blobs.iter().enumerate() {
        let thing = Thing::new("a", &format!("x{number}")).blob(bytes);
        thing.create(&store).await;
    }
    let unknown = Digest::of(b"unknown");
    let order = [digests[3], unknown, digests[0], digests[4], digests[1]];
    for (most, expected) in [
        (10_000, vec![3, 0, 4, 1]),
        (3500, vec![3, 0, 4]),
        (3000, vec![3, 0, 4]),
        (2999, vec![3, 0]),
        (1, vec![3]),
    ] {
        let found = store.blobs(&order, most).await.unwrap();
        assert_eq!(found.len(), expected.len(), "{most}");
        for number in expected {
            assert_eq!(found[&digests[number]], blobs[number], "{most}");
        }
    }
    assert!(store.blobs(&[], 10).await.unwrap().is_empty());
    assert!(store.blobs(&[unknown], 10).await.unwrap().is_empty());
}
