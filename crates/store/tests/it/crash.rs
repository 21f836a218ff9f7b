//! A process killed at any moment: this binary starts itself as a child that writes, kills it,
//! and looks at what is left.

use crate::sqlite::assert_sound;
use crate::suite::*;
use muster_store::{Options, SqliteStore};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

const DIRECTORY: &str = "MUSTER_STORE_CRASH_DIRECTORY";
const ROUNDS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_write_survives_a_killed_process() {
    let directory = tempfile::tempdir().unwrap();
    let mut newest = 1;
    for round in 0..ROUNDS {
        let acknowledged = killed_child(directory.path(), 5 + round * 23);
        assert!(!acknowledged.is_empty());
        let store = SqliteStore::open(Options::new(directory.path()))
            .await
            .unwrap();
        let store = Arc::new(store);
        let shared: Shared = store.clone();
        let now = shared.revision(&things()).await.unwrap();
        let events = shared.events(&things(), newest, usize::MAX).await.unwrap();
        for (revision, name) in &acknowledged {
            let event = &events[(*revision - newest - 1) as usize];
            assert_eq!(
                (event.revision, &event.key.name),
                (*revision, name),
                "round {round}"
            );
            let found = shared
                .get(&things(), &key("crash", name))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(found.revision, *revision);
            let (_, digest) = found.body.blobs[0];
            assert!(shared.blob(&digest).await.unwrap().is_some());
        }
        newest = now;
        store.close().await.unwrap();
        assert_sound(directory.path()).await;
    }
}

/// Starts a child, kills it after so many acknowledged writes, and gives all it acknowledged.
fn killed_child(directory: &Path, lines: usize) -> Vec<(u64, String)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writes_until_it_is_killed", "--ignored"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    let output = BufReader::new(child.stdout.take().unwrap());
    for line in output.lines().map_while(Result::ok) {
        // Other lines are the test harness's own; the last may be cut short.
        let mut words = line.split_whitespace();
        if let (Some("acknowledged"), Some(revision), Some(name), Some(".")) =
            (words.next(), words.next(), words.next(), words.next())
        {
            acknowledged.push((revision.parse().unwrap(), name.to_owned()));
        }
        if acknowledged.len() == lines {
            child.kill().unwrap();
        }
    }
    assert!(
        !child.wait().unwrap().success(),
        "the child ended by itself"
    );
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of every_acknowledged_write_survives_a_killed_process"]
async fn writes_until_it_is_killed() {
    let directory = std::env::var(DIRECTORY).unwrap();
    let store: Shared = Arc::new(SqliteStore::open(Options::new(directory)).await.unwrap());
    let process = std::process::id();
    let compaction = {
        let store = store.clone();
        // Kills shall meet compaction too; what the parent looks at is kept.
        tokio::spawn(async move { while store.compact(0, 2000).await.is_ok() {} })
    };
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0.. {
                    let name = format!("x-{process}-{writer}-{number}");
                    let blob = bytes::Bytes::from(format!("{{\"n\": {number}}}"));
                    let thing = Thing::new("crash", &name).label("n", &name).blob(&blob);
                    let revision = thing.create(&store).await;
                    let line = format!("\nacknowledged {revision} {name} .\n");
                    if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
                        return;
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    compaction.await.unwrap();
}
