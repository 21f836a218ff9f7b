//! `cargo xtask bench hostile`: what one hostile client, registry or image does to everybody else. Each attack
//! is made on a server of its own while an honest client reads; a row says whether the process lives, its peak of
//! memory, and how long the honest client waits with and without the attack. `--muster FILE` measures another
//! binary, such as the one before a change.

mod attacks;
mod image;

use anyhow::{Context, Result};
use attacks::{ATTACKS, Attack};
use muster_testkit::etcd::Durability;
use muster_testkit::http::Client;
use muster_testkit::muster::Muster;
use muster_testkit::postgres::Postgres;
use muster_testkit::storage::{Cluster, Options};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the honest client reads alone.
const QUIET: Duration = Duration::from_secs(3);
/// How long an attack may go on.
const ATTACK: Duration = Duration::from_secs(90);
/// The pause between two requests of the honest client.
const PAUSE: Duration = Duration::from_millis(10);

/// Measures every attack on `muster up`, on `muster storage` and on the command line.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let binary = match options {
        ["--muster", file] => PathBuf::from(file),
        _ => super::build()?,
    };
    let runtime = super::runtime()?;
    eprintln!(
        "{:<34}{:>8}{:>12}{:>12}{:>12}{:>10}  outcome",
        "attack", "lives", "peak MB", "alone ms", "beside ms", "seconds"
    );
    for attack in &ATTACKS {
        let mut muster = Muster::start(&binary)?;
        let client = Client::new(muster.kubeconfig())?;
        let row = runtime.block_on(measure(&client, attack))?;
        let lives = muster.process_mut().exit_status()?.is_none();
        let peak = if lives {
            muster.process().peak_memory()?
        } else {
            0
        };
        print("up", attack, lives, peak, &row);
    }
    let postgres = Postgres::start(Durability::Unsynced)?;
    for attack in ATTACKS.iter().filter(|attack| attack.is_for_storage) {
        let database = postgres.database()?;
        let mut cluster = Cluster::start(&binary, &Options::on(postgres.url(&database)))?;
        let client = Client::new(cluster.kubernetes().kubeconfig())?;
        let row = runtime.block_on(measure(&client, attack))?;
        let replica = cluster.replica(0).process()?;
        let lives = replica.exit_status()?.is_none();
        let peak = if lives { replica.peak_memory()? } else { 0 };
        print("storage", attack, lives, peak, &row);
    }
    image::measure(&binary)
}

/// What one attack did.
struct Row {
    alone: Duration,
    beside: Duration,
    took: Duration,
    outcome: String,
}

fn print(server: &str, attack: &Attack, lives: bool, peak: u64, row: &Row) {
    eprintln!(
        "{:<34}{:>8}{:>12}{:>12}{:>12}{:>10.1}  {}",
        format!("{server}: {}", attack.name),
        if lives { "yes" } else { "NO" },
        if lives {
            (peak / 1_000_000).to_string()
        } else {
            "-".into()
        },
        row.alone.as_millis(),
        row.beside.as_millis(),
        row.took.as_secs_f64(),
        row.outcome
    );
}

async fn measure(client: &Client, attack: &Attack) -> Result<Row> {
    let prepared = (attack.prepare)(client.clone())
        .await
        .context("preparing the attack")?;
    let alone = worst(client, attack, tokio::time::sleep(QUIET)).await;
    let start = Instant::now();
    let mut outcome = "not over after the time it may take".to_owned();
    let made = async {
        if let Ok(made) =
            tokio::time::timeout(ATTACK, (attack.make)(client.clone(), prepared)).await
        {
            outcome = made.unwrap_or_else(|error| format!("{error:#}").chars().take(90).collect());
        }
    };
    let beside = worst(client, attack, made).await;
    Ok(Row {
        alone,
        beside,
        took: start.elapsed(),
        outcome,
    })
}

/// The longest that the honest client waits for an answer until something is over.
async fn worst(client: &Client, attack: &Attack, until: impl Future<Output = ()>) -> Duration {
    let mut longest = Duration::ZERO;
    let reading = async {
        loop {
            let start = Instant::now();
            // A server that has ended answers nobody: the time that passes until it is back counts.
            while client.get(attack.honest).await.is_err() {
                if start.elapsed() > ATTACK {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
            longest = longest.max(start.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::select! {
        () = reading => {}
        () = until => {}
    }
    longest
}

/// The commands of one binary.
fn command(binary: &Path) -> std::process::Command {
    std::process::Command::new(binary)
}
