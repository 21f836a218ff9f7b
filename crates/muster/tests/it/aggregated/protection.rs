//! What a controller manages is the controller's; what ends takes nothing new in.

use super::rights::grant;
use super::{API_VERSION, SOON, apply, image, namespace, stage, workload};
use anyhow::Result;
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::storage::Cluster;
use muster_testkit::wait;
use serde_json::{Value, json};

pub(super) const CONTROLLER: &str = "system:serviceaccount:muster:muster-operator";

#[test]
fn a_managed_report_is_the_controllers_alone() -> Result<()> {
    let (stage, space) = (stage()?, "managed");
    let kubectl = &stage.kubectl;
    namespace(kubectl, space)?;
    let every = ["get", "create", "update", "patch", "delete"];
    for user in [CONTROLLER, "dave"] {
        grant(kubectl, space, user, &["workloadscanreports"], &every)?;
    }
    let controller = stage.cluster.kubectl_of(CONTROLLER, &[])?;
    let dave = stage.cluster.kubectl_of("dave", &[])?;
    let mut managed = workload(space, "deployment-app", space, "1.0");
    managed["metadata"]["labels"] = json!({"sbomscanner.kubewarden.io/workloadscan": "true"});
    let refused = dave.fail(&["apply", "-f", "-"], &managed.to_string())?;
    assert!(
        refused.contains("managed by the workload scan"),
        "{refused}"
    );
    apply(&controller, &managed)?;
    for arguments in [
        vec!["label", "wsr", "deployment-app", "a=b"],
        vec![
            "label",
            "wsr",
            "deployment-app",
            "sbomscanner.kubewarden.io/workloadscan-",
        ],
        vec!["delete", "wsr", "deployment-app"],
        vec!["delete", "wsr", "--all"],
    ] {
        let mut arguments = arguments;
        arguments.extend(["-n", space]);
        // Not even an administrator: what is changed by hand is changed back, or hides findings.
        for who in [&dave, kubectl] {
            let refused = who.fail(&arguments, "")?;
            assert!(refused.contains("orbidden"), "{arguments:?}: {refused}");
        }
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(refused_by_every_door(&stage.cluster, space, &managed))?;
    apply(&dave, &workload(space, "own", space, "1.0"))?;
    controller.succeed(&["-n", space, "delete", "wsr", "deployment-app"])?;
    Ok(())
}

/// Tries every way of writing there is, as an administrator.
async fn refused_by_every_door(cluster: &Cluster, space: &str, managed: &Value) -> Result<()> {
    let client = Client::new(cluster.kubernetes().kubeconfig())?;
    let collection = format!("/apis/{API_VERSION}/namespaces/{space}/workloadscanreports");
    let one = format!("{collection}/deployment-app");
    let mut freed = client.get(&one).await?.json()?;
    freed["metadata"]["labels"] = json!({});
    let mut applied = managed.clone();
    applied["metadata"]["labels"]["a"] = json!("b");
    let labels = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
    let patch = json!([{"op": "remove", "path": "/metadata/labels"}]).to_string();
    for (method, target, media, body) in [
        (
            Method::PUT,
            one.clone(),
            "application/json",
            freed.to_string(),
        ),
        (
            Method::PATCH,
            one.clone(),
            "application/merge-patch+json",
            labels,
        ),
        (
            Method::PATCH,
            one.clone(),
            "application/json-patch+json",
            patch,
        ),
        (
            Method::PATCH,
            format!("{one}?fieldManager=x&force=true"),
            "application/apply-patch+yaml",
            applied.to_string(),
        ),
        (Method::DELETE, one.clone(), "application/json", "{}".into()),
        (Method::DELETE, collection, "application/json", "{}".into()),
    ] {
        let request = Request::new(method.clone(), &target).body(media, body)?;
        let answer = client.send(request).await?;
        assert_eq!(
            answer.status, 403,
            "{method} {target} as {media}: {answer:?}"
        );
    }
    let kept = client.get(&one).await?.json()?;
    assert_eq!(kept["metadata"]["labels"], managed["metadata"]["labels"]);
    Ok(())
}

#[test]
fn nothing_new_comes_into_a_namespace_that_is_missing_or_ending() -> Result<()> {
    let (stage, space) = (stage()?, "ending");
    let kubectl = &stage.kubectl;
    let refused = kubectl.fail(
        &["apply", "-f", "-"],
        &image("nowhere", "one", "1.0").to_string(),
    )?;
    assert!(
        refused.contains(r#"namespaces "nowhere" not found"#),
        "{refused}"
    );
    namespace(kubectl, space)?;
    let mut kept = image(space, "kept", "1.0");
    kept["metadata"]["finalizers"] = json!(["example.org/wait"]);
    apply(kubectl, &kept)?;
    kubectl.succeed(&["delete", "namespace", space, "--wait=false"])?;
    let late = image(space, "late", "1.0").to_string();
    wait::until("the end of the namespace to be noticed", SOON, || {
        let outcome = kubectl.run(&["create", "-f", "-"], &late)?;
        if outcome.status.success() {
            kubectl.succeed(&["-n", space, "delete", "image", "late", "--ignore-not-found"])?;
        }
        Ok(outcome.stderr.contains("is being terminated").then_some(()))
    })?;
    let free = r#"{"metadata":{"finalizers":null}}"#;
    kubectl.succeed(&[
        "-n",
        space,
        "patch",
        "image",
        "kept",
        "--type=merge",
        "-p",
        free,
    ])?;
    wait::until("the namespace to be gone", SOON, || {
        let outcome = kubectl.run(&["get", "namespace", space], "")?;
        Ok(outcome.stderr.contains("NotFound").then_some(()))
    })
}
