//! `cargo xtask bench audit`: a large cluster under twenty policies. How long the first audit takes,
//! what one costs when nothing has changed, and how soon a changed policy and a changed resource are
//! told; beside it what an evaluation costs by itself, and what it costs to ask a policy server for it.

pub(super) mod cluster;
mod counts;
mod policies;
mod speed;
mod trip;

use super::request::{merge, post};
use super::{build, runtime};
use anyhow::{Context, Result, bail, ensure};
use counts::{Counts, settle};
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::muster::Muster;
use muster_testkit::watch::{Next, Watch};
use policies::Sample;
use speed::Speed;
use std::path::Path;
use std::time::{Duration, Instant};
use trip::{Connection, Trips};

const RESOURCES: usize = 50_000;
const SMALL: usize = 2_000;
/// How many resources are changed, one after the other.
const CHANGES: usize = 9;
/// How long each policy is asked by itself, and the policy server.
const EACH: Duration = Duration::from_secs(1);
const ASKED: Duration = Duration::from_secs(6);
/// How many ask the policy server at once.
const ASKERS: usize = 32;
const PATIENCE: Duration = Duration::from_secs(60);
const MEGABYTE: f64 = 1e6;
const POLICIES: &str = "/apis/policies.kubewarden.io/v1/clusteradmissionpolicies";
const REPORTS: &str = "/apis/wgpolicyk8s.io/v1beta1";

pub(crate) fn run(options: &[&str]) -> Result<()> {
    let mut resources = RESOURCES;
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "--small" => resources = SMALL,
            "--resources" => {
                let number = words.next().context("--resources wants a number")?;
                resources = number.parse().context("--resources wants a number")?;
            }
            other => bail!("unknown option {other}; there are --small and --resources"),
        }
    }
    ensure!(resources > 0, "there must be a resource at least");
    let binary = build()?;
    let samples = policies::all();
    let alone = alone(&samples)?;
    let lines = runtime()?.block_on(audit(&binary, &samples, resources))?;
    tell(&alone, &lines, resources * samples.len());
    Ok(())
}

/// Evaluations by themselves, and questions to a policy server.
struct Alone {
    bytes: usize,
    speed: Speed,
    trips: Vec<(&'static str, Trips)>,
}

fn alone(samples: &[Sample]) -> Result<Alone> {
    let request = muster_policy::Request::create("pods", cluster::pod(1));
    eprintln!("judging one pod of {} bytes", request.json().len());
    let speed = speed::measure(samples, &request, EACH)?;
    eprintln!("asking a policy server");
    let runtime = runtime()?;
    let mut trips = Vec::new();
    for (what, connection, askers) in [
        (
            "a new connection each, one after the other",
            Connection::Closed,
            1,
        ),
        (
            "a new connection each, 32 at once",
            Connection::Closed,
            ASKERS,
        ),
        ("connections kept, one after the other", Connection::Kept, 1),
        ("connections kept, 32 at once", Connection::Kept, ASKERS),
    ] {
        let asked = trip::measure(connection, askers, &request, ASKED, runtime.handle())?;
        eprintln!("    {what}: {:.0}/s", asked.rate);
        trips.push((what, asked));
    }
    Ok(Alone {
        bytes: request.json().len(),
        speed,
        trips,
    })
}

/// One audit, as a line of the table.
struct Line {
    what: &'static str,
    seconds: f64,
    counts: Counts,
    /// Requests that the server answered, without ours.
    answered: u64,
    resident: u64,
    peak: u64,
    /// Processor time of the whole process, since the step before.
    processor: f64,
}

/// Where it all happens.
struct Site {
    muster: Muster,
    client: Client,
    lines: Vec<Line>,
}

async fn audit(binary: &Path, samples: &[Sample], resources: usize) -> Result<Vec<Line>> {
    let modules = tempfile::tempdir().context("making a directory")?;
    let mut muster = Muster::start_idle(binary)?;
    let client = Client::new(muster.kubeconfig())?;
    eprintln!("making {resources} resources");
    let took = cluster::populate(&client, resources).await?;
    eprintln!("  {:.0} a second", resources as f64 / took.as_secs_f64());
    for sample in samples {
        let object = sample.object(modules.path())?;
        client.skim(post(POLICIES.into(), &object)?).await?;
    }
    muster.terminate()?;
    let files = modules.path().to_string_lossy();
    muster.instruct(&["--scanning", "off", "--policy-files", &files]);
    let client = Client::new(muster.kubeconfig())?;
    let mut site = Site {
        muster,
        client,
        lines: Vec::new(),
    };
    let all = resources as u64;
    let pairs = all * samples.len() as u64;
    site.start("first audit", |now| now.evaluations >= pairs)
        .await?;
    site.check(samples.len() as u64)?;
    site.muster.terminate()?;
    site.start("again after a restart", |now| now.looks >= all)
        .await?;
    site.change_policy(all).await?;
    site.change_resources(resources).await?;
    Ok(site.lines)
}

impl Site {
    /// Starts the process, and waits until it has nothing left to do.
    async fn start(&mut self, what: &'static str, is: impl Fn(&Counts) -> bool) -> Result<()> {
        eprintln!("{what}");
        let start = Instant::now();
        self.muster.restart()?;
        self.client = Client::new(self.muster.kubeconfig())?;
        let settled = settle(&self.client, is).await;
        let settled = settled.with_context(|| self.muster.process().log_tail())?;
        let seconds = settled.last.duration_since(start).as_secs_f64();
        self.note(what, seconds, settled.counts, settled.questions, 0.0)
    }

