//! Changing one object at a time: edit, label, annotate, patch and replace.

use super::{Scene, config_map, registry};
use anyhow::Result;
use serde_json::Value;

#[test]
fn an_edit_in_an_editor_is_saved() -> Result<()> {
    let scene = Scene::new("edit")?;
    scene.apply(&registry("example", "before.example.org"))?;
    let edit = |script: &str, line: &str| -> Result<std::process::Output> {
        let mut command = scene.command(line);
        command.env("KUBE_EDITOR", format!("sed -i {script}"));
        Ok(command.output()?)
    };
    let saved = edit(
        "s/before.example.org/after.example.org/",
        "edit reg example",
    )?;
    assert_eq!(
        String::from_utf8_lossy(&saved.stdout),
        "registry.sbomscanner.kubewarden.io/example edited\n"
    );
    assert_eq!(
        scene.run("get reg example -o jsonpath={.spec.uri}")?,
        "after.example.org"
    );
    let same = edit("s/nothing/matches/", "edit reg example")?;
    assert!(String::from_utf8_lossy(&same.stderr).contains("Edit cancelled, no changes made"));
    // A refused edit opens again with the reason in it, and ends when nothing more is changed.
    let bad = edit("s/NoCatalog/Nonsense/", "edit reg example")?;
    assert!(!bad.status.success());
    let complaint = String::from_utf8_lossy(&bad.stderr);
    assert!(complaint.contains("is invalid"), "{complaint}");
    scene.run("create cm plain --from-literal=key=old")?;
    let builtin = edit("s/old/new/", "edit cm plain")?;
    assert!(builtin.status.success());
    assert_eq!(scene.run("get cm plain -o jsonpath={.data.key}")?, "new");
    Ok(())
}

#[test]
fn labels_are_set_kept_overwritten_and_taken_away() -> Result<()> {
    let scene = Scene::new("label")?;
    scene.apply(&registry("example", "a.example.org"))?;
    let name = "registry.sbomscanner.kubewarden.io/example";
    assert_eq!(
        scene.run("label reg example tier=gold")?,
        format!("{name} labeled\n")
    );
    let kept = scene.refused("label reg example tier=silver", "")?;
    assert!(kept.contains("already has a value (gold)"), "{kept}");
    scene.run("label reg example tier=silver --overwrite")?;
    assert_eq!(
        scene.run("get reg -l tier=silver -o name")?,
        format!("{name}\n")
    );
    assert_eq!(
        scene.run("label reg --all tier-")?,
        format!("{name} unlabeled\n")
    );
    let invalid = scene.refused("label reg example tier=a/b", "")?;
    assert!(invalid.contains("a valid label must be"), "{invalid}");
    let list = scene.run("label cm --all --list")?;
    assert_eq!(list, "");
    Ok(())
}

#[test]
fn annotations_are_set_and_taken_away() -> Result<()> {
    let scene = Scene::new("annotate")?;
    scene.apply(&registry("example", "a.example.org"))?;
    let name = "registry.sbomscanner.kubewarden.io/example";
    assert_eq!(
        scene.run("annotate reg example note='a word'")?,
        format!("{name} annotated\n")
    );
    assert_eq!(
        scene.run("get reg example -o jsonpath={.metadata.annotations.note}")?,
        "a word"
    );
    scene.run("annotate reg example note-")?;
    assert_eq!(
        scene.run("get reg example -o jsonpath={.metadata.annotations.note}")?,
        ""
    );
    let stale = scene.refused("annotate reg example note=x --resource-version=1", "")?;
    assert!(stale.contains("the object has been modified"), "{stale}");
    Ok(())
}

