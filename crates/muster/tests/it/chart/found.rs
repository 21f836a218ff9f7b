//! What a release finds in a cluster: CRDs of others stay theirs, and reports that the cluster keeps are
//! not served beside it.

use super::{NAMESPACE, called, chart, objects, read};
use anyhow::{Result, ensure};
use muster_testkit::helm::Helm;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};

/// A control plane, and the tools of an administrator.
fn cluster() -> Result<(Kubernetes, Kubectl, Helm)> {
    let kubernetes = Kubernetes::start(&Options::default())?;
    let path = kubernetes.kubeconfig_path();
    let (kubectl, helm) = (Kubectl::new(&path)?, Helm::of(&path)?);
    Ok((kubernetes, kubectl, helm))
}

/// How the chart is rendered for a cluster that is looked at.
fn rendering<'a>(chart: &'a str, namespace: &'a str, set: &'a str) -> [&'a str; 8] {
    [
        "template",
        "muster",
        chart,
        "--dry-run=server",
        "--namespace",
        namespace,
        "--set",
        set,
    ]
}

#[test]
fn reports_are_not_served_where_the_cluster_has_their_definitions() -> Result<()> {
    let (_kubernetes, kubectl, helm) = cluster()?;
    let chart = chart();
    let served = rendering(&chart, NAMESPACE, "reports.backend=served");
    helm.succeed(&served)?;
    kubectl.define(&read("charts/muster/files/crds/reports.yaml")?)?;
    let complaint = helm.fail(&served)?;
    for told in [
        "kubectl delete crd ",
        "policyreports.wgpolicyk8s.io",
        "clusterreports.openreports.io",
        "configauditreports.aquasecurity.github.io",
        "set reports.backend=crd",
    ] {
        ensure!(complaint.contains(told), "no {told}: {complaint}");
    }
    helm.succeed(&rendering(&chart, NAMESPACE, "reports.backend=crd"))?;
    Ok(())
}

/// A release is one of a name in a namespace; another one may have the same name.
#[test]
fn a_definition_of_another_release_is_left_alone() -> Result<()> {
    let (_kubernetes, kubectl, helm) = cluster()?;
    let (chart, name) = (chart(), "policyservers.policies.kubewarden.io");
    let is_rendered = |namespace: &str| -> Result<bool> {
        let text = helm.succeed(&rendering(&chart, namespace, "crds.policies=true"))?;
        let wanted = format!("CustomResourceDefinition {name}");
        Ok(objects(&text)?.iter().any(|one| called(one) == wanted))
    };
    ensure!(is_rendered(NAMESPACE)?, "there is none yet");
    kubectl.define(&read("charts/muster/files/crds/policies.yaml")?)?;
    ensure!(!is_rendered(NAMESPACE)?, "it is nobody's");
    let owner = [
        "meta.helm.sh/release-name=muster",
        "meta.helm.sh/release-namespace=elsewhere",
    ];
    kubectl.succeed(&[&["annotate", "crd", name], &owner[..]].concat())?;
    ensure!(!is_rendered(NAMESPACE)?, "it is another's of that name");
    ensure!(is_rendered("elsewhere")?, "it is this one's");
    Ok(())
}
