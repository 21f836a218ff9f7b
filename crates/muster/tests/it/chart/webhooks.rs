//! The webhook configurations of a release: what Helm does with those that are there, and with what operators
//! write into them.

use super::{NAMESPACE, chart};
use anyhow::{Result, ensure};
use muster_testkit::helm::Helm;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};
use serde_json::{Value, json};

const KINDS: [&str; 2] = [
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
];

/// The names of the webhooks in the configurations that exist.
pub(super) fn names(kubectl: &Kubectl) -> Result<String> {
    let names = [
        "-o",
        "jsonpath={.items[?(@.metadata.name==\"muster\")].webhooks[*].name}",
    ];
    kubectl.succeed(&[&["get", &KINDS.join(",")], &names[..]].concat())
}

/// The configurations that exist.
fn kept(kubectl: &Kubectl) -> Result<Value> {
    let all = kubectl.succeed(&["get", &KINDS.join(","), "-o", "json"])?;
    Ok(serde_json::from_str(&all)?)
}

/// What kube-apiserver cannot store if no operator answers: by the webhooks of this version, and by those of
/// the versions before it.
const NOW: &[&str] = &["registries"];
const BEFORE: &[&str] = &["registries", "workloadscanconfigurations"];

/// Writes what an operator writes. No operator answers where kube-apiserver is to ask.
fn register(kubectl: &Kubectl, resources: &[&str]) -> Result<()> {
    for (kind, name, path) in [
        ("MutatingWebhookConfiguration", "defaults", "/mutate"),
        ("ValidatingWebhookConfiguration", "objects", "/validate"),
    ] {
        let service = json!({"namespace": NAMESPACE, "name": "muster-operator", "path": path});
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "muster", "labels": {"app.kubernetes.io/part-of": "muster"}},
            "webhooks": [{
                "name": format!("{name}.sbomscanner.kubewarden.io"),
                "clientConfig": {"service": service}, "failurePolicy": "Fail", "timeoutSeconds": 1,
                "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "rules": [{
                    "apiGroups": ["sbomscanner.kubewarden.io"], "apiVersions": ["v1alpha1"],
                    "resources": resources,
                    "operations": ["CREATE", "UPDATE"], "scope": "*",
                }],
            }],
        });
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        let manager = ["--field-manager", "muster"];
        kubectl.succeed_with(&[&apply[..], &manager].concat(), &configuration.to_string())?;
    }
    Ok(())
}

struct Cluster {
    _kubernetes: Kubernetes,
    kubectl: Kubectl,
    helm: Helm,
}

impl Cluster {
    fn start() -> Result<Cluster> {
        let kubernetes = Kubernetes::start(&Options::default())?;
        let path = kubernetes.kubeconfig_path();
        Ok(Cluster {
            kubectl: Kubectl::new(&path)?,
            helm: Helm::of(&path)?,
            _kubernetes: kubernetes,
        })
    }

    fn helm(&self, verb: &str, set: &str) -> Result<()> {
        let chart = chart();
        let place = ["--namespace", NAMESPACE, "--create-namespace"];
        let release = [verb, "muster", &chart, "--set", set];
        self.helm.succeed(&[&release[..], &place].concat())?;
        Ok(())
    }

    /// Deletes Helm's record of the release, and the default configuration.
    fn forget(&self) -> Result<()> {
        let secrets = ["-n", NAMESPACE, "delete", "secret", "-l", "owner=helm"];
        self.kubectl.succeed(&secrets)?;
        let configuration = ["delete", "workloadscanconfiguration", "default"];
        self.kubectl.succeed(&configuration).map(drop)
    }

    fn uninstall(&self) -> Result<()> {
        self.helm
            .succeed(&["uninstall", "muster", "--namespace", NAMESPACE])?;
        let left = self
            .kubectl
            .succeed(&["get", &KINDS.join(","), "-o", "name"])?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    }

    fn interval(&self) -> Result<String> {
        let interval = ["-o", "jsonpath={.spec.scanInterval}"];
        let configuration = ["get", "workloadscanconfiguration", "default"];
        self.kubectl
            .succeed(&[&configuration[..], &interval].concat())
    }
}

#[test]
fn helm_owns_the_webhooks_and_leaves_to_operators_what_is_in_them() -> Result<()> {
    let cluster = Cluster::start()?;
    cluster.helm("install", "log=info")?;
    let empty = kept(&cluster.kubectl)?;
    assert_eq!(empty["items"].as_array().map(Vec::len), Some(2), "{empty}");
    assert_eq!(names(&cluster.kubectl)?, "");

    // What operators and administrators wrote stays.
    cluster.kubectl.succeed(&[
        "patch",
        "workloadscanconfiguration",
        "default",
        "--type=merge",
        "-p",
        r#"{"spec":{"scanInterval":"7h"}}"#,
    ])?;
    register(&cluster.kubectl, NOW)?;
    let names_before = names(&cluster.kubectl)?;
    ensure!(names_before.contains("defaults") && names_before.contains("objects"));
    for set in ["log=debug", "log=info"] {
        cluster.helm("upgrade", set)?;
        assert_eq!(names(&cluster.kubectl)?, names_before);
        assert_eq!(cluster.interval()?, "7h");
    }

    // A namespace that is deleted takes Helm's record with it, and leaves the webhooks.
    cluster.forget()?;
    register(&cluster.kubectl, BEFORE)?;
    cluster.helm("install", "log=info")?;
    assert_eq!(cluster.interval()?, "24h");
    cluster.uninstall()
}

#[test]
fn webhooks_that_were_left_behind_keep_nobody_from_installing() -> Result<()> {
    let cluster = Cluster::start()?;
    register(&cluster.kubectl, BEFORE)?;
    // One that somebody else owns is not touched.
    let others = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "others"},
    });
    cluster
        .kubectl
        .succeed_with(&["create", "-f", "-"], &others.to_string())?;
    cluster.helm("install", "log=info")?;
    assert_eq!(
        cluster.interval()?,
        "24h",
        "the default configuration is there"
    );
    assert_eq!(names(&cluster.kubectl)?, "", "nobody answered for them");

    // Operators create them, and they are not Helm's then.
    register(&cluster.kubectl, NOW)?;
    cluster.helm("upgrade", "log=debug")?;
    ensure!(
        !names(&cluster.kubectl)?.is_empty(),
        "an upgrade leaves them"
    );
    cluster
        .kubectl
        .succeed(&["delete", "validatingwebhookconfiguration", "others"])?;
    cluster.uninstall()
}

/// The chart had none before, and operators created both.
#[test]
fn webhooks_of_an_earlier_version_stay_through_an_upgrade_and_go_with_the_release() -> Result<()> {
    let cluster = Cluster::start()?;
    cluster.helm("install", "operator.webhook=false")?;
    register(&cluster.kubectl, NOW)?;
    let before = kept(&cluster.kubectl)?;
    for set in ["operator.webhook=true", "operator.webhook=true,log=debug"] {
        cluster.helm("upgrade", set)?;
        let after = kept(&cluster.kubectl)?;
        assert_eq!(after["items"], before["items"]);
    }
    cluster.uninstall()
}
