//! `cargo xtask compare trivy`: the same images and the same data through the real Trivy and
//! through ours. What they find must be the same, but for the differences that are known and
//! explained (`docs/accuracy.md`). `cargo xtask compare opa` is in [`opa`].

mod data;
mod images;
mod known;
pub(crate) mod opa;
mod rpm;

use crate::peers;
use anyhow::{Context, Result, bail, ensure};
use images::Image;
use jiff::Timestamp;
use muster_scan::matching::Unmatched;
use muster_scan::sbom::{Bill, Subject};
use muster_scan::vulnerability::trivy_db::TrivyDatabase;
use muster_scan::{image, layer, limits::Limits, matching};
use muster_testkit::bolt::write;
use muster_testkit::layout::Layout;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// One vulnerability of one package, as both sides tell it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub package: String,
    pub id: String,
    pub installed: String,
    pub fixed: String,
    pub severity: String,
    pub source: String,
    pub status: String,
}

impl Row {
    fn line(&self) -> String {
        let Row {
            package,
            id,
            installed,
            fixed,
            severity,
            source,
            status,
        } = self;
        format!("{id} {package} {installed} [{fixed}] {status} {severity} {source:?}")
    }
}

/// Compares all images, or those that are named.
pub(crate) fn trivy(names: &[&str]) -> Result<()> {
    let trivy = peers::TRIVY.ensure()?;
    let work = tempfile::tempdir()?;
    let mut unexplained = 0;
    eprintln!(
        "{:14} {:>9} {:>9} {:>10} {:>12}",
        "image", "packages", "findings", "explained", "unexplained"
    );
    for image in images::all(work.path())? {
        if names.is_empty() || names.contains(&image.name) {
            unexplained += compare(&image, &trivy, work.path())?;
        }
    }
    ensure!(
        unexplained == 0,
        "{unexplained} differences that nobody explains"
    );
    Ok(())
}

/// Compares one image and tells how many differences are not explained.
fn compare(image: &Image, trivy: &Path, work: &Path) -> Result<usize> {
    let place = work.join(image.name);
    let (root, cache) = (place.join("root"), place.join("cache"));
    image.write(&root)?;
    let archive = place.join("layer.tar");
    run(Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "-C"])
        .arg(&root)
        .arg("-cf")
        .arg(&archive)
        .arg("."))?;
    let bill = ours(&archive)?;
    let advisories = data::advisories(image, &bill);
    fs::create_dir_all(cache.join("db"))?;
    write(&cache.join("db/trivy.db"), &advisories)?;
    let about = json!({"Version": 2, "NextUpdate": "2100-01-01T00:00:00Z",
        "UpdatedAt": "2026-01-02T00:00:00Z", "DownloadedAt": "2026-01-02T00:00:00Z"});
    fs::write(cache.join("db/metadata.json"), about.to_string())?;
    images::java_database(&cache.join("java-db"))?;

    let layout = Layout::create(&place.join("image"))?;
    let layer = layout.layer(File::open(&archive)?)?;
    layout.image("latest", &[layer])?;
    let theirs = theirs(trivy, &place.join("image"), &cache)?;
    let database = TrivyDatabase::open(&cache.join("db"), None)?;
    let found = matching::find_at(&bill, &database, Timestamp::now())?;
    let ours: BTreeSet<Row> = found
        .findings
        .iter()
        .map(|finding| {
            let package = &bill.components[finding.component].package;
            Row {
                package: package.name.clone(),
                id: finding.id.clone(),
                installed: package.version.clone(),
                fixed: finding.fixed_text(),
                severity: finding.severity.name().into(),
                source: finding.severity_source.clone(),
                status: finding.status.name().into(),
            }
        })
        .collect();
    Ok(tell(image, &bill, &found.unmatched, &ours, &theirs))
}

