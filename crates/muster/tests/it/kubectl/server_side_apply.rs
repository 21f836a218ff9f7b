//! `kubectl apply --server-side`: fields have owners, and owners may disagree.

use super::{Scene, config_map, registry};
use anyhow::{Context, Result};
use serde_json::{Value, json};

fn managers(scene: &Scene, object: &str) -> Result<Vec<(String, String)>> {
    let text = scene.run(&format!("get {object} -o json --show-managed-fields"))?;
    let read: Value = serde_json::from_str(&text)?;
    let entries = read["metadata"]["managedFields"]
        .as_array()
        .context("no managedFields")?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_string();
    Ok(entries
        .iter()
        .map(|entry| (word(&entry["manager"]), word(&entry["operation"])))
        .collect())
}

#[test]
fn a_conflict_names_the_other_and_force_takes_the_field() -> Result<()> {
    let scene = Scene::new("ssa-conflict")?;
    let ours = registry("example", "ours.example.org");
    let theirs = "apiVersion: sbomscanner.kubewarden.io/v1alpha1\nkind: Registry\n\
                  metadata: {name: example}\nspec: {uri: theirs.example.org}\n";
    let applied = scene.feed("apply --server-side --field-manager=ours -f -", &ours)?;
    assert_eq!(
        applied,
        "registry.sbomscanner.kubewarden.io/example serverside-applied\n"
    );
    let outcome = scene.outcome("apply --server-side --field-manager=theirs -f -", theirs)?;
    assert_eq!(outcome.status.code(), Some(1));
    assert!(
        outcome
            .stderr
            .contains("Apply failed with 1 conflict: conflict with \"ours\": .spec.uri"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.stderr.contains("--force-conflicts"));
    assert_eq!(
        scene.run("get reg example -o jsonpath={.spec.uri}")?,
        "ours.example.org"
    );
    scene.feed(
        "apply --server-side --field-manager=theirs --force-conflicts -f -",
        theirs,
    )?;
    assert_eq!(
        scene.run("get reg example -o jsonpath={.spec.uri}")?,
        "theirs.example.org"
    );
    // The field has changed hands: now the first owner is refused.
    let refused = scene.refused("apply --server-side --field-manager=ours -f -", &ours)?;
    assert!(refused.contains("conflict with \"theirs\""), "{refused}");
    assert_eq!(
        managers(&scene, "reg/example")?,
        [
            ("ours".to_string(), "Apply".to_string()),
            ("theirs".to_string(), "Apply".to_string())
        ]
    );
    Ok(())
}

#[test]
fn equal_values_are_shared_and_stay_until_the_last_owner_leaves() -> Result<()> {
    let scene = Scene::new("ssa-shared")?;
    let both = config_map("settings", "{shared: '1', own: '1'}");
    let other = config_map("settings", "{shared: '1'}");
    let none = config_map("settings", "{}");
    scene.feed("apply --server-side --field-manager=one -f -", &both)?;
    scene.feed("apply --server-side --field-manager=two -f -", &other)?;
    let data = |scene: &Scene| -> Result<Value> {
        let text = scene.run("get cm settings -o json")?;
        Ok(serde_json::from_str::<Value>(&text)?["data"].clone())
    };
    scene.feed("apply --server-side --field-manager=one -f -", &none)?;
    assert_eq!(data(&scene)?, json!({"shared": "1"}));
    scene.feed("apply --server-side --field-manager=two -f -", &none)?;
    assert!(data(&scene)?.get("shared").is_none());
    Ok(())
}

#[test]
fn list_elements_are_owned_by_their_keys() -> Result<()> {
    let scene = Scene::new("ssa-lists")?;
    let deployment = |containers: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  \
             selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    \
             spec: {{containers: [{containers}]}}\n"
        )
    };
    let main =
        deployment("{name: main, image: 'main:1', ports: [{containerPort: 80, protocol: TCP}]}");
    let side = deployment("{name: side, image: 'side:1'}");
    scene.feed("apply --server-side --field-manager=one -f -", &main)?;
    scene.feed("apply --server-side --field-manager=two -f -", &side)?;
    let names = "get deployment web -o jsonpath={.spec.template.spec.containers[*].name}";
    assert_eq!(scene.run(names)?, "main side");
    // Applying without an element gives it up; nobody else wants it.
    scene.feed(
        "apply --server-side --field-manager=one -f -",
        &deployment(""),
    )?;
    assert_eq!(scene.run(names)?, "side");
    Ok(())
}

#[test]
fn an_object_applied_by_the_client_moves_to_the_server() -> Result<()> {
    let scene = Scene::new("ssa-migrate")?;
    scene.apply(&config_map("settings", "{kept: '1', dropped: '2'}"))?;
    scene.feed(
        "apply --server-side -f -",
        &config_map("settings", "{kept: changed}"),
    )?;
    let text = scene.run("get cm settings -o json")?;
    let read: Value = serde_json::from_str(&text)?;
    assert_eq!(read["data"], json!({"kept": "changed"}));
    // kubectl keeps the annotation of the client-side apply, as a manager of its own.
    let apply = |manager: &str| (manager.to_string(), "Apply".to_string());
    assert_eq!(
        managers(&scene, "cm/settings")?,
        [apply("kubectl-last-applied"), apply("kubectl")]
    );
    Ok(())
}
