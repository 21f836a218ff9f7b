//! A server that is asked how many requests it has answered; what we asked ourselves does not count.

use anyhow::{Context, Result, ensure};
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::watch::{Next, Watch};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const REPORTS: &str = "workloadscanreports";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
/// How often it is asked, and for how long nothing must have come for it to be quiet.
const LOOK: Duration = Duration::from_millis(250);
const STILL: Duration = Duration::from_millis(1500);
/// How long we wait for that.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server, and what we asked of it.
pub(super) struct Server {
    pub(super) client: Client,
    asked: AtomicU64,
}

impl Server {
    pub(super) fn new(kubeconfig: &Kubeconfig) -> Result<Server> {
        Ok(Server {
            client: Client::new(kubeconfig)?,
            asked: AtomicU64::new(0),
        })
    }

    /// Notes a request of ours.
    pub(super) fn note(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    async fn ask(&self, target: &str, accept: &str) -> Result<Value> {
        self.note();
        let request = Request::new(Method::GET, target).header("accept", accept)?;
        let answer = self.client.send(request).await?;
        ensure!(answer.status.is_success(), "{target}: {}", answer.status);
        answer.json()
    }

    /// How many requests of others it has answered.
    pub(super) async fn answered(&self) -> Result<u64> {
        self.note();
        let answer = self.client.get("/metrics").await?;
        let text = String::from_utf8(answer.body.to_vec())?;
        let lines = text.lines();
        let counted = lines.filter(|line| line.starts_with("apiserver_requests_total{"));
        let mut sum = 0;
        for line in counted {
            let (_, count) = line.rsplit_once(' ').context("a number")?;
            sum += count.parse::<f64>()? as u64;
        }
        // This very question is not answered yet.
        Ok((sum + 1).saturating_sub(self.asked.load(Ordering::Relaxed)))
    }

    /// Waits until nobody asks any more; gives how many requests there were then, and when the last
    /// of them was seen.
    pub(super) async fn quiet(&self) -> Result<(u64, Instant)> {
        let start = Instant::now();
        let mut last = (self.answered().await?, Instant::now());
        while last.1.elapsed() < STILL {
            if start.elapsed() > PATIENCE {
                eprintln!("    it is not quiet after {PATIENCE:?}");
                break;
            }
            tokio::time::sleep(LOOK).await;
            let now = self.answered().await?;
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
        Ok(last)
    }

    /// How many workloads have a report.
    pub(super) async fn reports(&self) -> Result<usize> {
        let target = format!("{}?limit=1", path(None));
        let list = self.ask(&target, METADATA).await?;
        let first = list["items"].as_array().map_or(0, Vec::len);
        let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        Ok(first + usize::try_from(more)?)
    }

    /// Watches the reports of a namespace from now on.
    pub(super) async fn watch(&self, namespace: &str) -> Result<Watch> {
        let path = path(Some(namespace));
        let list = self.ask(&format!("{path}?limit=1"), METADATA).await?;
        let revision = list["metadata"]["resourceVersion"].as_str();
        let revision = revision.context("a revision")?;
        self.note();
        let target = format!("{path}?watch=true&resourceVersion={revision}");
        let request = Request::new(Method::GET, target);
        self.client.watch(request, PATIENCE).await
    }
}

fn path(namespace: Option<&str>) -> String {
    let within = namespace.map(|name| format!("namespaces/{name}/"));
    let within = within.unwrap_or_default();
    format!("/apis/storage.sbomscanner.kubewarden.io/v1alpha1/{within}{REPORTS}")
}

/// Waits for an event that says something.
pub(super) async fn says(watch: &mut Watch, text: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match watch.next(left).await? {
            Next::Line(line) if String::from_utf8_lossy(&line).contains(text) => return Ok(()),
            Next::Line(_) => {}
            other => anyhow::bail!("no report said {text}: {other:?}"),
        }
    }
}
