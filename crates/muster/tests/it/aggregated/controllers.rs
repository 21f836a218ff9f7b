//! kube-controller-manager and our kinds: its garbage collector follows our owner references, its
//! namespace controller empties our kinds.

use super::protection::CONTROLLER;
use super::rights::grant;
use super::{MUSTER, SOON, apply, bill, image, namespace, read, report, stage, workload};
use anyhow::Result;
use muster_testkit::storage::Cluster;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::process::Command;

/// How long the collector may take to notice; it learns of new kinds only every half a minute.
const COLLECTED: std::time::Duration = std::time::Duration::from_secs(180);

fn owned(mut object: Value, owner: &Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    }]);
    object
}

/// Has the controller make a report that nobody else may touch; those who collect must.
fn manage(cluster: &Cluster, space: &str, report: &Value) -> Result<()> {
    let verbs = ["get", "create", "patch"];
    let resources = ["workloadscanreports"];
    grant(&cluster.kubectl()?, space, CONTROLLER, &resources, &verbs)?;
    let mut managed = report.clone();
    managed["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "sbomscanner"});
    apply(&cluster.kubectl_of(CONTROLLER, &[])?, &managed)?;
    Ok(())
}

#[test]
fn the_clusters_garbage_collector_follows_owners_from_a_registry_to_its_findings() -> Result<()> {
    let (stage, space) = (stage()?, "collected");
    let kubectl = &stage.kubectl;
    let definitions = Command::new(MUSTER)
        .args(["crds", "-o", "json", "--group", "sbomscanner.kubewarden.io"])
        .output()?;
    let definitions = String::from_utf8(definitions.stdout)?;
    kubectl.define(&definitions)?;
    namespace(kubectl, space)?;
    let registry = json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
        "metadata": {"name": "hub", "namespace": space},
        "spec": {"uri": "hub.example.org", "catalogType": "NoCatalog", "repositories": [{"name": "team/app"}]},
    });
    apply(kubectl, &registry)?;
    let mut owner = read(kubectl, space, "registry", "hub")?;
    for (resource, object) in [
        ("image", image(space, "one", "1.0")),
        ("sbom", bill(space, "one", "1.0")),
        ("vulnerabilityreport", report(space, "one", "1.0", 1)),
    ] {
        apply(kubectl, &owned(object, &owner))?;
        owner = read(kubectl, space, resource, "one")?;
    }
    apply(kubectl, &image(space, "free", "2.0"))?;
    let registry = read(kubectl, space, "registry", "hub")?;
    manage(
        &stage.cluster,
        space,
        &owned(workload(space, "one", space, "1.0"), &registry),
    )?;
    kubectl.succeed(&["-n", space, "delete", "registry", "hub"])?;
    for resource in [
        "images",
        "sboms",
        "vulnerabilityreports",
        "workloadscanreports",
    ] {
        wait::until(
            &format!("the {resource} to be collected"),
            COLLECTED,
            || {
                let left = kubectl.succeed(&["-n", space, "get", resource, "-o", "name"])?;
                Ok((!left.contains("/one")).then_some(()))
            },
        )?;
    }
    let left = kubectl.succeed(&["-n", space, "get", "images", "-o", "name"])?;
    assert_eq!(left, "image.storage.sbomscanner.kubewarden.io/free\n");
    Ok(())
}

#[test]
fn a_namespace_that_is_deleted_takes_our_kinds_with_it() -> Result<()> {
    let (stage, space) = (stage()?, "emptied");
    let kubectl = &stage.kubectl;
    namespace(kubectl, space)?;
    apply(kubectl, &image(space, "one", "1.0"))?;
    apply(kubectl, &bill(space, "one", "1.0"))?;
    apply(kubectl, &report(space, "one", "1.0", 1))?;
    apply(kubectl, &workload(space, "deployment-app", space, "1.0"))?;
    manage(
        &stage.cluster,
        space,
        &workload(space, "managed", space, "1.0"),
    )?;
    kubectl.succeed(&["delete", "namespace", space, "--timeout=120s"])?;
    wait::until("the namespace to be gone", SOON, || {
        let outcome = kubectl.run(&["get", "namespace", space], "")?;
        Ok(outcome.stderr.contains("NotFound").then_some(()))
    })?;
    for resource in [
        "images",
        "sboms",
        "vulnerabilityreports",
        "workloadscanreports",
    ] {
        let left = kubectl.succeed(&[
            "get",
            resource,
            "-A",
            "--field-selector",
            &format!("metadata.namespace={space}"),
            "-o",
            "name",
        ])?;
        assert_eq!(left, "", "{resource}");
    }
    Ok(())
}
