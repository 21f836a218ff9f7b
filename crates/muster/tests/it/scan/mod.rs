//! From a registry to a workload's report, all by kubectl: a real registry with a real image, a
//! vulnerability database as it is published, and `muster up` between them.

mod admission;
mod automatic;
mod catalog;
mod changed;
pub(crate) mod conditions;
mod credentials;
mod data;
mod digests;
pub(crate) mod discovery;
pub(crate) mod faults;
mod killed;
mod mirrors;
mod tied;
mod watched;

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use muster_testkit::bolt::{self, Put};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::push::{Pushed, Pusher, digest};
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub(crate) const LIMIT: Duration = Duration::from_secs(180);

/// Vulnerability data with one finding that is fixed later, and one that is fixed already.
pub(crate) fn data(directory: &Path) -> Result<()> {
    let advisory = |package: &str, id: &str, fixed: &str| {
        let value = json!({"FixedVersion": fixed});
        Put::text(&["debian 12", package], id, value.to_string())
    };
    let detail = |id: &str, severity: u32| {
        let value = json!({"Title": id, "VendorSeverity": {"nvd": severity}});
        Put::text(&["vulnerability"], id, value.to_string())
    };
    let source = json!({"ID": "debian", "Name": "Debian", "URL": "https://example.org"});
    let puts = [
        Put::text(&["data-source"], "debian 12", source.to_string()),
        advisory("openssl", "CVE-2024-0001", "3.0.11-1~deb12u3"),
        advisory("zlib", "CVE-2024-0002", "1:1.2.13.dfsg-1"),
        detail("CVE-2024-0001", 4),
        detail("CVE-2024-0002", 3),
    ];
    bolt::write(&directory.join("trivy.db"), &puts)?;
    let metadata = json!({
        "Version": 2, "NextUpdate": "2999-01-03T00:00:00Z", "UpdatedAt": "2026-01-02T03:04:05Z",
    });
    fs::write(directory.join("metadata.json"), metadata.to_string())?;
    Ok(())
}

/// A layer as Debian's package manager leaves it: the archive, plain and compressed.
pub(crate) fn layer() -> Result<(Vec<u8>, Vec<u8>)> {
    let root = tempfile::tempdir()?;
    let write = |path: &str, text: &str| -> Result<()> {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().context("a directory")?)?;
        Ok(fs::write(path, text)?)
    };
    write(
        "etc/os-release",
        "ID=debian\nVERSION_ID=\"12\"\nNAME=\"Debian GNU/Linux\"\n",
    )?;
    write("etc/debian_version", "12.7\n")?;
    let package = |name: &str, source: &str, version: &str| {
        format!(
            "Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nSource: {source}\n\
             Version: {version}\nMaintainer: Somebody <somebody@example.org>\nDescription: a package\n\n"
        )
    };
    let packages = [
        package("libssl3", "openssl", "3.0.11-1~deb12u2"),
        package("zlib1g", "zlib", "1:1.2.13.dfsg-1"),
    ];
    write("var/lib/dpkg/status", &packages.concat())?;
    let tar = Command::new("tar")
        .args([
            "--sort=name",
            "--mtime=@0",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "-cf",
            "-",
        ])
        .args(["etc", "var"])
        .current_dir(root.path())
        .output()
        .context("running tar")?;
    anyhow::ensure!(
        tar.status.success(),
        "{}",
        String::from_utf8_lossy(&tar.stderr)
    );
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&tar.stdout)?;
    Ok((tar.stdout, packed.finish()?))
}

/// Pushes the image for two platforms, as it was built in some year; returns the second's digest.
pub(crate) async fn push(registry: &Registry, year: u32) -> Result<String> {
    let [_, arm] = push_as(registry, "team/app", Some("1.0"), year).await?;
    Ok(arm.digest)
}

/// The same, in a repository and with a tag or without; returns the index and its second image.
pub(crate) async fn push_as(
    registry: &Registry,
    repository: &str,
    tag: Option<&str>,
    year: u32,
) -> Result<[Pushed; 2]> {
    let pusher = Pusher::new(registry)?;
    let (plain, packed) = layer()?;
    let config = |architecture: &str| {
        json!({
            "os": "linux", "architecture": architecture, "created": format!("{year}-01-01T00:00:00Z"),
            "rootfs": {"type": "layers", "diff_ids": [digest(&plain)]},
            "history": [{"created_by": "COPY . /"}],
        })
    };
    let amd = pusher
        .image(repository, None, &[&packed], &config("amd64"))
        .await?;
    let arm = pusher
        .image(repository, None, &[&packed], &config("arm64"))
        .await?;
    let platforms = [("linux/amd64", &amd), ("linux/arm64", &arm)];
    let index = pusher.index(repository, tag, &platforms).await?;
    Ok([index, arm])
}

