//! What is scanned without being asked for twice: a new Registry, one that grew, and one whose
//! annotation asks for it; and what the Registry says of itself meanwhile.

use super::conditions::Bench;
use super::discovery::{Gate, discovery, registry, until};
use super::{LIMIT, ended, get, job, push};
use anyhow::{Context, Result};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};

const REQUEST: &str = "sbomscanner.kubewarden.io/rescan-requested";

/// The ScanJobs by name, with what they are restricted to, once there are so many.
fn jobs(kubectl: &Kubectl, count: usize) -> Result<Vec<(String, Value)>> {
    wait::until(&format!("{count} ScanJobs"), LIMIT, || {
        let list = get(
            kubectl,
            &["scanjobs", "--sort-by=.metadata.creationTimestamp"],
        )?;
        let items = list["items"].as_array().context("items")?;
        let named = items.iter().map(|item| {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            (name.to_owned(), item["spec"]["repositories"].clone())
        });
        Ok((items.len() >= count).then(|| named.collect()))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_is_scanned_when_it_is_new_grows_or_asks_for_it() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let bench = Bench::start()?;
    let kubectl = &bench.kubectl;
    let mut manifest = registry("local", &server.host());
    manifest["spec"]["scanOnChange"] = json!(true);
    kubectl.succeed_with(&["apply", "-f", "-"], &manifest.to_string())?;

    // It is new.
    let first = jobs(kubectl, 1)?;
    assert!(first[0].0.starts_with("local-change-"), "{first:?}");
    assert_eq!(first[0].1, Value::Null);
    let reason = ended(kubectl, &first[0].0)?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let told = wait::until("the Registry to tell of its scan", LIMIT, || {
        let status = get(kubectl, &["registry", "local"])?["status"].clone();
        Ok((status["lastScan"]["name"] == first[0].0).then_some(status))
    })?;
    assert_eq!(told["lastScan"]["result"], "Succeeded", "{told}");
    assert_eq!(told["imagesCount"], 2);
    let conditions = told["conditions"].as_array().context("conditions")?;
    let holding = conditions.iter().map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (text("type"), text("status"), text("reason"))
    });
    let expected = [
        ("Reachable", "True", "Answered"),
        ("UpToDate", "True", "ScanComplete"),
    ];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(holding.collect::<Vec<_>>(), expected, "{told}");

    let notes = get(kubectl, &["registry", "local"])?["metadata"]["annotations"].clone();
    assert_eq!(notes["sbomscanner.kubewarden.io/last-job-name"], first[0].0);
    assert_eq!(notes["sbomscanner.kubewarden.io/last-job-type"], "scan");

    // It asks for a scan of everything; the request goes when the scan is scheduled.
    kubectl.succeed(&["annotate", "registry", "local", &format!("{REQUEST}=")])?;
    let second = jobs(kubectl, 2)?;
    let rescan = second
        .iter()
        .find(|(name, _)| name.starts_with("local-rescan-"));
    let (rescan, targets) = rescan.context("a rescan")?;
    assert_eq!(*targets, Value::Null);
    wait::until("the request to be answered", LIMIT, || {
        let registry = get(kubectl, &["registry", "local"])?;
        Ok(registry["metadata"]["annotations"][REQUEST]
            .is_null()
            .then_some(()))
    })?;
    ended(kubectl, rescan)?;

    // It grew: only what is new is scanned.
    manifest["spec"]["repositories"] = json!([{"name": "team/app"}, {"name": "team/new"}]);
    kubectl.succeed_with(&["apply", "-f", "-"], &manifest.to_string())?;
    let third = jobs(kubectl, 3)?;
    let known: Vec<&String> = second.iter().map(|(name, _)| name).collect();
    let grown = third.iter().find(|(name, _)| !known.contains(&name));
    assert_eq!(grown.context("a scan")?.1, json!([{"name": "team/new"}]));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_and_a_discovery_wait_for_each_other() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let gate = Gate::default();
    let proxy = gate.before(&server).await?;
    let bench = Bench::start()?;
    let kubectl = &bench.kubectl;
    let manifest = registry("local", &proxy.host());
    kubectl.succeed_with(&["apply", "-f", "-"], &manifest.to_string())?;

    gate.close("/tags/list");
    kubectl.succeed_with(&["apply", "-f", "-"], &job("scan", "local"))?;
    wait::until("the scan to begin", LIMIT, || {
        let scan = get(kubectl, &["scanjob", "scan"])?;
        Ok(scan["status"]["startTime"].is_string().then_some(()))
    })?;
    kubectl.succeed_with(&["apply", "-f", "-"], &discovery("look", "local"))?;
    let waiting = until(kubectl, "look", "waits", |status| {
        status["currentStatus"] == "Pending"
    })?;
    let message = &waiting["status"]["conditions"][0]["message"];
    assert_eq!(
        *message,
        "Registry discovery pending until ScanJob default/scan has ended"
    );
    gate.open("/tags/list");
    let reason = ended(kubectl, "scan")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    until(kubectl, "look", "completes", |status| {
        status["completedAt"].is_string()
    })?;

    gate.close("/tags/list");
    kubectl.succeed_with(&["apply", "-f", "-"], &discovery("again", "local"))?;
    until(kubectl, "again", "runs", |status| {
        status["currentStatus"] == "Running"
    })?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("later", "local"))?;
    wait::until("the scan to be scheduled", LIMIT, || {
        let scan = get(kubectl, &["scanjob", "later"])?;
        let scheduled = &scan["status"]["conditions"][0];
        assert_eq!(scan["status"]["startTime"], Value::Null);
        Ok((scheduled["type"] == "Scheduled" && scheduled["status"] == "True").then_some(()))
    })?;
    gate.open("/tags/list");
    until(kubectl, "again", "completes", |status| {
        status["completedAt"].is_string()
    })?;
    let reason = ended(kubectl, "later")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    Ok(())
}
