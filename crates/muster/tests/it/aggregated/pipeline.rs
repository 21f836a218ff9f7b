//! Scanning as it runs in a cluster, whoever is killed and whatever is stopped meanwhile: every job
//! ends, with the truth, and nothing is left unscanned.

use super::{MUSTER, SOON};
use crate::scan::discovery::{Gate, registry};
use crate::scan::faults::crowd;
use crate::scan::{LIMIT, data, ended, get, job, layer, manifests, push};
use anyhow::{Context, Result};
use http::Method;
use muster_testkit::etcd::Durability;
use muster_testkit::installation::{Installation, Options};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::postgres::Postgres;
use muster_testkit::push::digest;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::Value;
use std::fs;

fn apply(kubectl: &Kubectl, object: &Value) -> Result<()> {
    kubectl.succeed_with(&["apply", "-f", "-"], &object.to_string())?;
    Ok(())
}

fn scan(kubectl: &Kubectl, name: &str, registry: &str) -> Result<()> {
    kubectl.succeed_with(&["apply", "-f", "-"], &job(name, registry))?;
    Ok(())
}

/// Waits for the end of a job in which every image is scanned.
fn completes(installation: &Installation, name: &str, images: usize) -> Result<Value> {
    let kubectl = installation.kubectl()?;
    let reason = ended(&kubectl, name).with_context(|| installation.logs())?;
    assert!(reason.contains("AllImagesScanned"), "{name}: {reason}");
    let status = get(&kubectl, &["scanjob", name])?["status"].clone();
    assert_eq!(status["imagesCount"], images, "{status}");
    assert_eq!(status["scannedImagesCount"], images, "{status}");
    Ok(status)
}

