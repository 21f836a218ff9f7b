//! `muster up --kubeconfig`: another server plays the cluster that is looked at.

use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_muster");
/// How long a change may take from the cluster to home, on a busy machine.
const SOON: Duration = Duration::from_secs(60);
const MIRRORED: &str = "sbomscanner.kubewarden.io/mirrored";

/// A server that looks at another one.
fn look_at(cluster: &Muster) -> Result<(Muster, Kubectl)> {
    let kubeconfig = cluster.kubeconfig_path();
    let kubeconfig = kubeconfig.to_str().context("a path is text")?;
    let home = Muster::start_with(BINARY, &["--kubeconfig", kubeconfig])?;
    let kubectl = Kubectl::new(&home.kubeconfig_path())?;
    Ok((home, kubectl))
}

/// The labels of a namespace, once they are as they should be.
fn labels(kubectl: &Kubectl, name: &str, are: impl Fn(&Value) -> bool) -> Result<Value> {
    wait::until(&format!("the labels of {name}"), SOON, || {
        let read = kubectl.run(&["get", "namespace", name, "-o", "json"], "")?;
        let read: Value = serde_json::from_str(&read.stdout).unwrap_or_default();
        let labels = read["metadata"]["labels"].clone();
        Ok(are(&labels).then_some(labels))
    })
}

fn is_gone(kubectl: &Kubectl, what: &str, name: &str) -> Result<()> {
    wait::until(&format!("the end of {what} {name}"), SOON, || {
        let read = kubectl.succeed(&["get", what, name, "--ignore-not-found", "-o", "name"])?;
        Ok(read.is_empty().then_some(()))
    })
}

#[test]
fn namespaces_follow_the_cluster_and_nobody_judges_owners_that_are_there() -> Result<()> {
    let cluster = Muster::start_idle(BINARY)?;
    let there = Kubectl::new(&cluster.kubeconfig_path())?;
    for namespace in ["shop", "mine"] {
        there.succeed(&["create", "namespace", namespace])?;
    }
    there.succeed(&["label", "namespace", "shop", "team=a"])?;

    let (home, here) = look_at(&cluster)?;
    let found = labels(&here, "shop", |labels| labels[MIRRORED] == "true")?;
    assert_eq!(found["team"], "a");
    let configured = here.succeed(&["get", "workloadscanconfigurations", "-o", "name"])?;
    assert!(configured.contains("/default"), "{configured}");

    // A report stays though its owner is not here; what is known to be orphaned goes.
    let owner = |kind: &str, version: &str| json!([{"apiVersion": version, "kind": kind, "name": "web", "uid": "of-another-cluster"}]);
    let report = json!({
        "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1", "kind": "WorkloadScanReport",
        "metadata": {
            "name": "by-hand", "namespace": "shop", "ownerReferences": owner("Deployment", "apps/v1"),
        },
        "spec": {"containers": []},
    });
    here.succeed_with(&["create", "-f", "-"], &report.to_string())?;
    let orphan = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "orphan", "namespace": "shop", "ownerReferences": owner("ConfigMap", "v1"),
        },
    });
    here.succeed_with(&["create", "-f", "-"], &orphan.to_string())?;
    wait::until("the end of the orphan", SOON, || {
        let get = [
            "get",
            "configmap",
            "orphan",
            "-n",
            "shop",
            "--ignore-not-found",
            "-o",
            "name",
        ];
        Ok(here.succeed(&get)?.is_empty().then_some(()))
    })?;
    let shown = here.succeed(&["get", "workloadscanreports", "-n", "shop"])?;
    assert!(
        shown.contains("Deployment") && shown.contains("web"),
        "{shown}"
    );

    // Labels follow; a namespace of the user's own at home does not, whatever the cluster has.
    there.succeed(&["label", "namespace", "shop", "team-"])?;
    labels(&here, "shop", |labels| {
        labels["team"].is_null() && labels[MIRRORED] == "true"
    })?;
    here.succeed(&["create", "namespace", "own"])?;
    there.succeed(&["create", "namespace", "own"])?;
    there.succeed(&["label", "namespace", "own", "team=b"])?;
    there.succeed(&["delete", "namespace", "shop"])?;
    is_gone(&here, "namespace", "shop")?;
    there.succeed(&["delete", "namespace", "own"])?;
    there.succeed(&["delete", "namespace", "mine"])?;
    is_gone(&here, "namespace", "mine")?;
    let own = labels(&here, "own", |labels| labels.is_object())?;
    assert!(own[MIRRORED].is_null() && own["team"].is_null(), "{own}");

    // Nothing of this was written there.
    let there = there.succeed(&["get", "workloadscanconfigurations", "-o", "name"])?;
    assert!(there.is_empty(), "{there}");
    drop(home);
    Ok(())
}

#[test]
fn a_cluster_that_is_away_is_waited_for() -> Result<()> {
    let mut cluster = Muster::start_idle(BINARY)?;
    cluster.terminate()?;
    let (home, here) = look_at(&cluster)?;
    wait::until("the word about the cluster", SOON, || {
        let log = home.process().log_tail();
        Ok(log
            .contains("Waiting for the cluster at https://")
            .then_some(()))
    })?;
    let address = cluster.kubeconfig().server.clone();
    cluster.restart_at(&address)?;
    Kubectl::new(&cluster.kubeconfig_path())?.succeed(&["create", "namespace", "late"])?;
    labels(&here, "late", |labels| labels[MIRRORED] == "true")?;
    let log = home.process().log_tail();
    ensure!(
        log.contains("Looking at the workloads of https://"),
        "{log}"
    );
    Ok(())
}

#[test]
fn a_server_does_not_look_at_itself() -> Result<()> {
    let mut muster = Muster::start_idle(BINARY)?;
    muster.terminate()?;
    let refused = Command::new(BINARY)
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(muster.data())
        .arg("--kubeconfig")
        .arg(muster.kubeconfig_path())
        .output()?;
    let error = String::from_utf8_lossy(&refused.stderr);
    ensure!(refused.status.code() == Some(1), "{error}");
    ensure!(
        error.contains("the kubeconfig of this server itself"),
        "{error}"
    );
    Ok(())
}
