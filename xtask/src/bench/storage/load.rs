//! Filling a server through its API, as scanners and the operator do, several at once.

use super::world::{ARTIFACTS, TEAMS, World};
use super::{collection, figures};
use crate::bench::parallel::send_all;
use anyhow::Result;
use http::Method;
use muster_testkit::http::{Client, Request};
use serde_json::json;
use std::sync::Arc;

/// Writers at once.
pub(super) const WRITERS: usize = 16;

/// Makes the namespaces; whoever serves them.
pub(super) async fn namespaces(client: &Client) -> Result<()> {
    let teams = (0..TEAMS).map(|team| format!("team-{team:02}"));
    for name in teams.chain([ARTIFACTS.to_owned()]) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        client
            .skim(post("/api/v1/namespaces".into(), namespace.to_string())?)
            .await?;
    }
    Ok(())
}

/// Makes all objects; says how many a second.
pub(super) async fn fill(client: &Client, world: &Arc<World>) -> Result<()> {
    let (scanned, workloads) = (world.scanned(), world.population().workloads);
    let this = world.clone();
    make(client, "images", scanned, move |number| {
        (ARTIFACTS.into(), this.image(number).to_string())
    })
    .await?;
    let this = world.clone();
    make(client, "vulnerabilityreports", scanned, move |number| {
        (ARTIFACTS.into(), this.report(number, 0))
    })
    .await?;
    let this = world.clone();
    make(client, "workloadscanreports", workloads, move |number| {
        let namespace = this.place_of_workload(number).namespace;
        (namespace, this.workload(number).to_string())
    })
    .await
}

async fn make(
    client: &Client,
    resource: &'static str,
    count: usize,
    object: impl Fn(usize) -> (String, String) + Send + Sync + 'static,
) -> Result<()> {
    eprintln!("  writing {count} {resource}");
    let request = move |number| {
        let (namespace, object) = object(number);
        post(collection(&namespace, resource), object)
    };
    let took = send_all(client, WRITERS, count, request).await?;
    let rate = count as f64 / took.as_secs_f64();
    figures::line(&format!("{resource}: {count} written, {rate:.0} a second"));
    Ok(())
}

fn post(target: String, body: String) -> Result<Request> {
    Request::new(Method::POST, target).body("application/json", body)
}
