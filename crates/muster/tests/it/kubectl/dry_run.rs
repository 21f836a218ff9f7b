//! `--dry-run=server` answers as if, and keeps nothing; `--validate` says who minds what.

use super::{Scene, config_map, registry};
use anyhow::Result;
use serde_json::Value;

#[test]
fn a_dry_run_tells_the_outcome_and_changes_nothing() -> Result<()> {
    let scene = Scene::new("dry-run")?;
    let manifest = registry("example", "a.example.org");
    let name = "registry.sbomscanner.kubewarden.io/example";
    assert_eq!(
        scene.feed("create --dry-run=server -f -", &manifest)?,
        format!("{name} created (server dry run)\n")
    );
    let dry: Value =
        serde_json::from_str(&scene.feed("apply --dry-run=server -o json -f -", &manifest)?)?;
    assert_eq!(
        dry["spec"]["scanOnChange"], true,
        "defaults are the server's"
    );
    assert!(dry["metadata"]["uid"].is_string());
    assert_eq!(scene.run("get reg -o name")?, "");

    scene.apply(&manifest)?;
    let before = scene.run("get reg example -o yaml")?;
    let changed = registry("example", "b.example.org");
    assert_eq!(
        scene.feed("apply --dry-run=server -f -", &changed)?,
        format!("{name} configured (server dry run)\n")
    );
    assert_eq!(
        scene.feed(
            "apply --server-side --force-conflicts --dry-run=server -f -",
            &changed
        )?,
        format!("{name} serverside-applied (server dry run)\n")
    );
    let patch = r#"{"spec":{"uri":"c.example.org"}}"#;
    let patched = scene.run(&format!(
        "patch reg example --type=merge --dry-run=server -p '{patch}' -o jsonpath={{.spec.uri}}"
    ))?;
    assert_eq!(patched, "c.example.org");
    assert_eq!(
        scene.feed("replace --dry-run=server -f -", &changed)?,
        format!("{name} replaced (server dry run)\n")
    );
    scene.run("label reg example more=labels --dry-run=server")?;
    let deleted = scene.run("delete reg example --dry-run=server")?;
    assert!(
        deleted.contains("deleted") && deleted.contains("(server dry run)"),
        "{deleted}"
    );
    let typed = scene.run("create cm typed --from-literal=a=b --dry-run=server")?;
    assert_eq!(typed, "configmap/typed created (server dry run)\n");
    assert_eq!(scene.run("get reg example -o yaml")?, before);
    assert_eq!(scene.run("get cm -o name")?, "");
    Ok(())
}

#[test]
fn strict_validation_refuses_what_it_does_not_know() -> Result<()> {
    let scene = Scene::new("validate-strict")?;
    let ours = registry("example", "a.example.org") + "  surprise: 1\n";
    let theirs = config_map("settings", "{}") + "surprise: 1\n";
    for manifest in [&ours, &theirs] {
        for command in ["create", "apply", "apply --server-side"] {
            let refused = scene.refused(&format!("{command} --validate=strict -f -"), manifest)?;
            assert!(refused.contains("surprise"), "{command}: {refused}");
        }
    }
    let deep = scene.refused("create --validate=strict -f -", &ours)?;
    assert!(
        deep.contains("strict decoding error: unknown field \"spec.surprise\""),
        "{deep}"
    );
    assert_eq!(scene.run("get reg,cm -o name")?, "");
    Ok(())
}

#[test]
fn lenient_validation_warns_or_keeps_silent() -> Result<()> {
    let scene = Scene::new("validate-lenient")?;
    let surprise = |name: &str| registry(name, "a.example.org") + "  surprise: 1\n";
    let warned = scene.outcome("create --validate=warn -f -", &surprise("warned"))?;
    assert!(warned.status.success(), "{}", warned.stderr);
    assert_eq!(warned.stderr, "Warning: unknown field \"spec.surprise\"\n");
    let ignored = scene.outcome("create --validate=ignore -f -", &surprise("ignored"))?;
    assert!(ignored.status.success());
    assert_eq!(ignored.stderr, "");
    let kept = scene.run("get reg -o jsonpath={.items[*].spec.surprise}")?;
    assert_eq!(kept, "", "what is not known is not kept");
    Ok(())
}

#[test]
fn a_key_given_twice_is_seen() -> Result<()> {
    let scene = Scene::new("validate-duplicate")?;
    // kubectl loses the first of two equal keys when it reads a manifest, except with --raw.
    let twice = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}"#;
    let file = scene.file("twice.json", twice)?;
    let target = "/api/v1/namespaces/validate-duplicate/configmaps";
    let strict = format!("{target}?fieldValidation=Strict");
    let refused = scene.refused(&format!("create --raw {strict} -f {}", file.display()), "")?;
    assert!(refused.contains("duplicate field \"data.a\""), "{refused}");
    let warned = scene.outcome(&format!("create --raw {target} -f {}", file.display()), "")?;
    assert!(warned.status.success(), "{}", warned.stderr);
    assert_eq!(warned.stderr, "Warning: duplicate field \"data.a\"\n");
    Ok(())
}

#[test]
fn values_that_break_the_schema_are_all_named() -> Result<()> {
    let scene = Scene::new("validate-schema")?;
    let wrong = registry("example", "a.example.org").replace("NoCatalog", "Nonsense");
    let refused = scene.refused("create -f -", &wrong)?;
    assert!(
        refused.contains("The Registry \"example\" is invalid")
            && refused.contains("spec.catalogType: Unsupported value: \"Nonsense\""),
        "{refused}"
    );
    Ok(())
}
