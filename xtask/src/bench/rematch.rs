//! Stored bills matched again with new data, as after every update of the database.

use anyhow::{Context, Result, anyhow};
use muster_scan::image::Component;
use muster_scan::matching::batch::Batch;
use muster_scan::matching::index::{Index, keys};
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package, Source};
use muster_scan::sbom::{Bill, Subject, spdx};
use muster_scan::vulnerability::trivy_db::TrivyDatabase;
use muster_testkit::bolt::{Put, write};
use serde_json::json;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BILLS: usize = 10_000;
const PACKAGES: usize = 300;
/// How many packages there are in the world that the bills are drawn from, and advisories of each.
const NAMES: usize = 4_000;
const ADVISORIES: usize = 12;

/// Numbers that look drawn by lot and are the same every time.
struct Lot(u64);

impl Lot {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

pub(crate) fn run() -> Result<()> {
    let directory = tempfile::tempdir()?;
    eprintln!("writing a database and {BILLS} bills of {PACKAGES} packages");
    database(directory.path(), 0)?;
    let mut lot = Lot(0x6d75_7374_6572);
    let bills: Vec<Bill> = (0..BILLS).map(|number| bill(number, &mut lot)).collect();
    let stored = spread(&bills, |bill| Ok(spdx::write(bill)?))?.1;
    let bytes: usize = stored.iter().map(Vec::len).sum();
    let database_of = |text| TrivyDatabase::open(directory.path(), Some(text));
    let data = database_of("first")?;

    let batch = Batch::new(&data, None);
    let (took, found) = spread(&bills, |bill| Ok(batch.find(bill)?.findings.len()))?;
    let found: usize = found.iter().sum();
    told(
        "bills in memory, matched",
        took,
        &format!("{found} findings"),
    );

    let batch = Batch::new(&data, None);
    let (took, _) = spread(&stored, |text| {
        let bill = spdx::read(text)?;
        Ok(batch.find(&bill)?.findings.len())
    })?;
    let size = format!("{} MB of SPDX", bytes / 1_000_000);
    told("stored bills, read and matched", took, &size);

    let mut index = Index::default();
    let start = Instant::now();
    for (number, bill) in bills.iter().enumerate() {
        index.insert(&number.to_string(), keys(bill, None));
    }
    index.update(&data)?;
    let text = serde_json::to_vec(&index)?;
    let (_, keys) = index.size();
    let size = format!("{keys} keys, {} MB stored", text.len() / 1_000_000);
    told("index made", start.elapsed(), &size);

    database(directory.path(), 20)?;
    let data = database_of("second")?;
    let start = Instant::now();
    let changed = index.update(&data)?;
    let touched: Vec<usize> = index
        .touched(&changed)
        .iter()
        .map(|name| name.parse().context("numbers name the bills"))
        .collect::<Result<_>>()?;
    let about = format!("{} keys, {} bills touched", changed.len(), touched.len());
    told("changes found", start.elapsed(), &about);
    let batch = Batch::new(&data, None);
    let (took, _) = spread(&touched, |number| {
        let bill = spdx::read(&stored[*number])?;
        Ok(batch.find(&bill)?.findings.len())
    })?;
    told("touched bills, read and matched", took, "");
    Ok(())
}

fn told(what: &str, took: Duration, about: &str) {
    eprintln!("{what:34} {:8.2} s   {about}", took.as_secs_f64());
}

/// Does something for each of many, on all processors.
fn spread<T: Sync, R: Send>(
    items: &[T],
    each: impl Fn(&T) -> Result<R> + Sync,
) -> Result<(Duration, Vec<R>)> {
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    let (next, start) = (AtomicUsize::new(0), Instant::now());
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let work = || {
            let mut results = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(place) else {
                    return anyhow::Ok(results);
                };
                results.push((place, each(item)?));
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| {
            let joined = thread.join();
            joined.map_err(|_| anyhow!("a worker panicked"))?
        });
        let parts: Vec<Vec<_>> = joined.collect::<Result<_>>()?;
        anyhow::Ok(parts.into_iter().flatten().collect())
    })?;
    let took = start.elapsed();
    results.sort_by_key(|(place, _)| *place);
    let results = results.into_iter().map(|(_, result)| result);
    Ok((took, results.collect()))
}

/// Advisories of Debian and npm; `changed` packages have other ones than without.
fn database(directory: &std::path::Path, changed: usize) -> Result<()> {
    let source = |id: &str| json!({"ID": id, "Name": id}).to_string();
    let (debian, npm) = ("debian 12", "npm::GitHub Security Advisory Npm");
    let mut puts = vec![
        Put::text(&["data-source"], debian, source("debian")),
        Put::text(&["data-source"], npm, source("ghsa")),
    ];
    let mut lot = Lot(0x64_6174_6162);
    for name in 0..NAMES {
        for number in 0..lot.below(ADVISORIES * 2) {
            let id = format!("CVE-2025-{:05}", name * ADVISORIES * 2 + number);
            let fixed = lot.below(40) + usize::from(name < changed);
            let value = json!({"FixedVersion": format!("1.{fixed}.0-1")});
            puts.push(Put::text(
                &[debian, &format!("source{name}")],
                &id,
                value.to_string(),
            ));
            let range = json!({"VulnerableVersions": [format!(">= 1.0.0, < 1.{fixed}.0")]});
            puts.push(Put::text(
                &[npm, &format!("module{name}")],
                &id,
                range.to_string(),
            ));
            let about = json!({"Title": "A hole", "Severity": "HIGH",
                "VendorSeverity": {"nvd": lot.below(5)}, "References": ["https://example.org"]});
            puts.push(Put::text(&["vulnerability"], &id, about.to_string()));
        }
    }
    let file = directory.join("next.db");
    write(&file, &puts)?;
    std::fs::rename(file, directory.join("trivy.db"))?;
    let about = json!({"Version": 2, "UpdatedAt": "2026-01-02T00:00:00Z"});
    Ok(std::fs::write(
        directory.join("metadata.json"),
        about.to_string(),
    )?)
}

fn bill(number: usize, lot: &mut Lot) -> Bill {
    let component = |detector, package, path: &str| Component {
        detector,
        package,
        path: path.into(),
        layer: None,
    };
    let mut components = Vec::new();
    for place in 0..PACKAGES {
        let (name, minor) = (lot.below(NAMES), lot.below(40));
        components.push(if place % 3 == 0 {
            let version = format!("1.{minor}.0");
            let package = Package::new(format!("module{name}"), version);
            component(Detector::NodePackage, package, "app/package.json")
        } else {
            let version = format!("1.{minor}.0-1");
            let source = Source {
                name: format!("source{name}"),
                version: version.clone(),
            };
            let package = Package {
                source: Some(source),
                architecture: Some("amd64".into()),
                ..Package::new(format!("package{name}"), version)
            };
            component(Detector::Dpkg, package, "var/lib/dpkg/status")
        });
    }
    // As the components of an image are.
    components.sort();
    Bill {
        subject: Subject {
            name: format!("example.org/app:{number}"),
            digest: format!("sha256:{number:064x}"),
            created: None,
        },
        os: Some(Os::new(Family::Debian, "12.7")),
        components,
        ..Bill::default()
    }
}
