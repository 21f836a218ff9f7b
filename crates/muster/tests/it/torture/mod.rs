//! Sixteen writers, thirty-two watchers, and servers that are killed with -9 again and again: one
//! alone, or three that share a database, which is killed too. Every watcher must have seen exactly
//! what the log says it should, and every acknowledged write must be in the log once.
//!
//! - `MUSTER_SOAK_SECONDS` says how long it lasts (30).
//! - `MUSTER_SOAK_SEED` says which random choices are made; a failure prints the seed.

mod model;
mod model_tests;
mod selection;
mod target;
mod victim;
mod watcher;
mod writer;

use anyhow::{Context, Result, ensure};
use http::Method;
use muster_testkit::http::Request;
use muster_testkit::wait;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use selection::Selection;
use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use target::Target;
use tokio::sync::watch;
use tokio::task::JoinSet;
use victim::{Alone, Replicas, Victim};
use watcher::{Manner, Watcher};
use writer::{Line, Writer};

const WRITERS: usize = 16;
const WATCHERS: usize = 32;
const NAMESPACES: usize = 4;
/// So few names that writers often meet.
const NAMES: usize = 12;
/// How often harm is done in a short run.
const STRIKES: u32 = 5;
/// In a long run it is done at least this often.
const STRIKE_EVERY: Duration = Duration::from_secs(20);
/// Some writes must have been acknowledged before the next strike.
const LEAST_WRITES: u64 = 50;
const SEED: u64 = 20_240_607;
/// The log is only sure to reach back this long.
const LOG_REACHES: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    ConfigMaps,
    Images,
    Sboms,
}

impl Resource {
    fn collection(self, namespace: &str) -> String {
        match self {
            Resource::ConfigMaps => format!("/api/v1/namespaces/{namespace}/configmaps"),
            Resource::Images => format!(
                "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/namespaces/{namespace}/images"
            ),
            Resource::Sboms => format!(
                "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/namespaces/{namespace}/sboms"
            ),
        }
    }

