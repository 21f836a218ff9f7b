//! What is rendered is what a cluster takes.

use super::{EXAMPLES, NAMESPACE, called, chart, objects, template, text, values};
use anyhow::{Context, Result, ensure};
use muster_testkit::definitions;
use muster_testkit::helm::Helm;
use muster_testkit::kubectl::{Kubectl, Outcome};
use muster_testkit::kubernetes::{Kubernetes, Options};
use serde_json::{Value, json};

/// Other projects' objects that an example makes, whose definitions a cluster has then.
const OF_OTHERS: [(&str, &str); 3] = [
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("cert-manager.io/v1", "Certificate"),
    ("cert-manager.io/v1", "Issuer"),
];

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

/// A control plane that knows what the chart's objects are, ours and those of others.
fn cluster() -> Result<(Kubernetes, Kubectl)> {
    let kubernetes = Kubernetes::start(&Options::default())?;
    let kubectl = Kubectl::new(&kubernetes.kubeconfig_path())?;
    // Helm installs these first; the configuration of the workload scan is one of them.
    kubectl.define(&super::read(
        "charts/muster/crds/sbomscanner.kubewarden.io.yaml",
    )?)?;
    kubectl.define(&definitions::read()?)?;
    Ok((kubernetes, kubectl))
}

/// Has kube-apiserver judge objects as if they were applied.
fn judge(kubectl: &Kubectl, objects: &[Value]) -> Result<Outcome> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let arguments = ["apply", "--dry-run=server", "--validate=strict", "-f", "-"];
    kubectl.run(&arguments, &list.to_string())
}

#[test]
fn kube_apiserver_takes_everything_that_is_rendered() -> Result<()> {
    let (_kubernetes, kubectl) = cluster()?;
    let corporate = "--set=certificates.from=cert-manager,certificates.issuer.name=corporate,\
                     certificates.issuer.kind=ClusterIssuer,metrics.serviceMonitor.enabled=true";
    let examples = EXAMPLES.map(values).into_iter();
    let releases = examples.chain([vec![corporate.to_owned()]]);
    // Every release is tried in a namespace of another name, since nothing may depend on it.
    let spaces = [NAMESPACE, "cut-off", "security", "small", "corporate"];
    for (values, space) in releases.zip(spaces) {
        let labels = json!({"pod-security.kubernetes.io/warn": "restricted"});
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "labels": labels},
        });
        kubectl.succeed_with(&["apply", "-f", "-"], &namespace.to_string())?;
        let all = objects(&template(space, &values)?)?;
        let outcome = judge(&kubectl, &all)?;
        ensure!(outcome.status.success(), "{values:?}: {}", outcome.stderr);
        // The only warnings would be about pods that are not confined as they should be.
        ensure!(outcome.stderr.is_empty(), "{values:?}: {}", outcome.stderr);
        assert_eq!(outcome.stdout.lines().count(), all.len(), "{values:?}");
        for object in &all {
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

/// That kube-apiserver takes the objects of others means something only if it would refuse wrong ones.
#[test]
fn the_definitions_of_others_judge_their_objects() -> Result<()> {
    let (_kubernetes, kubectl) = cluster()?;
    kubectl.succeed(&["create", "namespace", NAMESPACE])?;
    let all = objects(&template(NAMESPACE, &values(Some("external-services")))?)?;
    for (version, kind) in OF_OTHERS {
        let is_meant = |object: &&Value| {
            text(object, "/apiVersion") == version && text(object, "/kind") == kind
        };
        let found = all.iter().find(is_meant);
        let mut object = found.with_context(|| format!("no {kind}"))?.clone();
        object["spec"]["misspelt"] = json!(true);
        let outcome = judge(&kubectl, &[object])?;
        ensure!(
            !outcome.status.success() && outcome.stderr.contains("misspelt"),
            "{kind}: {}{}",
            outcome.stdout,
            outcome.stderr
        );
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

/// Helm merges maps: whoever wants another label than the default one takes that away.
#[test]
fn namespaces_are_selected_by_the_labels_of_the_one_who_installs() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("values.yaml");
    for (selector, expected) in [
        (
            json!({"matchLabels": {"team": "shop", "sbomscanner.kubewarden.io/workloadscan": null}}),
            json!({"matchLabels": {"team": "shop"}}),
        ),
        (Value::Null, Value::Null),
    ] {
        let spec = json!({"namespaceSelector": selector});
        let values = json!({"workloadScan": {"configuration": {"spec": spec}}});
        std::fs::write(&path, values.to_string())?;
        let all = template(NAMESPACE, &["--values".into(), path.display().to_string()])?;
        let all = objects(&all)?;
        let made = all
            .iter()
            .find(|object| called(object) == "WorkloadScanConfiguration default");
        let made = made.context("no configuration")?;
        assert_eq!(made["spec"]["namespaceSelector"], expected);
    }
    Ok(())
}

/// The specs of all objects of a kind, with what they are called.
fn specs(values: &[String], kind: &str) -> Result<Vec<(String, Value)>> {
    let all = objects(&template(NAMESPACE, values)?)?.into_iter();
    let all = all.filter(|object| text(object, "/kind") == kind);
    Ok(all
        .map(|object| (called(&object), object["spec"].clone()))
        .collect())
}

#[test]
fn the_bundled_servers_run_where_they_are_told_and_as_whom() -> Result<()> {
    let placement = json!({
        "nodeSelector": {"pool": "data"},
        "tolerations": [{"key": "data", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "important",
    });
    let mut postgresql = placement.clone();
    postgresql["podSecurityContext"] = json!({"runAsUser": 26, "fsGroup": 26});
    let values = [
        format!("--set-json=postgresql.bundled={postgresql}"),
        format!("--set-json=nats.bundled={placement}"),
    ];
    let servers = specs(&values, "StatefulSet")?;
    assert_eq!(servers.len(), 2);
    for (name, spec) in servers {
        let pod = &spec["template"]["spec"];
        for (field, wanted) in placement.as_object().context("fields")? {
            assert_eq!(&pod[field], wanted, "{name}: {field}");
        }
        let user = match name.ends_with("postgresql") {
            true => 26,
            false => 65532,
        };
        assert_eq!(pod["securityContext"]["runAsUser"], user, "{name}");
        // Another version of the chart is no reason to restart a database.
        let labels = &spec["template"]["metadata"]["labels"];
        assert_eq!(labels, &spec["selector"]["matchLabels"], "{name}");
    }
    Ok(())
}

/// A role reads them once.
#[test]
fn other_authorities_are_other_pods() -> Result<()> {
    let roles = |pem: &str| {
        let pem = format!("-----BEGIN CERTIFICATE-----{pem}");
        specs(&[format!("--set=authorities.pem={pem}")], "Deployment")
    };
    let (before, after) = (roles("a")?, roles("b")?);
    assert_eq!(before.len(), 3);
    for ((name, before), (_, after)) in before.iter().zip(&after) {
        let told = "/template/metadata/annotations/muster~1authorities";
        ensure!(!text(before, told).is_empty(), "{name} has no sum");
        assert_ne!(text(before, told), text(after, told), "{name}");
    }
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
                "MutatingWebhookConfiguration muster",
                "ValidatingWebhookConfiguration muster",
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
            vec!["--set=operator.webhook=false".into()],
            &["Deployment muster-operator"],
            &[
                "MutatingWebhookConfiguration muster",
                "ValidatingWebhookConfiguration muster",
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
