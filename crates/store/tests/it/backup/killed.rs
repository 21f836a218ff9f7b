//! Restores that are killed.

use super::*;
use muster_store::restore;
use sqlx::{Connection, PgConnection};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const FROM: &str = "MUSTER_STORE_RESTORE_FROM";
const DIRECTORY: &str = "MUSTER_STORE_RESTORE_DIRECTORY";
const DATABASE: &str = "MUSTER_STORE_RESTORE_DATABASE";

fn child(from: &Path, place: (&str, &str)) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "backup::killed::restores_or_is_killed",
            "--ignored",
        ])
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
