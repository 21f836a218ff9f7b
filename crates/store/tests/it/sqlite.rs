//! The suite over SQLite, and what only SQLite promises: rows that are there, files, locks.

use crate::suite::{self, *};
use muster_apiserver::store::{Expect, Store, StoreError};
use muster_store::{OpenError, Options, SqliteStore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

macro_rules! suite {
    ($($module:ident: $($case:ident)*;)*) => {$($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (directory, store) = fresh().await;
            suite::$module::$case(store.clone()).await;
            store.close().await.unwrap();
            assert_sound(directory.path()).await;
        }
    )*)*};
}

every_case!(suite);

async fn fresh() -> (TempDir, Arc<SqliteStore>) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path()).await;
    (directory, store)
}

async fn open(directory: &Path) -> Arc<SqliteStore> {
    let options = Options {
        blob_idle: Duration::ZERO,
        ..Options::new(directory)
    };
    Arc::new(SqliteStore::open(options).await.unwrap())
}

async fn connect(directory: &Path) -> SqliteConnection {
    let path = directory.join("state.db");
    SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false)
        .connect()
        .await
        .unwrap()
}

/// Nothing is broken, and no row is left that nothing needs or lacks one that it needs.
pub(crate) async fn assert_sound(directory: &Path) {
    let mut connection = connect(directory).await;
    let check: String = sqlx::query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(check, "ok");
    for (what, count) in [
        (
            "bodies that nothing refers to",
            "SELECT COUNT(*) FROM body WHERE id NOT IN (SELECT body FROM object)
             AND id NOT IN (SELECT body FROM event)
             AND id NOT IN (SELECT before FROM event WHERE before IS NOT NULL)",
        ),
        (
            "references to bodies that are gone",
            "SELECT COUNT(*) FROM (SELECT body FROM object UNION SELECT body FROM event
             UNION SELECT before FROM event WHERE before IS NOT NULL
             UNION SELECT body FROM body_blob) WHERE body NOT IN (SELECT id FROM body)",
        ),
        (
            "labels, fields and owners of objects that are gone",
            "SELECT COUNT(*) FROM (SELECT resource, namespace, name FROM label
             UNION ALL SELECT resource, namespace, name FROM field
             UNION ALL SELECT resource, namespace, name FROM owner)
             WHERE (resource, namespace, name) NOT IN
             (SELECT resource, namespace, name FROM object)",
        ),
        (
            "blobs without bytes and bytes without blobs",
            "SELECT (SELECT COUNT(*) FROM blob WHERE id NOT IN (SELECT id FROM blob_bytes))
             + (SELECT COUNT(*) FROM blob_bytes WHERE id NOT IN (SELECT id FROM blob))
             + (SELECT COUNT(*) FROM body_blob WHERE sha256 NOT IN (SELECT sha256 FROM blob))",
        ),
        (
            "entries missing from a log",
            "SELECT COALESCE(SUM(c.rv - MAX(c.compacted_rv, 1)
             - (SELECT COUNT(*) FROM event e WHERE e.resource = c.id)), 0) FROM clock c",
        ),
    ] {
        let found: i64 = sqlx::query_scalar(count)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(found, 0, "{what}");
    }
}

async fn rows(directory: &Path, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement)
        .fetch_one(&mut connect(directory).await)
        .await
        .unwrap()
}

#[tokio::test]
async fn an_event_never_doubles_a_payload_and_compaction_leaves_one_state_per_object() {
    let (directory, store) = fresh().await;
    let shared: Shared = store.clone();
    let bodies = "SELECT COUNT(*) FROM body";
    for number in 0..4u64 {
        let thing = Thing::new("a", &format!("x{number}"));
        let mut revision = thing.create(&shared).await;
        for change in 0..3 {
            revision = thing.clone().number(change).update(&shared, revision).await;
        }
        if number % 2 == 0 {
            thing.delete(&shared, revision).await;
        }
    }
    // 4 creates, 12 updates, 2 deletions: a state each.
    assert_eq!(rows(directory.path(), bodies).await, 18);
    assert_eq!(
        rows(directory.path(), "SELECT COUNT(*) FROM event").await,
        18
    );
    // Five entries stay. x1: its state; x2: its last state and the one before; x3: all four.
    assert_eq!(shared.compact(0, 5).await.unwrap(), 13);
    assert_sound(directory.path()).await;
    assert_eq!(rows(directory.path(), bodies).await, 7);
    assert_eq!(shared.compact(0, 0).await.unwrap(), 5);
    assert_eq!(rows(directory.path(), bodies).await, 2);
    store.close().await.unwrap();
    assert_sound(directory.path()).await;
}

