//! `cargo xtask test`: everything that must hold before a change lands. Kubernetes is built beside
//! the compiler's work, since both take minutes on a new machine and none on an old one.

use crate::run::run;
use crate::{dependencies, install};
use anyhow::{Result, anyhow};
use muster_testkit::{binaries, definitions};

/// One profile for everything, so that dependencies are built once.
const PROFILE: &str = "--release";

/// Installs, checks and tests; `filter` narrows the tests for people.
pub(crate) fn all(filter: &[&str]) -> Result<()> {
    install::packages()?;
    let kubernetes = std::thread::spawn(|| {
        binaries::ensure_kubernetes()?;
        binaries::ensure_helm()?;
        definitions::ensure()
    });
    check()?;
    run(
        "cargo",
        &["build", PROFILE, "--workspace", "--all-targets", "--locked"],
    )?;
    kubernetes
        .join()
        .map_err(|_| anyhow!("building Kubernetes panicked"))??;
    install::python()?;
    let mut arguments = vec!["test", PROFILE, "--workspace", "--locked", "--no-fail-fast"];
    if !filter.is_empty() {
        arguments.push("--");
        arguments.extend(filter);
    }
    run("cargo", &arguments)
}

/// The quick part.
pub(crate) fn check() -> Result<()> {
    dependencies::check()?;
    run("cargo", &["fmt", "--all", "--check"])?;
    run(
        "cargo",
        &[
            "clippy",
            PROFILE,
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    )
}
