//! Configuration checks: those that come with Muster, and those that people write in ConfigMaps and files.

use super::{Desk, pod};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// A Deployment that keeps few checks.
fn deployment(more: Value) -> String {
    let mut deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "main", "image": "web:latest", "securityContext": {"privileged": true},
                }]},
            },
        },
    });
    for (check, reason) in more.as_object().into_iter().flatten() {
        let key = format!("exception.audit.kubewarden.io/{check}");
        deployment["metadata"]["annotations"][key] = reason.clone();
    }
    deployment.to_string()
}

/// A ConfigMap with policies, of entries `NAME.WHAT`.
fn policies(entries: &[(&str, &str)]) -> String {
    let data = entries.iter();
    let data: serde_json::Map<String, Value> = data
        .map(|(key, text)| (format!("policy.{key}"), (*text).into()))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "mine", "namespace": "shop",
            "labels": {"audit.kubewarden.io/config-policies": "true"}},
        "data": data,
    })
    .to_string()
}

const NO_PODS: &str = "package mine\n\ndeny contains \"not like this\" if input.kind\n";

/// What reports say, a line each: `Kind/name check result`, in their order.
pub(super) fn said(reports: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for report in reports.iter().filter(|one| one["report"].is_object()) {
        let owner = &report["metadata"]["ownerReferences"][0];
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        for check in report["report"]["checks"].as_array().into_iter().flatten() {
            let result = match (&check["success"], check["exception"].is_object()) {
                (_, true) => "exempt",
                (Value::Bool(true), _) => "pass",
                _ if check["error"] == true => "error",
                _ => "fail",
            };
            let (kind, name) = (text(&owner["kind"]), text(&owner["name"]));
            lines.push(format!(
                "{kind}/{name} {} {result}",
                text(&check["checkID"])
            ));
        }
    }
    lines
}

#[test]
fn built_in_checks_are_made_and_told_in_every_form() -> Result<()> {
    let desk = Desk::checking(&[("deploy/web.yaml", &deployment(json!({})))])?;
    let table = desk.run(&["-f", "deploy"])?;
    ensure!(table.code == Some(0) && table.talk.is_empty(), "{table:?}");
    let mut lines = table.result.lines();
    assert_eq!(
        lines.next(),
        Some("deployment/web in namespace shop (deploy/web.yaml:1)")
    );
    assert_eq!(
        lines.next(),
        Some(
            "  fail  critical  MST-B001  Container \"main\" of Deployment \"web\" runs privileged"
        )
    );
    ensure!(
        table
            .result
            .contains("\n  fail  medium    MST-W001  Container \"main\""),
        "{}",
        table.result
    );
    let sum = table.result.lines().last().context("a sum")?;
    ensure!(
        sum.starts_with("1 resource, ") && sum.contains(" checks: ") && sum.contains(" fail, "),
        "{sum}"
    );
    let reports = desk.reports(&["-f", "deploy"])?;
    assert_eq!(reports.len(), 1, "{reports:?}");
    let report = &reports[0];
    assert_eq!(
        (&report["kind"], &report["metadata"]["name"]),
        (&json!("ConfigAuditReport"), &json!("deployment-web"))
    );
    let found = said(&reports);
    for id in ["MST-B001", "MST-W001"] {
        ensure!(
            found.contains(&format!("Deployment/web {id} fail")),
            "{found:?}"
        );
    }
    let failed = table
        .result
        .lines()
        .filter(|line| line.starts_with("  fail  "));
    assert_eq!(failed.count(), found.len(), "{found:?}");
    let summary = &report["report"]["summary"];
    let counted: u64 = ["criticalCount", "highCount", "mediumCount", "lowCount"]
        .iter()
        .filter_map(|count| summary[count].as_u64())
        .sum();
    assert_eq!(counted as usize, found.len(), "{summary}");
    let ended = desk.run(&["-f", "deploy", "-o", "sarif"])?;
    let sarif: Value = serde_json::from_str(&ended.result)?;
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().context("rules")?;
    let results = run["results"].as_array().context("results")?;
    assert_eq!(results.len(), found.len(), "{sarif}");
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().context("an index")? as usize];
        assert_eq!(result["ruleId"], rule["id"]);
    }
    let rule = rules.iter().find(|rule| rule["id"] == "MST-B001");
    let rule = rule.context("a rule")?;
    assert_eq!(rule["shortDescription"]["text"], "Privileged containers");
    assert_eq!(rule["properties"]["security-severity"], "9.5");
    let help = rule["help"]["text"].as_str().unwrap_or_default();
    ensure!(help.contains("`securityContext.privileged`"), "{rule}");
    let prints: std::collections::BTreeSet<String> = results
        .iter()
        .map(|result| result["partialFingerprints"].to_string())
        .collect();
    assert_eq!(prints.len(), results.len(), "results are told apart");
    Ok(())
}