pub(crate) fn manifests(host: &str) -> String {
    let registry = json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
        "metadata": {"name": "local", "namespace": "default"},
        "spec": {
            "uri": host, "catalogType": "NoCatalog", "insecure": true, "scanOnChange": false,
            "repositories": [{"name": "team/app"}], "discoveryJob": {"suspend": true},
        },
    });
    let container = |name: &str, tag: &str| {
        json!({"name": name, "imageRef": {
            "registry": "local", "namespace": "default", "repository": "team/app", "tag": tag,
        }})
    };
    let report = json!({
        "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1", "kind": "WorkloadScanReport",
        "metadata": {"name": "deployment-app", "namespace": "default"},
        "spec": {"containers": [container("app", "1.0"), container("other", "2.0")]},
    });
    format!("{registry}\n---\n{report}\n")
}

pub(crate) fn job(name: &str, registry: &str) -> String {
    json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "ScanJob",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"registry": registry},
    })
    .to_string()
}

pub(crate) fn get(kubectl: &Kubectl, what: &[&str]) -> Result<Value> {
    let arguments = [&["get"], what, &["-o", "json"]].concat();
    Ok(serde_json::from_str(&kubectl.succeed(&arguments)?)?)
}

/// Waits until a job has ended; returns the reason of the condition that holds.
pub(crate) fn ended(kubectl: &Kubectl, name: &str) -> Result<String> {
    wait::until(&format!("the end of ScanJob {name}"), LIMIT, || {
        let job = get(kubectl, &["scanjob", name])?;
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        let mut holding = conditions.filter(|condition| condition["status"] == "True");
        Ok(holding
            .find(|condition| condition["type"] == "Complete" || condition["type"] == "Failed")
            .map(|condition| format!("{}: {}", condition["reason"], condition["message"])))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_job_finds_what_is_wrong_with_a_workload() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let vulnerabilities = tempfile::tempdir()?;
    data(vulnerabilities.path())?;
    let directory = vulnerabilities.path().to_string_lossy().into_owned();
    let mut muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &["--database", &directory])?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    let waiting = get(&kubectl, &["workloadscanreport", "deployment-app"])?;
    assert_eq!(
        waiting["status"]["containerStatuses"][0]["scanStatus"],
        "WaitingForScan"
    );

    // Whenever the process dies, what is left to do is seen from what is there.
    kubectl.succeed_with(&["apply", "-f", "-"], &job("first", "local"))?;
    muster.kill9()?;
    muster.restart_in_place()?;
    let reason = ended(&kubectl, "first")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let scan = get(&kubectl, &["scanjob", "first"])?;
    assert_eq!(scan["status"]["imagesCount"], 2);
    assert_eq!(scan["status"]["scannedImagesCount"], 2);
    let kept = &scan["metadata"]["annotations"]["sbomscanner.kubewarden.io/registry"];
    let kept: Value = serde_json::from_str(kept.as_str().context("a snapshot")?)?;
    assert_eq!(kept["spec"]["uri"], registry.host());

    let images = get(&kubectl, &["images"])?;
    let bills = get(&kubectl, &["sboms"])?;
    let reports = get(&kubectl, &["vulnerabilityreports"])?;
    for (list, owner) in [(&images, "Registry"), (&bills, "Image"), (&reports, "SBOM")] {
        let items = list["items"].as_array().context("items")?;
        assert_eq!(items.len(), 2, "{owner}");
        assert_eq!(items[0]["metadata"]["ownerReferences"][0]["kind"], owner);
    }
    assert_eq!(bills["items"][0]["spdx"]["spdxVersion"], "SPDX-2.3");
    let report = &reports["items"][0]["report"];
    assert_eq!(report["summary"]["critical"], 1, "{report}");
    let finding = &report["results"][0]["vulnerabilities"][0];
    assert_eq!(finding["cve"], "CVE-2024-0001");
    assert_eq!(finding["packageName"], "libssl3");
    assert_eq!(finding["fixedVersions"], json!(["3.0.11-1~deb12u3"]));

    let report = get(&kubectl, &["workloadscanreport", "deployment-app"])?;
    let statuses = report["status"]["containerStatuses"]
        .as_array()
        .context("statuses")?;
    let statuses: Vec<&Value> = statuses
        .iter()
        .map(|status| &status["scanStatus"])
        .collect();
    assert_eq!(statuses, ["ScanComplete", "WaitingForScan"]);
    // Both platforms have it; it is to be mended once.
    assert_eq!(report["summary"]["critical"], 1);
    let quoted = report["containers"][0]["vulnerabilityReports"]
        .as_array()
        .context("reports")?;
    assert_eq!(quoted.len(), 2);
    assert_eq!(
        quoted[0]["report"]["results"][0]["vulnerabilities"][0]["cve"],
        "CVE-2024-0001"
    );
    let table = kubectl.succeed(&["get", "workloadscanreports"])?;
    let row = table.lines().nth(1).context("a row")?;
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(&cells[..3], ["deployment-app", "1/2", "1"], "{table}");

    // What was read can be put back; what is computed of it is ignored with a warning.
    // The report has a new revision whenever one of its Images is told who runs it.
    let replaced = wait::until("a replacement", Duration::from_secs(30), || {
        let report = get(&kubectl, &["workloadscanreport", "deployment-app"])?;
        let replaced = kubectl.run(&["replace", "-f", "-"], &report.to_string())?;
        Ok((!replaced.stderr.contains("(Conflict)")).then_some(replaced))
    })?;
    assert!(replaced.status.success(), "{replaced:?}");
    assert!(
        replaced
            .stderr
            .contains("what was sent of status, summary and containers is ignored"),
        "{replaced:?}"
    );

    let patch = r#"[{"op":"replace","path":"/summary/critical","value":0}]"#;
    let name = ["patch", "workloadscanreport", "deployment-app"];
    let patched = kubectl.run(&[&name[..], &["--type=json", "-p", patch]].concat(), "")?;
    assert!(patched.status.success(), "{patched:?}");
    assert!(
        patched
            .stderr
            .contains("what was sent of summary is ignored"),
        "{patched:?}"
    );

    // A dry run shows what is computed too, so nothing differs.
    kubectl.succeed_with(&["diff", "-f", "-"], &manifests(&registry.host()))?;

    // With the registry goes all that was found through it, and the workload waits again.
    kubectl.succeed(&["delete", "registry", "local"])?;
    wait::until("the end of the findings", LIMIT, || {
        let report = get(&kubectl, &["workloadscanreport", "deployment-app"])?;
        let status = &report["status"]["containerStatuses"][0]["scanStatus"];
        Ok((status == "WaitingForScan" && report["summary"]["critical"] == 0).then_some(()))
    })
}

/// The names of all Images.
fn images(kubectl: &Kubectl) -> Result<BTreeSet<String>> {
    let listed = kubectl.succeed(&["get", "images", "-o", "name"])?;
    Ok(listed.lines().map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_follows_what_the_registry_has_now() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let vulnerabilities = tempfile::tempdir()?;
    data(vulnerabilities.path())?;
    let directory = vulnerabilities.path().to_string_lossy().into_owned();
    let muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &["--database", &directory])?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;

    // Two jobs of one registry wait for each other.
    let both = format!("{}\n---\n{}\n", job("one", "local"), job("two", "local"));
    kubectl.succeed_with(&["apply", "-f", "-"], &both)?;
    for name in ["one", "two"] {
        let reason = ended(&kubectl, name)?;
        assert!(reason.contains("AllImagesScanned"), "{name}: {reason}");
    }
    let before = images(&kubectl)?;
    assert_eq!(before.len(), 2);

    // A tag that is built anew means other images, and the old ones count no more.
    push(&registry, 2025).await?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("three", "local"))?;
    let reason = ended(&kubectl, "three")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let after = images(&kubectl)?;
    assert_eq!(after.len(), 2);
    assert!(after.is_disjoint(&before), "{before:?} {after:?}");
    wait::until("the end of the old findings", LIMIT, || {
        let report = get(&kubectl, &["workloadscanreport", "deployment-app"])?;
        let quoted = report["containers"][0]["vulnerabilityReports"].as_array();
        Ok((quoted.map(Vec::len) == Some(2)).then_some(()))
    })?;

    // What the registry has lost is told, and the rest is scanned all the same.
    // (It is not looked for where the tag has not moved.)
    let arm = push(&registry, 2026).await?;
    Pusher::new(&registry)?.delete("team/app", &arm).await?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("four", "local"))?;
    let reason = ended(&kubectl, "four")?;
    assert!(
        reason.contains("1 of 2 images could not be scanned"),
        "{reason}"
    );
    let scan = get(&kubectl, &["scanjob", "four"])?;
    assert_eq!(scan["status"]["scannedImagesCount"], 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_job_that_cannot_be_done_says_why() -> Result<()> {
    let registry = Registry::start()?;
    let muster = Muster::start(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("lost", "nowhere"))?;
    let reason = ended(&kubectl, "lost")?;
    assert!(reason.contains("RegistryNotFound"), "{reason}");
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("empty", "local"))?;
    let reason = ended(&kubectl, "empty")?;
    assert!(
        reason.contains("InternalError") && reason.contains("team/app"),
        "{reason}"
    );
    Ok(())
}