#[test]
fn json_and_merge_patches_change_ours_and_strategic_ones_are_refused() -> Result<()> {
    let scene = Scene::new("patch-ours")?;
    scene.apply(&registry("example", "a.example.org"))?;
    let name = "registry.sbomscanner.kubewarden.io/example";
    let json = r#"[{"op":"test","path":"/spec/uri","value":"a.example.org"},{"op":"replace","path":"/spec/uri","value":"b.example.org"}]"#;
    let patched = scene.run(&format!("patch reg example --type=json -p '{json}'"))?;
    assert_eq!(patched, format!("{name} patched\n"));
    let failed = scene.refused(&format!("patch reg example --type=json -p '{json}'"), "")?;
    assert!(failed.contains("rejected our request"), "{failed}");
    let merge = r#"{"spec":{"insecure":true,"scanInterval":null}}"#;
    scene.run(&format!("patch reg example --type=merge -p '{merge}'"))?;
    let again = scene.run(&format!("patch reg example --type=merge -p '{merge}'"))?;
    assert_eq!(again, format!("{name} patched (no change)\n"));
    let read: Value = serde_json::from_str(&scene.run("get reg example -o json")?)?;
    assert_eq!(read["spec"]["uri"], "b.example.org");
    assert_eq!(read["spec"]["insecure"], true);
    assert_eq!(read["spec"]["scanInterval"], Value::Null);
    let strategic = scene.outcome(
        r#"patch reg example --type=strategic -p '{"spec":{"insecure":false}}' -v=8"#,
        "",
    )?;
    assert_eq!(strategic.status.code(), Some(1));
    assert!(strategic.stderr.contains("415"), "{}", strategic.stderr);
    assert!(
        strategic
            .stderr
            .contains("application/strategic-merge-patch+json is not supported"),
        "{}",
        strategic.stderr
    );
    let invalid = scene.refused(
        r#"patch reg example --type=merge -p '{"spec":{"uri":7}}'"#,
        "",
    )?;
    assert!(
        invalid.contains("spec.uri") && invalid.contains("string"),
        "{invalid}"
    );
    Ok(())
}

#[test]
fn built_in_kinds_take_strategic_patches() -> Result<()> {
    let scene = Scene::new("patch-builtin")?;
    scene.run("create deployment web --image=nginx:1")?;
    let add = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}"#;
    scene.run(&format!("patch deployment web -p '{add}'"))?;
    let names = "get deployment web -o jsonpath={.spec.template.spec.containers[*].name}";
    assert_eq!(scene.run(names)?, "side nginx");
    let remove =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}"#;
    scene.run(&format!("patch deployment web -p '{remove}'"))?;
    assert_eq!(scene.run(names)?, "nginx");
    let replace = r#"{"spec":{"template":{"spec":{"containers":[{"$patch":"replace"},{"name":"only","image":"only:1"}]}}}}"#;
    scene.run(&format!("patch deployment web -p '{replace}'"))?;
    assert_eq!(scene.run(names)?, "only");
    Ok(())
}

#[test]
fn a_replacement_replaces_and_a_stale_one_is_refused() -> Result<()> {
    let scene = Scene::new("replace")?;
    scene.feed("create -f -", &config_map("settings", "{a: '1', b: '2'}"))?;
    let uid = scene.run("get cm settings -o jsonpath={.metadata.uid}")?;
    let mut stale: Value = serde_json::from_str(&scene.run("get cm settings -o json")?)?;
    let replaced = scene.feed("replace -f -", &config_map("settings", "{a: changed}"))?;
    assert_eq!(replaced, "configmap/settings replaced\n");
    assert_eq!(
        scene.run("get cm settings -o jsonpath={.data}")?,
        r#"{"a":"changed"}"#
    );
    stale["data"]["a"] = "stale".into();
    let refused = scene.refused("replace -f -", &stale.to_string())?;
    assert!(
        refused.contains("(Conflict)") && refused.contains("the object has been modified"),
        "{refused}"
    );
    let forced = scene.feed("replace --force -f -", &config_map("settings", "{a: new}"))?;
    assert_eq!(
        forced,
        "configmap \"settings\" deleted from replace namespace\nconfigmap/settings replaced\n"
    );
    assert_ne!(
        scene.run("get cm settings -o jsonpath={.metadata.uid}")?,
        uid,
        "a forced replacement is another object"
    );
    let missing = scene.refused("replace -f -", &config_map("nobody", "{}"))?;
    assert!(missing.contains("not found"), "{missing}");
    Ok(())
}