#[test]
fn built_in_checks_can_be_left_out() -> Result<()> {
    let desk = Desk::checking(&[("web.yaml", &deployment(json!({})))])?;
    for (arguments, privileged, tag) in [
        (&[][..], true, true),
        (&["--builtin-policies=on"], true, true),
        (&["--disable-checks", "MST-B001"], false, true),
        (&["--disable-checks", "workload/image_tag"], true, false),
        (&["--disable-checks", "MST-B001,MST-W001"], false, false),
    ] {
        let found = said(&desk.reports(&[&["-f", "web.yaml"], arguments].concat())?);
        let has = |id: &str| found.contains(&format!("Deployment/web {id} fail"));
        assert_eq!(
            (has("MST-B001"), has("MST-W001")),
            (privileged, tag),
            "{arguments:?}: {found:?}"
        );
    }
    for (name, code, told) in [
        ("MST-W0001", 2, "did you mean MST-W001?"),
        ("workload/image_tags", 2, "did you mean workload/image_tag?"),
        ("of-nobody", 1, "no check is called of-nobody"),
    ] {
        let mistyped = desk.run(&["-f", "web.yaml", "--disable-checks", name])?;
        assert_eq!(mistyped.code, Some(code), "{mistyped:?}");
        ensure!(mistyped.talk.contains(told), "{mistyped:?}");
    }
    let none = desk.run(&["-f", "web.yaml", "--builtin-policies=off"])?;
    assert_eq!(none.code, Some(1), "{none:?}");
    ensure!(none.talk.contains("there is no policy"), "{none:?}");
    Ok(())
}

#[test]
fn policies_of_config_maps_and_files_judge_their_kinds_alone() -> Result<()> {
    let selector = "# METADATA\n# custom:\n#   input:\n#     selector:\n#     - type: kubernetes\n#       subtypes:\n#       - kind: pod\n";
    let kinds = "# METADATA\n# custom:\n#   id: MINE-1\n#   kinds: Pod\n";
    let desk = Desk::with(&[
        ("all/pod.yaml", &pod("a")),
        ("all/web.yaml", &deployment(json!({}))),
        (
            "map/mine.yaml",
            &policies(&[("mine.rego", NO_PODS), ("mine.kinds", "Pod")]),
        ),
        (
            "other.yaml",
            &policies(&[("mine.rego", NO_PODS), ("mine.kinds", "Deployment.apps")]),
        ),
        ("kinds.rego", &format!("{kinds}{NO_PODS}")),
        ("selector.rego", &format!("{selector}{NO_PODS}")),
        (
            "rules.rego",
            &format!("{NO_PODS}\n__rego_metadata__ := {{\"id\": \"MINE-2\"}}\n"),
        ),
    ])?;
    for (arguments, expected) in [
        (&["-f", "map"][..], &["Pod/a mine fail"][..]),
        (&["-p", "map"], &["Pod/a mine fail"]),
        (&["-p", "other.yaml"], &["Deployment/web mine fail"]),
        // The first of a name stands.
        (
            &["-p", "other.yaml", "-f", "map"],
            &["Deployment/web mine fail"],
        ),
        (&["-p", "kinds.rego"], &["Pod/a MINE-1 fail"]),
        (&["-p", "selector.rego"], &["Pod/a selector fail"]),
        (
            &["-p", "rules.rego"],
            &["Pod/a MINE-2 fail", "Deployment/web MINE-2 fail"],
        ),
    ] {
        let arguments = [&["-f", "all"], arguments].concat();
        let reports = desk.reports(&arguments)?;
        assert_eq!(said(&reports), expected, "{arguments:?}");
        let mut kinds = reports.iter().map(|report| &report["kind"]);
        ensure!(
            kinds.all(|kind| kind == "ConfigAuditReport"),
            "{arguments:?}: {reports:?}"
        );
    }
    let table = desk.run(&["-f", "all", "-p", "kinds.rego"])?;
    let expected = "\
pod/a in namespace default (all/pod.yaml:1)
  fail  critical  MINE-1  not like this

1 resource, 1 check: 1 fail.
";
    assert_eq!(table.result, expected, "{table:?}");
    // One that does not say which kinds it is about is asked about requests, as ever.
    desk.write(
        "request.rego",
        "package a\n\ndeny contains \"no\" if input.request.kind.kind == \"Pod\"\n",
    )?;
    let reports = desk.reports(&["-f", "all", "-p", "request.rego"])?;
    ensure!(
        said(&reports).is_empty() && reports[0]["kind"] == "PolicyReport",
        "{reports:?}"
    );
    Ok(())
}

