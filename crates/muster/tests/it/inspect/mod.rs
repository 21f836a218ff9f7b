//! The commands that look at one thing: `muster scan`, `muster sbom` and `muster db`, as people and
//! pipelines run them.

mod archive;
mod attached;
mod data;
mod debian;
pub(crate) mod hostile;
mod parallel;
mod results;
mod targets;

use anyhow::{Context, Result, ensure};
use muster_testkit::measure::{Measured, measure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// One person's machine: vulnerability data, a cache and a working directory.
struct Desk {
    directory: TempDir,
}

impl Desk {
    /// With the data of a few vulnerabilities.
    fn new() -> Result<Desk> {
        let desk = Desk::empty()?;
        crate::scan::data(&desk.path("vulnerabilities")?)?;
        Ok(desk)
    }

    /// Without data.
    fn empty() -> Result<Desk> {
        let directory = tempfile::tempdir()?;
        Ok(Desk { directory })
    }

    /// A directory on it, which is made.
    fn path(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command
            .args(arguments)
            .env("MUSTER_DATABASE", self.path("vulnerabilities")?)
            .env("MUSTER_LAYER_CACHE", self.path("layers")?)
            .env("HOME", self.path("home")?)
            .current_dir(self.path("work")?);
        Ok(command)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.command(arguments)?.output().context("running muster")
    }

    fn measure(&self, arguments: &[&str]) -> Result<Measured> {
        measure(&self.command(arguments)?)
    }

    /// What a command that must succeed writes.
    fn told(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?} failed: {complaint}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// How a command ends, and what it says about that.
    fn refused(&self, arguments: &[&str]) -> Result<(Option<i32>, String)> {
        let output = self.run(arguments)?;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((output.status.code(), complaint))
    }
}

/// The only inspection of a result in JSON.
fn only(text: &str) -> Result<Value> {
    let result: Value = serde_json::from_str(text).with_context(|| format!("reading {text:?}"))?;
    match result["inspections"].as_array().map(Vec::as_slice) {
        Some([one]) => Ok(one.clone()),
        other => anyhow::bail!("not one inspection: {other:?}"),
    }
}

/// What was found: package, installed, fixed, vulnerability, severity.
fn found(inspection: &Value) -> BTreeSet<[String; 5]> {
    let results = inspection["report"]["results"].as_array();
    let findings = results
        .into_iter()
        .flatten()
        .filter_map(|result| result["vulnerabilities"].as_array())
        .flatten();
    findings
        .map(|finding| {
            let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            let fixed = finding["fixedVersions"][0].as_str().unwrap_or_default();
            [
                text("packageName"),
                text("installedVersion"),
                fixed.to_owned(),
                text("cve"),
                text("severity"),
            ]
        })
        .collect()
}

/// What is found in every image of these tests.
fn expected() -> BTreeSet<[String; 5]> {
    let finding = [
        "libssl3",
        "3.0.11-1~deb12u2",
        "3.0.11-1~deb12u3",
        "CVE-2024-0001",
        "CRITICAL",
    ];
    BTreeSet::from([finding.map(str::to_owned)])
}

/// Debian's package database with two packages, one of them with a flaw, as entries of an archive.
fn debian_status() -> Vec<u8> {
    let files = debian_files();
    let entries = files
        .iter()
        .map(|(path, text)| archive::file(path, text.as_bytes()));
    entries.collect::<Vec<_>>().concat()
}

fn debian_files() -> [(&'static str, String); 3] {
    let package = |name: &str, source: &str, version: &str| {
        format!(
            "Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nSource: {source}\n\
             Version: {version}\nMaintainer: Somebody <somebody@example.org>\nDescription: a package\n\n"
        )
    };
    let packages = [
        package("libssl3", "openssl", "3.0.11-1~deb12u2"),
        package("zlib1g", "zlib", "1:1.2.13.dfsg-1"),
    ];
    [
        ("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n".into()),
        ("etc/debian_version", "12.7\n".into()),
        ("var/lib/dpkg/status", packages.concat()),
    ]
}

/// A root file system with those packages.
fn write_root(root: &Path) -> Result<()> {
    for (path, text) in debian_files() {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().context("a directory")?)?;
        std::fs::write(path, text)?;
    }
    Ok(())
}
