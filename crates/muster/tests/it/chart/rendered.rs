//! What is rendered is what a cluster takes.

use super::{EXAMPLES, NAMESPACE, called, chart, objects, template, text, values};
use anyhow::{Result, ensure};
use muster_testkit::helm::Helm;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};
use serde_json::{Value, json};

/// Groups of other projects, whose definitions kube-apiserver would need to judge their objects.
const FOREIGN: [&str; 2] = ["monitoring.coreos.com/", "cert-manager.io/"];

#[test]
fn helm_finds_nothing_wrong_with_the_chart() -> Result<()> {
    for example in EXAMPLES {
        let (chart, values) = (chart(), values(example));
        let mut arguments = vec!["lint", "--strict", &chart];
        arguments.extend(values.iter().map(String::as_str));
        Helm::new()?.succeed(&arguments)?;
    }
    Ok(())
}

#[test]
fn kube_apiserver_takes_everything_that_is_rendered() -> Result<()> {
    let kubernetes = Kubernetes::start(&Options::default())?;
    let kubectl = Kubectl::new(&kubernetes.kubeconfig_path())?;
    // Every release is tried in a namespace of another name, since nothing may depend on it.
    let spaces = [NAMESPACE, "cut-off", "security", "small"];
    for space in spaces {
        let labels = json!({"pod-security.kubernetes.io/warn": "restricted"});
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": labels},
        });
        kubectl.succeed_with(&["apply", "-f", "-"], &namespace.to_string())?;
    }
    // Helm installs these first; the configuration of the workload scan is one of them.
    let definitions = super::read("charts/muster/crds/sbomscanner.kubewarden.io.yaml")?;
    kubectl.succeed_with(&["apply", "--server-side", "-f", "-"], &definitions)?;
    kubectl.succeed(&["wait", "--for=condition=Established", "crd", "--all"])?;
    for (example, space) in EXAMPLES.into_iter().zip(spaces) {
        let all = objects(&template(space, &values(example))?)?;
        let foreign = |object: &Value| {
            let version = text(object, "/apiVersion");
            FOREIGN.iter().any(|group| version.starts_with(group))
        };
        let (foreign, own): (Vec<Value>, Vec<Value>) = all.into_iter().partition(foreign);
        assert_eq!(foreign.is_empty(), example != Some("external-services"));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": own});
        let arguments = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
        let outcome = kubectl.run(&arguments, &list.to_string())?;
        ensure!(outcome.status.success(), "{example:?}: {}", outcome.stderr);
        // The only warnings would be about pods that are not confined as they should be.
        ensure!(outcome.stderr.is_empty(), "{example:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout.lines().count(), own.len(), "{example:?}");
        for object in foreign.iter().chain(&own) {
            let place = text(object, "/metadata/namespace");
            let is_here = ["", "kube-system", space].contains(&place);
            ensure!(is_here, "{} is in {place}", called(object));
            let elsewhere = format!(".{NAMESPACE}.svc");
            let is_lost = space != NAMESPACE && object.to_string().contains(&elsewhere);
            ensure!(!is_lost, "{} speaks of {elsewhere}", called(object));
        }
    }
    Ok(())
}

/// Every image, from whatever registry, comes from the one that a cluster reaches.
#[test]
fn a_cluster_without_a_network_pulls_from_its_own_registry_alone() -> Result<()> {
    let all = objects(&template(NAMESPACE, &values(Some("air-gap")))?)?;
    let mut images = Vec::new();
    for object in &all {
        let pod = &object["spec"]["template"]["spec"];
        let containers = pod["containers"].as_array().into_iter().flatten();
        for container in containers {
            assert_eq!(pod["imagePullSecrets"], json!([{"name": "registry-login"}]));
            images.push(text(container, "/image").to_owned());
        }
    }
    images.sort();
    images.dedup();
    let expected = [
        "registry.example.org/library/nats:2.11-scratch",
        "registry.example.org/library/postgres:17",
        concat!("registry.example.org/muster:", env!("CARGO_PKG_VERSION")),
    ];
    assert_eq!(images, expected);
    Ok(())
}

/// What each choice of values turns on and off.
#[test]
fn values_decide_what_is_there() -> Result<()> {
    let everything = "--set=metrics.serviceMonitor.enabled=true,metrics.dashboard.enabled=true,worker.podDisruptionBudget.enabled=true";
    for (values, there, missing) in [
        (
            values(None),
            &[
                "WorkloadScanConfiguration default",
                "StatefulSet muster-postgresql",
                "StatefulSet muster-nats",
                "Secret muster-storage-tls",
                "ClusterRole muster-view",
                "ClusterRole muster-workloads",
                "CustomResourceDefinition policyreports.wgpolicyk8s.io",
                "APIService v1alpha1.storage.sbomscanner.kubewarden.io",
                "PodDisruptionBudget muster-storage",
                "NetworkPolicy muster-nats",
            ][..],
            &[
                "ServiceMonitor muster-operator",
                "ConfigMap muster-dashboard",
                "APIService v1beta1.wgpolicyk8s.io",
                "PodDisruptionBudget muster-worker",
                "Certificate muster-storage-tls",
            ][..],
        ),
        (
            vec![everything.into()],
            &[
                "ServiceMonitor muster-storage",
                "ServiceMonitor muster-operator",
                "ServiceMonitor muster-worker",
                "ConfigMap muster-dashboard",
                "PodDisruptionBudget muster-worker",
            ],
            &[],
        ),
        (
            values(Some("external-services")),
            &[
                "Certificate muster-storage-tls",
                "Certificate muster-webhook-tls",
                "APIService v1beta1.wgpolicyk8s.io",
                "APIService v1alpha2.wgpolicyk8s.io",
                "APIService v1alpha1.openreports.io",
                "APIService v1alpha1.aquasecurity.github.io",
                "CustomResourceDefinition admissionpolicies.policies.kubewarden.io",
            ],
            &[
                "Secret muster-storage-tls",
                "StatefulSet muster-postgresql",
                "StatefulSet muster-nats",
                "NetworkPolicy muster-nats",
                "CustomResourceDefinition policyreports.wgpolicyk8s.io",
            ],
        ),
        (
            values(Some("minimal")),
            &["Deployment muster-worker"],
            &[
                "WorkloadScanConfiguration default",
                "ClusterRole muster-workloads",
                "ClusterRole muster-audit",
                "ClusterRoleBinding muster-audit-view",
                "PodDisruptionBudget muster-storage",
                "NetworkPolicy muster-storage",
                "CustomResourceDefinition policyreports.wgpolicyk8s.io",
            ],
        ),
    ] {
        let all = objects(&template(NAMESPACE, &values)?)?;
        let names: Vec<String> = all.iter().map(called).collect();
        for name in there {
            ensure!(names.iter().any(|one| one == name), "{values:?}: no {name}");
        }
        for name in missing {
            ensure!(!names.iter().any(|one| one == name), "{values:?}: {name}");
        }
    }
    Ok(())
}
