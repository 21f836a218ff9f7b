//! bbolt files written by the real Go library, to hold our reader against. The writer is built once
//! with Go into the cache, under a lock, and found there afterwards.

use crate::binaries;
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The release of the library; `bolt/go.mod` names the same. The second number is the writer's own.
const VERSION: &str = "v1.4.3-1";

/// One thing to put into a file: below a path of buckets, a key with its value, or nothing but the
/// buckets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Put {
    /// Names of the buckets, outermost first; at least one.
    pub path: Vec<Vec<u8>>,
    /// The key and its value.
    pub entry: Option<(Vec<u8>, Vec<u8>)>,
}

impl Put {
    /// A key with its value, all of it text.
    pub fn text(path: &[&str], key: &str, value: impl Into<String>) -> Self {
        Put {
            path: path.iter().map(|name| name.as_bytes().to_vec()).collect(),
            entry: Some((key.into(), value.into().into_bytes())),
        }
    }
}

/// Writes a file with the Go library.
pub fn write(file: &Path, puts: &[Put]) -> Result<()> {
    let mut writer = Command::new(ensure_writer()?)
        .arg(file)
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot run the bbolt writer")?;
    let input = writer.stdin.take().context("the writer has no input")?;
    let mut input = BufWriter::new(input);
    for put in puts {
        let path: Vec<_> = put.path.iter().map(|name| STANDARD.encode(name)).collect();
        let line = match &put.entry {
            Some((key, value)) => {
                json!({"path": path, "key": STANDARD.encode(key), "value": STANDARD.encode(value)})
            }
            None => json!({ "path": path }),
        };
        writeln!(input, "{line}")?;
    }
    drop(input.into_inner()?);
    let status = writer.wait()?;
    ensure!(status.success(), "the bbolt writer failed: {status}");
    Ok(())
}

/// Finds the writer in the cache, or builds it beside its place and renames it into it. It is a
/// real Go program with real modules, which is of use by itself.
pub fn ensure_writer() -> Result<PathBuf> {
    let cache = binaries::cache().context("neither MUSTER_CACHE nor HOME is set")?;
    let parent = cache.join("bolt");
    let place = parent.join(format!("writer-{VERSION}"));
    if place.is_file() {
        return Ok(place);
    }
    fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let lock = File::create(parent.join(format!("{VERSION}.lock")))?;
    lock.lock().context("cannot take the build lock")?;
    if place.is_file() {
        return Ok(place);
    }
    let output = tempfile::Builder::new().tempdir_in(&parent)?;
    let built = output.path().join("writer");
    let status = Command::new("go")
        .args(["build", "-trimpath", "-o"])
        .arg(&built)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("bolt"))
        .env("CGO_ENABLED", "0")
        .status()
        .context("cannot run Go, which builds the bbolt writer: install it")?;
    ensure!(
        status.success(),
        "building the bbolt writer failed: {status}"
    );
    fs::rename(&built, &place)?;
    Ok(place)
}