    fn everywhere(self) -> String {
        match self {
            Resource::ConfigMaps => "/api/v1/configmaps".into(),
            Resource::Images => "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/images".into(),
            Resource::Sboms => "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/sboms".into(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_sees_the_log_though_the_server_is_killed() -> Result<()> {
    torture(Alone::start).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_sees_the_log_though_replicas_database_and_nats_are_killed() -> Result<()> {
    torture(Replicas::start).await
}

async fn torture<V: Victim>(start: impl FnOnce() -> Result<V>) -> Result<()> {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok());
    let duration = Duration::from_secs(number("MUSTER_SOAK_SECONDS").unwrap_or(30));
    let seed = number("MUSTER_SOAK_SEED").unwrap_or(SEED);
    eprintln!("torture: MUSTER_SOAK_SEED={seed} for {duration:?}");
    run(start()?, duration, seed)
        .await
        .with_context(|| format!("with MUSTER_SOAK_SEED={seed}"))
}

async fn run<V: Victim>(mut victim: V, duration: Duration, seed: u64) -> Result<()> {
    for number in 0..NAMESPACES {
        let body = format!(r#"{{"metadata":{{"name":"t-{number}"}}}}"#);
        let request = Request::new(Method::POST, "/api/v1/namespaces");
        let request = request.body("application/json", body)?;
        let answer = victim.keeper_of_namespaces()?.send(request).await?;
        ensure!(answer.status == 201, "no namespace: {:?}", answer.body);
    }
    let target = victim.announcer().target();

    let stop = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(AtomicU64::new(0));
    let mut writers: JoinSet<Result<Vec<Line>>> = JoinSet::new();
    for number in 0..WRITERS {
        let writer = Writer {
            number,
            seed,
            resources: V::RESOURCES,
            target: target.clone(),
            stop: stop.clone(),
            acknowledged: acknowledged.clone(),
        };
        writers.spawn(stopping(stop.clone(), writer.run()));
    }
    let heads = V::RESOURCES.map(|_| watch::Sender::new(None));
    let mut watchers = spawn_watchers(seed, V::RESOURCES, &target, &heads, &stop);

    let mut ledgers = Vec::new();
    let strike = {
        let (stop, acknowledged) = (stop.clone(), acknowledged.clone());
        move || strike_again_and_again(victim, duration, seed, &stop, &acknowledged)
    };
    let (mut victim, strikes) = tokio::task::spawn_blocking(strike).await??;
    while let Some(ledger) = writers.join_next().await {
        ledgers.extend(ledger??);
    }
    for (resource, head) in V::RESOURCES.iter().zip(&heads) {
        head.send_replace(Some(revision(&target, *resource).await?));
    }
    let mut seen = Vec::new();
    while let Some(watcher) = watchers.join_next().await {
        seen.push(watcher??);
    }

    victim.rest()?;
    for resource in V::RESOURCES {
        judge(resource, &seen, &ledgers)?;
        if duration < LOG_REACHES {
            replay(resource, &victim.announcer().target(), &seen).await?;
        }
    }
    let events: usize = seen.iter().map(|watcher| watcher.trace.len()).sum();
    let written = acknowledged.load(Ordering::Relaxed);
    eprintln!("torture: {strikes}; {written} writes acknowledged, {events} steps checked");
    Ok(())
}

fn spawn_watchers(
    seed: u64,
    resources: [Resource; 2],
    target: &Target,
    heads: &[watch::Sender<Option<u64>>; 2],
    stop: &Arc<AtomicBool>,
) -> JoinSet<Result<Watcher>> {
    let mut watchers = JoinSet::new();
    for number in 0..WATCHERS + 2 {
        let mut random = StdRng::seed_from_u64(seed ^ (number as u64) << 32);
        let resource = resources[number % 2];
        let (manner, selection) = match number < WATCHERS {
            true => (Manner::Restless, Selection::random(&mut random, resource)),
            false => (Manner::Scribe, Selection::everything()),
        };
        let watcher = Watcher {
            resource,
            selection,
            manner,
            random,
            target: target.clone(),
            head: heads[number % 2].subscribe(),
            trace: Vec::new(),
            log: Vec::new(),
        };
        watchers.spawn(stopping(stop.clone(), watcher.run()));
    }
    watchers
}

/// A failure ends the whole run at once.
async fn stopping<T>(stop: Arc<AtomicBool>, run: impl Future<Output = Result<T>>) -> Result<T> {
    let result = run.await;
    if result.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    result
}

/// Does the victim harm until the time is up, then stops the writers. Tells what was done.
fn strike_again_and_again<V: Victim>(
    mut victim: V,
    duration: Duration,
    seed: u64,
    stop: &AtomicBool,
    acknowledged: &AtomicU64,
) -> Result<(V, String)> {
    let mut random = StdRng::seed_from_u64(seed);
    let end = Instant::now() + duration;
    let every = (duration / (STRIKES + 1)).min(STRIKE_EVERY);
    let mut strikes: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 0.. {
        let due = Instant::now() + every.mul_f64(random.random_range(0.5..1.5));
        let enough = acknowledged.load(Ordering::Relaxed) + LEAST_WRITES;
        let limit = every * 2 + Duration::from_secs(120);
        wait::until("some acknowledged writes", limit, || {
            let is_enough = acknowledged.load(Ordering::Relaxed) >= enough;
            let failed = stop.load(Ordering::Relaxed);
            Ok((failed || Instant::now() >= due && is_enough).then_some(()))
        })
        .with_context(|| victim.log_tail())?;
        let enough = Instant::now() >= end && round >= V::STRIKES;
        if enough || stop.load(Ordering::Relaxed) {
            break;
        }
        let done = victim.strike(round, &mut random)?;
        *strikes.entry(done).or_default() += 1;
    }
    stop.store(true, Ordering::Relaxed);
    let told = strikes
        .iter()
        .map(|(what, times)| format!("{what} {times}x"));
    Ok((victim, told.collect::<Vec<_>>().join(", ")))
}

async fn revision(target: &Target, resource: Resource) -> Result<u64> {
    let generation = target.clone().generation(0).await?;
    let target = format!("{}?limit=1", resource.everywhere());
    let list = generation.client.get(&target).await?.json()?;
    Ok(model::text(&list, "/metadata/resourceVersion").parse()?)
}

/// Holds all that was seen and written of a resource against its log.
fn judge(resource: Resource, seen: &[Watcher], ledgers: &[Line]) -> Result<()> {
    let fail = |fault: String| anyhow::anyhow!("{resource:?}: {fault}");
    let mut about = seen.iter().filter(|watcher| watcher.resource == resource);
    let scribe = about
        .clone()
        .find(|watcher| watcher.manner == Manner::Scribe);
    let log = &scribe.context("every resource has a scribe")?.log;
    let head = log
        .last()
        .map_or(model::BEGINNING, |last| last.sighting.revision);
    model::check_log(log).map_err(fail)?;
    writer::check(resource, log, ledgers).map_err(fail)?;
    about.try_for_each(|watcher| {
        model::check(log, &watcher.selection, &watcher.trace, head)
            .map_err(|fault| fail(format!("{:?}: {fault}", watcher.selection)))
    })
}

/// What the restarted server reads from its database must be the log that was seen live.
async fn replay(resource: Resource, target: &Target, seen: &[Watcher]) -> Result<()> {
    let mut about = seen.iter().filter(|watcher| watcher.resource == resource);
    let live = about.find(|watcher| watcher.manner == Manner::Scribe);
    let live = live.context("every resource has a scribe")?;
    let head = revision(target, resource).await?;
    let again = Watcher {
        resource,
        selection: Selection::everything(),
        manner: Manner::Scribe,
        random: StdRng::seed_from_u64(0),
        target: target.clone(),
        head: watch::Sender::new(Some(head)).subscribe(),
        trace: Vec::new(),
        log: Vec::new(),
    };
    let again = again.run().await?;
    let differs = live
        .log
        .iter()
        .zip(&again.log)
        .find(|(live, again)| live != again);
    ensure!(differs.is_none(), "live and replayed differ: {differs:?}");
    ensure!(
        live.log.len() == again.log.len(),
        "the replay is shorter or longer"
    );
    Ok(())
}
