//! `muster up --kubeconfig`: a real cluster, or another server that plays one, is looked at.

use crate::workload::{Site, is_complete, push};
use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};
use muster_testkit::muster::Muster;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::path::Path;
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

/// The report at home, once it is as it should be.
fn report(here: &Kubectl, name: &str, is: impl Fn(&Value) -> bool) -> Result<Value> {
    wait::until(&format!("the report {name}"), SOON, || {
        let get = [
            "get",
            "configauditreport",
            name,
            "-n",
            "shop",
            "--ignore-not-found",
            "-o",
            "json",
        ];
        let read = here.succeed(&get)?;
        let read: Value = match read.is_empty() {
            true => Value::Null,
            false => serde_json::from_str(&read)?,
        };
        Ok(is(&read).then_some(read))
    })
}

#[test]
fn the_configuration_of_a_cluster_is_checked_and_reported_at_home() -> Result<()> {
    let cluster = Muster::start_idle(BINARY)?;
    let there = Kubectl::new(&cluster.kubeconfig_path())?;
    there.succeed(&["create", "namespace", "shop"])?;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "main", "image": "web:1", "securityContext": {"privileged": true},
                }]},
            },
        },
    });
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"}, "data": {"password": "hunter22"}});
    let both = json!({"apiVersion": "v1", "kind": "List", "items": [deployment, settings]});
    there.succeed_with(&["create", "-f", "-"], &both.to_string())?;
    let uid = |kind: &str, name: &str| {
        let path = [
            "get",
            kind,
            name,
            "-n",
            "shop",
            "-o",
            "jsonpath={.metadata.uid}",
        ];
        there.succeed(&path)
    };

    let kubeconfig = cluster.kubeconfig_path();
    let kubeconfig = kubeconfig.to_str().context("a path is text")?;
    let arguments = ["--kubeconfig", kubeconfig];
    let home = Muster::start_told(BINARY, &arguments, &[("MUSTER_CONFIG_AUDIT", "on")])?;
    let here = Kubectl::new(&home.kubeconfig_path())?;
    let failed = |report: &Value, check: &str| {
        let checks = report["report"]["checks"].as_array().into_iter().flatten();
        let mut failed = checks.filter(|one| one["success"] == false);
        failed.any(|one| one["checkID"] == check)
    };
    let expected = [
        ("deployment-web", "MST-B001", uid("deployment", "web")?),
        (
            "configmap-settings",
            "MST-C003",
            uid("configmap", "settings")?,
        ),
    ];
    for (name, check, uid) in &expected {
        let found = report(&here, name, |report| failed(report, check));
        let found = found.with_context(|| home.process().log_tail())?;
        assert_eq!(found["metadata"]["ownerReferences"][0]["uid"], json!(uid));
    }

    // They are there still when what is orphaned has been collected.
    let orphan = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "orphan", "namespace": "shop", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": "of-nobody"}]},
    });
    here.succeed_with(&["create", "-f", "-"], &orphan.to_string())?;
    wait::until("the end of the orphan", SOON, || {
        let left = ["get", "configmaps", "-n", "shop", "-o", "name"];
        Ok((!here.succeed(&left)?.contains("/orphan")).then_some(()))
    })?;
    for (name, check, uid) in &expected {
        report(&here, name, |report| {
            failed(report, check) && report["metadata"]["ownerReferences"][0]["uid"] == json!(uid)
        })?;
    }

    // They go with what they are about, and nothing of this was written there.
    there.succeed(&[
        "delete",
        "-n",
        "shop",
        "deployment/web",
        "configmap/settings",
    ])?;
    for (name, ..) in &expected {
        report(&here, name, Value::is_null)?;
    }
    let written = there.succeed(&["get", "configauditreports", "-A", "-o", "name"])?;
    assert!(written.is_empty(), "{written}");
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
    wait::until("the word that it is there", SOON, || {
        let log = home.process().log_tail();
        let said = log.contains("Looking at the workloads of https://");
        Ok(said.then_some(()))
    })?;
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