#[test]
fn a_policy_that_cannot_be_used_is_told_and_costs_no_other() -> Result<()> {
    let desk = Desk::with(&[
        ("pod.yaml", &pod("a")),
        (
            "mine.yaml",
            &policies(&[
                ("broken.rego", "package broken\n\ndeny contains {"),
                ("broken.kinds", "Pod"),
                ("bare.rego", NO_PODS),
                ("gadgets.rego", NO_PODS),
                ("gadgets.kinds", "Gadget"),
                ("good.rego", NO_PODS),
                ("good.kinds", "Pod"),
            ]),
        ),
        (
            "kinds.rego",
            "# METADATA\n# custom:\n#   kinds: Pod\npackage a\n",
        ),
    ])?;
    let ended = desk.run(&[
        "-f",
        "pod.yaml",
        "-p",
        "mine.yaml",
        "-p",
        "kinds.rego",
        "-o",
        "json",
    ])?;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(said(&ended.reports()?), ["Pod/a good fail"]);
    for told in [
        "error: policy broken of ConfigMap shop/mine cannot be used: ",
        "error: policy bare of ConfigMap shop/mine cannot be used: `policy.bare.kinds` is missing",
        "error: policy gadgets of ConfigMap shop/mine cannot be used: `gadgets.kinds`: no kind `Gadget` is served",
        "kinds.rego cannot be used: it has none of the rules `deny`, `violation` and `warn`",
    ] {
        ensure!(ended.talk.contains(told), "{told}: {ended:?}");
    }
    assert_eq!(ended.talk.lines().count(), 4, "{ended:?}");
    let nothing = desk.run(&["-f", "pod.yaml", "-p", "kinds.rego"])?;
    ensure!(
        nothing.code == Some(1) && nothing.talk.contains("no policy can be used"),
        "{nothing:?}"
    );
    Ok(())
}

#[test]
fn exceptions_are_shown_and_are_no_failures() -> Result<()> {
    let exceptions = json!({"MST-B001": "until 2099-01-31: the driver needs it"});
    let desk = Desk::checking(&[
        ("web.yaml", &deployment(exceptions)),
        (
            "late.yaml",
            &deployment(json!({"MST-B001": "until 2020-01-31: soon gone"})),
        ),
    ])?;
    let table = desk.run(&["-f", "web.yaml"])?;
    let line = "exempt  critical  MST-B001  the driver needs it, until 2099-01-31 (Container \"main\" of Deployment \"web\" runs privileged)";
    ensure!(table.result.contains(line), "{table:?}");
    ensure!(table.result.contains(" 1 exempt"), "{table:?}");
    let found = said(&desk.reports(&["-f", "web.yaml"])?);
    ensure!(
        found.contains(&"Deployment/web MST-B001 exempt".into()),
        "{found:?}"
    );
    let ended = desk.run(&["-f", "web.yaml", "-o", "sarif"])?;
    let sarif: Value = serde_json::from_str(&ended.result)?;
    let results = sarif["runs"][0]["results"].as_array().context("results")?;
    let suppressed: Vec<&Value> = results
        .iter()
        .filter(|result| result["suppressions"].is_array())
        .collect();
    assert_eq!(suppressed.len(), 1, "{sarif}");
    assert_eq!(suppressed[0]["ruleId"], "MST-B001");
    assert_eq!(
        suppressed[0]["suppressions"][0]["justification"],
        "the driver needs it (until 2099-01-31)"
    );
    let late = desk.run(&["-f", "late.yaml"])?;
    ensure!(
        late.result.contains("the exception ended on 2020-01-31"),
        "{late:?}"
    );
    for (arguments, code) in [
        (&["-f", "web.yaml"][..], 0),
        (&["-f", "web.yaml", "--fail-on", "critical"], 0),
        (&["-f", "web.yaml", "--fail-on", "medium"], 3),
        (&["-f", "web.yaml", "--fail-on", "error"], 0),
        (&["-f", "late.yaml"], 0),
        (&["-f", "late.yaml", "--fail-on", "critical"], 3),
        (&["-f", "late.yaml", "--fail-on", "fail"], 3),
    ] {
        let ended = desk.run(arguments)?;
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    }
    Ok(())
}