    fn note(
        &mut self,
        what: &'static str,
        seconds: f64,
        counts: Counts,
        ours: u64,
        processor_before: f64,
    ) -> Result<()> {
        eprintln!("  {seconds:.1} s: {counts}");
        let process = self.muster.process();
        self.lines.push(Line {
            what,
            seconds,
            answered: counts.answered.saturating_sub(ours),
            counts,
            resident: process.resident_memory()?,
            peak: process.peak_memory()?,
            processor: process.processor_seconds()? - processor_before,
        });
        Ok(())
    }

    /// Whether everybody judged, and nobody in vain.
    fn check(&self, policies: u64) -> Result<()> {
        let line = self.lines.last().context("an audit")?;
        let (ready, errors) = (line.counts.ready, line.counts.errors);
        ensure!(
            ready == policies,
            "{ready} of {policies} policies are ready"
        );
        ensure!(errors == 0, "{errors} evaluations ended in an error");
        Ok(())
    }

    /// Changes a policy: from then on it says something else of every resource.
    async fn change_policy(&mut self, all: u64) -> Result<()> {
        eprintln!("a policy changes");
        let before = Counts::read(&self.client).await?;
        let processor = self.muster.process().processor_seconds()?;
        let start = Instant::now();
        let changes = serde_json::json!({"spec": {"settings": policies::changed()}});
        let target = format!("{POLICIES}/{}", policies::CHANGED);
        self.client.skim(merge(target, &changes)?).await?;
        let enough = before.evaluations + all;
        let settled = settle(&self.client, |now| now.evaluations >= enough).await?;
        let seconds = settled.last.duration_since(start).as_secs_f64();
        let counts = settled.counts.since(&before);
        self.note(
            "one policy changed",
            seconds,
            counts,
            settled.questions + 2,
            processor,
        )
    }

