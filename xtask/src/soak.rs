//! Tests that look for trouble for longer than CI would: torture and informers with another seed every time,
//! and fuzzing.

use crate::run::{root, run};
use anyhow::{Context, Result};
use muster_fuzzed::TARGETS;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// The tests that look for trouble at random.
const SOAKS: [&str; 4] = [
    "workload::churn::what_is_held_is_what_runs_though_leaders_are_killed",
    "torture::every_watcher_sees_the_log_though_the_server_is_killed",
    "torture::every_watcher_sees_the_log_though_replicas_database_and_nats_are_killed",
    "aggregated::informer::informers_stay_true_while_everybody_writes_and_replicas_are_killed",
];

/// Runs each of them for so many seconds with a fresh seed.
pub(crate) fn torture(seconds: &str) -> Result<()> {
    let seconds: u64 = seconds.parse().context("how many seconds?")?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let (seconds, seed) = (
        format!("MUSTER_SOAK_SECONDS={seconds}"),
        format!("MUSTER_SOAK_SEED={}", since.as_nanos() as u64),
    );
    for test in SOAKS {
        // The whole workspace, so that nothing is built again with other features.
        let cargo = ["cargo", "test", "--release", "--workspace", "--test", "it"];
        let rest = ["--", "--exact", "--nocapture", test];
        let arguments = [&[seconds.as_str(), &seed][..], &cargo, &rest].concat();
        run("env", &arguments)?;
    }
    Ok(())
}

/// Fuzzes every target for so many seconds.
pub(crate) fn fuzz(seconds: &str) -> Result<()> {
    let seconds: u64 = seconds.parse().context("how many seconds?")?;
    let is_there = Command::new("cargo")
        .args(["fuzz", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !is_there {
        run("cargo", &["install", "--locked", "cargo-fuzz"])?;
    }
    let limit = format!("-max_total_time={seconds}");
    let fuzz = root().join("fuzz").canonicalize()?;
    let place = |kind: &str, target: &str| format!("{}/{kind}/{target}", fuzz.display());
    for (target, _) in TARGETS {
        // What is found goes to the first directory; the second holds honest input to begin with.
        let (corpus, seeds) = (place("corpus", target), place("seeds", target));
        std::fs::create_dir_all(&corpus)?;
        let dictionary = place("dictionaries", target);
        let has_dictionary = Path::new(&dictionary).exists();
        let dictionary = format!("-dict={dictionary}");
        // Sanitizers need a nightly compiler and find nothing in code without `unsafe`.
        let mut arguments = vec!["fuzz", "run", "-s", "none", target, &corpus, &seeds];
        arguments.extend(["--", &limit, "-max_len=8192"]);
        if has_dictionary {
            arguments.push(&dictionary);
        }
        run("cargo", &arguments)?;
    }
    Ok(())
}
