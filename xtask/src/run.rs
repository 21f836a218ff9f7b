//! Running other programs: each is named before it runs, and its failure is ours.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// Runs a program in the root of the checkout; an exit status other than 0 is an error.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let line = format!("{program} {}", arguments.join(" "));
    eprintln!("$ {line}");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    // Cargo tells us about our own package, and passing that on would have build scripts that look
    // at it, and all that depends on them, built anew for every checkout.
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if told {
            command.env_remove(name);
        }
    }
    let status = command
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
