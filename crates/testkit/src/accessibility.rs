//! Whether people can use a page with a keyboard, a screen reader, or tired eyes: what axe-core finds wrong
//! with it. The program is fetched once with npm, verified, and kept in the cache; it is no part of this
//! repository.

use crate::binaries;
use crate::browser::Browser;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "4.14.0";
/// npm's hash of the package.
const INTEGRITY: &str = "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==";
/// How to get what is missing.
const MISSING: &str = "npm cannot be run; install it with `apt-get install npm`";

/// Asks axe, and says of every barrier what it is and where.
const ASK: &str = "
    return axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map(
        (one) => one.id + ' (' + one.help + '): ' + one.nodes.map((node) => node.target.join(' ')).join(', ')));";

/// What stands in people's way on the page that a browser shows.
pub async fn barriers(browser: &Browser) -> Result<Vec<String>> {
    let program = fs::read_to_string(ensure()?)?;
    let found = browser.run(&format!("{program};{ASK}")).await?;
    let found = found.as_array().context("what axe says")?;
    let told = found
        .iter()
        .map(|one| one.as_str().unwrap_or("?").to_owned());
    Ok(told.collect())
}

/// Where axe is; it is fetched if it is not there.
fn ensure() -> Result<PathBuf> {
    let cache = binaries::cache().context("neither MUSTER_CACHE nor HOME is set")?;
    let cache = cache.join("axe");
    let place = cache.join(format!("{VERSION}.js"));
    if place.is_file() {
        return Ok(place);
    }
    fs::create_dir_all(&cache)?;
    // A second one waits for the first.
    let lock = File::create(cache.join("lock"))?;
    lock.lock().context("cannot take the lock")?;
    if !place.is_file() {
        let directory = tempfile::tempdir_in(&cache)?;
        let archive = fetch(directory.path())?;
        let mut tar = Command::new("tar");
        tar.arg("-xzf")
            .arg(&archive)
            .arg("-C")
            .arg(directory.path());
        let status = tar.arg("package/axe.min.js").status()?;
        ensure!(status.success(), "cannot unpack {}", archive.display());
        fs::rename(directory.path().join("package/axe.min.js"), &place)?;
    }
    Ok(place)
}

/// Has npm fetch the package, which must be the one that is meant.
fn fetch(directory: &Path) -> Result<PathBuf> {
    let wanted = format!("axe-core@{VERSION}");
    let output = Command::new("npm")
        .args(["pack", "--json", &wanted])
        .current_dir(directory)
        .output()
        .context(MISSING)?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{wanted}: {complaint}");
    let told: Value = serde_json::from_slice(&output.stdout).context("what npm says")?;
    let packed = &told[0];
    ensure!(
        packed["integrity"] == INTEGRITY,
        "{wanted} is another: {told}"
    );
    let name = packed["filename"].as_str().context("a file")?;
    Ok(directory.join(name))
}
