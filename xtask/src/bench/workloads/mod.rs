//! `cargo xtask bench workloads`: a large cluster looked at from outside. How long it takes from the
//! start to a report for every workload, how much memory and how many requests; and then what one pod
//! that runs another image costs, in a small cluster and in a large one.

mod population;
mod server;

use super::{build, runtime};
use anyhow::{Context, Result, bail, ensure};
use http::Method;
use muster_testkit::http::Request;
use muster_testkit::muster::Muster;
use muster_testkit::process::Process;
use population::{PODS, Size, WORKLOADS, digest, image_of, namespace, pod, populate, status, tell};
use serde_json::{Value, json};
use server::{Server, says};
use std::path::Path;
use std::time::{Duration, Instant};

const NAMESPACES: usize = 2_000;
const SMALL: usize = 100;
/// How many pods are changed, one after the other.
const CHANGES: usize = 9;
const LIMIT: Duration = Duration::from_secs(3600);
const LOOK: Duration = Duration::from_millis(200);
const MEGABYTE: f64 = 1e6;

/// What is measured.
struct Options {
    namespaces: usize,
    /// One process is the cluster too.
    embedded: bool,
    /// Where findings are kept, if not beside the workloads.
    artifacts: Option<&'static str>,
}

pub(crate) fn run(options: &[&str]) -> Result<()> {
    let mut wanted = Options {
        namespaces: NAMESPACES,
        embedded: false,
        artifacts: None,
    };
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "--namespaces" => {
                let number = words.next().context("--namespaces wants a number")?;
                wanted.namespaces = number.parse().context("--namespaces wants a number")?;
            }
            "--embedded" => wanted.embedded = true,
            "--together" => wanted.artifacts = Some("artifacts"),
            other => {
                bail!("unknown option {other}; there are --namespaces, --embedded and --together")
            }
        }
    }
    ensure!(
        wanted.namespaces > 1,
        "there must be two namespaces at least"
    );
    let binary = build()?;
    runtime()?.block_on(measure_all(&binary, &wanted))
}

async fn measure_all(binary: &Path, options: &Options) -> Result<()> {
    let mut sizes = vec![SMALL.min(options.namespaces), options.namespaces];
    sizes.dedup();
    let whole = Size {
        namespaces: options.namespaces,
    };
    let (mut made, mut lines) = (0, Vec::new());
    let mut cluster = start_cluster(binary, options)?;
    for namespaces in sizes {
        if options.embedded && made > 0 {
            (cluster, made) = (start_cluster(binary, options)?, 0);
        }
        let size = Size { namespaces };
        eprintln!(
            "making {} pods of {} workloads",
            size.pods(),
            size.workloads()
        );
        let observed = Server::new(cluster.kubeconfig())?;
        // The images are those of the whole cluster, so that the small one is a part of it.
        populate(&observed.client, whole, made..namespaces).await?;
        made = namespaces;
        let line = match options.embedded {
            true => {
                let before = observed.answered().await?;
                let start = Instant::now();
                configure(&observed, options).await?;
                let look = Look {
                    process: cluster.process(),
                    home: &observed,
                    cluster: &observed,
                    whole,
                    size,
                };
                look.measure(start, [before, before]).await?
            }
            false => {
                let mut home = prepare(binary, &cluster, options).await?;
                let before = observed.answered().await?;
                let start = Instant::now();
                home.restart()?;
                let look = Look {
                    process: home.process(),
                    home: &Server::new(home.kubeconfig())?,
                    cluster: &observed,
                    whole,
                    size,
                };
                look.measure(start, [before, 0]).await?
            }
        };
        lines.push(line);
    }
    eprintln!(
        "\n| namespaces | pods | reports | s to all reports | s to quiet | resident MB | peak MB | processor s | requests to the cluster | requests at home | one pod: ms to its report | requests |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    for line in lines {
        eprintln!("{line}");
    }
    Ok(())
}

fn start_cluster(binary: &Path, options: &Options) -> Result<Muster> {
    match options.embedded {
        true => Muster::start_with(binary, &["--db-update", "off"]),
        false => Muster::start_idle(binary),
    }
}

/// A Muster that is told how to scan and does nothing yet.
async fn prepare(binary: &Path, cluster: &Muster, options: &Options) -> Result<Muster> {
    let mut home = Muster::start_idle(binary)?;
    configure(&Server::new(home.kubeconfig())?, options).await?;
    home.terminate()?;
    let kubeconfig = cluster.kubeconfig_path();
    let kubeconfig = kubeconfig.to_string_lossy();
    home.instruct(&["--db-update", "off", "--kubeconfig", &kubeconfig]);
    Ok(home)
}

