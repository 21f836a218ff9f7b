//! Copies of stores in use, from each engine into each, and what is refused.

use crate::suite::computed::{everything, sample};
use crate::suite::*;
use crate::{postgres, sqlite};
use muster_apiserver::store::{EventType, StoreError};
use muster_kind::Digest;
use muster_store::{BackupError, Options, Place, PostgresStore, SqliteStore, backup, restore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, SqliteConnection};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

const JUMP: u64 = 1 << 32;

/// An engine with a place of its own.
enum Engine {
    Sqlite(TempDir),
    Postgres(String),
}

impl Engine {
    fn sqlite() -> Self {
        Engine::Sqlite(tempfile::tempdir().unwrap())
    }

    fn postgres() -> Self {
        Engine::Postgres(postgres::server().database().unwrap())
    }

    fn place(&self) -> Place {
        match self {
            Engine::Sqlite(directory) => Place::Directory(directory.path().into()),
            Engine::Postgres(database) => {
                Place::Database(Box::new(postgres::options(postgres::server(), database)))
            }
        }
    }

    async fn open(&self) -> Open {
        match self {
            Engine::Sqlite(directory) => {
                let store = SqliteStore::open(Options::new(directory.path())).await;
                Open::Sqlite(Arc::new(store.unwrap()))
            }
            Engine::Postgres(database) => {
                Open::Postgres(postgres::open(postgres::server(), database).await)
            }
        }
    }

    async fn assert_sound(&self) {
        match self {
            Engine::Sqlite(directory) => sqlite::assert_sound(directory.path()).await,
            Engine::Postgres(database) => postgres::assert_sound(postgres::server(), database),
        }
    }
}

enum Open {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl Open {
    fn store(&self) -> Shared {
        match self {
            Open::Sqlite(store) => store.clone(),
            Open::Postgres(store) => store.clone(),
        }
    }

