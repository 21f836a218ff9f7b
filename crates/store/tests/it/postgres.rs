//! The suite over PostgreSQL, and what only it promises: settings, versions, credentials, plans,
//! and work that goes on after the server was away.

use crate::suite::{self, *};
use muster_apiserver::store::{Expect, ListQuery, Store, StoreError};
use muster_kind::selector::{FieldSelector, FieldTerm};
use muster_store::{PostgresOpenError, PostgresOptions, PostgresStore, PostgresTls};
use muster_testkit::etcd::Durability;
use muster_testkit::postgres::Postgres;
use std::sync::Arc;
use std::time::{Duration, Instant};

macro_rules! suite {
    ($($module:ident: $($case:ident)*;)*) => {$($(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let (database, store) = fresh().await;
            suite::$module::$case(store.clone()).await;
            store.close().await;
            assert_sound(server(), &database);
        }
    )*)*};
}

every_case!(suite);

pub(crate) fn server() -> &'static Postgres {
    Postgres::shared().unwrap()
}

pub(crate) async fn fresh() -> (String, Arc<PostgresStore>) {
    let database = server().database().unwrap();
    let store = open(server(), &database).await;
    (database, store)
}

pub(crate) fn options(server: &Postgres, database: &str) -> PostgresOptions {
    let mut options = PostgresOptions::from_url(&server.url(database)).unwrap();
    options.blob_idle = Duration::ZERO;
    options.max_connections = 6;
    options.poll = Duration::from_millis(50);
    options
}

pub(crate) async fn open(server: &Postgres, database: &str) -> Arc<PostgresStore> {
    let opened = PostgresStore::open(options(server, database)).await;
    Arc::new(opened.unwrap())
}

