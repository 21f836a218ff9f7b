//! The load: the same requests to whichever server the kubeconfig names.

use super::Sizes;
use super::report::{Better, Measure};
use crate::bench::parallel::send_all;
use anyhow::{Context, Result, ensure};
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::process::Process;
use muster_testkit::watch::Next;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const COLLECTION: &str = "/api/v1/namespaces/bench/configmaps";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
/// How often a list is read; the fastest counts, as the least disturbed.
const LISTS: usize = 5;
const LIMIT: Duration = Duration::from_secs(120);

/// A client, the sizes of its load, and the servers whose processor time counts.
pub(crate) struct Load<'a> {
    client: Client,
    sizes: Sizes,
    servers: Vec<&'a Process>,
}

impl<'a> Load<'a> {
    pub(crate) fn new(
        kubeconfig: &Kubeconfig,
        sizes: Sizes,
        servers: Vec<&'a Process>,
    ) -> Result<Self> {
        Ok(Load {
            client: Client::new(kubeconfig)?,
            sizes,
            servers,
        })
    }

    /// Runs everything in order.
    pub(crate) async fn run(&self) -> Result<Vec<Measure>> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}});
        send(
            &self.client,
            Method::POST,
            "/api/v1/namespaces",
            namespace.to_string(),
        )
        .await?;
        let Sizes { objects, reads, .. } = self.sizes;
        let create = self.rate(objects, |index| {
            (Method::POST, COLLECTION.into(), body(index, 0))
        });
        let update = self.rate(objects, |index| {
            let target = format!("{COLLECTION}/object-{index}");
            (Method::PUT, target, body(index, 1))
        });
        let get = self.rate(reads, move |index| {
            let target = format!("{COLLECTION}/object-{}", index % objects);
            (Method::GET, target, String::new())
        });
        let (json, table) = (self.list("application/json"), self.list(TABLE));
        Ok(vec![
            self.measure("create", Better::More, "/s", create).await?,
            self.measure("update", Better::More, "/s", update).await?,
            self.measure("get", Better::More, "/s", get).await?,
            self.measure("list, JSON", Better::Less, "s", json).await?,
            self.measure("list, Table", Better::Less, "s", table)
                .await?,
            self.measure("watch fan-out", Better::More, "events/s", self.fan_out())
                .await?,
        ])
    }

    /// Measures, and beside it the processor time the servers use meanwhile.
    async fn measure(
        &self,
        name: &'static str,
        better: Better,
        unit: &'static str,
        work: impl Future<Output = Result<f64>>,
    ) -> Result<Measure> {
        let before = self.processor_seconds()?;
        let value = work.await?;
        let used = self.processor_seconds()? - before;
        Ok(Measure::new(name, better, value, unit).with_processor(used))
    }

    fn processor_seconds(&self) -> Result<f64> {
        let seconds = self.servers.iter().map(|server| server.processor_seconds());
        seconds.sum()
    }

    /// How many requests a second all workers together get answered.
    async fn rate(
        &self,
        count: usize,
        request: impl Fn(usize) -> (Method, String, String) + Send + Sync + 'static,
    ) -> Result<f64> {
        let request = move |index| {
            let (method, target, body) = request(index);
            prepare(method, &target, body)
        };
        let took = send_all(&self.client, self.sizes.workers, count, request).await?;
        Ok(count as f64 / took.as_secs_f64())
    }

    async fn list(&self, accept: &str) -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..LISTS {
            let start = Instant::now();
            let request = Request::new(Method::GET, COLLECTION).header("accept", accept)?;
            self.client.skim(request).await?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    }

    /// How many events a second all watchers together see.
    async fn fan_out(&self) -> Result<f64> {
        let Sizes {
            watchers, events, ..
        } = self.sizes;
        let list = self
            .client
            .get(&format!("{COLLECTION}?limit=1"))
            .await?
            .json()?;
        let revision = list["metadata"]["resourceVersion"]
            .as_str()
            .context("no revision")?
            .to_owned();
        let target =
            format!("{COLLECTION}?watch=true&resourceVersion={revision}&labelSelector=fan=out");
        let mut open = Vec::new();
        for _ in 0..watchers {
            open.push(
                self.client
                    .watch(Request::new(Method::GET, &target), LIMIT)
                    .await?,
            );
        }
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        for mut watch in open {
            tasks.spawn(async move {
                for _ in 0..events {
                    let next = watch.next(LIMIT).await?;
                    ensure!(
                        matches!(next, Next::Line(_)),
                        "a watch ended early: {next:?}"
                    );
                }
                Ok(())
            });
        }
        for index in 0..events {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("event-{index}"), "labels": {"fan": "out"}},
                "data": {"key": "x".repeat(200)},
            });
            send(&self.client, Method::POST, COLLECTION, object.to_string()).await?;
        }
        while let Some(task) = tasks.join_next().await {
            task.context("a watcher panicked")??;
        }
        Ok((watchers * events) as f64 / start.elapsed().as_secs_f64())
    }
}

/// About a kilobyte.
fn body(index: usize, round: usize) -> String {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("object-{index}"),
            "labels": {"app": format!("app-{}", index % 100), "tier": "bench"},
        },
        "data": {"round": round.to_string(), "text": "x".repeat(700)},
    })
    .to_string()
}

fn prepare(method: Method, target: &str, body: String) -> Result<Request> {
    let request = Request::new(method, target);
    match body.is_empty() {
        true => Ok(request),
        false => request.body("application/json", body),
    }
}

async fn send(client: &Client, method: Method, target: &str, body: String) -> Result<()> {
    client.skim(prepare(method, target, body)?).await.map(drop)
}
