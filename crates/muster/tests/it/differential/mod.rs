//! One corpus of requests, two servers: a real kube-apiserver and Muster. Every answer must be
//! the same, or the difference must stand in `known_differences.rs` with a reason.
//!
//! - `MUSTER_DIFF_ONLY=text` runs only the cases whose topic or name contains the text.
//! - `MUSTER_DIFF_REAL_ONLY=1` asks the real server only and prints what it says.
//! - `MUSTER_DIFF_ANSWERS=file` writes the real server's normalised answers as JSON.
//! - `MUSTER_DIFF_CRDS=file` takes the CRDs from a file instead of from `muster crds`.

mod compare;
mod corpus;
mod known_differences;
mod normalise;
mod request;
mod runner;

use anyhow::{Context, Result, ensure};
use compare::Difference;
use muster_testkit::http::Client;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use request::{Answer, Case};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many cases run at once; most of the time goes to watches that wait for their end.
const CONCURRENCY: usize = 6;

/// The corpus must not shrink below this many requests.
const LEAST: usize = 250;

#[tokio::test(flavor = "multi_thread")]
async fn answers_equal_those_of_a_real_kube_apiserver() -> Result<()> {
    let only = env::var("MUSTER_DIFF_ONLY").unwrap_or_default();
    let real_only = env::var_os("MUSTER_DIFF_REAL_ONLY").is_some();
    let corpus = corpus::read()?;
    let total: usize = corpus.iter().map(Case::requests).sum();
    ensure!(total >= LEAST, "the corpus has only {total} requests");
    let cases: Vec<Case> = corpus
        .into_iter()
        .filter(|case| case.title().contains(&only))
        .collect();
    ensure!(!cases.is_empty(), "no case contains {only:?}");

    let kubernetes = Kubernetes::start(&Options {
        controllers: true,
        ..Options::default()
    })?;
    let real = Client::new(kubernetes.kubeconfig())?;
    install_kinds(&kubernetes, &real).await?;
    let muster = match real_only {
        true => None,
        // The kinds compared are plain storage there, so nobody works on them here.
        false => Some(Muster::start_with(
            env!("CARGO_BIN_EXE_muster"),
            &["--scanning", "off"],
        )?),
    };
    let ours = muster
        .as_ref()
        .map(|muster| Client::new(muster.kubeconfig()))
        .transpose()?;

    let outcomes = run(cases, &real, ours.as_ref()).await?;
    if let Some(path) = env::var_os("MUSTER_DIFF_ANSWERS") {
        fs::write(
            path,
            serde_json::to_vec_pretty(&compare::document(&outcomes))?,
        )?;
    }
    if real_only {
        eprintln!("{:#}", compare::document(&outcomes));
        return Ok(());
    }
    judge(&outcomes, only.is_empty())
}

/// A case with the answers of both servers.
struct Outcome {
    case: Case,
    real: Vec<Answer>,
    ours: Option<Vec<Answer>>,
}

/// Runs the cases, each on both servers at the same time.
async fn run(cases: Vec<Case>, real: &Client, ours: Option<&Client>) -> Result<Vec<Outcome>> {
    let slots = Arc::new(Semaphore::new(CONCURRENCY));
    let mut tasks = JoinSet::new();
    for (index, case) in cases.into_iter().enumerate() {
        let (slots, real, ours) = (Arc::clone(&slots), real.clone(), ours.cloned());
        tasks.spawn(async move {
            let _slot = slots.acquire().await?;
            let ours = async {
                match ours {
                    Some(client) => Some(runner::run(&client, &case, index).await),
                    None => None,
                }
            };
            let (real, ours) = tokio::join!(runner::run(&real, &case, index), ours);
            let title = case.title();
            let real = real.with_context(|| format!("{title} on kube-apiserver"))?;
            let ours = ours
                .transpose()
                .with_context(|| format!("{title} on muster"))?;
            anyhow::Ok((index, Outcome { case, real, ours }))
        });
    }
    let mut outcomes = Vec::new();
    while let Some(outcome) = tasks.join_next().await {
        outcomes.push(outcome??);
    }
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Prints what differs and fails if that is not what the list of known differences says.
fn judge(outcomes: &[Outcome], complete: bool) -> Result<()> {
    let mut unknown: Vec<Difference> = Vec::new();
    let mut met = vec![false; known_differences::LIST.len()];
    for outcome in outcomes {
        let ours = outcome.ours.as_deref().unwrap_or_default();
        for difference in compare::answers(&outcome.case, &outcome.real, ours) {
            match known_differences::LIST
                .iter()
                .position(|known| known.covers(&difference))
            {
                Some(index) => met[index] = true,
                None => unknown.push(difference),
            }
        }
    }
    eprint!("{}", compare::render(&unknown));
    let requests: usize = outcomes.iter().map(|outcome| outcome.case.requests()).sum();
    let cases = outcomes.len();
    eprintln!(
        "{requests} requests in {cases} cases, {} unknown differences",
        unknown.len()
    );
    let settled: Vec<_> = known_differences::LIST
        .iter()
        .zip(&met)
        .filter(|(known, met)| complete && known.everywhere && !**met)
        .map(|(known, _)| known)
        .collect();
    ensure!(
        unknown.is_empty(),
        "{} answers differ from kube-apiserver's",
        unknown.len()
    );
    ensure!(
        settled.is_empty(),
        "no longer different, strike from the list: {settled:#?}"
    );
    Ok(())
}

/// Gives the real server the kinds that Muster serves by itself.
async fn install_kinds(kubernetes: &Kubernetes, real: &Client) -> Result<()> {
    let manifests = match env::var_os("MUSTER_DIFF_CRDS") {
        Some(path) => fs::read_to_string(path)?,
        None => {
            let output = Command::new(env!("CARGO_BIN_EXE_muster"))
                .arg("crds")
                .output()?;
            ensure!(output.status.success(), "muster crds failed: {output:?}");
            String::from_utf8(output.stdout)?
        }
    };
    let kubectl = Kubectl::new(&kubernetes.kubeconfig_path())?;
    // Server-side, because the annotation of a client-side apply has a size limit.
    kubectl.succeed_with(&["apply", "--server-side", "-f", "-"], &manifests)?;
    kubectl.succeed(&[
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
        "--timeout=60s",
    ])?;
    for resource in ["registries", "vexhubs", "scanjobs"] {
        let target = format!("/apis/sbomscanner.kubewarden.io/v1alpha1/{resource}");
        wait::until_async(
            &format!("{resource} to be served"),
            Duration::from_secs(30),
            || async { Ok((real.get(&target).await?.status == 200).then_some(())) },
        )
        .await?;
    }
    Ok(())
}
