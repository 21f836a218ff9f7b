//! `cargo xtask bench scan`: the same images and the same vulnerability data through Muster, Trivy
//! and, without the data, Syft, each a process of its own; beside them what the bytes
//! alone cost. Every figure is of this one run.

mod images;
mod limit;
mod peers;

use anyhow::{Context, Result, bail, ensure};
use limit::Limit;
use muster_testkit::bolt::{self, Put};
use muster_testkit::debian;
use muster_testkit::measure::{Measured, measure};
use peers::Peer;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// How often each is run; the quickest counts, since others only ever take time away.
const RUNS: usize = 3;

/// What one tool took of one task.
struct Row {
    tool: String,
    task: &'static str,
    taken: Vec<Measured>,
}

impl Row {
    fn wall(&self) -> Duration {
        self.taken
            .iter()
            .map(|one| one.wall)
            .min()
            .unwrap_or_default()
    }

    fn processor(&self) -> Duration {
        self.taken
            .iter()
            .map(|one| one.processor)
            .min()
            .unwrap_or_default()
    }

    fn peak(&self) -> u64 {
        self.taken
            .iter()
            .map(|one| one.peak)
            .max()
            .unwrap_or_default()
    }
}

/// What there is to measure.
const PARTS: [&str; 3] = ["distribution", "application", "family"];

/// Measures the parts that are named, or all.
pub(crate) fn run(parts: &[&str]) -> Result<()> {
    if let Some(other) = parts.iter().find(|part| !PARTS.contains(part)) {
        bail!("{other:?} is not one of {}", PARTS.join(", "));
    }
    let is_wanted = |part: &str| parts.is_empty() || parts.contains(&part);
    let muster = super::build()?;
    let images = images::images()?;
    let data = tempfile::tempdir()?;
    vulnerability_data(data.path())?;
    let peers = peers::all(data.path())?;
    let bench = Bench {
        muster,
        data,
        peers,
    };
    for (name, layout) in [
        ("distribution", &images.distribution),
        ("application", &images.application),
    ] {
        if is_wanted(name) {
            bench.image(name, layout)?;
        }
    }
    if is_wanted("family") {
        bench.family(&images.family)?;
    }
    Ok(())
}

struct Bench {
    muster: PathBuf,
    data: TempDir,
    peers: Vec<Peer>,
}

impl Bench {
    fn muster(&self, cache: &Path, targets: &[&Path]) -> Command {
        let mut command = Command::new(&self.muster);
        command
            .args(["scan", "--offline", "--quiet", "-o", "json", "--cache"])
            .arg(cache)
            .arg("--database")
            .arg(self.data.path())
            .args(targets);
        command
    }

    /// One image, by everybody: without and with what earlier scans left.
    fn image(&self, name: &str, layout: &Path) -> Result<()> {
        let limit = limit::limit(layout)?;
        let mut rows = Vec::new();
        let (mut cold, mut warm, mut bare) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let cache = tempfile::tempdir()?;
            let command = self.muster(cache.path(), &[layout]);
            cold.push(done(&command)?);
            warm.push(done(&command)?);
        }
        let bill = tempfile::Builder::new().suffix(".json").tempfile()?;
        let mut command = Command::new(&self.muster);
        command
            .args(["sbom", "--offline", "--quiet", "--cache", "none"])
            .arg(layout);
        std::fs::write(bill.path(), done(&command)?.stdout)?;
        for _ in 0..RUNS {
            bare.push(done(&self.muster(Path::new("none"), &[bill.path()]))?);
        }
        let ours = |task, taken| Row {
            tool: "muster".into(),
            task,
            taken,
        };
        rows.push(ours("cold", cold));
        rows.push(ours("layers known", warm));
        rows.push(ours("bill known", bare));
        for peer in &self.peers {
            rows.extend(peer.image(layout, RUNS)?);
        }
        print(name, &limit, &rows);
        Ok(())
    }

    /// Ten images that share layers, by one command each.
    fn family(&self, family: &[PathBuf]) -> Result<()> {
        let mut rows = Vec::new();
        let cache = tempfile::tempdir()?;
        let targets: Vec<&Path> = family.iter().map(PathBuf::as_path).collect();
        rows.push(Row {
            tool: "muster".into(),
            task: "cold, one command",
            taken: vec![done(&self.muster(cache.path(), &targets))?],
        });
        rows.push(Row {
            tool: "muster".into(),
            task: "layers known",
            taken: vec![done(&self.muster(cache.path(), &targets))?],
        });
        for peer in &self.peers {
            rows.extend(peer.family(family)?);
        }
        let mut limit = Limit::default();
        if let Some(first) = family.first() {
            limit = limit::limit(first)?;
        }
        print(
            "family of ten (the limit is that of one member)",
            &limit,
            &rows,
        );
        Ok(())
    }
}

