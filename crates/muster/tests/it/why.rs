//! `muster why` against `muster up`: nothing is scanned here, what would have been found is written
//! through the API.

use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use serde_json::{Value, json};
use std::process::{Command, Output};

const STORAGE: &str = "storage.sbomscanner.kubewarden.io/v1alpha1";

/// A server with two workloads that share an image, one that waits for its scan, and an image that
/// nobody runs.
pub(crate) fn stage() -> Result<(Muster, Kubectl)> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    for namespace in ["shop", "bank", "artifacts", "empty"] {
        kubectl.succeed(&["create", "namespace", namespace])?;
    }
    let openssl = |platform: &str| {
        finding_report(
            "1",
            platform,
            json!([{
                "class": "os-pkgs", "type": "dpkg", "vulnerabilities": [
                    finding("CVE-2024-0001", "openssl", "deb", "1.1.1", &["1.1.2"], "CRITICAL"),
                    finding("CVE-2024-0002", "openssl", "deb", "1.1.1", &["1.1.10"], "HIGH"),
                    finding("CVE-2024-0003", "bash", "deb", "5.0", &[], "LOW"),
                    finding("CVE-2024-0004", "lodash", "npm", "4.0.0", &["4.17.21"], "MEDIUM"),
                ],
            }]),
        )
    };
    let mut harmless = finding("CVE-2024-0001", "openssl", "deb", "1.1.1", &[], "CRITICAL");
    harmless["suppressed"] = json!(true);
    let harmless = json!([{"type": "dpkg", "vulnerabilities": [harmless]}]);
    let mut objects = vec![
        openssl("amd64"),
        openssl("arm64"),
        finding_report("2", "amd64", harmless.clone()),
        finding_report("unused", "amd64", harmless),
    ];
    for image in ["1-amd64", "1-arm64", "2-amd64", "unused-amd64"] {
        objects.push(image_of(image));
    }
    for object in &objects {
        kubectl.succeed_with(&["create", "-f", "-"], &object.to_string())?;
    }
    for (namespace, kind, name, tags) in [
        ("shop", "deployment", "web", &["1", "2"][..]),
        ("bank", "statefulset", "web", &["1"]),
        ("bank", "deployment", "web", &["later"]),
    ] {
        workload(&kubectl, namespace, kind, name, tags)?;
    }
    Ok((muster, kubectl))
}

fn finding(
    cve: &str,
    package: &str,
    kind: &str,
    installed: &str,
    fixed: &[&str],
    severity: &str,
) -> Value {
    json!({
        "cve": cve, "packageName": package, "installedVersion": installed, "severity": severity,
        "fixedVersions": fixed, "purl": format!("pkg:{kind}/{package}@{installed}"),
        "aliases": [cve.replace("CVE-2024-", "GHSA-aaaa-bbbb-")],
        "references": ["https://example.org/CVE-1999-0001"],
    })
}

fn about(name: &str) -> Value {
    let (tag, platform) = name.split_once('-').unwrap();
    json!({
        "registry": "hub", "registryURI": "registry.example", "repository": "app", "tag": tag,
        "digest": format!("sha256:{name}"),
        "platform": {"os": "linux", "architecture": platform},
    })
}

fn image_of(name: &str) -> Value {
    json!({
        "apiVersion": STORAGE, "kind": "Image",
        "metadata": {"name": name, "namespace": "artifacts"}, "imageMetadata": about(name),
    })
}

fn finding_report(tag: &str, platform: &str, results: Value) -> Value {
    let name = format!("{tag}-{platform}");
    json!({
        "apiVersion": STORAGE, "kind": "VulnerabilityReport",
        "metadata": {"name": name, "namespace": "artifacts"},
        "imageMetadata": about(&name), "report": {"results": results},
    })
}

