//! `kubectl get` in every form of output and with every selector.

use super::{Scene, cells, config_map, registry};
use anyhow::Result;
use serde_json::Value;

/// Three registries and a namespace full of nothing else.
fn scene(namespace: &str) -> Result<Scene> {
    let scene = Scene::new(namespace)?;
    let manifests = [
        registry("one", "one.example.org"),
        registry("two", "two.example.org"),
        registry("three", "three.example.org"),
    ];
    scene.feed("create -f -", &manifests.join("---\n"))?;
    Ok(scene)
}

#[test]
fn a_table_has_the_columns_of_the_kind() -> Result<()> {
    let scene = scene("get-table")?;
    let table = scene.run("get registries")?;
    let rows = cells(&table);
    assert_eq!(
        rows[0],
        ["NAME", "URI", "INTERVAL", "REACHABLE", "LAST SCAN", "AGE"]
    );
    assert_eq!(rows[1][..3], ["one", "one.example.org", "24h"]);
    assert_eq!(rows.len(), 4, "{table}");
    let wide = scene.run("get reg -o wide")?;
    assert_eq!(
        cells(&wide)[0],
        [
            "NAME",
            "URI",
            "INTERVAL",
            "CATALOG",
            "REACHABLE",
            "LAST SCAN",
            "IMAGES",
            "LAST SCHEDULED",
            "AGE"
        ]
    );
    assert!(wide.contains("NoCatalog"), "{wide}");
    let labels = scene.run("get reg one --show-labels --no-headers")?;
    assert!(labels.trim_end().ends_with("team=one"), "{labels}");
    let column = scene.run("get reg -L team")?;
    assert_eq!(cells(&column)[0].last(), Some(&"TEAM"));
    assert_eq!(cells(&column)[2].last(), Some(&"three"));
    let kind = scene.run("get reg one --show-kind --no-headers")?;
    assert!(
        kind.starts_with("registry.sbomscanner.kubewarden.io/one"),
        "{kind}"
    );
    Ok(())
}

#[test]
fn json_yaml_and_names_are_the_whole_object() -> Result<()> {
    let scene = scene("get-json")?;
    let json: Value = serde_json::from_str(&scene.run("get reg one -o json")?)?;
    assert_eq!(json["kind"], "Registry");
    assert_eq!(json["spec"]["uri"], "one.example.org");
    // kubectl hides managedFields unless asked.
    assert_eq!(json["metadata"]["managedFields"], Value::Null);
    let all: Value =
        serde_json::from_str(&scene.run("get reg one -o json --show-managed-fields")?)?;
    assert_eq!(
        all["metadata"]["managedFields"][0]["manager"],
        "kubectl-create"
    );
    let yaml = scene.run("get reg one -o yaml")?;
    assert!(
        yaml.starts_with("apiVersion: sbomscanner.kubewarden.io/v1alpha1\nkind: Registry\n"),
        "{yaml}"
    );
    assert!(yaml.contains("\n  uri: one.example.org\n"), "{yaml}");
    assert_eq!(
        scene.run("get reg -o name")?,
        "registry.sbomscanner.kubewarden.io/one\n\
         registry.sbomscanner.kubewarden.io/three\n\
         registry.sbomscanner.kubewarden.io/two\n"
    );
    let list: Value = serde_json::from_str(&scene.run("get reg -o json")?)?;
    assert_eq!(list["kind"], "List");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(3));
    Ok(())
}

#[test]
fn expressions_pick_single_fields() -> Result<()> {
    let scene = scene("get-fields")?;
    assert_eq!(
        scene.run("get reg one -o jsonpath={.spec.uri}")?,
        "one.example.org"
    );
    assert_eq!(
        scene.run("get reg -o jsonpath={.items[*].metadata.name}")?,
        "one three two"
    );
    let columns = scene.run("get reg -o custom-columns=N:.metadata.name,U:.spec.uri")?;
    assert_eq!(
        cells(&columns),
        [
            ["N", "U"],
            ["one", "one.example.org"],
            ["three", "three.example.org"],
            ["two", "two.example.org"]
        ]
    );
    assert_eq!(
        scene.run("get reg -o go-template='{{range .items}}{{.spec.uri}} {{end}}'")?,
        "one.example.org three.example.org two.example.org "
    );
    let sorted = scene.run("get reg --sort-by=.spec.uri --no-headers")?;
    let names: Vec<_> = cells(&sorted).iter().map(|row| row[0]).collect();
    assert_eq!(names, ["one", "three", "two"]);
    let sorted = scene.run("get reg --sort-by=.metadata.resourceVersion -o name")?;
    assert!(
        sorted.ends_with("/three\n"),
        "the last one created comes last: {sorted}"
    );
    Ok(())
}

