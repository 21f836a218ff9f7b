//! A real Debian, as its own tools install it: a root file system of the smallest set of packages,
//! made once into the cache. What `dpkg-query` says of it is what a scanner must find.

use crate::binaries;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SUITE: &str = "bookworm";
/// Raised when the root is made differently.
const VERSION: &str = "1";

/// What is made while installing and is no part of an image.
const LEFTOVERS: [&str; 3] = ["var/cache/apt", "var/lib/apt/lists", "var/log"];

/// A package as Debian lists it: name, version, architecture, source, version of the source.
pub type Line = [String; 5];

/// The root file system. Making it takes about a minute, the package debootstrap and an
/// administrator's rights.
pub fn root() -> Result<PathBuf> {
    let cache = binaries::cache().context("neither MUSTER_CACHE nor HOME is set")?;
    let parent = cache.join("debian");
    let place = parent.join(format!("{SUITE}-{VERSION}"));
    if place.is_dir() {
        return Ok(place);
    }
    fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let lock = File::create(parent.join(format!("{SUITE}.lock")))?;
    lock.lock().context("cannot take the lock")?;
    if place.is_dir() {
        return Ok(place);
    }
    let made = tempfile::Builder::new().tempdir_in(&parent)?;
    let root = made.path().join("root");
    let program = binaries::find_program("debootstrap", "debootstrap")?;
    let output = Command::new(program)
        .args(["--variant=minbase", SUITE])
        .arg(&root)
        .output()
        .context("cannot run debootstrap")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let last: Vec<&str> = said.lines().rev().take(5).collect();
    ensure!(
        output.status.success(),
        "debootstrap failed, which needs an administrator's rights: {last:?}"
    );
    for leftover in LEFTOVERS {
        let leftover = root.join(leftover);
        if leftover.exists() {
            fs::remove_dir_all(&leftover)?;
        }
        fs::create_dir_all(&leftover)?;
    }
    fs::rename(&root, &place).context("cannot keep the root file system")?;
    Ok(place)
}

/// What Debian's own tool says is installed in a root file system.
pub fn installed(root: &Path) -> Result<Vec<Line>> {
    const FORM: &str = "${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n";
    let mut admin = std::ffi::OsString::from("--admindir=");
    admin.push(root.join("var/lib/dpkg"));
    let output = Command::new("dpkg-query")
        .arg(admin)
        .args(["--show", "--showformat", FORM])
        .output()
        .context("cannot run dpkg-query; install the package dpkg")?;
    ensure!(output.status.success(), "dpkg-query failed");
    let mut lines = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        if let ["installed", rest @ ..] = parts.as_slice()
            && let Ok(rest) = <[&str; 5]>::try_from(rest)
        {
            lines.push(rest.map(str::to_owned));
        }
    }
    lines.sort();
    Ok(lines)
}

/// Writes a directory as an archive, the same bytes for the same files.
pub fn archive(directory: &Path) -> Result<Child> {
    Command::new("tar")
        .args(["--sort=name", "--mtime=@0", "--numeric-owner", "-cf", "-"])
        .arg("-C")
        .arg(directory)
        .arg(".")
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run tar")
}
