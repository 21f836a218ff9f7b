//! The Python client, whose watches resume by themselves once and then hand the 410 to the user.

use anyhow::{Context, Result, ensure};
use muster_testkit::binaries;
use muster_testkit::muster::Muster;
use std::path::Path;
use std::process::Command;

/// Runs one story of `stories.py` against a server.
fn tell(muster: &Muster, story: &str) -> Result<()> {
    let cache = binaries::cache().context("neither MUSTER_CACHE nor HOME is set")?;
    let python = cache.join("python/bin/python3");
    ensure!(
        python.exists(),
        "Python's Kubernetes client is not installed: run `cargo xtask test`, which installs it"
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients/stories.py");
    let output = Command::new(python)
        .arg(script)
        .arg(story)
        .env("KUBECONFIG", muster.kubeconfig_path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()?;
    ensure!(
        output.status.success(),
        "{story}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[test]
fn the_dynamic_client_reads_writes_and_pages_through_our_kinds() -> Result<()> {
    tell(
        &Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?,
        "dynamic",
    )
}

#[test]
fn the_typed_client_knows_the_built_in_kinds() -> Result<()> {
    tell(&Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?, "typed")
}

#[test]
fn a_watch_resumes_where_it_was() -> Result<()> {
    tell(&Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?, "resume")
}

#[test]
fn what_is_forgotten_is_gone_and_a_new_list_helps() -> Result<()> {
    let forgetful = [
        "--scanning",
        "off",
        "--history-seconds=0",
        "--history-events=1",
        "--upkeep-seconds=1",
    ];
    let muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &forgetful)?;
    tell(&muster, "gone")
}
