//! What a controller manages is the controller's; what ends takes nothing new in.

use super::rights::grant;
use super::{SOON, apply, image, namespace, stage, workload};
use anyhow::Result;
use muster_testkit::wait;
use serde_json::json;

const CONTROLLER: &str = "system:serviceaccount:muster:muster-operator";

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
    apply(&dave, &workload(space, "own", space, "1.0"))?;
    controller.succeed(&["-n", space, "delete", "wsr", "deployment-app"])?;
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
