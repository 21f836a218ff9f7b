//! `muster storage` behind a real kube-apiserver, as a cluster's users meet it: kubectl through the
//! aggregator, roles that decide, controllers that collect. Tests that do the cluster no harm share
//! one, each with namespaces of its own.

mod admission;
mod controllers;
mod crowd;
mod identity;
mod informer;
mod kinds;
mod life;
mod pages;
mod pipeline;
mod protection;
mod rights;
mod webhook_certificates;
mod webhook_off;

use anyhow::Result;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::postgres::Postgres;
use muster_testkit::storage::{Cluster, Options};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How long anything may take that happens by itself.
const SOON: Duration = Duration::from_secs(60);
const MUSTER: &str = env!("CARGO_BIN_EXE_muster");
const API_VERSION: &str = "storage.sbomscanner.kubewarden.io/v1alpha1";

/// The shared cluster. It is held weakly, so that the last test to leave turns off the lights.
static STAGE: Mutex<Weak<Stage>> = Mutex::new(Weak::new());

struct Stage {
    cluster: Cluster,
    kubectl: Kubectl,
}

fn stage() -> Result<Arc<Stage>> {
    let mut shared = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stage) = shared.upgrade() {
        return Ok(stage);
    }
    let options = Options {
        replicas: 2,
        controllers: true,
        reports: true,
        ..options()?
    };
    let cluster = Cluster::start(MUSTER, &options)?;
    let kubectl = cluster.kubectl()?;
    let stage = Arc::new(Stage { cluster, kubectl });
    *shared = Arc::downgrade(&stage);
    Ok(stage)
}

/// One replica on a fresh database.
fn options() -> Result<Options> {
    let postgres = Postgres::shared()?;
    Ok(Options::on(postgres.url(&postgres.database()?)))
}

/// Makes a namespace.
fn namespace(kubectl: &Kubectl, name: &str) -> Result<()> {
    kubectl.succeed(&["create", "namespace", name])?;
    Ok(())
}

fn apply(kubectl: &Kubectl, object: &Value) -> Result<String> {
    kubectl.succeed_with(&["apply", "-f", "-"], &object.to_string())
}

fn read(kubectl: &Kubectl, namespace: &str, resource: &str, name: &str) -> Result<Value> {
    let text = kubectl.succeed(&["-n", namespace, "get", resource, name, "-o", "json"])?;
    Ok(serde_json::from_str(&text)?)
}

fn object(kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "namespace": namespace},
    });
    for (field, value) in rest.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    object
}

fn about(tag: &str) -> Value {
    json!({
        "registry": "hub", "registryURI": "hub.example.org", "repository": "team/app", "tag": tag,
        "platform": {"os": "linux", "architecture": "amd64"}, "digest": format!("sha256:{:0>64}", tag),
    })
}

fn image(namespace: &str, name: &str, tag: &str) -> Value {
    object(
        "Image",
        namespace,
        name,
        json!({"imageMetadata": about(tag)}),
    )
}

fn bill(namespace: &str, name: &str, tag: &str) -> Value {
    let spdx = json!({"spdxVersion": "SPDX-2.3", "name": name, "packages": []});
    let rest = json!({"imageMetadata": about(tag), "spdx": spdx});
    object("SBOM", namespace, name, rest)
}

/// A report with so many critical findings.
fn report(namespace: &str, name: &str, tag: &str, critical: usize) -> Value {
    let findings: Vec<Value> = (0..critical)
        .map(|number| {
            json!({
                "cve": format!("CVE-2026-{number:04}"), "packageName": format!("package-{number}"),
                "installedVersion": "1.0", "severity": "CRITICAL",
            })
        })
        .collect();
    let results = json!([{"target": "os", "class": "os-pkgs", "type": "debian", "vulnerabilities": findings}]);
    let summary = json!({
        "critical": critical, "high": 0, "medium": 0, "low": 0, "unknown": 0, "suppressed": 0,
    });
    let rest = json!({
        "imageMetadata": about(tag), "report": {"summary": summary, "results": results},
    });
    object("VulnerabilityReport", namespace, name, rest)
}

/// A workload's report on an image of a namespace.
fn workload(namespace: &str, name: &str, images: &str, tag: &str) -> Value {
    let reference = json!({
        "registry": "hub", "namespace": images, "repository": "team/app", "tag": tag,
    });
    let spec = json!({"containers": [{"name": "app", "imageRef": reference}]});
    object("WorkloadScanReport", namespace, name, json!({"spec": spec}))
}