fn tell(
    image: &Image,
    bill: &Bill,
    unmatched: &[Unmatched],
    ours: &BTreeSet<Row>,
    theirs: &(BTreeSet<Row>, BTreeSet<String>),
) -> usize {
    let (theirs, packages) = theirs;
    let mut explained: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    let sides = [
        ("only ours  ", ours.difference(theirs)),
        ("only theirs", theirs.difference(ours)),
    ];
    for (side, rows) in sides {
        for row in rows {
            match known::reason(image, unmatched, row) {
                Some(reason) => *explained.entry(reason).or_default() += 1,
                None => lines.push(format!("  {side} {}", row.line())),
            }
        }
    }
    let own: BTreeSet<String> = bill
        .components
        .iter()
        .map(|one| format!("{} {}", one.package.name, one.package.version))
        .collect();
    for (side, difference) in [
        ("only ours  ", own.difference(packages)),
        ("only theirs", packages.difference(&own)),
    ] {
        for package in difference {
            match known::package(image, package) {
                Some(reason) => *explained.entry(reason).or_default() += 1,
                None => lines.push(format!("  {side} package {package}")),
            }
        }
    }
    eprintln!(
        "{:14} {:9} {:9} {:10} {:12}",
        image.name,
        own.len(),
        ours.len(),
        explained.values().sum::<usize>(),
        lines.len()
    );
    for (reason, count) in explained {
        eprintln!("  {count} times: {reason}");
    }
    for line in lines.iter().take(40) {
        eprintln!("{line}");
    }
    lines.len()
}

fn ours(archive: &Path) -> Result<Bill> {
    let read = layer::read(File::open(archive)?, &Limits::DEFAULT)?;
    let contents = image::merge([(&read.diff_id, &read.inventory)])?;
    let bill = Bill::new(Subject::default(), contents);
    for one in &bill.incomplete {
        eprintln!("  ours does not understand {}: {}", one.path, one.reason);
    }
    Ok(bill)
}

/// What Trivy finds, and the packages that it lists.
fn theirs(trivy: &Path, layout: &Path, cache: &Path) -> Result<(BTreeSet<Row>, BTreeSet<String>)> {
    let output = Command::new(trivy)
        .args([
            "image",
            "--quiet",
            "--format",
            "json",
            "--list-all-pkgs",
            "--scanners",
            "vuln",
        ])
        .args([
            "--skip-db-update",
            "--skip-java-db-update",
            "--offline-scan",
            "--skip-version-check",
        ])
        .args(["--disable-telemetry", "--timeout", "30m", "--cache-dir"])
        .arg(cache)
        .arg("--input")
        .arg(layout)
        .output()
        .context("running Trivy")?;
    if !output.status.success() {
        bail!("Trivy failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let report: Value = serde_json::from_slice(&output.stdout).context("reading Trivy's report")?;
    let (mut rows, mut packages) = (BTreeSet::new(), BTreeSet::new());
    for result in report["Results"].as_array().into_iter().flatten() {
        for package in result["Packages"].as_array().into_iter().flatten() {
            packages.insert(format!("{} {}", text(&package["Name"]), version(package)));
        }
        for found in result["Vulnerabilities"].as_array().into_iter().flatten() {
            rows.insert(Row {
                package: text(&found["PkgName"]),
                id: text(&found["VulnerabilityID"]),
                installed: text(&found["InstalledVersion"]),
                fixed: text(&found["FixedVersion"]),
                severity: text(&found["Severity"]),
                source: text(&found["SeveritySource"]),
                status: text(&found["Status"]),
            });
        }
    }
    Ok((rows, packages))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The whole version, which the list of packages has in parts.
fn version(package: &Value) -> String {
    let mut version = text(&package["Version"]);
    if let Some(release) = package["Release"].as_str() {
        version = format!("{version}-{release}");
    }
    match package["Epoch"].as_u64() {
        Some(epoch) if epoch > 0 => format!("{epoch}:{version}"),
        _ => version,
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("running {command:?}"))?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {problem}");
    Ok(())
}
