//! Reading: one report, and pages of them.

use super::figures::Times;
use super::world::{Place, World};
use super::{API, collection};
use anyhow::{Context, Result};
use http::Method;
use muster_testkit::http::{Client, Request};
use serde_json::Value;
use std::time::Instant;

/// How a client wants to see objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// With all findings.
    Whole,
    /// As `kubectl get` shows them.
    Table,
}

impl View {
    fn accept(self) -> &'static str {
        match self {
            View::Whole => "application/json",
            View::Table => "application/json;as=Table;v=v1;g=meta.k8s.io",
        }
    }

    /// A GET that wants to see it so.
    pub(super) fn get(self, target: String) -> Result<Request> {
        Request::new(Method::GET, target).header("accept", self.accept())
    }
}

/// Spreads picks over all of a collection.
pub(super) fn pick(round: usize, count: usize) -> usize {
    round * 7919 % count
}

fn target(place: &Place) -> String {
    let collection = collection(&place.namespace, "workloadscanreports");
    format!("{collection}/{}", place.name)
}

/// Reads reports one after the other; gives the times and their mean size in bytes.
pub(super) async fn single(
    client: &Client,
    world: &World,
    view: View,
    count: usize,
) -> Result<(Times, u64)> {
    let (mut times, mut bytes) = (Times::default(), 0);
    for round in 0..count {
        let number = pick(round, world.population().workloads);
        let request = view.get(target(&world.place_of_workload(number)))?;
        let start = Instant::now();
        bytes += client.skim(request).await?;
        times.add(start.elapsed());
    }
    Ok((times, bytes / count.max(1) as u64))
}

/// One report as JSON.
pub(super) async fn report(client: &Client, place: &Place) -> Result<Value> {
    client.get(&target(place)).await?.json()
}

/// Reads the first page of all reports again and again; gives the times and its size in bytes.
pub(super) async fn page(
    client: &Client,
    view: View,
    rows: usize,
    count: usize,
) -> Result<(Times, u64)> {
    let (mut times, mut bytes) = (Times::default(), 0);
    for _ in 0..count {
        let request = view.get(format!("{API}/workloadscanreports?limit={rows}"))?;
        let start = Instant::now();
        bytes = client.skim(request).await?;
        times.add(start.elapsed());
    }
    Ok((times, bytes))
}

/// The present revision of all reports.
pub(super) async fn revision(client: &Client) -> Result<String> {
    let request = View::Table.get(format!("{API}/workloadscanreports?limit=1"))?;
    let list = client.send(request).await?.json()?;
    let revision = list["metadata"]["resourceVersion"].as_str();
    Ok(revision.context("a list has no revision")?.to_owned())
}