#[test]
fn exceptions_can_be_switched_off() -> Result<()> {
    let exceptions = json!({"MST-B001": "the driver needs it"});
    let desk = Desk::checking(&[("web.yaml", &deployment(exceptions))])?;
    for (switch, result) in [
        (&[][..], "exempt"),
        (&["--exceptions=on"], "exempt"),
        (&["--exceptions=off"], "fail"),
    ] {
        let found = said(&desk.reports(&[&["-f", "web.yaml"], switch].concat())?);
        let expected = format!("Deployment/web MST-B001 {result}");
        ensure!(found.contains(&expected), "{switch:?}: {found:?}");
    }
    Ok(())
}

#[test]
fn what_has_a_label_of_those_is_left_alone() -> Result<()> {
    let labelled = |name: &str, labels: Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"password": "hunter22"},
            "metadata": {"name": name, "namespace": "shop", "labels": labels}})
    };
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        labelled("one", json!({"example.com/skip": "no"})),
        labelled("two", json!({"other": ""})),
        labelled("three", json!({})),
    ]});
    let desk = Desk::checking(&[("all.json", &list.to_string())])?;
    for (arguments, expected) in [
        (
            &[][..],
            &["configmap-one", "configmap-two", "configmap-three"][..],
        ),
        (
            &["--skip-labels", "example.com/skip"],
            &["configmap-two", "configmap-three"],
        ),
        (
            &["--skip-labels", "example.com/skip,other"],
            &["configmap-three"],
        ),
    ] {
        let reports = desk.reports(&[&["-f", "all.json"], arguments].concat())?;
        let names: Vec<&Value> = reports
            .iter()
            .map(|report| &report["metadata"]["name"])
            .collect();
        assert_eq!(names, expected, "{arguments:?}");
    }
    Ok(())
}

#[test]
fn nobody_makes_a_manifest_whatever_it_says() -> Result<()> {
    let owned = |kind: &str, name: &str, api_version: &str, owner: Value, spec: Value| {
        json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": "shop", "ownerReferences": [owner]},
            "spec": spec})
    };
    let owner = |api_version: &str, kind: &str| {
        json!({"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u",
            "controller": true})
    };
    let containers = json!({"containers": [{"name": "main", "image": "web"}]});
    let template = json!({"replicas": 1, "template": {"spec": containers}});
    let inactive = json!({"replicas": 0, "template": {"spec": containers}});
    let objects = [
        owned(
            "Pod",
            "of-a-set",
            "v1",
            owner("apps/v1", "ReplicaSet"),
            containers.clone(),
        ),
        owned(
            "Pod",
            "of-another",
            "v1",
            owner("example.org/v1", "Robot"),
            containers.clone(),
        ),
        owned(
            "ReplicaSet",
            "of-a-deployment",
            "apps/v1",
            owner("apps/v1", "Deployment"),
            template,
        ),
        owned(
            "ReplicaSet",
            "inactive",
            "apps/v1",
            owner("example.org/v1", "Robot"),
            inactive,
        ),
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "shop"}}),
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let desk = Desk::checking(&[("all.json", &list.to_string())])?;
    let reports = desk.reports(&["-f", "all.json"])?;
    let names: Vec<&Value> = reports
        .iter()
        .map(|report| &report["metadata"]["name"])
        .collect();
    let expected = [
        "pod-of-a-set",
        "pod-of-another",
        "replicaset-of-a-deployment",
    ];
    assert_eq!(names, expected);
    // And what is in it is seen: a field that nobody knows hides nothing.
    let hidden = json!({"apiVersion": "v1", "kind": "Pod", "review": {"object": {}},
        "metadata": {"name": "a", "namespace": "shop",
            "ownerReferences": [owner("apps/v1", "Deployment")]},
        "spec": {"containers": [{"name": "main", "image": "web",
            "securityContext": {"privileged": true}}]}});
    let desk = Desk::checking(&[("pod.json", &hidden.to_string())])?;
    let found = said(&desk.reports(&["-f", "pod.json"])?);
    ensure!(found.contains(&"Pod/a MST-B001 fail".into()), "{found:?}");
    Ok(())
}
