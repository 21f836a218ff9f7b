//! `cargo xtask bench apiserver`: what Muster's API server does in the time and memory that
//! kube-apiserver and etcd need for the same, one after the other on the same machine, with the
//! same client, the same objects and the same durability: both sync every acknowledged write.

mod load;
mod report;

use anyhow::Result;
use load::Load;
use muster_testkit::binaries;
use muster_testkit::etcd::Durability;
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::kubernetes::{Kubernetes, Options};
use muster_testkit::muster::Muster;
use muster_testkit::process::Process;
use report::{Better, Measure};
use std::path::Path;
use std::time::Instant;

/// The sizes of a run.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Objects created, updated and listed.
    pub(crate) objects: usize,
    /// Objects read one by one.
    pub(crate) reads: usize,
    /// Writers and readers at once.
    pub(crate) workers: usize,
    /// Watchers that all see every event.
    pub(crate) watchers: usize,
    /// Events each of them sees.
    pub(crate) events: usize,
}

const FULL: Sizes = Sizes {
    objects: 10_000,
    reads: 20_000,
    workers: 16,
    watchers: 1000,
    events: 100,
};

/// Measures both servers and prints the ratios.
pub(crate) fn run() -> Result<()> {
    binaries::ensure_kubernetes()?;
    let binary = super::build()?;
    let runtime = super::runtime()?;
    eprintln!("kube-apiserver and etcd (synced):");
    let theirs = runtime.block_on(kubernetes(FULL))?;
    eprintln!("muster (synced):");
    let ours = runtime.block_on(muster(&binary, FULL))?;
    eprintln!();
    report::print(&ours, &theirs);
    Ok(())
}

async fn kubernetes(sizes: Sizes) -> Result<Vec<Measure>> {
    let start = Instant::now();
    let server = Kubernetes::start(&Options {
        durability: Durability::Synced,
        ..Options::default()
    })?;
    let processes = vec![server.server(), server.etcd().process()];
    measures(start, server.kubeconfig(), sizes, processes).await
}

async fn muster(binary: &Path, sizes: Sizes) -> Result<Vec<Measure>> {
    let start = Instant::now();
    let server = Muster::start(binary)?;
    let processes = vec![server.process()];
    measures(start, server.kubeconfig(), sizes, processes).await
}

/// Everything that is measured of servers that have just started.
async fn measures(
    start: Instant,
    kubeconfig: &Kubeconfig,
    sizes: Sizes,
    servers: Vec<&Process>,
) -> Result<Vec<Measure>> {
    let started = start.elapsed().as_secs_f64();
    let mut measures = vec![Measure::new("start", Better::Less, started, "s")];
    let load = Load::new(kubeconfig, sizes, servers.clone())?;
    measures.extend(load.run().await?);
    let memory = servers.iter().map(|server| server.resident_memory());
    let memory = memory.sum::<Result<u64>>()? as f64 / 1e6;
    measures.push(Measure::new("resident memory", Better::Less, memory, "MB"));
    Ok(measures)
}
