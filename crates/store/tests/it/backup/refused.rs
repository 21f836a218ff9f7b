//! Places that are not empty, files that are no backups, and who may read one.

use super::*;
use muster_store::{BackupError, restore};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use std::path::Path;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_with_a_store_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = small(&directory).await;
    for engine in Engine::both() {
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
    for engine in Engine::both() {
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
    for engine in Engine::both() {
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
    for engine in Engine::both() {
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
        "UPDATE clock SET rv = 9223372036854775807",
        "INSERT INTO meta (key, value) VALUES ('origin', -1)",
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
