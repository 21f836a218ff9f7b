//! The engine by itself, on one thread: the same objects judged by the policies about their kind, and by
//! all policies, as whoever does not know what a policy is about has to.

use super::cluster;
use super::policies::{Binding, Policies};
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use muster_checks::sheet::Object;
use muster_checks::{Outcome, Sheet};
use std::time::{Duration, Instant};

/// How many objects of each kind are judged in turn.
const VARIETY: usize = 10;

/// What the policies cost before and while they judge.
pub(super) struct Engine {
    /// How long it took to make them ready, in seconds.
    pub(super) loading: f64,
    /// What they take when they are, in bytes.
    pub(super) memory: u64,
    pub(super) bound: Speed,
    pub(super) unbound: Speed,
}

/// How fast objects are judged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    /// Objects a second.
    pub(super) objects: f64,
    /// Policies asked a second.
    pub(super) evaluations: f64,
    /// What this process took at the end, in bytes.
    pub(super) memory: u64,
}

/// Measures both, each for a while.
pub(super) fn measure(policies: &Policies, each: Duration) -> Result<Engine> {
    let (start, before) = (Instant::now(), resident()?);
    let sheets = policies.sheets(Binding::Kinds)?;
    let loading = start.elapsed().as_secs_f64();
    let memory = resident()?.saturating_sub(before);
    let bound = speed(&sheets, each)?;
    drop(sheets);
    let unbound = speed(&policies.sheets(Binding::Everything)?, each)?;
    Ok(Engine {
        loading,
        memory,
        bound,
        unbound,
    })
}

fn speed(sheets: &[Sheet], each: Duration) -> Result<Speed> {
    let (kinds, now) = (cluster::kinds(), Timestamp::now());
    let objects: Vec<_> = (0..kinds.len() * VARIETY)
        .map(|number| (cluster::kind_of(number), cluster::object(number)))
        .collect();
    let (mut judged, mut asked) = (0u64, 0u64);
    let start = Instant::now();
    while start.elapsed() < each {
        for (kind, object) in &objects {
            let sheet = &sheets[*kind];
            let findings = sheet.judge(&kinds[*kind], &Object::new(object.clone(), true), now);
            let error = findings.iter().find(|one| one.outcome == Outcome::Error);
            ensure!(error.is_none(), "a policy failed: {error:?}");
            judged += 1;
            asked += sheet.policies().len() as u64;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(Speed {
        objects: judged as f64 / seconds,
        evaluations: asked as f64 / seconds,
        memory: resident()?,
    })
}

/// The resident memory of this process, in bytes.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    let kibibytes: u64 = number.context("our own memory")?.parse()?;
    Ok(kibibytes * 1024)
}