fn postgres(postgres: &Postgres) -> Result<Options> {
    Ok(Options::on(postgres.url(&postgres.database()?)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_scans_a_registry_whoever_is_killed() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let mut installation = Installation::start(MUSTER, &postgres(Postgres::shared()?)?)?;
    data(&installation.data())?;
    let kubectl = installation.kubectl()?;
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    scan(&kubectl, "first", "local")?;
    completes(&installation, "first", 2)?;
    let reports = get(&kubectl, &["vulnerabilityreports"])?;
    let reports = reports["items"].as_array().context("reports")?;
    assert_eq!(reports.len(), 2);
    for report in reports {
        assert_eq!(report["report"]["summary"]["critical"], 1, "{report}");
    }
    let report = get(&kubectl, &["workloadscanreport", "deployment-app"])?;
    assert_eq!(report["summary"]["critical"], 1, "{report}");
    scan(&kubectl, "second", "local")?;
    let status = completes(&installation, "second", 2)?;
    assert_eq!(status["readImagesCount"], 0, "{status}");
    assert_eq!(status["matchedImagesCount"], 0, "{status}");

    // Of two at once the second is told for whom it waits, and has its turn.
    let both = [job("beside", "local"), job("behind", "local")].join("\n---\n");
    let told = kubectl.run(&["create", "-f", "-"], &both)?;
    assert!(told.status.success(), "{told:?}");
    let why = r#"ScanJob default/beside works on the Registry "local""#;
    assert!(told.stderr.contains(why), "{told:?}");
    for name in ["beside", "behind"] {
        let reason = ended(&kubectl, name).with_context(|| installation.logs())?;
        assert!(reason.contains("AllImagesScanned"), "{name}: {reason}");
    }

    // Another build of the image, while everybody who could scan it is killed.
    push(&registry, 2025).await?;
    scan(&kubectl, "third", "local")?;
    installation.kill_workers()?;
    installation.operators[0].kill9()?;
    installation.nats.kill9()?;
    installation.nats.restart()?;
    installation.add_operator()?;
    installation.add_worker()?;
    completes(&installation, "third", 2)?;
    installation.lacks_no_right()
}

/// Three jobs, one in each stage, when all workers and the deciding operator die; then two more,
/// during which the database and the registry are stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_ends_every_job_whichever_stage_is_struck() -> Result<()> {
    let mut server = Registry::start()?;
    push(&server, 2024).await?;
    let layer = digest(&layer()?.1);
    let many = Registry::start()?;
    let all = crowd(&many).await? - 1;
    let mut database = Postgres::start(Durability::Unsynced)?;
    let mut installation = Installation::start(
        MUSTER,
        &Options {
            operators: 2,
            ..postgres(&database)?
        },
    )?;
    data(&installation.data())?;
    let kubectl = installation.kubectl()?;
    let (listing, reading) = (Gate::default(), Gate::default());
    let listed = listing.before(&server).await?;
    let read = reading.before(&server).await?;
    listing.close("/tags/list");
    reading.close(&layer);
    apply(&kubectl, &registry("listed", &listed.host()))?;
    apply(&kubectl, &registry("read", &read.host()))?;
    apply(&kubectl, &registry("matched", &many.host()))?;
    for name in ["listed", "read", "matched"] {
        scan(&kubectl, name, name)?;
    }
    wait::until("a job in every stage", LIMIT, || {
        let reports = kubectl.succeed(&["get", "vulnerabilityreports", "-o", "name"])?;
        let begun = listed.count(Method::GET, "/tags/list") > 0;
        let begun = begun && read.count(Method::GET, &layer) > 0;
        Ok((begun && !reports.is_empty()).then_some(()))
    })
    .with_context(|| installation.logs())?;
    installation.kill_workers()?;
    let leads = |operator: &&mut muster_testkit::process::Process| {
        fs::read_to_string(operator.log()).is_ok_and(|log| log.contains("leading"))
    };
    let leader = installation.operators.iter_mut().find(leads);
    leader.context("an operator that leads")?.kill9()?;
    listing.open("/tags/list");
    reading.open(&layer);
    installation.add_worker()?;
    installation.add_worker()?;
    completes(&installation, "listed", 2)?;
    completes(&installation, "read", 2)?;
    let reason = ended(&kubectl, "matched").with_context(|| installation.logs())?;
    assert!(reason.contains("1 of "), "{reason}");
    let status = get(&kubectl, &["scanjob", "matched"])?["status"].clone();
    assert_eq!(status["scannedImagesCount"], all, "{status}");

    // The database stops while it is found out which images there are.
    push(&server, 2025).await?;
    reading.close("/blobs/");
    let before = read.count(Method::GET, "/blobs/");
    scan(&kubectl, "without-database", "read")?;
    wait::until("the job to ask for a configuration", LIMIT, || {
        Ok((read.count(Method::GET, "/blobs/") > before).then_some(()))
    })?;
    database.kill9()?;
    reading.open("/blobs/");
    wait::until("a worker to miss the database", SOON, || {
        let missed = installation.logs().contains("503 Service Unavailable");
        Ok(missed.then_some(()))
    })
    .with_context(|| installation.logs())?;
    database.restart()?;
    completes(&installation, "without-database", 2)?;

    // The registry stops before anything is listed.
    push(&server, 2026).await?;
    listing.close("/tags/list");
    let before = listed.count(Method::GET, "/tags/list");
    scan(&kubectl, "without-registry", "listed")?;
    wait::until("the job to ask for tags", LIMIT, || {
        Ok((listed.count(Method::GET, "/tags/list") > before).then_some(()))
    })?;
    server.kill9()?;
    listing.open("/tags/list");
    let before = listed.count(Method::GET, "/tags/list");
    wait::until("the job to miss the registry", LIMIT, || {
        Ok((listed.count(Method::GET, "/tags/list") > before).then_some(()))
    })?;
    server.restart()?;
    completes(&installation, "without-registry", 2)?;
    // Nobody holds a Registry any more, and nothing was left behind.
    // A job says that it is complete before it lets go of its Registry.
    wait::until("the Registries to be free", LIMIT, || {
        let leases = get(&kubectl, &["-n", "muster", "leases"])?;
        let items = leases["items"].as_array().context("leases")?;
        let mut names = items.iter().map(|lease| &lease["metadata"]["name"]);
        let is_held = names.any(|name| name.as_str().unwrap_or_default().starts_with("lease-"));
        Ok((!is_held).then_some(()))
    })?;
    installation.lacks_no_right()
}
