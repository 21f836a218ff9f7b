//! `cargo xtask bench rego`: many policies in Rego, each bound to kinds, and many resources. What
//! knowing the kinds is worth to the engine by itself; and how long a `muster up` takes until every
//! resource has a report, and until all are current after a policy or a library has changed.

mod cluster;
mod counts;
mod engine;
mod live;
mod policies;

use super::{build, runtime};
use anyhow::{Context, Result, bail, ensure};
use engine::Engine;
use live::Line;
use policies::Policies;
use std::time::Duration;

const POLICIES: usize = 200;
const RESOURCES: usize = 10_000;
const SMALL_POLICIES: usize = 30;
const SMALL_RESOURCES: usize = 600;
/// Of ten policies one is about everything; fewer leave kinds without any.
const FEWEST: usize = 10;
/// How long objects are judged without a cluster, each way.
const EACH: Duration = Duration::from_secs(10);
const SMALL_EACH: Duration = Duration::from_secs(1);
const MEGABYTE: f64 = 1e6;

pub(crate) fn run(options: &[&str]) -> Result<()> {
    let (mut count, mut resources, mut each) = (POLICIES, RESOURCES, EACH);
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let mut number = || -> Result<usize> {
            let number = words.next().and_then(|number| number.parse().ok());
            number.with_context(|| format!("{word} wants a number"))
        };
        match *word {
            "--small" => (count, resources, each) = (SMALL_POLICIES, SMALL_RESOURCES, SMALL_EACH),
            "--policies" => count = number()?,
            "--resources" => resources = number()?,
            other => {
                bail!("unknown option {other}; there are --small, --policies and --resources")
            }
        }
    }
    let fewest = cluster::kinds().len();
    ensure!(count >= FEWEST, "there must be {FEWEST} policies at least");
    ensure!(
        resources >= fewest,
        "there must be {fewest} resources at least"
    );
    let binary = build()?;
    let mut policies = Policies::new(count);
    eprintln!("judging without a cluster");
    let engine = engine::measure(&policies, each)?;
    let lines = runtime()?.block_on(live::measure(&binary, &mut policies, resources))?;
    tell_engine(&engine, count);
    tell(&lines, resources);
    Ok(())
}

fn tell_engine(engine: &Engine, count: usize) {
    eprintln!(
        "\n{count} policies: ready after {:.2} s, {:.0} MB more",
        engine.loading,
        engine.memory as f64 / MEGABYTE
    );
    eprintln!(
        "\n| one thread | objects/s | evaluations/s | us for one evaluation | resident MB |\n|---|---|---|---|---|"
    );
    for (what, speed) in [
        ("only the policies of the kind", engine.bound),
        ("all policies", engine.unbound),
    ] {
        eprintln!(
            "| {what} | {:.0} | {:.0} | {:.1} | {:.0} |",
            speed.objects,
            speed.evaluations,
            1e6 / speed.evaluations,
            speed.memory as f64 / MEGABYTE
        );
    }
    let times = engine.bound.objects / engine.unbound.objects;
    eprintln!("knowing the kinds: {times:.1} times as many objects a second");
}

fn tell(lines: &[Line], resources: usize) {
    eprintln!(
        "\n| what | seconds | evaluations | reports written | requests of the audit | for each resource | requests answered | resident MB | peak MB | processor s |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for line in lines {
        let counts = &line.counts;
        eprintln!(
            "| {} | {:.2} | {} | {} | {} | {:.3} | {} | {:.0} | {:.0} | {:.1} |",
            line.what,
            line.seconds,
            counts.evaluations,
            counts.written,
            counts.requests,
            counts.requests as f64 / resources as f64,
            counts.answered,
            line.resident as f64 / MEGABYTE,
            line.peak as f64 / MEGABYTE,
            line.processor,
        );
    }
    eprintln!();
}
