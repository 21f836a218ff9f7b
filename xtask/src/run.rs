//! Running other programs: each is named before it runs, and its failure is ours.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Runs a program in the root of the checkout; an exit status other than 0 is an error.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let line = format!("{program} {}", arguments.join(" "));
    eprintln!("$ {line}");
    let status = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .status()
        .with_context(|| format!("starting {program}"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// The root of the checkout. Cargo names it to what it runs, so that a binary built in another
/// checkout, from a shared cache, works on this one.
pub(crate) fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    own.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into())
        .join("..")
}