/// Everything that somebody asked of kube-apiserver, by its audit log: verb and resource.
fn asked(log: &Path, user: &str) -> Result<Vec<(String, String)>> {
    let mut asked = Vec::new();
    for line in std::fs::read_to_string(log)?.lines() {
        let entry: Value = serde_json::from_str(line)?;
        if entry["user"]["username"] == user {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            asked.push((text(&entry["verb"]), text(&entry["objectRef"]["resource"])));
        }
    }
    Ok(asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_cluster_is_inspected_and_nothing_is_written_there() -> Result<()> {
    let files = tempfile::tempdir()?;
    let (policy, log) = (
        files.path().join("policy.yaml"),
        files.path().join("audit.log"),
    );
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";
    std::fs::write(&policy, rules)?;
    let kubernetes = Kubernetes::start(&Options {
        arguments: vec![
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", log.display()),
        ],
        ..Options::default()
    })?;
    let registry = Registry::start()?;
    push(&registry, "team/app", Some("1.0"), 2024).await?;
    let there = Kubectl::new(&kubernetes.kubeconfig_path())?;
    let cluster = Site {
        kubectl: &there,
        host: registry.host(),
    };
    // Whoever looks could write there, if it wanted to.
    let inspector = kubernetes.user_path("inspector", &["system:masters"])?;
    let inspector = inspector.to_str().context("a path is text")?;
    let data = files.path().join("data");
    std::fs::create_dir(&data)?;
    crate::scan::data(&data)?;
    let data = data.to_str().context("a path is text")?;
    let home = Muster::start_with(BINARY, &["--kubeconfig", inspector, "--database", data])?;
    let here = Kubectl::new(&home.kubeconfig_path())?;
    let site = Site {
        kubectl: &here,
        host: registry.host(),
    };
    site.configure(json!({}))?;
    cluster.namespace("web", json!({"team": "a"}))?;
    let (_, set) = cluster.deployment("web", "shop")?;
    let image = cluster.image("team/app:1.0");
    cluster.pod("web", "shop-1-a", Some(&set), &[("app", &image)])?;
    let report = site.reported("web", "deployment-shop", "a scan", is_complete);
    let report = report.with_context(|| home.process().log_tail())?;
    assert_eq!(report["metadata"]["ownerReferences"][0]["name"], "shop");
    let shown = here.succeed(&["get", "workloadscanreports", "-A"])?;
    let line = shown.lines().nth(1).unwrap_or_default();
    for word in ["web", "deployment-shop", "Deployment", "shop"] {
        assert!(line.split_whitespace().any(|cell| cell == word), "{shown}");
    }
    let plan = Command::new(BINARY)
        .args([
            "why",
            "deployment/shop",
            "-n",
            "web",
            "-o",
            "json",
            "--kubeconfig",
        ])
        .arg(home.kubeconfig_path())
        .output()?;
    let plan: Value = serde_json::from_slice(&plan.stdout)?;
    assert_eq!(plan["containers"][0]["scanStatus"], "ScanComplete");
    assert_eq!(
        plan["upgrades"][0]["to"],
        json!(["3.0.11-1~deb12u3"]),
        "{plan:#}"
    );

    // The report goes with the workload.
    for object in ["deployment/shop", "replicaset/shop-1", "pod/shop-1-a"] {
        there.succeed(&["-n", "web", "delete", object, "--now"])?;
    }
    site.unreported("web", "deployment-shop")?;

    let asked = asked(&log, "inspector")?;
    let written: Vec<_> = asked
        .iter()
        .filter(|(verb, _)| !["get", "list", "watch"].contains(&verb.as_str()))
        .collect();
    assert!(written.is_empty(), "{written:?}");
    for resource in ["pods", "namespaces"] {
        let watched = ("watch".to_owned(), resource.to_owned());
        assert!(asked.contains(&watched), "{resource}: {asked:?}");
    }
    Ok(())
}