/// Runs a tool, which must succeed.
fn done(command: &Command) -> Result<Measured> {
    let measured = measure(command)?;
    ensure!(
        measured.status.success(),
        "{command:?} failed: {}",
        measured.stderr
    );
    Ok(measured)
}

fn print(name: &str, limit: &Limit, rows: &[Row]) {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let seconds = limit.time.as_secs_f64();
    eprintln!(
        "\n{name}: {:.0} MB compressed, {:.0} MB inflated; inflating and hashing alone takes {seconds:.2} s of one core ({:.0} MB/s)",
        megabytes(limit.compressed),
        megabytes(limit.inflated),
        megabytes(limit.inflated) / seconds,
    );
    eprintln!(
        "{:28} {:20} {:>9} {:>10} {:>9} {:>9} {:>8}",
        "tool", "task", "wall s", "CPU s", "peak MB", "MB/s/core", "limit x"
    );
    let best = rows.iter().find(|row| row.tool == "muster").map(Row::wall);
    for row in rows {
        let processor = row.processor().as_secs_f64();
        eprintln!(
            "{:28} {:20} {:>9.3} {:>10.3} {:>9.0} {:>9.0} {:>8.2}{}",
            row.tool,
            row.task,
            row.wall().as_secs_f64(),
            processor,
            megabytes(row.peak()),
            megabytes(limit.inflated) / processor,
            processor / seconds,
            match best {
                Some(best) if row.tool != "muster" => {
                    format!(
                        "  {:.1} times as long as muster cold",
                        row.wall().as_secs_f64() / best.as_secs_f64()
                    )
                }
                _ => String::new(),
            },
        );
    }
}

/// Advisories about every package of the distribution, a few that hit and many that do not, in a
/// database of the published form: about as large as what a scan of one release looks at.
fn vulnerability_data(directory: &Path) -> Result<()> {
    let root = debian::root().context("making a Debian")?;
    let source = json!({"ID": "debian", "Name": "Debian", "URL": "https://example.org"});
    let mut puts = vec![Put::text(&["data-source"], "debian 12", source.to_string())];
    let mut number = 0;
    for [_, _, _, source, _] in debian::installed(&root)? {
        for turn in 0..40 {
            number += 1;
            let id = format!("CVE-2026-{number:05}");
            let fixed = if turn % 10 == 0 { "999:1" } else { "0" };
            let advisory = json!({"FixedVersion": fixed});
            puts.push(Put::text(
                &["debian 12", &source],
                &id,
                advisory.to_string(),
            ));
            let about = json!({"Title": "a flaw", "Description": "It is described. ".repeat(40), "VendorSeverity": {"nvd": turn % 4 + 1}});
            puts.push(Put::text(&["vulnerability"], &id, about.to_string()));
        }
    }
    bolt::write(&directory.join("trivy.db"), &puts)?;
    let metadata = json!({
        "Version": 2, "NextUpdate": "2036-01-03T00:00:00Z", "UpdatedAt": "2026-01-02T03:04:05Z", "DownloadedAt": "2026-01-02T03:04:05Z",
    });
    Ok(std::fs::write(
        directory.join("metadata.json"),
        metadata.to_string(),
    )?)
}
