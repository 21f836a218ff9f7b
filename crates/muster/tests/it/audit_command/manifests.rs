//! What is read: files, directories and standard input, and what becomes of what cannot be.

use super::{Desk, good_names, lines, pod, policy};
use anyhow::{Result, ensure};
use serde_json::json;

#[test]
fn manifests_come_from_files_directories_and_standard_input() -> Result<()> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "listed", "namespace": "n"}}]});
    let both = format!("{}---\n{}", pod("bad"), pod("good"));
    let desk = Desk::with(&[
        ("policy.yaml", &good_names(json!({}))),
        ("one.yaml", &both),
        ("many/a/pod.yml", &pod("deep")),
        ("many/list.json", &list.to_string()),
        ("many/README.md", "no manifest"),
        ("many/.hidden/pod.yaml", &pod("hidden")),
    ])?;
    let arguments = [
        "-f",
        "one.yaml",
        "-f",
        "many",
        "-f",
        "-",
        "--policy",
        "policy.yaml",
    ];
    let ended = desk.run_with(&[&arguments[..], &["-o", "json"]].concat(), &pod("piped"))?;
    ensure!(ended.code == Some(0), "{ended:?}");
    assert_eq!(
        lines(&ended.reports()?),
        [
            "default/Pod/bad clusterwide-names fail a bad name",
            "default/Pod/deep clusterwide-names pass -",
            "default/Pod/good clusterwide-names pass -",
            "default/Pod/piped clusterwide-names pass -",
            "n/Pod/listed clusterwide-names pass -",
        ]
    );
    let placed = desk.reports(&["-n", "shop", "-f", "one.yaml", "-p", "policy.yaml"])?;
    ensure!(lines(&placed)[0].starts_with("shop/Pod/bad "), "{placed:?}");
    Ok(())
}

#[test]
fn what_cannot_be_read_is_told_and_costs_nothing_else() -> Result<()> {
    let broken = format!("{}---\nkind: [\n---\n{}", pod("bad"), pod("good"));
    let desk = Desk::with(&[
        ("policy.yaml", &good_names(json!({}))),
        ("all/broken.yaml", &broken),
        ("all/fine.yaml", &pod("fine")),
        ("all/values.yaml", "replicas: 3\n"),
    ])?;
    desk.write("all/latin.yaml", b"name: \xe4\n")?;
    let ended = desk.run(&[
        "-f",
        "all",
        "-p",
        "policy.yaml",
        "-o",
        "json",
        "--fail-on",
        "fail",
    ])?;
    // Half an answer is not taken for a whole one, whatever is in it.
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for said in [
        "all/broken.yaml, document 2: line",
        "all/latin.yaml",
        "all/values.yaml:1 is no object",
    ] {
        ensure!(ended.talk.contains(said), "{said}: {ended:?}");
    }
    assert_eq!(lines(&ended.reports()?).len(), 3);
    // A note is not an error.
    std::fs::remove_file(desk.path("all/broken.yaml"))?;
    std::fs::remove_file(desk.path("all/latin.yaml"))?;
    let ended = desk.run(&["-f", "all", "-p", "policy.yaml"])?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // What is asked for by name has to be what it should be.
    for (file, code) in [
        ("all/values.yaml", 1),
        ("missing.yaml", 1),
        ("all/fine.yaml", 0),
    ] {
        let ended = desk.run(&["-f", file, "-p", "policy.yaml"])?;
        assert_eq!(ended.code, Some(code), "{file}: {ended:?}");
    }
    Ok(())
}

#[test]
fn hostile_manifests_are_refused_in_good_time() -> Result<()> {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let before = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![before; 9].join(", "));
    }
    let deep = format!("a: {}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let desk = Desk::with(&[
        ("policy.yaml", &good_names(json!({}))),
        ("all/bomb.yaml", &bomb),
        ("all/deep.json", &deep),
        ("all/good.yaml", &pod("good")),
        // A terminal would obey it.
        ("all/escape.yaml", "kind: \"\\e]0;owned\\a\"\n"),
    ])?;
    let ended = desk.run(&["-f", "all", "-p", "policy.yaml", "-o", "json"])?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(lines(&ended.reports()?).len(), 1);
    for file in ["bomb.yaml", "deep.json", "escape.yaml"] {
        ensure!(ended.talk.contains(file), "{file}: {ended:?}");
    }
    ensure!(!ended.talk.contains('\u{1b}'), "{ended:?}");
    Ok(())
}

#[test]
fn kinds_are_known_defined_or_guessed() -> Result<()> {
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"],
        "resources": ["mice", "gateways", "priorityclasses"]}]);
    let everything = policy("all", "false", "no", json!({"/spec/rules": rules}));
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "mice.example.org"},
        "spec": {"group": "example.org", "scope": "Cluster",
            "names": {"kind": "Mouse", "plural": "mice"},
            "versions": [{"name": "v1", "served": true}]},
    });
    let object = |version: &str, kind: &str| {
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}).to_string()
    };
    let desk = Desk::with(&[
        ("policy.yaml", &everything.to_string()),
        ("all/crd.yaml", &definition.to_string()),
        ("all/1.yaml", &object("example.org/v1", "Mouse")),
        ("all/2.yaml", &object("example.org/v1", "Gateway")),
        (
            "all/3.yaml",
            &object("scheduling.k8s.io/v1", "PriorityClass"),
        ),
    ])?;
    let ended = desk.run(&["-f", "all", "-p", "policy.yaml", "-o", "json"])?;
    assert_eq!(
        lines(&ended.reports()?),
        [
            "-/Mouse/x clusterwide-all fail no",
            "-/PriorityClass/x clusterwide-all fail no",
            "default/Gateway/x clusterwide-all fail no",
        ]
    );
    let guess = "Gateway of example.org/v1 is not known here; it is taken to be served as gateways";
    assert_eq!(ended.talk.matches("not known here").count(), 1, "{ended:?}");
    ensure!(ended.talk.contains(guess), "{ended:?}");
    Ok(())
}
