//! A whole registry through the whole pipeline, in one process and as a cluster runs it, beside the
//! same images scanned one by one with nothing kept of their layers.

mod images;
mod queue;

use super::{build, runtime};
use anyhow::{Context, Result, bail, ensure};
use images::{BASES, data, push, repository};
use muster_testkit::installation::{self, Installation};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::measure::measure;
use muster_testkit::muster::Muster;
use muster_testkit::postgres::Postgres;
use muster_testkit::process::Process;
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const IMAGES: usize = 1_000;
/// So many of them are scanned one by one; the rest would take as long each.
const SAMPLE: usize = 50;
const LIMIT: Duration = Duration::from_secs(3600);
const MEGABYTE: f64 = 1e6;

pub(crate) fn run(options: &[&str]) -> Result<()> {
    let count = match options {
        [] => IMAGES,
        ["--small"] => IMAGES / 10,
        other => bail!("unknown options {other:?}; there is only --small"),
    };
    let binary = build()?;
    runtime()?.block_on(async {
        let vulnerabilities = tempfile::tempdir()?;
        data(vulnerabilities.path())?;
        let registry = Registry::start()?;
        eprintln!("pushing {count} images");
        let references = push(&registry, count).await?;
        let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
        let registry = Counted { proxy, count };
        eprintln!(
            "\n| what | seconds | images/s | requests/image | MB pulled | processor, s, and peak memory, MB |\n|---|---|---|---|---|---|"
        );
        let one = one_by_one(&binary, &registry, &references, vulnerabilities.path())?;
        let alone = embedded(&binary, &registry, vulnerabilities.path())?;
        let cluster = cluster(&binary, &registry)?;
        for (name, taken) in [("one process", alone), ("a cluster", cluster)] {
            eprintln!(
                "{name}: {:.1} times as many images a second as one by one, {:.3} of the bytes, {:.2} of the requests",
                taken.rate / one.rate,
                taken.bytes / one.bytes,
                taken.requests / one.requests
            );
        }
        eprintln!("\n| queue | published/s | worked off/s |\n|---|---|---|");
        queue::run().await
    })
}

/// The registry, behind a proxy that counts.
struct Counted {
    proxy: Proxy,
    count: usize,
}

/// What something took, for each image.
struct Taken {
    rate: f64,
    bytes: f64,
    requests: f64,
}

impl Counted {
    /// Does something with a number of images, and tells what it took.
    fn measure(
        &self,
        what: &str,
        images: usize,
        work: impl FnOnce() -> Result<String>,
    ) -> Result<Taken> {
        let (requests, bytes) = (self.proxy.seen().len(), self.proxy.carried());
        let start = Instant::now();
        let memory = work()?;
        let took = start.elapsed().as_secs_f64();
        let requests = (self.proxy.seen().len() - requests) as f64;
        let bytes = (self.proxy.carried() - bytes) as f64;
        let count = images as f64;
        eprintln!(
            "| {what} | {took:.1} | {:.1} | {:.2} | {:.1} | {memory} |",
            count / took,
            requests / count,
            bytes / MEGABYTE,
        );
        Ok(Taken {
            rate: count / took,
            bytes: bytes / count,
            requests: requests / count,
        })
    }

    fn manifest(&self) -> Value {
        let repositories: Vec<Value> = (0..BASES)
            .map(|number| json!({"name": repository(number)}))
            .collect();
        json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
            "metadata": {"name": "bench", "namespace": "default"},
            "spec": {
                "uri": self.proxy.host(), "catalogType": "NoCatalog", "insecure": true,
                "scanOnChange": false, "repositories": repositories,
                "discoveryJob": {"suspend": true},
            },
        })
    }

    /// Scans all images with a ScanJob, twice.
    fn scan(
        &self,
        what: &str,
        kubectl: &Kubectl,
        memory: impl Fn() -> Result<String>,
    ) -> Result<Taken> {
        let apply = |object: Value| {
            kubectl
                .succeed_with(&["apply", "-f", "-"], &object.to_string())
                .map(drop)
        };
        apply(self.manifest())?;
        let job = |name: &str| -> Result<()> {
            apply(json!({
                "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "ScanJob",
                "metadata": {"name": name, "namespace": "default"}, "spec": {"registry": "bench"},
            }))?;
            let status = wait::until(&format!("the end of ScanJob {name}"), LIMIT, || {
                let text = kubectl.succeed(&["get", "scanjob", name, "-o", "json"])?;
                let job: Value = serde_json::from_str(&text)?;
                let ended = job["status"]["completionTime"].is_string();
                Ok(ended.then(|| job["status"].clone()))
            })?;
            ensure!(status["scannedImagesCount"] == self.count, "{status}");
            Ok(())
        };
        let first = self.measure(what, self.count, || {
            job("first")?;
            memory()
        })?;
        self.measure(&format!("{what}, again"), self.count, || {
            job("second")?;
            memory()
        })?;
        Ok(first)
    }
}

/// What a process has used so far.
fn used(process: &Process) -> Result<String> {
    let (processor, peak) = (process.processor_seconds()?, process.peak_memory()?);
    let peak = peak as f64 / MEGABYTE;
    Ok(format!("{} {processor:.1} s {peak:.0} MB", process.name()))
}

fn one_by_one(
    binary: &Path,
    registry: &Counted,
    references: &[String],
    vulnerabilities: &Path,
) -> Result<Taken> {
    let step = (references.len() / SAMPLE).max(1);
    let sample: Vec<&String> = references.iter().step_by(step).collect();
    let what = format!("one by one ({} of them)", sample.len());
    registry.measure(&what, sample.len(), || {
        let (mut peak, mut processor) = (0, 0.0);
        for reference in &sample {
            let (_, path) = reference.split_once('/').context("a host")?;
            let mut command = Command::new(binary);
            command
                .args(["scan", "--insecure", "--cache", "none", "--quiet"])
                .args(["--no-update", "--database"])
                .arg(vulnerabilities)
                .args(["--output", "json"])
                .arg(format!("{}/{path}", registry.proxy.host()));
            let measured = measure(&command)?;
            ensure!(measured.status.success(), "{}", measured.stderr);
            peak = peak.max(measured.peak);
            processor += measured.processor.as_secs_f64();
        }
        let peak = peak as f64 / MEGABYTE;
        Ok(format!("{processor:.1} s {peak:.0} MB"))
    })
}

fn embedded(binary: &Path, registry: &Counted, vulnerabilities: &Path) -> Result<Taken> {
    let directory = vulnerabilities.to_string_lossy();
    let muster = Muster::start_with(binary, &["--database", &directory])?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    registry.scan("muster up", &kubectl, || used(muster.process()))
}

fn cluster(binary: &Path, registry: &Counted) -> Result<Taken> {
    let postgres = Postgres::shared()?;
    let database = postgres.url(&postgres.database()?);
    let options = installation::Options::on(database);
    let installation = Installation::start(binary, &options)?;
    data(&installation.data())?;
    let kubectl = installation.kubectl()?;
    registry.scan("a cluster of two workers", &kubectl, || {
        let storage = installation.cluster.replicas().iter();
        let storage = storage.filter_map(|replica| replica.running());
        let roles = installation.operators.iter().chain(&installation.workers);
        let told: Vec<String> = roles.chain(storage).map(used).collect::<Result<_>>()?;
        Ok(told.join(", "))
    })
}