    async fn close(self) {
        match self {
            Open::Sqlite(store) => store.close().await.unwrap(),
            Open::Postgres(store) => store.close().await,
        }
    }
}

fn odd_values() -> [String; 3] {
    ["long ".repeat(300), "a\0b".into(), "sha256:plain".into()]
}

/// Objects of all sorts.
async fn furnish(store: &Shared) {
    for (number, value) in odd_values().iter().enumerate() {
        let thing = Thing::new("odd", &format!("x{number}")).field("spec.x", value);
        let bytes = format!("{{\"blob\": {number}}}").into();
        thing
            .owner(value)
            .label("k", "v")
            .blob(&bytes)
            .create(store)
            .await;
    }
    let gone = Thing::new("odd", "gone");
    let revision = gone.create(store).await;
    gone.delete(store, revision).await;
    for number in 0..12 {
        sample(store, number).await;
    }
    everything(store, 1).await;
}

async fn assert_furnished(store: &Shared) {
    for (number, value) in odd_values().iter().enumerate() {
        let name = format!("odd/x{number}");
        let mut query = fielded("spec.x=v");
        query.fields.0[0].value = value.clone();
        assert_eq!(names(store, query).await, name, "{value:?}");
        assert_eq!(store.owned(value, 9).await.unwrap().len(), 1);
        let bytes = format!("{{\"blob\": {number}}}");
        let blob = store.blob(&Digest::of(bytes.as_bytes())).await.unwrap();
        assert_eq!(blob.unwrap(), bytes);
    }
    assert_eq!(names(store, labelled("k=v")).await, "odd/x0 odd/x1 odd/x2");
    everything(store, 2).await;
    sample(store, 12).await;
}

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
    assert_eq!(store.revision(&things()).await.unwrap(), newest + JUMP);
    let refused = store.events(&things(), newest, 1).await;
    assert!(
        matches!(refused, Err(StoreError::Compacted { .. })),
        "{refused:?}"
    );
    assert_furnished(&store).await;
    let next = Thing::new("busy", "next").create(&store).await;
    assert_eq!(next, newest + JUMP + 1);
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

/// A small backup.
async fn small(directory: &TempDir) -> std::path::PathBuf {
    let engine = Engine::sqlite();
    let open = engine.open().await;
    furnish(&open.store()).await;
    open.close().await;
    let file = directory.path().join("backup");
    backup(&engine.place(), &file).await.unwrap();
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_with_a_store_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = small(&directory).await;
    for engine in [Engine::sqlite(), Engine::postgres()] {
        let open = engine.open().await;
        let thing = Thing::new("a", "x");
        let revision = thing.create(&open.store()).await;
        open.close().await;
        let refused = restore(&file, &engine.place()).await.unwrap_err();
        assert!(
            matches!(refused, BackupError::NotEmpty { .. }),
            "{refused:?}"
        );
        let open = engine.open().await;
        assert_eq!(open.store().revision(&things()).await.unwrap(), revision);
        assert_eq!(names(&open.store(), all()).await, "a/x");
        open.close().await;
        engine.assert_sound().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_nobody_has_written_to_is_an_empty_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = small(&directory).await;
    for engine in [Engine::sqlite(), Engine::postgres()] {
        engine.open().await.close().await;
        restore(&file, &engine.place()).await.unwrap();
        let open = engine.open().await;
        assert_furnished(&open.store()).await;
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_in_use_is_not_restored_into() {
    let directory = tempfile::tempdir().unwrap();
    let file = small(&directory).await;
    let engine = Engine::sqlite();
    let open = engine.open().await;
    let refused = restore(&file, &engine.place()).await.unwrap_err();
    assert!(refused.to_string().contains("in use"), "{refused}");
    open.close().await;
    // The log of a database that was moved away is nobody's to delete.
    let Engine::Sqlite(place) = &engine else {
        unreachable!()
    };
    std::fs::remove_file(place.path().join("state.db")).unwrap();
    std::fs::write(place.path().join("state.db-wal"), "the last writes").unwrap();
    let refused = restore(&file, &engine.place()).await.unwrap_err();
    assert!(
        matches!(refused, BackupError::NotEmpty { .. }),
        "{refused:?}"
    );
    assert!(place.path().join("state.db-wal").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_there_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    std::fs::write(&file, "precious").unwrap();
    for engine in [Engine::sqlite(), Engine::postgres()] {
        engine.open().await.close().await;
        let refused = backup(&engine.place(), &file).await.unwrap_err();
        assert!(matches!(refused, BackupError::Exists { .. }), "{refused:?}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_holds_no_store_gives_no_backup() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    for engine in [Engine::sqlite(), Engine::postgres()] {
        let refused = backup(&engine.place(), &file).await.unwrap_err();
        assert!(
            matches!(refused, BackupError::NoStore { .. }),
            "{refused:?}"
        );
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_owner_may_read_a_backup_and_what_comes_of_it() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let file = small(&directory).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    let data = directory.path().join("data");
    restore(&file, &Place::Directory(data.clone()))
        .await
        .unwrap();
    assert_eq!(mode(&data), 0o700);
    assert_eq!(mode(&data.join("state.db")), 0o600);
}

async fn connect(file: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(file);
    options.create_if_missing(true).connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_no_sound_backup_is_refused_and_makes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = small(&directory).await;
    let whole = std::fs::read(&file).unwrap();
    let bad = directory.path().join("bad");
    let mut spoiled = whole.clone();
    for byte in &mut spoiled[whole.len() / 2..whole.len() / 2 + 8192] {
        *byte ^= 0x5a;
    }
    for bytes in [
        Vec::new(),
        b"text".repeat(5000),
        whole[..whole.len() / 2].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        whole[..100].to_vec(),
        spoiled,
    ] {
        std::fs::write(&bad, bytes).unwrap();
        assert_refused(&bad, "damaged").await;
    }
    for change in [
        "CREATE TABLE other (x)",
        "CREATE TRIGGER t AFTER UPDATE ON clock BEGIN DELETE FROM object; END",
        "DELETE FROM body WHERE id = (SELECT MAX(body) FROM object)",
        "UPDATE clock SET rv = 3",
        "DELETE FROM blob_bytes",
        "DELETE FROM meta",
    ] {
        std::fs::write(&bad, &whole).unwrap();
        let mut connection = connect(&bad).await;
        sqlx::query(change).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        assert_refused(&bad, "damaged").await;
    }
    std::fs::write(&bad, &whole).unwrap();
    let mut connection = connect(&bad).await;
    let raise = "UPDATE meta SET value = value + 1 WHERE key = 'schema'";
    sqlx::query(raise).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    assert_refused(&bad, "schema version").await;
    std::fs::remove_file(&bad).unwrap();
    let mut connection = connect(&bad).await;
    let foreign = "CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER)";
    sqlx::query(foreign).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    assert_refused(&bad, "damaged").await;
    std::fs::remove_file(&bad).unwrap();
    assert_refused(&bad, "reading").await;
}

async fn assert_refused(bad: &Path, word: &str) {
    let target = tempfile::tempdir().unwrap();
    let place = Place::Directory(target.path().join("data"));
    let refused = restore(bad, &place).await.unwrap_err();
    assert!(refused.to_string().contains(word), "{refused}");
    assert!(!target.path().join("data").exists());
    // Nobody is asked about a database that would not be written to.
    let nowhere = muster_store::PostgresOptions::from_parts("127.0.0.1", 1, "x", "x");
    let refused = restore(bad, &Place::Database(Box::new(nowhere))).await;
    assert!(refused.unwrap_err().to_string().contains(word));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_cannot_be_reached_is_named_without_its_password() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backup");
    let url = "postgres://me:hush@127.0.0.1:1/db";
    let options = muster_store::PostgresOptions::from_url(url).unwrap();
    let place = Place::Database(Box::new(options));
    let refused = backup(&place, &file).await.unwrap_err();
    let text = format!("{refused} {refused:?} {place:?}");
    assert!(text.contains("127.0.0.1"), "{text}");
    assert!(!text.contains("hush"), "{text}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

const FROM: &str = "MUSTER_STORE_RESTORE_FROM";
const DIRECTORY: &str = "MUSTER_STORE_RESTORE_DIRECTORY";
const DATABASE: &str = "MUSTER_STORE_RESTORE_DATABASE";

fn child(from: &Path, place: (&str, &str)) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "backup::restores_or_is_killed", "--ignored"])
        .env(FROM, from)
        .env(place.0, place.1)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the tests that kill a restore"]
async fn restores_or_is_killed() {
    let place = match std::env::var(DIRECTORY) {
        Ok(directory) => Place::Directory(directory.into()),
        Err(_) => {
            let url = std::env::var(DATABASE).unwrap();
            let mut options = muster_store::PostgresOptions::from_url(&url).unwrap();
            options.lock_timeout = Duration::from_secs(60);
            Place::Database(Box::new(options))
        }
    };
    let from = std::env::var(FROM).unwrap();
    restore(Path::new(&from), &place).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_restore_leaves_a_directory_empty_or_done() {
    let directory = tempfile::tempdir().unwrap();
    let file = small(&directory).await;
    for _ in 0..5 {
        let target = tempfile::tempdir().unwrap();
        let data = target.path().to_str().unwrap();
        let mut child = child(&file, (DIRECTORY, data));
        let begun = || {
            let names = ["state.db.restoring", "state.db"];
            names.iter().any(|name| target.path().join(name).exists())
        };
        while !begun() && child.try_wait().unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        let _ = child.kill();
        child.wait().unwrap();
        let place = Place::Directory(target.path().into());
        if !target.path().join("state.db").exists() {
            restore(&file, &place).await.unwrap();
            assert!(!target.path().join("state.db.restoring").exists());
        }
        let engine = Engine::Sqlite(target);
        let open = engine.open().await;
        assert_furnished(&open.store()).await;
        open.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_restore_leaves_a_database_empty() {
    let directory = tempfile::tempdir().unwrap();
    let file = small(&directory).await;
    let engine = Engine::postgres();
    engine.open().await.close().await;
    let Engine::Postgres(database) = &engine else {
        unreachable!()
    };
    let url = postgres::server().url(database);
    // Somebody stores one of the blobs and does not end: there the restore waits.
    let mut other = PgConnection::connect(&url).await.unwrap();
    let digest = Digest::of(b"{\"blob\": 0}");
    sqlx::query("BEGIN").execute(&mut other).await.unwrap();
    sqlx::query("INSERT INTO blob (sha256, size, touched, zstd) VALUES ($1, 1, 1, '')")
        .bind(&digest.0[..])
        .execute(&mut other)
        .await
        .unwrap();
    let mut child = child(&file, (DATABASE, &url));
    postgres::wait_for("the restore to wait", async || {
        let waiting = "SELECT COUNT(*) FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO blob%'
            AND datname = current_database()";
        postgres::server().sql(database, waiting).unwrap() == "1"
    })
    .await;
    child.kill().unwrap();
    child.wait().unwrap();
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    postgres::wait_for("the end of the restore", async || {
        let others = "SELECT COUNT(*) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        postgres::server().sql(database, others).unwrap() == "0"
    })
    .await;
    let rows = "SELECT (SELECT COUNT(*) FROM clock) + (SELECT COUNT(*) FROM body)
        + (SELECT COUNT(*) FROM object) + (SELECT COUNT(*) FROM blob)";
    assert_eq!(postgres::server().sql(database, rows).unwrap(), "0");
    restore(&file, &engine.place()).await.unwrap();
    let open = engine.open().await;
    assert_furnished(&open.store()).await;
    open.close().await;
}
