//! `kubectl describe` and `kubectl events`: prose about objects and what happened to them.

use super::{Scene, cells, registry};
use anyhow::Result;

#[test]
fn ours_are_described_field_by_field() -> Result<()> {
    let scene = Scene::new("describe-ours")?;
    scene.apply(&registry("example", "a.example.org"))?;
    let text = scene.run("describe registry example")?;
    for line in [
        "Name:         example",
        "Namespace:    describe-ours",
        "Labels:       team=example",
        "API Version:  sbomscanner.kubewarden.io/v1alpha1",
        "Kind:         Registry",
        "Uri:",
        "Events:",
    ] {
        assert!(text.contains(line), "{line:?} in:\n{text}");
    }
    assert!(text.contains("a.example.org"), "{text}");
    Ok(())
}

#[test]
fn built_in_kinds_are_described_by_their_own_describers() -> Result<()> {
    let scene = Scene::new("describe-builtin")?;
    scene.run("create deployment web --image=nginx:1 --replicas=2")?;
    scene.run("create cm settings --from-literal=key=value")?;
    scene.run("create secret generic hidden --from-literal=key=value")?;
    scene.run("create service clusterip front --tcp=80:8080")?;
    scene.run("run lonely --image=busybox")?;
    for (what, lines) in [
        (
            "deployment web",
            vec![
                "Selector:           app=web",
                "2 desired",
                "Image:         nginx:1",
            ],
        ),
        ("cm settings", vec!["key:\n----\nvalue"]),
        ("secret hidden", vec!["Type:  Opaque", "key:  5 bytes"]),
        ("service front", vec!["80/TCP", "Type:", "ClusterIP"]),
        (
            "pod lonely",
            vec!["Image:        busybox", "Status:       Pending"],
        ),
        ("namespace describe-builtin", vec!["Status:       Active"]),
    ] {
        let text = scene.run(&format!("describe {what}"))?;
        for line in lines {
            assert!(text.contains(line), "describe {what}: {line:?} in:\n{text}");
        }
    }
    Ok(())
}

#[test]
fn events_are_listed_and_found_by_what_they_are_about() -> Result<()> {
    let scene = Scene::new("events")?;
    scene.run("run lonely --image=busybox")?;
    let uid = scene.run("get pod lonely -o jsonpath={.metadata.uid}")?;
    scene.feed(
        "create -f -",
        &format!(
            "apiVersion: v1\nkind: Event\nmetadata: {{name: lonely.1}}\ntype: Warning\nreason: Lost\n\
             message: nobody is here\ncount: 1\nsource: {{component: test}}\n\
             firstTimestamp: '2026-01-01T00:00:00Z'\nlastTimestamp: '2026-01-01T00:00:00Z'\n\
             involvedObject: {{apiVersion: v1, kind: Pod, name: lonely, namespace: events, uid: {uid}}}\n"
        ),
    )?;
    for line in [
        "events",
        "events --for=pod/lonely",
        "events --types=Warning",
        "get events --field-selector=involvedObject.name=lonely,reason=Lost",
    ] {
        let table = scene.run(line)?;
        let rows = cells(&table);
        assert_eq!(
            rows[0],
            ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"],
            "{line}"
        );
        assert_eq!(
            rows[1][1..].join(" ").to_lowercase(),
            "warning lost pod/lonely nobody is here",
            "{line}:\n{table}"
        );
    }
    let text = scene.run("describe pod lonely")?;
    assert!(text.contains("nobody is here"), "{text}");
    Ok(())
}