#[tokio::test]
async fn equal_blobs_are_stored_once_and_swept_when_nothing_refers_to_them() {
    let (directory, store) = fresh().await;
    let shared: Shared = store.clone();
    let bytes = bytes::Bytes::from(vec![b'x'; 200_000]);
    let writes = (0..8).map(|number| {
        let (shared, bytes) = (shared.clone(), bytes.clone());
        let thing = Thing::new("a", &format!("x{number}")).blob(&bytes);
        async move { thing.create(&shared).await }
    });
    futures::future::join_all(writes).await;
    assert_eq!(rows(directory.path(), "SELECT COUNT(*) FROM blob").await, 1);
    assert_eq!(
        rows(directory.path(), "SELECT COUNT(*) FROM blob_bytes").await,
        1
    );
    assert_eq!(
        rows(directory.path(), "SELECT COUNT(*) FROM body_blob").await,
        8
    );
    assert_eq!(
        rows(
            directory.path(),
            "SELECT LENGTH(zstd) < 1000 FROM blob_bytes"
        )
        .await,
        1
    );
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_blob_that_nothing_refers_to_is_kept_for_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(
        SqliteStore::open(Options::new(directory.path()))
            .await
            .unwrap(),
    );
    let shared: Shared = store.clone();
    let thing = Thing::new("a", "x").blob(&bytes::Bytes::from_static(b"bytes"));
    thing.create(&shared).await;
    thing.delete(&shared, 2).await;
    shared.compact(0, 0).await.unwrap();
    assert_eq!(
        rows(directory.path(), "SELECT COUNT(*) FROM body_blob").await,
        0
    );
    assert_eq!(rows(directory.path(), "SELECT COUNT(*) FROM blob").await, 1);
    store.close().await.unwrap();
}