/// Turns workload scanning on; the registries are not there, so nothing is pulled.
async fn configure(home: &Server, options: &Options) -> Result<()> {
    let mut spec = json!({"scanOnChange": false});
    if let Some(artifacts) = options.artifacts {
        let space =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": artifacts}});
        create(home, "/api/v1/namespaces", &space).await?;
        spec["artifactsNamespace"] = json!(artifacts);
    }
    let group = "sbomscanner.kubewarden.io/v1alpha1";
    let object = json!({
        "apiVersion": group, "kind": "WorkloadScanConfiguration", "metadata": {"name": "default"},
        "spec": spec,
    });
    let path = format!("/apis/{group}/workloadscanconfigurations");
    create(home, &path, &object).await
}

async fn create(server: &Server, path: &str, object: &Value) -> Result<()> {
    server.note();
    let request = Request::new(Method::POST, path);
    let request = request.body("application/json", object.to_string())?;
    server.client.skim(request).await.map(drop)
}

/// A cluster that is looked at, and who looks.
struct Look<'a> {
    process: &'a Process,
    home: &'a Server,
    cluster: &'a Server,
    whole: Size,
    size: Size,
}

impl Look<'_> {
    /// Measures everything, from the start on; `before` is what the cluster and the home had answered
    /// then.
    async fn measure(&self, start: Instant, before: [u64; 2]) -> Result<String> {
        let workloads = self.size.workloads();
        let mut said = 0;
        loop {
            let reports = self.home.reports().await?;
            if reports >= workloads {
                break;
            }
            ensure!(
                start.elapsed() < LIMIT,
                "{reports} of {workloads} have a report"
            );
            if reports >= said + 1000 {
                eprintln!("    {reports} of {workloads} have a report");
                said = reports;
            }
            tokio::time::sleep(LOOK).await;
        }
        let reported = start.elapsed().as_secs_f64();
        eprintln!("  all reports after {reported:.1} s");
        let (at_home, last) = self.home.quiet().await?;
        let quiet = last.duration_since(start).as_secs_f64();
        let (there, _) = self.cluster.quiet().await?;
        let resident = self.process.resident_memory()? as f64 / MEGABYTE;
        let peak = self.process.peak_memory()? as f64 / MEGABYTE;
        let processor = self.process.processor_seconds()?;
        let (milliseconds, requests) = self.changes().await?;
        Ok(format!(
            "| {} | {} | {workloads} | {reported:.1} | {quiet:.1} | {resident:.0} | {peak:.0} | {processor:.1} | {} | {} | {milliseconds:.0} | {requests} |",
            self.size.namespaces,
            self.size.pods(),
            there.saturating_sub(before[0]),
            at_home.saturating_sub(before[1]),
        ))
    }

    /// Has pods run another image, one after the other; gives the median of how long it took until
    /// the report said so, and the fewest requests that there were in all.
    async fn changes(&self) -> Result<(f64, u64)> {
        let (mut times, mut counts) = (Vec::new(), Vec::new());
        for round in 1..=CHANGES {
            let space = (round * 37) % self.size.namespaces;
            let workload = round % WORKLOADS;
            let place = namespace(space);
            let mut watch = self.home.watch(&place).await?;
            let before = self.requests().await?;
            // Another one than any smaller size has changed it to.
            let build = round + self.size.namespaces;
            let status = status(self.whole, space, workload, build);
            let start = Instant::now();
            self.cluster.note();
            let pod = pod(workload, round % PODS);
            tell(&self.cluster.client, &place, &pod, &status).await?;
            let digest = digest(image_of(self.whole, space, workload), build);
            says(&mut watch, &digest).await?;
            let took = start.elapsed().as_secs_f64() * 1000.0;
            let count = self.requests().await?.saturating_sub(before);
            eprintln!("  a pod of {place} changed: {took:.0} ms, {count} requests");
            times.push(took);
            counts.push(count);
        }
        times.sort_by(f64::total_cmp);
        counts.sort_unstable();
        // What Registries ask on their own meanwhile counts too, so the fewest are nearest the truth.
        Ok((times[CHANGES / 2], counts[0]))
    }

    /// How many requests there were, once it is quiet.
    async fn requests(&self) -> Result<u64> {
        let (home, _) = self.home.quiet().await?;
        match std::ptr::eq(self.home, self.cluster) {
            true => Ok(home),
            false => Ok(home + self.cluster.quiet().await?.0),
        }
    }
}
