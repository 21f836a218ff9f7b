//! Which policies judge what: their places, their sorts and their languages.

use super::{Desk, good_names, lines, pod, policy};
use anyhow::{Result, ensure};
use muster_testkit::policies::{Abi, forbidding, mutating, particular, spinning, with_metadata};
use serde_json::{Value, json};

#[test]
fn policies_come_from_files_directories_and_the_manifests_themselves() -> Result<()> {
    let other = policy("other", "true", "", json!({})).to_string();
    let desk = Desk::with(&[
        ("all/pod.yaml", &pod("bad")),
        ("all/policy.yaml", &good_names(json!({}))),
        ("policies/other.yaml", &other),
        ("policies/again.yaml", &other),
        ("plain.yaml", "validations:\n- expression: 'true'\n"),
    ])?;
    let own = ["default/Pod/bad clusterwide-names fail a bad name"];
    assert_eq!(lines(&desk.reports(&["-f", "all"])?), own);
    let both = desk.run(&["-f", "all", "-p", "policies", "-o", "json"])?;
    ensure!(both.talk.contains("more than once"), "{both:?}");
    assert_eq!(
        lines(&both.reports()?)[1],
        "default/Pod/bad clusterwide-other pass -"
    );
    let plain = desk.reports(&["-f", "all/pod.yaml", "-p", "plain.yaml"])?;
    assert_eq!(lines(&plain), ["default/Pod/bad clusterwide-plain pass -"]);
    let none = desk.run(&["-f", "all/pod.yaml"])?;
    assert_eq!(none.code, Some(1), "{none:?}");
    ensure!(
        none.talk
            .contains("name some with `--policy FILE|DIR|MODULE`"),
        "{none:?}"
    );
    let missing = desk.run(&["-f", "all", "-p", "missing.wasm"])?;
    assert_eq!(missing.code, Some(1), "{missing:?}");
    Ok(())
}

#[test]
fn policies_are_chosen_by_namespaces_labels_and_conditions() -> Result<()> {
    let selector = json!({"matchLabels": {"stage": "live"}});
    let with = |name: &str, more: Value| policy(name, "false", "no", more);
    let mut own = with("own", json!({"/metadata/namespace": "live"}));
    own["kind"] = "AdmissionPolicy".into();
    let conditions = json!([{"name": "c", "expression": "object.metadata.name == 'b'"}]);
    let policies = [
        with("by-namespace", json!({"/spec/namespaceSelector": selector})),
        with(
            "by-label",
            json!({"/spec/objectSelector": {"matchLabels": {"app": "b"}}}),
        ),
        with("by-condition", json!({"/spec/matchConditions": conditions})),
        with("left-out", json!({"/spec/backgroundAudit": false})),
        own,
    ];
    let desk = Desk::with(&[])?;
    let policies = json!({"apiVersion": "v1", "kind": "List", "items": policies});
    desk.write("policies.json", policies.to_string())?;
    let pod = |namespace: &str, name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}}})
    };
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "live", "labels": {"stage": "live"}}},
        pod("live", "a"), pod("test", "a"), pod("test", "b"),
    ]});
    desk.write("objects.json", objects.to_string())?;
    let reports = desk.reports(&["-f", "objects.json", "-p", "policies.json"])?;
    assert_eq!(
        lines(&reports),
        [
            "live/Pod/a clusterwide-by-namespace fail no",
            "live/Pod/a namespaced-live-own fail no",
            "test/Pod/b clusterwide-by-condition fail no",
            "test/Pod/b clusterwide-by-label fail no",
        ]
    );
    for report in &reports {
        assert_eq!(report["summary"]["skip"], 1, "{report}");
    }
    Ok(())
}

#[test]
fn modules_judge_by_themselves_or_in_policies() -> Result<()> {
    let desk = Desk::with(&[("pods.yaml", &format!("{}---\n{}", pod("bad"), pod("good")))])?;
    for abi in Abi::ALL {
        let module = forbidding(abi, "\"name\":\"bad\"", "a bad name");
        desk.write("policies/No_Bad.wasm", &module)?;
        let expected = |policy: &str| {
            [
                format!("default/Pod/bad {policy} fail a bad name"),
                format!("default/Pod/good {policy} pass -"),
            ]
        };
        let reports = desk.reports(&["-f", "pods.yaml", "-p", "policies/No_Bad.wasm"])?;
        assert_eq!(lines(&reports), expected("clusterwide-no-bad"), "{abi:?}");
        // A policy names a file beside it.
        let beside =
            good_names(json!({"/spec/module": "file://No_Bad.wasm", "/spec/settings": {}}));
        desk.write("policies/policy.yaml", &beside)?;
        let reports = desk.reports(&["-f", "pods.yaml", "-p", "policies/policy.yaml"])?;
        assert_eq!(lines(&reports), expected("clusterwide-names"), "{abi:?}");
    }
    Ok(())
}

