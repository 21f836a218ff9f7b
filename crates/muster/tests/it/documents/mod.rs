//! The documentation is true: every link leads somewhere, every manifest is accepted by a real server,
//! every command is run and says what the page shows, every quoted message is one that the code prints,
//! and nothing that the binary serves is left out. What is not executed is listed in [`commands`].

mod commands;
mod console;
mod desk;
mod links;
mod manifests;
mod markdown;
mod messages;
mod named;
mod site;
mod stages;

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the pages are, and everything they speak of.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The code of all crates, without tests, which may quote anything.
fn sources() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates"))? {
        let source = entry?.path().join("src");
        if source.is_dir() {
            collect(&source, &mut found)?;
        }
    }
    Ok(found)
}

fn collect(directory: &Path, found: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|one| one == "rs") {
            let text = fs::read_to_string(&path)?;
            let printed = text
                .split("#[cfg(test)]\nmod tests {")
                .next()
                .unwrap_or_default();
            found.push(printed.to_owned());
        }
    }
    Ok(())
}
