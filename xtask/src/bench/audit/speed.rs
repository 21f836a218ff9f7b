//! Evaluators by themselves: how often a policy judges the same pod, on one thread, and all of them in
//! turn on as many threads as there are processors.

use super::policies::{Sample, Way};
use anyhow::{Result, ensure};
use muster_policy::{Evaluator, Outcome, Request};
use muster_wasm::{Options, Sandbox};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What one evaluation costs.
pub(super) struct Speed {
    /// In seconds, by how policies are run.
    pub(super) ways: Vec<(Way, f64)>,
    /// The mean of all policies, on one thread.
    pub(super) mean: f64,
    /// Evaluations a second of all policies in turn, on all processors.
    pub(super) together: f64,
}

/// Measures all of them, each for a while.
pub(super) fn measure(samples: &[Sample], request: &Request, each: Duration) -> Result<Speed> {
    let sandbox = Sandbox::new(Options::default())?;
    let mut evaluators = Vec::new();
    let mut costs = Vec::new();
    for sample in samples {
        let evaluator = sample.evaluator(&sandbox)?;
        let verdict = evaluator.judge(request);
        let (name, said) = (&sample.name, &verdict.message);
        ensure!(verdict.outcome != Outcome::Error, "{name} says {said}");
        let cost = cost(&*evaluator, request, each);
        eprintln!("    {name}: {:.1} us", cost * 1e6);
        costs.push((sample.way, cost));
        evaluators.push(evaluator);
    }
    let ways = Way::ALL.map(|way| {
        let mine = costs.iter().filter(|(other, _)| *other == way);
        (way, mean(mine.map(|(_, cost)| *cost)))
    });
    Ok(Speed {
        ways: ways.to_vec(),
        mean: mean(costs.iter().map(|(_, cost)| *cost)),
        together: together(&evaluators, request, each * 6),
    })
}

fn mean(costs: impl Iterator<Item = f64>) -> f64 {
    let costs: Vec<f64> = costs.collect();
    costs.iter().sum::<f64>() / costs.len().max(1) as f64
}

fn cost(evaluator: &dyn Evaluator, request: &Request, each: Duration) -> f64 {
    let (start, mut count) = (Instant::now(), 0u32);
    while start.elapsed() < each {
        std::hint::black_box(evaluator.judge(request));
        count += 1;
    }
    start.elapsed().as_secs_f64() / f64::from(count.max(1))
}

fn together(evaluators: &[Arc<dyn Evaluator>], request: &Request, during: Duration) -> f64 {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    let total: usize = std::thread::scope(|scope| {
        let judging = (0..threads).map(|_| {
            scope.spawn(|| {
                let mut count = 0;
                while start.elapsed() < during {
                    for evaluator in evaluators {
                        std::hint::black_box(evaluator.judge(request));
                    }
                    count += evaluators.len();
                }
                count
            })
        });
        let judging: Vec<_> = judging.collect();
        let counts = judging.into_iter().map(|one| one.join().unwrap_or(0));
        counts.sum()
    });
    total as f64 / start.elapsed().as_secs_f64()
}
