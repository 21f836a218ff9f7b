//! `cargo xtask bench apiserver`: what Muster's API server does in the time and memory that
//! kube-apiserver and etcd need for the same, one after the other on the same machine, with the
//! same client, the same objects and the same durability: both sync every acknowledged write.

mod load;
mod report;

use anyhow::{Context, Result};
use load::Load;
use muster_testkit::binaries;
use muster_testkit::etcd::Durability;
use muster_testkit::kubernetes::{Kubernetes, Options};
use muster_testkit::muster::Muster;
use report::{Better, Measure};
use std::path::PathBuf;
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
pub(crate) fn apiserver() -> Result<()> {
    binaries::ensure_kubernetes()?;
    crate::run::run("cargo", &["build", "--release", "--workspace", "--bins"])?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the runtime")?;
    eprintln!("kube-apiserver and etcd (synced):");
    let theirs = runtime.block_on(kubernetes(FULL))?;
    eprintln!("muster (synced):");
    let ours = runtime.block_on(muster(FULL))?;
    eprintln!();
    report::print(&ours, &theirs);
    Ok(())
}

async fn kubernetes(sizes: Sizes) -> Result<Vec<Measure>> {
    let start = Instant::now();
    let mut server = Kubernetes::start(&Options {
        durability: Durability::Synced,
        ..Options::default()
    })?;
    let started = start.elapsed();
    let mut measures = vec![Measure::new(
        "start",
        Better::Less,
        started.as_secs_f64(),
        "s",
    )];
    let mut load = Load::new(server.kubeconfig(), sizes)?;
    measures.extend(load.run().await?);
    let memory = server.server().resident_memory()? + server.etcd().process().resident_memory()?;
    measures.push(Measure::new(
        "resident memory",
        Better::Less,
        memory as f64 / 1e6,
        "MB",
    ));
    Ok(measures)
}

async fn muster(sizes: Sizes) -> Result<Vec<Measure>> {
    let start = Instant::now();
    let mut server = Muster::start(binary()?)?;
    let started = start.elapsed();
    let mut measures = vec![Measure::new(
        "start",
        Better::Less,
        started.as_secs_f64(),
        "s",
    )];
    let mut load = Load::new(server.kubeconfig(), sizes)?;
    measures.extend(load.run().await?);
    let memory = server.process().resident_memory()?;
    measures.push(Measure::new(
        "resident memory",
        Better::Less,
        memory as f64 / 1e6,
        "MB",
    ));
    Ok(measures)
}

/// The binary that cargo has just built beside us.
fn binary() -> Result<PathBuf> {
    let own = std::env::current_exe().context("asking where we are")?;
    Ok(own.with_file_name("muster"))
}
