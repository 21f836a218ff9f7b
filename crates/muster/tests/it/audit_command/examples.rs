//! The policies that come with Muster do what they say, and a server takes them.

use super::{Desk, example_policies, lines};
use anyhow::Result;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use serde_json::{Value, json};

fn pod(name: &str, labels: Value, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": labels}, "spec": spec})
}

#[test]
fn the_examples_refuse_what_they_say_and_nothing_else() -> Result<()> {
    let labels = json!({"app.kubernetes.io/name": "a", "app.kubernetes.io/part-of": "shop"});
    let container = |more: Value| {
        let mut container = json!({"name": "main", "image": "registry.example:5000/app:1.0"});
        for (key, value) in more.as_object().unwrap() {
            container[key] = value.clone();
        }
        container
    };
    let non_root = json!({"securityContext": {"runAsNonRoot": true}});
    let good = json!({"containers": [container(non_root.clone())]});
    let root = json!({"containers": [container(json!({}))]});
    let privileged = json!({"securityContext": {"runAsNonRoot": true},
        "containers": [container(json!({}))],
        "initContainers": [{"name": "first", "image": "app:1", "securityContext": {"privileged": true}}]});
    let image = |image: &str| json!({"securityContext": {"runAsNonRoot": true}, "containers": [container(json!({"image": image}))]});
    let host = json!({"hostNetwork": true, "hostPID": false, "hostIPC": true,
        "securityContext": {"runAsNonRoot": true}, "containers": [container(json!({}))]});
    let template = json!({"metadata": {"labels": labels}, "spec": privileged.clone()});
    let objects = [
        pod("good", labels.clone(), good),
        pod("privileged", labels.clone(), privileged),
        pod("root", labels.clone(), root),
        pod("latest", labels.clone(), image("app:latest")),
        pod("untagged", labels.clone(), image("localhost:5000/app")),
        pod("pinned", labels.clone(), image("app@sha256:0123")),
        pod("host", labels.clone(), host),
        pod(
            "unlabelled",
            json!({"app.kubernetes.io/name": "a"}),
            image("app:1"),
        ),
        json!({"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "nightly", "namespace": "shop", "labels": labels},
            "spec": {"jobTemplate": {"spec": {"template": template}}}}),
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let desk = Desk::with(&[("objects.json", &list.to_string())])?;
    let policies = example_policies();
    let reports = desk.reports(&["-f", "objects.json", "-p", &policies.to_string_lossy()])?;
    let refused: Vec<String> = lines(&reports)
        .into_iter()
        .filter(|line| !line.contains(" pass "))
        .collect();
    assert_eq!(
        refused,
        [
            "shop/CronJob/nightly clusterwide-privileged-containers fail these containers are privileged: first",
            "shop/Pod/host clusterwide-host-namespaces fail the pod sets hostNetwork, hostIPC",
            "shop/Pod/latest clusterwide-image-tags fail these images have no version: app:latest",
            "shop/Pod/privileged clusterwide-privileged-containers fail these containers are privileged: first",
            "shop/Pod/root clusterwide-group-non-root fail nothing keeps the containers from running as root",
            "shop/Pod/unlabelled clusterwide-required-labels fail these labels are missing: app.kubernetes.io/part-of",
            "shop/Pod/untagged clusterwide-image-tags fail these images have no version: localhost:5000/app",
        ]
    );
    for report in &reports {
        assert_eq!(
            report["results"].as_array().map(Vec::len),
            Some(5),
            "{report}"
        );
        for line in report["results"].as_array().unwrap() {
            assert!(
                line["severity"].is_string() && line["category"].is_string(),
                "{line}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_server_takes_the_examples() -> Result<()> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let applied = kubectl.succeed(&["apply", "-f", &example_policies().to_string_lossy()])?;
    assert_eq!(applied.matches(" created").count(), 5, "{applied}");
    Ok(())
}
