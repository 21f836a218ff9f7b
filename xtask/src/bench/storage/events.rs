//! Watching: how long after a VulnerabilityReport was written the reports of the workloads that
//! depend on it are seen to change.

use super::figures::Times;
use super::reads::{View, pick, revision};
use super::world::World;
use super::{API, collection};
use anyhow::{Context, Result, ensure};
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::watch::{Next, Watch};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long an event may take at all.
const LIMIT: Duration = Duration::from_secs(120);

/// Times of events since the write was sent, and since it was acknowledged (nothing for an event
/// that was faster than the acknowledgement).
#[derive(Default)]
pub(super) struct Latency {
    pub(super) sent: Times,
    pub(super) acknowledged: Times,
}

/// An open watch over all reports; a task of its own notes when each line has come.
struct Watcher {
    seen: mpsc::UnboundedReceiver<Instant>,
    task: tokio::task::JoinHandle<Result<()>>,
}

impl Watcher {
    async fn open(client: &Client, view: View) -> Result<Self> {
        let revision = revision(client).await?;
        let target = format!(
            "{API}/workloadscanreports?watch=true&timeoutSeconds=3000&resourceVersion={revision}"
        );
        let watch = client.watch(view.get(target)?, LIMIT).await?;
        ensure!(
            watch.status.is_success(),
            "a watch was answered {}",
            watch.status
        );
        let (sender, seen) = mpsc::unbounded_channel();
        let task = tokio::spawn(note(watch, sender));
        Ok(Watcher { seen, task })
    }

    /// When the next event came.
    async fn next(&mut self) -> Result<Instant> {
        let next = tokio::time::timeout(LIMIT, self.seen.recv()).await;
        match next.context("an event did not come")? {
            Some(seen) => Ok(seen),
            None => match (&mut self.task).await.context("the watcher panicked")? {
                Ok(()) => anyhow::bail!("the watch was left"),
                Err(error) => Err(error),
            },
        }
    }
}

async fn note(mut watch: Watch, sender: mpsc::UnboundedSender<Instant>) -> Result<()> {
    loop {
        let line = match watch.next(LIMIT).await? {
            Next::Line(line) => line,
            Next::Quiet => continue,
            Next::End(_) => anyhow::bail!("the watch ended early"),
        };
        let seen = Instant::now();
        let modified = line.starts_with(b"{\"type\":\"MODIFIED\"");
        let start = String::from_utf8_lossy(line.get(..200).unwrap_or(&line));
        ensure!(modified, "an event is no modification: {start}");
        if sender.send(seen).is_err() {
            return Ok(());
        }
    }
}

/// Rewrites the findings of one platform of an image; gives when that was sent and acknowledged.
async fn rewrite(
    client: &Client,
    world: &World,
    image: usize,
    round: usize,
) -> Result<(Instant, Instant)> {
    let number = World::first_platform(image);
    let place = world.place_of_scanned(number);
    let collection = collection(&place.namespace, "vulnerabilityreports");
    let request = Request::new(Method::PATCH, format!("{collection}/{}", place.name));
    let findings = world.new_findings(number, round);
    let request = request.body("application/merge-patch+json", findings)?;
    let sent = Instant::now();
    client.skim(request).await?;
    Ok((sent, Instant::now()))
}

/// Rewrites the findings of many images that few workloads run, one after the other. Each
/// measurement is named by a round, and no two rounds find the same.
pub(super) async fn few(
    client: &Client,
    world: &World,
    view: View,
    count: usize,
    round: usize,
) -> Result<Latency> {
    let mut watcher = Watcher::open(client, view).await?;
    let mut latency = Latency::default();
    for at in 0..count {
        let image = pick(at, world.applications());
        let (sent, acknowledged) = rewrite(client, world, image, round + at).await?;
        for _ in 0..world.runs(image) {
            let seen = watcher.next().await?;
            latency.sent.add(seen - sent);
            latency
                .acknowledged
                .add(seen.saturating_duration_since(acknowledged));
        }
    }
    Ok(latency)
}

/// Rewrites the findings of the image that many workloads run; gives when the last of their
/// reports was seen, since the write was sent and since it was acknowledged.
pub(super) async fn many(
    client: &Client,
    world: &World,
    view: View,
    count: usize,
    round: usize,
) -> Result<Latency> {
    let mut watcher = Watcher::open(client, view).await?;
    let mut latency = Latency::default();
    let image = world.sidecar();
    for at in 0..count {
        let (sent, acknowledged) = rewrite(client, world, image, round + at).await?;
        let mut last = acknowledged;
        for _ in 0..world.runs(image) {
            last = watcher.next().await?;
        }
        latency.sent.add(last - sent);
        latency
            .acknowledged
            .add(last.saturating_duration_since(acknowledged));
    }
    Ok(latency)
}
