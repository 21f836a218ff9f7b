//! A process that is killed while it publishes: what it was told is kept, is kept.

use crate::place::{LONG, SUBJECT, settings};
use anyhow::{Context, Result};
use bytes::Bytes;
use muster_queue::{EmbeddedQueue, Queue};
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const FILE: &str = "MUSTER_QUEUE_TEST_FILE";
/// How many publications are waited for before the kill.
const ENOUGH: usize = 300;

#[tokio::test]
async fn what_a_killed_process_published_is_kept_and_what_it_held_is_free() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("queue.db");
    let mut child = Command::new(std::env::current_exe()?)
        .args([
            "--exact",
            "killed::the_process_that_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env(FILE, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = BufReader::new(child.stdout.take().context("no output")?);
    let (mut told, mut held) = (HashSet::new(), HashSet::new());
    for line in output.lines() {
        match line?.split_once(' ') {
            Some(("published", id)) => told.insert(id.to_string()),
            Some(("held", id)) => held.insert(id.to_string()),
            _ => continue,
        };
        if told.len() >= ENOUGH {
            break;
        }
    }
    child.kill()?;
    child.wait()?;
    assert_eq!((told.len(), held.len()), (ENOUGH, 5));

    let queue = EmbeddedQueue::open(&path, settings()).await?;
    let mut found = HashSet::new();
    while !told.is_subset(&found) {
        let pulled = queue.pull(SUBJECT, 100, LONG).await?;
        anyhow::ensure!(!pulled.is_empty(), "lost: {:?}", told.difference(&found));
        for delivery in pulled {
            assert_eq!(delivery.attempt, 1 + u32::from(held.contains(&delivery.id)));
            queue.ack(&delivery).await?;
            found.insert(delivery.id);
        }
    }
    let second = EmbeddedQueue::open(&path, settings())
        .await
        .expect_err("one process at a time");
    assert!(second.to_string().contains("in use"), "{second}");
    queue.close().await?;
    assert!(queue.publish(SUBJECT, "late", Bytes::new()).await.is_err());
    Ok(())
}

#[tokio::test]
#[ignore = "the other half of the test above, which starts it"]
async fn the_process_that_is_killed() -> Result<()> {
    let path = PathBuf::from(std::env::var_os(FILE).context("started by the test above only")?);
    let queue = EmbeddedQueue::open(&path, settings()).await?;
    for number in 0.. {
        let id = format!("job/{number}");
        queue.publish(SUBJECT, &id, Bytes::from("x")).await?;
        println!("published {id}");
        if number == 9 {
            for delivery in queue.pull(SUBJECT, 5, LONG).await? {
                println!("held {}", delivery.id);
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_no_queue_is_refused_by_name() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("queue.db");
    std::fs::write(
        &path,
        "this is no database, and it is long enough to be looked at as one",
    )?;
    let error = EmbeddedQueue::open(&path, settings())
        .await
        .expect_err("no database");
    assert!(
        error.to_string().contains("queue.db") && !error.is_transient(),
        "{error}"
    );
    let error = EmbeddedQueue::open(&directory.path().join("not/there/queue.db"), settings()).await;
    assert!(error.is_err());
    Ok(())
}
