//! Deletion: by name, by label, all at once; and what becomes of those who are owned.

use super::{Scene, config_map, registry};
use anyhow::Result;
use muster_testkit::wait;
use serde_json::Value;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// A Deployment that owns a ReplicaSet that owns a Pod, as the controllers of a cluster make them.
fn family(scene: &Scene) -> Result<()> {
    scene.run("create deployment web --image=nginx:1")?;
    let uid = scene.run("get deployment web -o jsonpath={.metadata.uid}")?;
    scene.feed(
        "create -f -",
        &format!(
            "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  name: web-1\n  ownerReferences:\n  \
             - {{apiVersion: apps/v1, kind: Deployment, name: web, uid: {uid}, controller: true, blockOwnerDeletion: true}}\n\
             spec:\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    \
             metadata: {{labels: {{app: web}}}}\n    spec: {{containers: [{{name: nginx, image: 'nginx:1'}}]}}\n"
        ),
    )?;
    let uid = scene.run("get replicaset web-1 -o jsonpath={.metadata.uid}")?;
    scene.feed(
        "create -f -",
        &format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web-1-1\n  ownerReferences:\n  \
             - {{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: {uid}, controller: true, blockOwnerDeletion: true}}\n\
             spec: {{containers: [{{name: nginx, image: 'nginx:1'}}]}}\n"
        ),
    )?;
    Ok(())
}

fn remains(scene: &Scene) -> Result<String> {
    scene.run("get deployments,replicasets,pods -o name")
}

fn until_remains(scene: &Scene, expected: &str) -> Result<()> {
    wait::until(&format!("only {expected:?} to remain"), SOON, || {
        Ok((remains(scene)? == expected).then_some(()))
    })
}

#[test]
fn in_the_background_the_owner_goes_first_and_the_owned_follow() -> Result<()> {
    let scene = Scene::new("delete-background")?;
    family(&scene)?;
    assert_eq!(
        scene.run("delete deployment web --cascade=background")?,
        "deployment.apps \"web\" deleted from delete-background namespace\n"
    );
    until_remains(&scene, "")
}

#[test]
fn in_the_foreground_the_owner_goes_last() -> Result<()> {
    let scene = Scene::new("delete-foreground")?;
    family(&scene)?;
    // A finalizer holds the pod, and through it everything above.
    scene.run(
        r#"patch pod web-1-1 --type=merge -p '{"metadata":{"finalizers":["example.org/hold"]}}'"#,
    )?;
    scene.run("delete deployment web --cascade=foreground --wait=false")?;
    let held: Value = wait::until("the pod to be deleted in its turn", SOON, || {
        let pod: Value = serde_json::from_str(&scene.run("get pod web-1-1 -o json")?)?;
        Ok(pod["metadata"]["deletionTimestamp"]
            .is_string()
            .then_some(pod))
    })?;
    assert_eq!(held["metadata"]["finalizers"][0], "example.org/hold");
    let owner: Value = serde_json::from_str(&scene.run("get deployment web -o json")?)?;
    assert_eq!(owner["metadata"]["finalizers"][0], "foregroundDeletion");
    assert!(owner["metadata"]["deletionTimestamp"].is_string());
    scene.run(r#"patch pod web-1-1 --type=merge -p '{"metadata":{"finalizers":null}}'"#)?;
    until_remains(&scene, "")
}

#[test]
fn orphans_stay_and_forget_their_owner() -> Result<()> {
    let scene = Scene::new("delete-orphan")?;
    family(&scene)?;
    scene.run("delete deployment web --cascade=orphan")?;
    until_remains(&scene, "replicaset.apps/web-1\npod/web-1-1\n")?;
    let read: Value = serde_json::from_str(&scene.run("get replicaset web-1 -o json")?)?;
    assert_eq!(read["metadata"]["ownerReferences"], Value::Null);
    let pod: Value = serde_json::from_str(&scene.run("get pod web-1-1 -o json")?)?;
    assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], "web-1");
    Ok(())
}

#[test]
fn by_label_by_field_and_all_of_a_kind() -> Result<()> {
    let scene = Scene::new("delete-many")?;
    for name in ["one", "two", "three", "four"] {
        scene.feed("create -f -", &registry(name, "a.example.org"))?;
    }
    scene.apply(&config_map("bystander", "{}"))?;
    let kind = "registry.sbomscanner.kubewarden.io";
    assert_eq!(
        scene.run("delete reg -l team=one")?,
        format!("{kind} \"one\" deleted from delete-many namespace\n")
    );
    assert_eq!(
        scene.run("delete reg --field-selector=metadata.name=two")?,
        format!("{kind} \"two\" deleted from delete-many namespace\n")
    );
    let rest = scene.run("delete reg --all")?;
    assert_eq!(rest.lines().count(), 2, "{rest}");
    assert_eq!(scene.run("get reg -o name")?, "");
    assert_eq!(scene.run("get cm -o name")?, "configmap/bystander\n");
    let gone = scene.refused("delete reg one", "")?;
    assert!(gone.contains("(NotFound)"), "{gone}");
    assert_eq!(scene.run("delete reg one --ignore-not-found")?, "");
    scene.feed("delete -f -", &config_map("bystander", "{}"))?;
    assert_eq!(scene.run("get cm -o name")?, "");
    Ok(())
}

#[test]
fn a_deletion_waits_for_finalizers_unless_told_not_to() -> Result<()> {
    let scene = Scene::new("delete-wait")?;
    let held =
        config_map("held", "{}").replace("\ndata:", "\n  finalizers: [example.org/hold]\ndata:");
    scene.apply(&held)?;
    scene.run("delete cm held --wait=false")?;
    let waited = scene.refused("delete cm held --timeout=200ms", "")?;
    assert!(waited.contains("timed out waiting"), "{waited}");
    let release = r#"{"metadata":{"finalizers":null}}"#;
    scene.run(&format!("patch cm held --type=merge -p '{release}'"))?;
    wait::until("the end of the object", SOON, || {
        Ok((scene.run("get cm held --ignore-not-found")?.is_empty()).then_some(()))
    })
}

#[test]
fn a_namespace_takes_its_contents_along() -> Result<()> {
    let scene = Scene::new("delete-namespace")?;
    scene.apply(&config_map("inside", "{}"))?;
    scene.apply(&registry("inside", "a.example.org"))?;
    assert_eq!(
        scene.run("delete namespace delete-namespace --timeout=30s")?,
        "namespace \"delete-namespace\" deleted\n"
    );
    let gone = scene.refused("get namespace delete-namespace", "")?;
    assert!(gone.contains("(NotFound)"), "{gone}");
    assert_eq!(scene.run("get cm,reg -o name")?, "");
    let refused = scene.refused("create cm late", "")?;
    assert!(
        refused.contains("namespaces \"delete-namespace\" not found"),
        "{refused}"
    );
    Ok(())
}