#[test]
fn a_module_is_told_its_settings_and_may_refuse_them() -> Result<()> {
    let desk = Desk::with(&[
        ("pod.yaml", &pod("a")),
        ("good.yaml", "tone: soft\n"),
        ("bad.yaml", "tone: loud\n"),
    ])?;
    desk.write("p.wasm", particular(Abi::Wapc, "loud", "too loud"))?;
    let run =
        |settings: &str| desk.run(&["-f", "pod.yaml", "-p", "p.wasm", "--settings", settings]);
    let good = run("good.yaml")?;
    assert_eq!(good.code, Some(0), "{good:?}");
    let bad = run("bad.yaml")?;
    assert_eq!(bad.code, Some(1), "{bad:?}");
    ensure!(
        bad.talk.contains("too loud") && bad.result.contains("too loud"),
        "{bad:?}"
    );
    desk.write("policy.yaml", good_names(json!({})))?;
    let idle = desk.run(&[
        "-f",
        "pod.yaml",
        "-p",
        "policy.yaml",
        "--settings",
        "good.yaml",
    ])?;
    ensure!(
        idle.code == Some(1) && idle.talk.contains("--settings"),
        "{idle:?}"
    );
    Ok(())
}

#[test]
fn what_a_policy_would_change_is_shown() -> Result<()> {
    let desk = Desk::with(&[("pod.yaml", &pod("a"))])?;
    let changed = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default", "labels": {"team": "none"}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]}});
    let module = mutating(Abi::Wapc, &changed);
    let metadata = json!({"protocolVersion": "v1", "mutating": true,
        "annotations": {"io.kubewarden.policy.severity": "low"}});
    desk.write("labels.wasm", with_metadata(module, &metadata))?;
    let arguments = ["-f", "pod.yaml", "-p", "labels.wasm"];
    let line = desk.reports(&arguments)?[0]["results"][0].clone();
    assert_eq!(
        (&line["result"], &line["severity"]),
        (&json!("pass"), &json!("low")),
        "{line}"
    );
    assert_eq!(line["properties"]["mutated"], "true", "{line}");
    let patch: Value = serde_json::from_str(line["properties"]["patch"].as_str().unwrap())?;
    let expected = json!([{"op": "add", "path": "/metadata/labels", "value": {"team": "none"}}]);
    assert_eq!(patch, expected);
    let table = desk.run(&arguments)?;
    let shown = "change  low  clusterwide-labels  add /metadata/labels {\"team\":\"none\"}";
    ensure!(table.result.contains(shown), "{table:?}");
    Ok(())
}

#[test]
fn groups_and_rego_judge_too() -> Result<()> {
    let member = |expression: &str, message: &str| {
        json!({"module": "builtin:cel",
            "settings": {"validations": [{"expression": expression, "message": message}]}})
    };
    let mut group = policy("group", "", "", json!({}));
    group["kind"] = "ClusterAdmissionPolicyGroup".into();
    group["spec"]["expression"] = "short() && plain()".into();
    group["spec"]["message"] = "not like this".into();
    group["spec"]["policies"] = json!({
        "short": member("object.metadata.name.size() < 5", "too long"),
        "plain": member("true", ""),
    });
    let rego = "package names\nimport rego.v1\n\nviolation contains {\"msg\": \"this name is taken\"} if {\n  \
        input.review.object.metadata.name == input.parameters.name\n}\n";
    let rego = policy(
        "rego",
        "",
        "",
        json!({"/spec/module": "builtin:rego",
        "/spec/settings": {"rego": rego, "parameters": {"name": "short"}}}),
    );
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [group, rego]});
    let desk = Desk::with(&[("policies.json", &list.to_string())])?;
    let pods = format!("{}---\n{}", pod("short"), pod("web"));
    desk.write("pods.yaml", pods)?;
    let reports = desk.reports(&["-f", "pods.yaml", "-p", "policies.json"])?;
    assert_eq!(
        lines(&reports),
        [
            "default/Pod/short clusterwide-group-group fail not like this",
            "default/Pod/short clusterwide-rego fail this name is taken",
            "default/Pod/web clusterwide-group-group pass -",
            "default/Pod/web clusterwide-rego pass -",
        ]
    );
    let table = desk.run(&["-f", "pods.yaml", "-p", "policies.json"])?;
    ensure!(
        table.result.contains("not like this (short: too long)"),
        "{table:?}"
    );
    Ok(())
}

#[test]
fn a_policy_that_misbehaves_harms_no_other() -> Result<()> {
    let desk = Desk::with(&[
        ("pod.yaml", &pod("bad")),
        ("policies/names.yaml", &good_names(json!({}))),
        (
            "policies/none.yaml",
            "apiVersion: policies.kubewarden.io/v1\nkind: AdmissionPolicy\nmetadata: {name: x}\nspec: {rules: 3}\n",
        ),
        (
            "policies/missing.yaml",
            &good_names(json!({"/metadata/name": "gone", "/spec/module": "file://gone.wasm"})),
        ),
    ])?;
    desk.write("spinning.wasm", spinning(Abi::Wapc))?;
    let ended = desk.run(&[
        "-f",
        "pod.yaml",
        "-p",
        "policies",
        "-p",
        "spinning.wasm",
        "-o",
        "json",
    ])?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ensure!(
        ended
            .talk
            .contains("policies/none.yaml:1: AdmissionPolicy x cannot be used"),
        "{ended:?}"
    );
    ensure!(
        ended
            .talk
            .contains("ClusterAdmissionPolicy gone does not load"),
        "{ended:?}"
    );
    let lines = lines(&ended.reports()?);
    assert_eq!(lines.len(), 3, "{lines:?}");
    ensure!(
        lines[0].starts_with("default/Pod/bad clusterwide-gone error the policy does not load"),
        "{lines:?}"
    );
    assert_eq!(
        lines[1],
        "default/Pod/bad clusterwide-names fail a bad name"
    );
    ensure!(
        lines[2].starts_with("default/Pod/bad clusterwide-spinning error "),
        "{lines:?}"
    );
    Ok(())
}
