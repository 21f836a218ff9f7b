//! What reports are made with changes while nobody scans: the vulnerability data, and what VEX hubs
//! say. The reports follow; the registry is not asked.

use super::{LIMIT, data, ended, get, job, manifests, push};
use crate::hub::Hub;
use anyhow::{Context, Result, ensure};
use muster_testkit::bolt::{self, Put};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Brings other data into a directory, as an administrator would.
fn import(directory: &Path, puts: &[Put]) -> Result<()> {
    let fresh = tempfile::tempdir()?;
    bolt::write(&fresh.path().join("trivy.db"), puts)?;
    let metadata = json!({
        "Version": 2, "NextUpdate": "2999-01-03T00:00:00Z", "UpdatedAt": "2026-02-02T03:04:05Z",
    });
    fs::write(fresh.path().join("metadata.json"), metadata.to_string())?;
    let imported = Command::new(env!("CARGO_BIN_EXE_muster"))
        .args(["db", "import", "--quiet", "--database"])
        .arg(directory)
        .arg(fresh.path())
        .output()?;
    ensure!(imported.status.success(), "{imported:?}");
    Ok(())
}

/// Data in which something is wrong with zlib, and nothing with OpenSSL.
fn other() -> Vec<Put> {
    let advisory = json!({"FixedVersion": "1:1.2.13.dfsg-2"}).to_string();
    let source = json!({"ID": "debian", "Name": "Debian", "URL": "https://example.org"});
    let about = json!({"Title": "other", "VendorSeverity": {"nvd": 2}}).to_string();
    vec![
        Put::text(&["data-source"], "debian 12", source.to_string()),
        Put::text(&["debian 12", "zlib"], "CVE-2026-0009", advisory),
        Put::text(&["vulnerability"], "CVE-2026-0009", about),
    ]
}

/// The ids in all reports, and how many of the findings are suppressed.
fn found(kubectl: &Kubectl) -> Result<(Vec<String>, u64)> {
    let reports = get(kubectl, &["vulnerabilityreports"])?;
    let (mut ids, mut suppressed) = (Vec::new(), 0);
    for report in reports["items"].as_array().context("reports")? {
        let results = report["report"]["results"].as_array().context("results")?;
        let lines = results
            .iter()
            .filter_map(|one| one["vulnerabilities"].as_array());
        let id = |line: &Value| line["cve"].as_str().unwrap_or_default().to_owned();
        ids.extend(lines.flatten().map(id));
        suppressed += report["report"]["summary"]["suppressed"]
            .as_u64()
            .unwrap_or(0);
    }
    ids.sort();
    Ok((ids, suppressed))
}

/// How many images a job scanned, read and matched.
fn counts(kubectl: &Kubectl, name: &str) -> Result<[u64; 3]> {
    let status = &get(kubectl, &["scanjob", name])?["status"];
    let count = |field: &str| status[field].as_u64().context(field.to_owned());
    Ok([
        count("scannedImagesCount")?,
        count("readImagesCount")?,
        count("matchedImagesCount")?,
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_follow_the_data_though_nobody_scans() -> Result<()> {
    let mut registry = Registry::start()?;
    push(&registry, 2024).await?;
    let vulnerabilities = tempfile::tempdir()?;
    data(vulnerabilities.path())?;
    let directory = vulnerabilities.path().to_string_lossy().into_owned();
    let muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &["--database", &directory])?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    for (name, expected) in [("first", [2, 2, 2]), ("second", [2, 0, 0])] {
        kubectl.succeed_with(&["apply", "-f", "-"], &job(name, "local"))?;
        let reason = ended(&kubectl, name)?;
        assert!(reason.contains("AllImagesScanned"), "{name}: {reason}");
        // Whoever scans what did not change with data that did not change does nothing.
        assert_eq!(counts(&kubectl, name)?, expected, "{name}");
    }
    assert_eq!(found(&kubectl)?.0, ["CVE-2024-0001"; 2]);

    registry.kill9()?;
    import(vulnerabilities.path(), &other())?;
    wait::until("reports of the new data", LIMIT, || {
        Ok((found(&kubectl)?.0 == ["CVE-2026-0009"; 2]).then_some(()))
    })?;
    let report = get(&kubectl, &["workloadscanreport", "deployment-app"])?;
    assert_eq!(report["summary"]["medium"], 1, "{report}");
    // Whose reports they are did not change with it.
    assert_eq!(counts(&kubectl, "second")?, [2, 0, 0]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_suppresses_in_reports_that_are_there_already() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let vulnerabilities = tempfile::tempdir()?;
    data(vulnerabilities.path())?;
    let directory = vulnerabilities.path().to_string_lossy().into_owned();
    let arguments = ["--database", &directory, "--db-update", "on"];
    let mut muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &arguments)?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("first", "local"))?;
    ended(&kubectl, "first")?;
    assert_eq!(found(&kubectl)?.1, 0);

    let mut hub = Hub::start()?;
    let object = |enabled: bool| {
        json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "VEXHub",
            "metadata": {"name": "ours"}, "spec": {"url": hub.address, "enabled": enabled},
        })
        .to_string()
    };
    let (enabled, disabled) = (object(true), object(false));
    kubectl.succeed_with(&["apply", "-f", "-"], &enabled)?;
    wait::until("suppressed findings", LIMIT, || {
        Ok((found(&kubectl)?.1 == 2).then_some(()))
    })?;
    let ready = "jsonpath={.status.conditions[0].reason} {.status.lastUpdateTime}";
    let told = kubectl.succeed(&["get", "vexhub", "ours", "-o", ready])?;
    assert!(told.starts_with("Fetched 20"), "{told}");
    // A hub that is gone is asked as it was; one that is disabled is not.
    hub.stop()?;
    kubectl.succeed_with(&["apply", "-f", "-"], &disabled)?;
    wait::until("findings that count again", LIMIT, || {
        Ok((found(&kubectl)?.1 == 0).then_some(()))
    })?;
    kubectl.succeed_with(&["apply", "-f", "-"], &enabled)?;
    wait::until("suppressed findings again", LIMIT, || {
        Ok((found(&kubectl)?.1 == 2).then_some(()))
    })?;
    // Who starts again asks the hub from the first moment on: no report is made without it.
    muster.kill9()?;
    muster.restart_in_place()?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("second", "local"))?;
    ended(&kubectl, "second")?;
    let status = get(&kubectl, &["scanjob", "second"])?["status"].clone();
    assert_eq!(status["matchedImagesCount"], 0, "{status}");
    assert_eq!(found(&kubectl)?.1, 2);
    Ok(())
}
