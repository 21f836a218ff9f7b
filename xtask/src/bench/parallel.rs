//! Many requests by several workers at once, with a word on how far they are.

use anyhow::{Context, Result};
use muster_testkit::http::{Client, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long it is quiet at most.
const WORD: Duration = Duration::from_secs(5);

/// Sends `count` requests, each of which must succeed; gives how long that took. Answers are read
/// and not kept.
pub(super) async fn send_all(
    client: &Client,
    workers: usize,
    count: usize,
    request: impl Fn(usize) -> Result<Request> + Send + Sync + 'static,
) -> Result<Duration> {
    let (next, request) = (Arc::new(AtomicUsize::new(0)), Arc::new(request));
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..workers {
        let (client, next, request) = (client.clone(), next.clone(), request.clone());
        tasks.spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return anyhow::Ok(());
                }
                client.skim(request(index)?).await?;
            }
        });
    }
    let mut word = start + WORD;
    loop {
        match tokio::time::timeout_at(word.into(), tasks.join_next()).await {
            Ok(None) => return Ok(start.elapsed()),
            Ok(Some(worker)) => worker.context("a worker panicked")??,
            Err(_) => {
                eprintln!("    {} of {count}", next.load(Ordering::Relaxed).min(count));
                word += WORD;
            }
        }
    }
}