/// A workload whose containers run these tags, with its report.
fn workload(
    kubectl: &Kubectl,
    namespace: &str,
    kind: &str,
    name: &str,
    tags: &[&str],
) -> Result<()> {
    let (pretty, template) = match kind {
        "deployment" => ("Deployment", json!({})),
        _ => ("StatefulSet", json!({"serviceName": "web"})),
    };
    let mut spec = template;
    spec["selector"] = json!({"matchLabels": {"app": name}});
    spec["template"] = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    });
    let owner = json!({
        "apiVersion": "apps/v1", "kind": pretty,
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    });
    let made = kubectl.succeed_with(&["create", "-o", "json", "-f", "-"], &owner.to_string())?;
    let made: Value = serde_json::from_str(&made)?;
    let containers = tags.iter().map(|tag| {
        json!({"name": format!("main-{tag}"), "imageRef": {
            "registry": "hub", "namespace": "artifacts", "repository": "app", "tag": tag,
        }})
    });
    let report = json!({
        "apiVersion": STORAGE, "kind": "WorkloadScanReport",
        "metadata": {
            "name": format!("{kind}-{name}"), "namespace": namespace,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": pretty, "name": name,
                "uid": made["metadata"]["uid"],
            }],
        },
        "spec": {"containers": Value::from_iter(containers)},
    });
    kubectl.succeed_with(&["create", "-f", "-"], &report.to_string())?;
    Ok(())
}

fn why(muster: &Muster, words: &str) -> Result<Output> {
    let output = Command::new(env!("CARGO_BIN_EXE_muster"))
        .arg("why")
        .args(words.split(' '))
        .env("MUSTER_DATA", muster.data())
        .env_remove("KUBECONFIG")
        .output()?;
    Ok(output)
}

fn told(muster: &Muster, words: &str) -> Result<String> {
    let output = why(muster, words)?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "why {words}: {error}");
    ensure!(error.contains("asking the server of"), "{error}");
    String::from_utf8(output.stdout).context("an answer is text")
}

