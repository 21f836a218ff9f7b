//! Too many who do nothing, and one who never listens.

use super::memory::Watermark;
use super::{CONFIG_MAPS, JSON, Victim};
use anyhow::{Context, Result};
use http::Method;
use muster_testkit::http::Request;
use muster_testkit::watch::{Next, Watch};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(120);
const CONNECTIONS: usize = 2000;
const EVENTS: usize = 20_000;
const WRITERS: usize = 32;

/// How many files a process may have open, by the shell's word.
fn open_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_idle_connections_disturb_nobody() -> Result<()> {
    let mut victim = Victim::start()?;
    victim.still_answers().await?;
    let address = victim.muster.kubeconfig().server.replace("https://", "");
    let count = open_files().map_or(CONNECTIONS, |limit| CONNECTIONS.min(limit / 2));
    let mark = Watermark::begin(victim.muster.process())?;
    let mut idle = Vec::new();
    for _ in 0..count {
        idle.push(TcpStream::connect(&address).await?);
    }
    let mut greeted = Vec::new();
    for _ in 0..count.min(100) {
        greeted.push(victim.client.connect().await?);
    }
    victim.still_answers().await?;
    let growth = mark.growth()?;
    assert!(growth <= 64, "memory grew by {growth} MiB");
    drop((idle, greeted));
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_never_reads_costs_little_and_misses_nothing() -> Result<()> {
    let mut victim = Victim::start()?;
    victim.still_answers().await?;
    let list = victim.client.get(CONFIG_MAPS).await?.json()?;
    let revision = list["metadata"]["resourceVersion"]
        .as_str()
        .context("a revision")?;
    let target = format!("{CONFIG_MAPS}?watch=true&resourceVersion={revision}");
    let open = || {
        victim
            .client
            .watch(Request::new(Method::GET, &target), PATIENCE)
    };
    let deaf = open().await?;
    let listener = open().await?;
    let listening = tokio::spawn(read_all(listener));
    let mark = Watermark::begin(victim.muster.process())?;
    let next = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (client, next) = (victim.client.clone(), next.clone());
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= EVENTS {
                    return anyhow::Ok(());
                }
                let text = "x".repeat(400);
                let body =
                    format!(r#"{{"metadata":{{"name":"o-{number}"}},"data":{{"a":"{text}"}}}}"#);
                let request = Request::new(Method::POST, CONFIG_MAPS).body(JSON, body)?;
                assert_eq!(client.send(request).await?.status, 201);
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    let growth = mark.growth()?;
    let heard = listening.await??;
    assert!(growth <= 64, "memory grew by {growth} MiB");
    assert_eq!(heard, read_all(deaf).await?, "both hear the same");
    victim.still_answers().await
}

/// The revisions of as many events as are written.
async fn read_all(mut watch: Watch) -> Result<Vec<u64>> {
    let mut revisions = Vec::new();
    while revisions.len() < EVENTS {
        match watch.next(PATIENCE).await? {
            Next::Line(line) => {
                let event: serde_json::Value = serde_json::from_slice(&line)?;
                assert_eq!(event["type"], "ADDED", "{event}");
                let revision = event["object"]["metadata"]["resourceVersion"].as_str();
                revisions.push(revision.context("a revision")?.parse()?);
            }
            other => anyhow::bail!("after {} events: {other:?}", revisions.len()),
        }
    }
    assert!(revisions.is_sorted());
    Ok(revisions)
}
