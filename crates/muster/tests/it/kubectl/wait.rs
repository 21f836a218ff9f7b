//! `kubectl wait`: for what is so already, for what becomes so, and for what never does.

use super::{Scene, config_map, registry};
use anyhow::Result;
use std::process::{Child, Stdio};

/// Starts waiting; the wait ends with what the test does next.
fn waiting(scene: &Scene, line: &str) -> Result<Child> {
    Ok(scene
        .command(line)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?)
}

fn said(child: Child) -> Result<String> {
    let output = child.wait_with_output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "kubectl wait: {complaint}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn condition(scene: &Scene, status: &str) -> Result<String> {
    let patch = format!(
        r#"{{"status":{{"conditions":[{{"type":"Discovered","status":"{status}","reason":"Done","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}}]}}}}"#
    );
    scene.run(&format!(
        "patch reg example --subresource=status --type=merge -p '{patch}'"
    ))
}

const MET: &str = "registry.sbomscanner.kubewarden.io/example condition met\n";

#[test]
fn a_condition_is_waited_for() -> Result<()> {
    let scene = Scene::new("wait-condition")?;
    scene.apply(&registry("example", "a.example.org"))?;
    let early = scene.refused(
        "wait reg/example --for=condition=Discovered --timeout=200ms",
        "",
    )?;
    assert!(early.contains("timed out waiting"), "{early}");
    let child = waiting(
        &scene,
        "wait reg/example --for=condition=Discovered --timeout=60s",
    )?;
    condition(&scene, "True")?;
    assert_eq!(said(child)?, MET);
    assert_eq!(
        scene.run("wait reg --all --for=condition=Discovered=true --timeout=60s")?,
        MET
    );
    let child = waiting(
        &scene,
        "wait reg/example --for=condition=Discovered=False --timeout=60s",
    )?;
    condition(&scene, "False")?;
    assert_eq!(said(child)?, MET);
    Ok(())
}

#[test]
fn a_field_is_waited_for() -> Result<()> {
    let scene = Scene::new("wait-jsonpath")?;
    scene.apply(&registry("example", "a.example.org"))?;
    let child = waiting(
        &scene,
        "wait reg/example --for=jsonpath={.spec.uri}=b.example.org --timeout=60s",
    )?;
    scene.apply(&registry("example", "b.example.org"))?;
    assert_eq!(said(child)?, MET);
    assert_eq!(
        scene.run("wait reg/example --for=jsonpath={.spec.uri} --timeout=60s")?,
        MET
    );
    Ok(())
}

#[test]
fn the_beginning_and_the_end_of_an_object_are_waited_for() -> Result<()> {
    let scene = Scene::new("wait-delete")?;
    let child = waiting(&scene, "wait cm/brief --for=create --timeout=60s")?;
    scene.apply(&config_map("brief", "{}"))?;
    assert_eq!(said(child)?, "configmap/brief condition met\n");
    let child = waiting(&scene, "wait cm/brief --for=delete --timeout=60s")?;
    scene.run("delete cm brief")?;
    // Whoever begins to wait when all is over has nothing to say.
    let text = said(child)?;
    assert!(
        ["", "configmap/brief condition met\n"].contains(&text.as_str()),
        "{text}"
    );
    Ok(())
}