#[tokio::test]
async fn opening_again_finds_everything() {
    let (directory, store) = fresh().await;
    let shared: Shared = store.clone();
    let bytes = bytes::Bytes::from_static(b"{\"a\": 1}");
    let thing = Thing::new("a", "x")
        .label("k", "v")
        .owner("boss")
        .blob(&bytes);
    thing.create(&shared).await;
    thing.clone().number(1).update(&shared, 2).await;
    store.close().await.unwrap();
    assert!(
        !directory.path().join("state.db-wal").exists(),
        "the log was moved"
    );

    let store = open(directory.path()).await;
    let shared: Shared = store.clone();
    assert_eq!(*shared.hint(&things()).borrow(), 3);
    let found = shared.get(&things(), &thing.key).await.unwrap().unwrap();
    assert_eq!((found.revision, number(&found.body)), (3, 1));
    assert_eq!(names(&shared, labelled("k=v")).await, "a/x");
    assert_eq!(shared.events(&things(), 0, 10).await.unwrap().len(), 2);
    assert_eq!(shared.owned("boss", 1).await.unwrap().len(), 1);
    assert_eq!(
        shared.blob(&muster_kind::Digest::of(&bytes)).await.unwrap(),
        Some(bytes)
    );
    assert_eq!(thing.update(&shared, 3).await, 4);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_write_is_made_although_its_caller_went_away() {
    let (_directory, store) = fresh().await;
    let thing = Thing::new("a", "x");
    let mut hint = store.hint(&things());
    let mut pending = store.write(thing.write(Expect::Absent));
    // One poll puts it into the queue; it is never polled again.
    assert!(futures::poll!(&mut pending).is_pending());
    drop(pending);
    hint.wait_for(|revision| *revision == 2).await.unwrap();
    assert!(store.get(&things(), &thing.key).await.unwrap().is_some());
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_closed_store_refuses_and_has_finished_what_was_queued() {
    let (directory, store) = fresh().await;
    let shared: Shared = store.clone();
    let mut pending: Vec<_> = (0..50)
        .map(|number| {
            let thing = Thing::new("a", &format!("x{number}"));
            let shared = shared.clone();
            Box::pin(async move { shared.write(thing.write(Expect::Absent)).await })
        })
        .collect();
    for write in &mut pending {
        assert!(futures::poll!(write).is_pending());
    }
    store.close().await.unwrap();
    store.close().await.unwrap();
    for write in pending {
        write.await.unwrap();
    }
    let late = shared
        .write(Thing::new("a", "late").write(Expect::Absent))
        .await;
    assert!(matches!(late, Err(StoreError::Closed)), "{late:?}");
    let late = shared.get(&things(), &key("a", "x0")).await;
    assert!(matches!(late, Err(StoreError::Closed)), "{late:?}");
    let late = shared.compact(0, 0).await;
    assert!(matches!(late, Err(StoreError::Closed)), "{late:?}");
    assert_eq!(
        rows(directory.path(), "SELECT COUNT(*) FROM object").await,
        50
    );
}

#[tokio::test]
async fn a_second_open_of_a_directory_is_refused_until_the_first_is_closed() {
    let (directory, store) = fresh().await;
    let refused = SqliteStore::open(Options::new(directory.path()))
        .await
        .unwrap_err();
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused}");
    let message = refused.to_string();
    assert!(
        message.contains(&directory.path().display().to_string()),
        "{message}"
    );
    store.close().await.unwrap();
    open(directory.path()).await.close().await.unwrap();
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let (directory, store) = fresh().await;
    store.close().await.unwrap();
    let mut connection = connect(directory.path()).await;
    let raise = "UPDATE meta SET value = value + 1 WHERE key = 'schema'";
    sqlx::query(raise).execute(&mut connection).await.unwrap();
    let refused = SqliteStore::open(Options::new(directory.path()))
        .await
        .unwrap_err();
    assert!(
        matches!(
            refused,
            OpenError::Newer {
                found: 4,
                known: 3,
                ..
            }
        ),
        "{refused}"
    );
    let lower = "UPDATE meta SET value = value - 1 WHERE key = 'schema'";
    sqlx::query(lower).execute(&mut connection).await.unwrap();
    open(directory.path()).await.close().await.unwrap();
}

#[tokio::test]
async fn a_renewed_incarnation_jumps_and_all_who_watch_begin_anew() {
    let (directory, store) = fresh().await;
    let shared: Shared = store.clone();
    let thing = Thing::new("a", "x");
    thing.create(&shared).await;
    assert_eq!(store.renew_incarnation().await.unwrap(), 2);
    assert_jumped(&shared, &thing, 2).await;
    assert_eq!(store.renew_incarnation().await.unwrap(), 3);
    store.close().await.unwrap();
    assert_eq!(
        rows(directory.path(), "SELECT COUNT(*) FROM event").await,
        0
    );
    assert_sound(directory.path()).await;
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    std::fs::write(&path, vec![b'#'; 10_000]).unwrap();
    let refused = SqliteStore::open(Options::new(directory.path()))
        .await
        .unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused:?}");
    assert_eq!(std::fs::read(&path).unwrap(), vec![b'#'; 10_000]);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = SqliteStore::open(Options::new(file.join("data")))
        .await
        .unwrap_err();
    assert!(matches!(refused, OpenError::Io { .. }), "{refused:?}");
    assert!(refused.to_string().contains("file/data"), "{refused}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_data() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("data");
    let store = open(&directory).await;
    Thing::new("a", "x")
        .create(&(store.clone() as Shared))
        .await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for file in ["state.db", "state.db-wal", "state.db-shm"] {
        assert_eq!(mode(&directory.join(file)), 0o600, "{file}");
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_what_does_not_fit_and_the_store_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        max_bytes: Some(1 << 20),
        ..Options::new(directory.path())
    };
    let store = Arc::new(SqliteStore::open(options).await.unwrap());
    let shared: Shared = store.clone();
    // Noise, so that compressing does not help.
    let mut seed = 1u64;
    let noise: bytes::Bytes = (0..2 << 20)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        })
        .collect();
    for round in 0..3 {
        let large = Thing::new("a", "large").blob(&noise);
        let small = (0..10).map(|number| Thing::new("a", &format!("small-{round}-{number}")));
        let small = small.map(|thing| {
            let shared = shared.clone();
            async move { thing.create(&shared).await }
        });
        let (refused, _) = tokio::join!(
            shared.write(large.write(Expect::Absent)),
            futures::future::join_all(small)
        );
        assert!(matches!(refused, Err(StoreError::Full)), "{refused:?}");
    }
    assert_eq!(shared.revision(&things()).await.unwrap(), 31);
    store.close().await.unwrap();
    assert_sound(directory.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_process_left_untold_is_told_once_by_the_next() {
    let (directory, store) = fresh().await;
    let shared: Shared = store.clone();
    let before = suite::computed::crowd(&shared).await;
    // No portion behind the first one can be committed: so dies whoever makes them.
    let mut connection = connect(directory.path()).await;
    for event in ["UPDATE", "DELETE"] {
        let block = format!(
            "CREATE TRIGGER die_{event} BEFORE {event} ON pending
             BEGIN SELECT RAISE(ABORT, 'killed'); END"
        );
        let block = sqlx::query(sqlx::AssertSqlSafe(block));
        block.execute(&mut connection).await.unwrap();
    }
    suite::computed::stir(&shared).await;
    // One that changes meanwhile is told by that, and its write is not held up.
    suite::computed::change_last(&shared).await;
    let workloads = "workloadscanreports.storage.sbomscanner.kubewarden.io";
    let told = shared.revision(&workloads.into()).await.unwrap();
    assert_eq!(told, before + 501);
    store.close().await.unwrap();
    for event in ["UPDATE", "DELETE"] {
        let free = sqlx::query(sqlx::AssertSqlSafe(format!("DROP TRIGGER die_{event}")));
        free.execute(&mut connection).await.unwrap();
    }
    drop(connection);
    let store = open(directory.path()).await;
    suite::computed::assert_told_once(&(store.clone() as Shared), before).await;
    crate::postgres::wait_for("the end of the work", async || {
        rows(directory.path(), "SELECT COUNT(*) FROM pending").await == 0
    })
    .await;
    store.close().await.unwrap();
    assert_sound(directory.path()).await;
}