#[test]
fn label_selectors_of_every_form_select() -> Result<()> {
    let scene = scene("get-labels")?;
    for (selector, names) in [
        ("team=one", "one"),
        ("team!=one", "three two"),
        ("'team in (one,two)'", "one two"),
        ("'team notin (one,two)'", "three"),
        ("team", "one three two"),
        ("'!team'", ""),
        ("absent!=x", "one three two"),
        ("team=one,team!=one", ""),
    ] {
        let line = format!("get reg -l {selector} -o jsonpath={{.items[*].metadata.name}}");
        assert_eq!(scene.run(&line)?, names, "{selector}");
    }
    let nothing = scene.outcome("get reg -l team=nobody", "")?;
    assert!(nothing.status.success());
    assert_eq!(
        nothing.stderr,
        "No resources found in get-labels namespace.\n"
    );
    Ok(())
}

#[test]
fn field_selectors_select_and_unknown_fields_are_refused() -> Result<()> {
    let scene = scene("get-field-selector")?;
    scene.run("create secret generic plain --from-literal=a=b")?;
    scene.run("run lonely --image=busybox")?;
    for (line, name) in [
        (
            "get reg --field-selector metadata.name=two -o name",
            "registry.sbomscanner.kubewarden.io/two\n",
        ),
        (
            "get secrets --field-selector type=Opaque -o name",
            "secret/plain\n",
        ),
        ("get secrets --field-selector type!=Opaque -o name", ""),
        (
            "get pods --field-selector status.phase=Pending,spec.nodeName= -o name",
            "pod/lonely\n",
        ),
        (
            "get cm -A --field-selector metadata.namespace=get-field-selector -o name",
            "",
        ),
    ] {
        assert_eq!(scene.run(line)?, name, "{line}");
    }
    let refused = scene.refused("get reg --field-selector spec.nothing=1", "")?;
    assert!(
        refused.contains("field label not supported: spec.nothing"),
        "{refused}"
    );
    Ok(())
}

#[test]
fn all_namespaces_and_several_kinds_come_in_one_go() -> Result<()> {
    let scene = scene("get-all")?;
    scene.apply(&config_map("settings", "{a: b}"))?;
    let table = scene.run("get reg -A -l team=one")?;
    let rows = cells(&table);
    assert_eq!(rows[0][..2], ["NAMESPACE", "NAME"]);
    assert!(
        rows.iter().any(|row| row[..2] == ["get-all", "one"]),
        "{table}"
    );
    let both = scene.run("get registries,cm -o name")?;
    assert_eq!(
        both,
        "registry.sbomscanner.kubewarden.io/one\n\
         registry.sbomscanner.kubewarden.io/three\n\
         registry.sbomscanner.kubewarden.io/two\n\
         configmap/settings\n"
    );
    let tables = scene.run("get registries,cm")?;
    assert!(
        tables.contains("registry.sbomscanner.kubewarden.io/one"),
        "{tables}"
    );
    assert!(tables.contains("configmap/settings"), "{tables}");
    let ours = scene.run("get muster -o name")?;
    assert!(ours.contains("registry.sbomscanner.kubewarden.io/one"));
    let missing = scene.refused("get reg nobody", "")?;
    assert_eq!(
        missing,
        "Error from server (NotFound): registries.sbomscanner.kubewarden.io \"nobody\" not found\n"
    );
    Ok(())
}

#[test]
fn chunks_add_up_to_the_whole() -> Result<()> {
    let scene = scene("get-chunks")?;
    let outcome = scene.outcome("get reg --chunk-size=1 -o name -v=8", "")?;
    assert_eq!(outcome.stdout.lines().count(), 3);
    let pages = outcome.stderr.matches("limit=1").count();
    assert!(pages >= 3, "each page is a request of its own: {pages}");
    assert!(outcome.stderr.contains("continue="), "{}", outcome.stderr);
    let table = scene.run("get reg --chunk-size=2")?;
    assert_eq!(cells(&table).len(), 4, "one heading, three rows:\n{table}");
    Ok(())
}

#[test]
fn the_status_is_read_and_written_apart() -> Result<()> {
    let scene = scene("get-status")?;
    let patch = r#"{"status":{"conditions":[{"type":"Discovered","status":"True","reason":"Done","message":"all of it","lastTransitionTime":"2026-01-01T00:00:00Z"}]},"spec":{"uri":"not.this.way"}}"#;
    scene.run(&format!(
        "patch reg one --subresource=status --type=merge -p '{patch}'"
    ))?;
    let read: Value =
        serde_json::from_str(&scene.run("get reg one --subresource=status -o json")?)?;
    assert_eq!(read["status"]["conditions"][0]["message"], "all of it");
    assert_eq!(read["spec"]["uri"], "one.example.org");
    assert_eq!(read["metadata"]["generation"], 1);
    let table = scene.run("get reg one --subresource=status")?;
    assert_eq!(cells(&table)[0][..2], ["NAME", "URI"]);
    // The other way round: the object itself does not take a status.
    scene.run(r#"patch reg one --type=merge -p '{"status":{"conditions":[]}}'"#)?;
    let kept = scene.run("get reg one -o jsonpath={.status.conditions[0].type}")?;
    assert_eq!(kept, "Discovered");
    Ok(())
}
