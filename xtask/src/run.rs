//! Running other programs: each is named before it runs, and its failure is ours.

use anyhow::{Context, Result, bail};
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

/// The root of the checkout.
pub(crate) fn root() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/..")
}
