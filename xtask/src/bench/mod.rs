//! What is measured rather than tested: timings are told and never asserted.

pub(crate) mod apiserver;
pub(crate) mod audit;
pub(crate) mod hostile;
pub(crate) mod pages;
mod parallel;
pub(crate) mod pipeline;
pub(crate) mod rego;
pub(crate) mod rematch;
mod request;
pub(crate) mod scan;
pub(crate) mod storage;
pub(crate) mod workloads;

use anyhow::{Context, Result};
use std::path::PathBuf;
use tokio::runtime::Runtime;

/// Builds the binary that is measured and gives its path: cargo puts it beside us.
fn build() -> Result<PathBuf> {
    let arguments = ["build", "--release", "--workspace", "--bins", "--locked"];
    crate::run::run("cargo", &arguments)?;
    let own = std::env::current_exe().context("asking where we are")?;
    Ok(own.with_file_name("muster"))
}

fn runtime() -> Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().context("starting the runtime")
}