fn refused(muster: &Muster, words: &str) -> Result<String> {
    let output = why(muster, words)?;
    ensure!(output.status.code() == Some(1), "why {words} did not fail");
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn it_says_who_has_a_vulnerability_and_what_a_workload_has_to_upgrade() -> Result<()> {
    let (muster, _kubectl) = stage()?;

    let answer = told(&muster, "cve-2024-0001")?;
    let lines: Vec<&str> = answer.lines().collect();
    assert!(lines[0].starts_with("NAMESPACE  WORKLOAD"), "{answer}");
    assert!(
        lines[1].starts_with("bank") && lines[1].contains("statefulset/web"),
        "{answer}"
    );
    assert!(
        lines[2].contains("deployment/web") && lines[2].contains("main-1"),
        "{answer}"
    );
    assert!(
        lines[2].contains("1.1.2") && lines[2].contains("registry.example/app:1"),
        "{answer}"
    );
    assert!(
        lines[3].contains("main-2") && lines[3].contains("suppressed"),
        "{answer}"
    );
    let rest = "1 image has it and no workload runs it: registry.example/app:unused.";
    assert!(answer.contains(rest), "{answer}");

    let answer: Value = serde_json::from_str(&told(
        &muster,
        "GHSA-aaaa-bbbb-0002 CVE-2024-0004 -n bank -o json",
    )?)?;
    assert_eq!(answer["namespace"], "bank");
    let workloads = answer["workloads"].as_array().context("a list")?;
    let packages: Vec<_> = workloads.iter().map(|one| &one["packageName"]).collect();
    assert_eq!(packages, ["openssl", "lodash"], "{answer:#}");
    assert_eq!(workloads[0]["kind"], "StatefulSet");
    assert_eq!(
        (&answer["workloadCount"], &answer["containerCount"]),
        (&json!(2), &json!(2))
    );

    assert_eq!(answer["notScanned"], 1, "{answer:#}");

    let none = told(&muster, "CVE-1999-0001 -n shop")?;
    assert!(
        none.contains("No workload in namespace shop has CVE-1999-0001"),
        "{none}"
    );
    let nothing = told(&muster, "CVE-1999-0001 -n empty")?;
    assert!(
        nothing.contains("Nothing is scanned in namespace empty"),
        "{nothing}"
    );

    // What is most worth doing comes first, and what two platforms share counts once.
    let plan = told(&muster, "deploy/web -n shop")?;
    let lines: Vec<&str> = plan.lines().collect();
    assert_eq!(lines[0], "deployment/web in namespace shop");
    assert!(
        lines[2].contains("openssl") && lines[2].contains("1.1.10"),
        "{plan}"
    );
    assert!(lines[2].contains("1 critical, 1 high"), "{plan}");
    assert!(
        lines[3].contains("lodash") && lines[3].contains("1 medium"),
        "{plan}"
    );
    assert!(plan.contains("1 finding has no fix: 1 low."), "{plan}");
    assert!(plan.contains("1 finding is suppressed."), "{plan}");
    let plan = told(&muster, "statefulset/web -n bank -o yaml")?;
    assert!(plan.contains("package: openssl"), "{plan}");
    let plan = told(&muster, "deployment/web -n bank")?;
    assert!(plan.contains("Its images are not scanned."), "{plan}");
    assert!(plan.contains("main-later  -        -"), "{plan}");
    assert!(
        plan.contains("Container main-later waits to be scanned: app:later"),
        "{plan}"
    );

    let error = refused(&muster, "web -n bank")?;
    assert!(
        error.contains("say which of deployment.apps/web, statefulset.apps/web"),
        "{error}"
    );
    let error = refused(&muster, "deployment/other -n shop")?;
    assert!(error.contains("there are deployment/web"), "{error}");
    let error = refused(&muster, "deployment/web -n empty")?;
    assert!(error.contains("is the namespace right"), "{error}");
    for words in ["CVE-1999-0001 -n nope", "deployment/web -n nope"] {
        let error = refused(&muster, words)?;
        assert!(error.contains("namespace \"nope\" not found"), "{error}");
    }
    let error = refused(&muster, "deployment/web -A")?;
    assert!(error.contains("-n NAMESPACE"), "{error}");
    Ok(())
}

#[test]
fn a_server_that_is_away_is_said_so() -> Result<()> {
    let mut muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    muster.terminate()?;
    let error = refused(&muster, "CVE-2024-1 -A")?;
    assert!(error.contains("is the server running?"), "{error}");
    Ok(())
}

/// What the operator notes on an Image is not lost when a scan applies the Image once more.
#[test]
fn who_uses_an_image_stays_when_the_image_is_applied_again() -> Result<()> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let mut image = image_of("1-amd64");
    image["metadata"]["namespace"] = json!("default");
    let apply = [
        "apply",
        "--server-side",
        "--field-manager",
        "muster",
        "--force-conflicts",
        "-f",
        "-",
    ];
    kubectl.succeed_with(&apply, &image.to_string())?;
    let reports = json!([{"namespace": "shop", "name": "deployment-web"}]);
    let status = json!({"status": {"workloadScanReports": reports}}).to_string();
    let patch = ["patch", "images", "1-amd64", "--type=merge"];
    let patch = [&patch[..], &["--field-manager", "muster", "-p", &status]].concat();
    kubectl.succeed(&patch)?;
    image["metadata"]["labels"] = json!({"sbomscanner.kubewarden.io/scanjob-uid": "another"});
    kubectl.succeed_with(&apply, &image.to_string())?;
    let get = ["get", "images", "1-amd64", "-o", "json"];
    let read: Value = serde_json::from_str(&kubectl.succeed(&get)?)?;
    assert_eq!(read["status"]["workloadScanReports"], reports);
    assert_eq!(
        read["metadata"]["labels"]["sbomscanner.kubewarden.io/scanjob-uid"],
        "another"
    );
    Ok(())
}
