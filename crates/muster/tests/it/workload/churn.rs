//! Two operators, of which the one that leads is killed at random while pods come and go and
//! namespaces are selected or not: in the end Registries and reports are what a fresh look at what
//! runs gives.
//!
//! - `MUSTER_SOAK_SECONDS` says how long it lasts (30).
//! - `MUSTER_SOAK_SEED` says which random choices are made; a failure prints the seed.

use super::crowd::{Held, held};
use super::*;
use muster_testkit::installation::{Installation, Options};
use muster_testkit::postgres::Postgres;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const SEED: u64 = 20_261_116;
const NAMESPACES: usize = 6;
const PODS: usize = 5;
const IMAGES: usize = 4;

/// What runs where, and which namespaces are selected.
#[derive(Default)]
struct Truth {
    selected: BTreeSet<String>,
    /// The tag of each pod, by namespace and name.
    pods: BTreeMap<(String, String), usize>,
}

impl Truth {
    /// What Registries hold if this is computed afresh.
    fn held(&self) -> Held {
        let mut held = Held::new();
        for ((namespace, _), tag) in &self.pods {
            if self.selected.contains(namespace) {
                let key = ("team/app".to_owned(), format!("tag == \"{tag}\""));
                held.entry(key).or_default().insert(namespace.clone());
            }
        }
        held
    }

    /// The reports, with what each says.
    fn reports(&self) -> BTreeMap<String, Vec<String>> {
        let pods = self.pods.iter();
        let seen = pods.filter(|((namespace, _), _)| self.selected.contains(namespace));
        seen.map(|((namespace, name), tag)| {
            let report = format!("{namespace}/pod-{name}");
            (report, vec![format!("app team/app:{tag}")])
        })
        .collect()
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn what_is_held_is_what_runs_though_leaders_are_killed() -> Result<()> {
    let seconds = number("MUSTER_SOAK_SECONDS").unwrap_or(30);
    let seed = number("MUSTER_SOAK_SEED").unwrap_or(SEED);
    eprintln!("churn: MUSTER_SOAK_SEED={seed} for {seconds} s");
    churn(Duration::from_secs(seconds), seed)
        .with_context(|| format!("with MUSTER_SOAK_SEED={seed}"))
}

fn churn(duration: Duration, seed: u64) -> Result<()> {
    let postgres = Postgres::shared()?;
    let mut installation = Installation::start(
        env!("CARGO_BIN_EXE_muster"),
        &Options {
            operators: 2,
            workers: 0,
            ..Options::on(postgres.url(&postgres.database()?))
        },
    )?;
    let kubectl = installation.kubectl()?;
    let site = Site {
        kubectl: &kubectl,
        host: "images.example".into(),
    };
    let mut random = StdRng::seed_from_u64(seed);
    let mut truth = Truth::default();
    site.namespace("art", json!({}))?;
    for at in 0..NAMESPACES {
        site.namespace(&format!("team-{at}"), json!({}))?;
    }
    site.configure(json!({
        "artifactsNamespace": "art", "scanOnChange": false,
        "namespaceSelector": {"matchLabels": {"scan": "me"}},
    }))?;
    let (start, mut killed) = (Instant::now(), Instant::now());
    let mut deaths = 0;
    while start.elapsed() < duration {
        step(&site, &mut random, &mut truth)?;
        if killed.elapsed() > Duration::from_secs(4) && random.random_bool(0.3) {
            let all = installation.operators.iter();
            if let Some(leader) = all.map(|one| one.log()).position(leads) {
                installation.replace_operator(leader)?;
                deaths += 1;
                killed = Instant::now();
            }
        }
    }
    eprintln!("churn: {deaths} leaders were killed");
    assert!(deaths > 0);
    let mut last = String::new();
    let waited = wait::until("that all is as it should be", LIMIT, || {
        let (held, reports) = (held(&kubectl)?, reported(&kubectl)?);
        last = format!("{held:?}\n{reports:?}");
        Ok((held == truth.held() && reports == truth.reports()).then_some(()))
    });
    waited.with_context(|| {
        let wanted = format!("{:?}\n{:?}", truth.held(), truth.reports());
        format!(
            "there is\n{last}\nand should be\n{wanted}\n{}",
            installation.logs()
        )
    })?;
    installation.lacks_no_right()
}

/// Whether an operator leads, by what it says of itself.
fn leads(log: &Path) -> bool {
    let log = fs::read_to_string(log).unwrap_or_default();
    let last = log.lines().rfind(|line| line.contains("leading"));
    last.is_some_and(|line| !line.contains("no more"))
}

/// One thing happens.
fn step(site: &Site<'_>, random: &mut StdRng, truth: &mut Truth) -> Result<()> {
    let namespace = format!("team-{}", random.random_range(0..NAMESPACES));
    if random.random_bool(0.2) {
        let label = match truth.selected.remove(&namespace) {
            true => "scan-",
            false => {
                truth.selected.insert(namespace.clone());
                "scan=me"
            }
        };
        let arguments = ["label", "namespace", &namespace, label];
        return site.kubectl.succeed(&arguments).map(drop);
    }
    let name = format!("p{}", random.random_range(0..PODS));
    let key = (namespace.clone(), name.clone());
    if truth.pods.remove(&key).is_some() {
        let place = ["-n", &namespace, "delete", "pod", &name];
        let now = ["--force", "--grace-period=0"];
        return site.kubectl.succeed(&[&place[..], &now].concat()).map(drop);
    }
    let tag = random.random_range(0..IMAGES);
    let image = site.image(&format!("team/app:{tag}"));
    site.pod(&namespace, &name, None, &[("app", &image)])?;
    truth.pods.insert(key, tag);
    Ok(())
}

/// All managed reports, with what each says.
fn reported(kubectl: &Kubectl) -> Result<BTreeMap<String, Vec<String>>> {
    let list = get(kubectl, &["workloadscanreports", "-A", "-l", MANAGED])?;
    let items = list["items"].as_array().context("items")?;
    let one = |report: &Value| {
        let text = |name: &str| report["metadata"][name].as_str().unwrap_or_default();
        let key = format!("{}/{}", text("namespace"), text("name"));
        (key, images(report))
    };
    Ok(items.iter().map(one).collect())
}