    /// Changes resources, one after the other; the median is told.
    async fn change_resources(&mut self, resources: usize) -> Result<()> {
        eprintln!("resources change");
        let processor = self.muster.process().processor_seconds()?;
        let mut rounds = Vec::new();
        for round in 1..=CHANGES {
            // All of them are pods, in several namespaces.
            let number = (round * 5_510) % resources / 10 * 10;
            let place = cluster::namespace(number);
            let mut watch = self.watch(&place).await?;
            let before = Counts::read(&self.client).await?;
            let name = cluster::name(number);
            let said = format!("the revision is round-{round}");
            let label = format!("round-{round}");
            let changes = serde_json::json!({"metadata": {"labels": {policies::REVISION: label}}});
            let target = format!("/api/v1/namespaces/{place}/pods/{name}");
            let start = Instant::now();
            self.client.skim(merge(target, &changes)?).await?;
            says(&mut watch, &said).await?;
            let took = start.elapsed().as_secs_f64();
            drop(watch);
            let settled = settle(&self.client, |_| true).await?;
            let counts = settled.counts.since(&before);
            eprintln!("  {name}: {:.0} ms, {counts}", took * 1000.0);
            rounds.push((took, counts, settled.questions + 2));
        }
        rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (took, counts, ours) = rounds.swap_remove(CHANGES / 2);
        self.note("one resource changed", took, counts, ours, processor)
    }

    async fn watch(&self, namespace: &str) -> Result<Watch> {
        let path = format!("{REPORTS}/namespaces/{namespace}/policyreports");
        let list = self.client.get(&format!("{path}?limit=1")).await?.json()?;
        let revision = list["metadata"]["resourceVersion"].as_str();
        let revision = revision.context("a revision")?;
        let target = format!("{path}?watch=true&resourceVersion={revision}");
        let request = Request::new(Method::GET, target);
        self.client.watch(request, PATIENCE).await
    }
}

/// Waits for an event that says something.
async fn says(watch: &mut Watch, text: &str) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match watch.next(left).await? {
            Next::Line(line) if String::from_utf8_lossy(&line).contains(text) => return Ok(()),
            Next::Line(_) => {}
            other => bail!("no report said {text:?}: {other:?}"),
        }
    }
}

fn tell(alone: &Alone, lines: &[Line], pairs: usize) {
    eprintln!(
        "\n| what | seconds | evaluations | reports written | looks | requests of the audit | requests answered | resident MB | peak MB | processor s |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for line in lines {
        eprintln!(
            "| {} | {:.2} | {} | {} | {} | {} | {} | {:.0} | {:.0} | {:.1} |",
            line.what,
            line.seconds,
            line.counts.evaluations,
            line.counts.reports,
            line.counts.looks,
            line.counts.asked(),
            line.answered,
            line.resident as f64 / MEGABYTE,
            line.peak as f64 / MEGABYTE,
            line.processor,
        );
    }
    tell_speed(alone);
    let Some(again) = lines.get(1) else { return };
    for (what, trips) in &alone.trips {
        let asking = pairs as f64 / trips.rate;
        eprintln!(
            "{what}: {pairs} questions would take {asking:.0} s, {:.0} times as long as ours again after a restart",
            asking / again.seconds
        );
    }
}

fn tell_speed(alone: &Alone) {
    eprintln!(
        "\n| a policy server that does not think | answers/s | processor us |\n|---|---|---|"
    );
    for (what, trips) in &alone.trips {
        let processor = trips.processor * 1e6;
        eprintln!("| {what} | {:.0} | {processor:.0} |", trips.rate);
    }
    let speed = &alone.speed;
    eprintln!(
        "\n| one pod of {} bytes, one thread | us | evaluations/s | times as much with a new connection | times as much with one that is kept |\n|---|---|---|---|---|",
        alone.bytes
    );
    // Whoever asks a server has the way there and back beside the evaluation.
    let times = |cost: f64, at: usize| {
        let way = alone
            .trips
            .get(at)
            .map_or(0.0, |(_, trips)| trips.processor);
        (way + cost) / cost
    };
    let mean = ("all policies in turn", speed.mean);
    let ways = speed.ways.iter().map(|(way, cost)| (way.name(), *cost));
    for (what, cost) in ways.chain([mean]) {
        eprintln!(
            "| {what} | {:.1} | {:.0} | {:.1} | {:.1} |",
            cost * 1e6,
            1.0 / cost,
            times(cost, 1),
            times(cost, 3)
        );
    }
    let together = speed.together;
    eprintln!("all policies in turn, a thread for each processor: {together:.0} evaluations/s\n");
}