/// No row is left that nothing needs or lacks one that it needs.
pub(crate) fn assert_sound(server: &Postgres, database: &str) {
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
             UNION SELECT body FROM body_blob) s WHERE body NOT IN (SELECT id FROM body)",
        ),
        (
            "labels, fields and owners of objects that are gone",
            "SELECT COUNT(*) FROM (SELECT resource, namespace, name FROM label
             UNION ALL SELECT resource, namespace, name FROM field
             UNION ALL SELECT resource, namespace, name FROM owner) s
             WHERE (resource, namespace, name) NOT IN
             (SELECT resource, namespace, name FROM object)",
        ),
        (
            "references to blobs that are gone",
            "SELECT COUNT(*) FROM body_blob WHERE sha256 NOT IN (SELECT sha256 FROM blob)",
        ),
        (
            "entries missing from a log",
            "SELECT COALESCE(SUM(c.rv - GREATEST(c.compacted_rv, 1)
             - (SELECT COUNT(*) FROM event e WHERE e.resource = c.id)), 0) FROM clock c",
        ),
    ] {
        assert_eq!(server.sql(database, count).unwrap(), "0", "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_that_the_engine_cannot_index_are_selected_all_the_same() {
    let (database, store) = fresh().await;
    let shared: Shared = store.clone();
    let long = "long ".repeat(2000);
    for (name, value) in [("long", long.as_str()), ("nul", "a\0b"), ("plain", "v")] {
        let thing = Thing::new("n", name).field("spec.x", value).owner(value);
        let revision = thing.create(&shared).await;
        let query = ListQuery {
            fields: FieldSelector(vec![FieldTerm {
                field: "spec.x".into(),
                value: value.into(),
                equal: true,
            }]),
            ..all()
        };
        assert_eq!(names(&shared, query).await, format!("n/{name}"));
        assert_eq!(
            shared.owned(value, 9).await.unwrap(),
            [(things(), key("n", name))]
        );
        let bare = Thing::new("n", name).update(&shared, revision).await;
        assert_eq!(shared.owned(value, 9).await.unwrap(), []);
        assert!(bare > revision);
    }
    assert_eq!(
        shared.get(&things(), &key("n", "pl\0ain")).await.unwrap(),
        None
    );
    let behind = key("n", "nul\0");
    assert_eq!(
        shared.count(&things(), None, Some(&behind)).await.unwrap(),
        1
    );
    let page = ListQuery {
        after: Some(behind),
        ..all()
    };
    assert_eq!(names(&shared, page).await, "n/plain");
    let nowhere = ListQuery {
        namespace: Some("n\0".into()),
        ..all()
    };
    assert_eq!(names(&shared, nowhere).await, "");
    let refused = shared
        .write(Thing::new("n", "a\0").write(Expect::Absent))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Engine { .. })),
        "{refused:?}"
    );
    store.close().await;
    assert_sound(server(), &database);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbouring_version_runs_beside_and_an_incompatible_one_is_refused() {
    let (database, store) = fresh().await;
    Thing::new("a", "x")
        .create(&(store.clone() as Shared))
        .await;
    store.close().await;
    let sql = |text: &str| server().sql(&database, text).unwrap();
    let ours: i64 = sql("SELECT version FROM schema_version").parse().unwrap();
    sql("UPDATE schema_version SET version = version + 1");
    let beside = open(server(), &database).await;
    Thing::new("a", "y")
        .create(&(beside.clone() as Shared))
        .await;
    let theirs = sql("SELECT version FROM schema_version").parse();
    assert_eq!(theirs, Ok(ours + 1), "left as it is");
    sql("UPDATE schema_version SET minimum = version");
    let refused = PostgresStore::open(options(server(), &database))
        .await
        .unwrap_err();
    assert!(
        matches!(
            refused,
            PostgresOpenError::Newer { found, minimum, known, .. }
                if (found, minimum, known) == (ours + 1, ours + 1, ours)
        ),
        "{refused}"
    );
    assert!(!refused.is_temporary());
    assert!(refused.to_string().contains(&database), "{refused}");
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    let create = "CREATE DATABASE narrow ENCODING 'LATIN1' TEMPLATE template0";
    server().sql("postgres", create).unwrap();
    let refused = PostgresStore::open(options(server(), "narrow"))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, PostgresOpenError::Encoding { found, .. } if found == "LATIN1"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_database_is_an_error_at_once_or_waited_for() {
    let mut alone = Postgres::start(Durability::Unsynced).unwrap();
    let database = alone.database().unwrap();
    alone.stop().unwrap();
    let options = options(&alone, &database);
    let begun = Instant::now();
    let refused = PostgresStore::open(options.clone()).await.unwrap_err();
    assert!(
        matches!(refused, PostgresOpenError::Unreachable { .. }),
        "{refused}"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
    let waiting = tokio::spawn(PostgresStore::open_when_ready(options));
    alone.restart().unwrap();
    let store = Arc::new(waiting.await.unwrap().unwrap());
    Thing::new("a", "x")
        .create(&(store.clone() as Shared))
        .await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_password_is_read_again_and_tls_is_verified() {
    let database = server().database().unwrap();
    let owner = format!("owner_of_{database}");
    let sql = |text: String| server().sql(&database, &text).unwrap();
    sql(format!(
        "CREATE ROLE {owner} LOGIN PASSWORD 'first'; ALTER DATABASE {database} OWNER TO {owner}"
    ));
    let directory = tempfile::tempdir().unwrap();
    let (file, authority) = (
        directory.path().join("password"),
        directory.path().join("ca"),
    );
    std::fs::write(&file, "wrong\n").unwrap();
    std::fs::write(&authority, server().authority()).unwrap();
    let mut base = PostgresOptions::from_parts("127.0.0.1", server().port(), &database, &owner);
    base.password_file = Some(file.clone());
    let options = base.clone().tls(PostgresTls::VerifyFull, Some(&authority));
    let refused = PostgresStore::open(options.clone()).await.unwrap_err();
    assert!(refused.is_temporary(), "{refused}");
    std::fs::write(&file, "first\n").unwrap();
    let distrusted = base.tls(PostgresTls::VerifyFull, None);
    assert!(
        PostgresStore::open(distrusted).await.is_err(),
        "an unknown authority"
    );

    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let shared: Shared = store.clone();
    Thing::new("a", "x").create(&shared).await;
    sql(format!("ALTER ROLE {owner} PASSWORD 'second'"));
    cut_connections(&database);
    wait_for("the refusal of the old password", async || {
        let get = shared.get(&things(), &key("a", "x")).await;
        matches!(get, Err(StoreError::Unavailable { .. }))
    })
    .await;
    std::fs::write(&file, "second").unwrap();
    wait_for("the new password to be used", async || {
        shared.get(&things(), &key("a", "x")).await.is_ok()
    })
    .await;
    store.close().await;
}

/// Ends all connections to a database from outside.
pub(crate) fn cut_connections(database: &str) {
    let cut = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    server().sql(database, cut).unwrap();
}

pub(crate) async fn wait_for(what: &str, mut look: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !look().await {
        assert!(Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_found_elsewhere_jumps_once_and_all_who_watch_begin_anew() {
    let (database, first) = fresh().await;
    let second = open(server(), &database).await;
    let shared: Shared = first.clone();
    let thing = Thing::new("a", "x");
    thing.create(&shared).await;
    // As a standby that took over finds it.
    let sql = |text: &str| server().sql(&database, text).unwrap();
    let here = sql("SELECT place FROM incarnation");
    assert_eq!(here.split('/').count(), 4, "{here}");
    sql("UPDATE incarnation SET place = 'elsewhere'");
    // Who knows the place already does not ask again; whoever opens does, and many at once.
    let opened = futures::future::join_all((0..4).map(|_| open(server(), &database))).await;
    assert_eq!(
        sql("SELECT number, place FROM incarnation"),
        format!("2|{here}")
    );
    assert_jumped(&shared, &thing, 2).await;
    let hint = second.hint(&things());
    wait_for("the hint of another process", async || {
        *hint.borrow() > 1 << 32
    })
    .await;
    assert_eq!(first.renew_incarnation().await.unwrap(), 3);
    for store in opened.into_iter().chain([first, second]) {
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_that_is_restored_is_a_new_incarnation() {
    let (database, store) = fresh().await;
    Thing::new("a", "x")
        .create(&(store.clone() as Shared))
        .await;
    store.close().await;
    // A copy made by the server is as good as a dump: other tables with the same rows.
    let copy = format!("{database}_copy");
    server()
        .sql(
            "postgres",
            &format!("CREATE DATABASE {copy} TEMPLATE {database}"),
        )
        .unwrap();
    let store = open(server(), &copy).await;
    assert_jumped(&(store.clone() as Shared), &Thing::new("a", "x"), 2).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_that_knows_no_origin_begins_there_all_the_same() {
    let (database, store) = fresh().await;
    let sql = |text: &str| server().sql(&database, text).unwrap();
    // So it makes a clock, and so it begins a new life.
    let clock = "INSERT INTO clock (resource, rv, compacted_rv) VALUES ('NAME', 1, 0)
        ON CONFLICT (resource) DO NOTHING";
    let life = "BEGIN; SELECT number FROM incarnation FOR UPDATE;
        UPDATE clock SET rv = rv + 4294967296, compacted_rv = rv + 4294967296;
        UPDATE incarnation SET number = number + 1; COMMIT";
    let clocks = "SELECT c.rv - i.origin, c.rv - c.compacted_rv
        FROM clock c, incarnation i ORDER BY c.id";
    sql(&clock.replace("NAME", "first"));
    assert_eq!(sql("SELECT rv, compacted_rv FROM clock"), "1|0");
    sql(life);
    sql(&clock.replace("NAME", "second"));
    assert_eq!(sql(clocks), "0|0\n0|0");
    let origin = store.revision(&things()).await.unwrap();
    assert_is_of_now(origin);
    assert_eq!(sql("SELECT origin FROM incarnation"), origin.to_string());
    sql(life);
    assert!(store.revision(&things()).await.unwrap() > origin);
    assert_eq!(sql(clocks), "0|0\n0|0");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_writes_beside_a_new_life_are_of_one_of_both() {
    let (database, store) = fresh().await;
    let other = open(server(), &database).await;
    for round in 0..5 {
        let writes = (0..8).map(|number| {
            let shared: Shared = store.clone();
            let name = format!("r{round}-{number}");
            async move { Thing::new("a", "x").of(&name).create(&shared).await }
        });
        let writes = futures::future::join_all(writes);
        let (renewed, _) = tokio::join!(other.renew_incarnation(), writes);
        assert_eq!(renewed.unwrap(), round + 2);
        let behind = "SELECT COUNT(*) FROM clock c, incarnation i
            WHERE c.rv < i.origin OR c.compacted_rv <> i.origin";
        assert_eq!(server().sql(&database, behind).unwrap(), "0");
    }
    store.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_given_up_leave_nothing_behind() {
    let (database, store) = fresh().await;
    let shared: Shared = store.clone();
    for number in 0..40 {
        let thing = Thing::new("a", &format!("x{number}"));
        let (write, list) = (thing.write(Expect::Absent), all());
        let limit = Duration::from_micros(number * 100);
        let _ = tokio::time::timeout(limit, shared.write(write)).await;
        let _ = tokio::time::timeout(limit, shared.list(list)).await;
    }
    // What was cut short may end a little later; the store itself goes on at once.
    Thing::new("a", "last").create(&shared).await;
    store.close().await;
    assert_sound(server(), &database);
    let open = "SELECT COUNT(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    wait_for("the end of the connections", async || {
        server().sql(&database, open).unwrap() == "0"
    })
    .await;
}
