//! Many who watch, one who never listens, and something very large.

use super::{API_VERSION, MUSTER, SOON, image, options};
use anyhow::{Context, Result};
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::storage::Cluster;
use muster_testkit::watch::Watch;
use serde_json::{Value, json};
use std::time::Duration;

const WATCHES: usize = 2000;
const PATIENCE: Duration = Duration::from_secs(120);
/// Enough that a connection that nobody reads is full, and the ring has moved on.
const EVENTS: usize = 6000;
/// What two thousand open connections may take, in megabytes.
const CROWD: u64 = 400;

fn images() -> String {
    format!("/apis/{API_VERSION}/namespaces/default/images")
}

async fn create(client: &Client, collection: &str, body: &Value) -> Result<Value> {
    let request = Request::new(Method::POST, collection);
    let request = request.body("application/json", body.to_string())?;
    let answer = client.send(request).await?;
    anyhow::ensure!(answer.status == 201, "{answer:?}");
    answer.json()
}

async fn revision(client: &Client) -> Result<String> {
    let list = client.get(&format!("{}?limit=1", images())).await?.json()?;
    let revision = list["metadata"]["resourceVersion"].as_str();
    Ok(revision.context("a revision")?.to_owned())
}

/// Reads so many events, and gives their revisions.
async fn read(watch: &mut Watch, count: usize) -> Result<Vec<u64>> {
    let mut revisions = Vec::new();
    while revisions.len() < count {
        let event = watch.next_event(PATIENCE).await?.context("an event")?;
        let revision = event["object"]["metadata"]["resourceVersion"].as_str();
        revisions.push(revision.context("a revision")?.parse()?);
    }
    Ok(revisions)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_watches_see_every_event_and_one_that_never_reads_slows_nobody() -> Result<()>
{
    let mut cluster = Cluster::start(MUSTER, &options()?)?;
    let client = Client::new(cluster.replicas()[0].kubeconfig())?;
    let start = revision(&client).await?;
    let target = format!("{}?watch=true&resourceVersion={start}", images());
    let open = || client.watch(Request::new(Method::GET, &target), SOON);
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        watches.push(open().await?);
    }
    for number in 0..3 {
        create(
            &client,
            &images(),
            &image("default", &format!("seen-{number}"), "1"),
        )
        .await?;
    }
    let first = read(&mut watches[0], 3).await?;
    for watch in &mut watches {
        let status = watch.status;
        anyhow::ensure!(status == 200, "a watch was answered with {status}");
    }
    for watch in watches.iter_mut().skip(1) {
        assert_eq!(read(watch, 3).await?, first);
    }
    let memory = cluster.replica(0).process()?.resident_memory()? / 1_000_000;
    assert!(memory < CROWD, "{memory} MB with {WATCHES} watches");
    drop(watches);

    // One that never reads, one that does.
    let start = revision(&client).await?;
    let target = format!("{}?watch=true&resourceVersion={start}", images());
    let open = || client.watch(Request::new(Method::GET, &target), SOON);
    let (mut deaf, mut listener) = (open().await?, open().await?);
    let listening = tokio::spawn(async move { read(&mut listener, EVENTS).await });
    let writers = (0..16).map(|writer| {
        let client = client.clone();
        tokio::spawn(async move {
            for number in (writer..EVENTS).step_by(16) {
                let mut object = image("default", &format!("many-{number}"), "1");
                object["metadata"]["annotations"] = json!({"text": "x".repeat(2000)});
                create(&client, &images(), &object).await?;
            }
            anyhow::Ok(())
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await??;
    }
    let heard = listening.await??;
    assert!(heard.is_sorted() && heard.len() == EVENTS);
    assert_eq!(
        read(&mut deaf, EVENTS).await?,
        heard,
        "it catches up from the log"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bill_of_fifty_megabytes_goes_in_and_comes_out_through_the_aggregator() -> Result<()> {
    let mut cluster = Cluster::start(MUSTER, &options()?)?;
    let client = Client::new(cluster.kubernetes().kubeconfig())?;
    let package = json!({"name": "p", "versionInfo": "1.0", "comment": "x".repeat(1000)});
    let packages: Vec<Value> = vec![package; 50_000];
    let spdx = json!({"spdxVersion": "SPDX-2.3", "packages": packages});
    let mut bill = super::bill("default", "large", "1.0");
    bill["spdx"] = spdx;
    let collection = format!("/apis/{API_VERSION}/namespaces/default/sboms");
    let before = cluster.replica(0).process()?.resident_memory()? / 1_000_000;
    create(&client, &collection, &bill).await?;
    let read = client.get(&format!("{collection}/large")).await?.json()?;
    assert_eq!(read["spdx"], bill["spdx"]);
    let after = cluster.replica(0).process()?.resident_memory()? / 1_000_000;
    eprintln!("a bill of 50 MB: {before} MB before, {after} MB after");
    // Lists and tables of bills do not read them.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = Request::new(Method::GET, &collection).header("accept", table)?;
    let answer = client.send(request).await?;
    assert!(answer.status == 200 && answer.body.len() < 100_000);
    Ok(())
}
