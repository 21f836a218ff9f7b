//! In which form results are told, and with which exit code.

use super::{Desk, good_names, pod, policy};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Two pods, one of which breaks a policy of high severity, and a policy that is not asked.
fn desk() -> Result<Desk> {
    let rated = json!({"/metadata/annotations": {
        "io.kubewarden.policy.severity": "high", "io.kubewarden.policy.category": "Names",
        "io.kubewarden.policy.title": "Good names",
        "io.kubewarden.policy.description": "Names should be good.",
    }});
    let asks_too_much = policy("broken", "object.nothing == 1", "", json!({}));
    Desk::with(&[
        (
            "deploy/pods.yaml",
            &format!("# two\n{}---\n{}", pod("bad"), pod("good")),
        ),
        ("policies/names.yaml", &good_names(rated)),
        (
            "policies/more.yaml",
            &policy("true", "true", "", json!({})).to_string(),
        ),
        (
            "policies/skip.yaml",
            &policy("skip", "false", "", json!({"/spec/backgroundAudit": false})).to_string(),
        ),
        ("broken.yaml", &asks_too_much.to_string()),
    ])
}

const ALL: [&str; 4] = ["-f", "deploy", "-p", "policies"];

#[test]
fn the_table_shows_what_is_wrong_and_counts_the_rest() -> Result<()> {
    let desk = desk()?;
    let ended = desk.run(&ALL)?;
    let expected = "\
pod/bad in namespace default (deploy/pods.yaml:2)
  fail  high  clusterwide-names  a bad name
  1 pass, 1 skipped

1 other resource keeps its policies.
2 resources, 3 policies: 1 fail, 3 pass, 2 skipped.
";
    assert_eq!(
        (ended.result.as_str(), ended.code),
        (expected, Some(0)),
        "{ended:?}"
    );
    desk.write("deploy/pods.yaml", pod("good"))?;
    let ended = desk.run(&ALL)?;
    let expected = "The resource keeps its policies.\n1 resource, 3 policies: 2 pass, 1 skipped.\n";
    assert_eq!(ended.result, expected, "{ended:?}");
    desk.write(
        "deploy/pods.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n",
    )?;
    let ended = desk.run(&ALL)?;
    assert_eq!(
        ended.result, "None of 1 resource is judged by 3 policies.\n",
        "{ended:?}"
    );
    Ok(())
}

#[test]
fn reports_are_those_that_a_cluster_would_have() -> Result<()> {
    let desk = desk()?;
    let mut reports = desk.reports(&ALL)?;
    let uid = reports[0]["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let again = desk.reports(&ALL)?;
    assert_eq!(again[0]["metadata"]["name"], uid, "the name stays");
    for line in reports[0]["results"].as_array_mut().unwrap() {
        let seconds = line["timestamp"]["seconds"].take();
        ensure!(seconds.as_i64() > Some(1_700_000_000), "{seconds}");
    }
    let timestamp = json!({"seconds": null, "nanos": 0});
    assert_eq!(
        reports[0],
        json!({
            "apiVersion": "wgpolicyk8s.io/v1beta1", "kind": "PolicyReport",
            "metadata": {
                "name": uid, "namespace": "default",
                "labels": {"app.kubernetes.io/managed-by": "kubewarden",
                    "kubewarden.io/policyreport-version": "v2"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "bad", "uid": uid}],
            },
            "scope": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "bad",
                "uid": uid},
            "summary": {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 1},
            "results": [
                {"policy": "clusterwide-names", "source": "kubewarden", "category": "Names",
                    "severity": "high", "result": "fail", "scored": true, "timestamp": timestamp,
                    "message": "a bad name", "resourceSelector": {},
                    "properties": {"validating": "true", "policy-name": "names"}},
                {"policy": "clusterwide-true", "source": "kubewarden", "result": "pass",
                    "scored": true, "timestamp": timestamp, "resourceSelector": {},
                    "properties": {"validating": "true", "policy-name": "true"}},
            ],
        })
    );
    let open = desk.reports(&[&ALL[..], &["--report-format", "openreports"]].concat())?;
    assert_eq!(open[0]["apiVersion"], "openreports.io/v1alpha1");
    assert_eq!(
        (&open[0]["kind"], &open[0]["source"]),
        (&json!("Report"), &json!("kubewarden"))
    );
    let ended = desk.run(&[&ALL[..], &["-o", "yaml"]].concat())?;
    let yaml: Value = serde_saphyr::from_str(&ended.result)?;
    assert_eq!(yaml["items"].as_array().map(Vec::len), Some(2), "{ended:?}");
    assert_eq!(yaml["items"][0]["scope"], reports[0]["scope"]);
    Ok(())
}

#[test]
fn code_hosts_get_a_rule_for_each_policy_and_the_line_of_each_manifest() -> Result<()> {
    let desk = desk()?;
    let ended = desk.run(&[&ALL[..], &["-o", "sarif", "-p", "broken.yaml"]].concat())?;
    let sarif: Value = serde_json::from_str(&ended.result)?;
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 4, "{sarif}");
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 3, "{sarif}");
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(result["ruleId"], rule["id"]);
    }
    let first = results
        .iter()
        .find(|one| one["ruleId"] == "clusterwide-names")
        .unwrap();
    assert_eq!(first["level"], "error");
    assert_eq!(first["message"]["text"], "default/pod/bad: a bad name");
    assert_eq!(
        first["locations"],
        json!([{
            "physicalLocation": {"artifactLocation": {"uri": "deploy/pods.yaml"},
                "region": {"startLine": 2}},
            "logicalLocations": [{"name": "bad", "fullyQualifiedName": "default/pod/bad",
                "kind": "resource"}],
        }])
    );
    let rule = rules
        .iter()
        .find(|one| one["id"] == "clusterwide-names")
        .unwrap();
    assert_eq!(rule["shortDescription"]["text"], "Good names");
    assert_eq!(rule["fullDescription"]["text"], "Names should be good.");
    assert_eq!(rule["properties"]["security-severity"], "8.0");
    let error = results
        .iter()
        .find(|one| one["ruleId"] == "clusterwide-broken")
        .unwrap();
    assert_eq!(error["properties"]["result"], "error");
    let text = error["message"]["text"].as_str().unwrap();
    ensure!(
        text.starts_with("default/pod/bad: could not be judged: "),
        "{text}"
    );
    Ok(())
}

#[test]
fn exit_codes_tell_what_came_of_it() -> Result<()> {
    let desk = desk()?;
    for (arguments, expected) in [
        (&[][..], 0),
        (&["--fail-on", "fail"], 3),
        (&["--fail-on", "high"], 3),
        (&["--fail-on", "info"], 3),
        (&["--fail-on", "critical"], 0),
        (&["--fail-on", "error"], 0),
        (&["-p", "broken.yaml"], 0),
        (&["--fail-on", "error", "-p", "broken.yaml"], 3),
        (&["--fail-on", "critical", "-p", "broken.yaml"], 0),
        (&["--fail-on", "fail", "-f", "missing.yaml"], 1),
        (&["--fail-on", "huge"], 2),
        (&["-n", "No/Name"], 1),
        (&["--parallel", "0"], 2),
        (&["-n", "a", "-A"], 2),
    ] {
        for form in ["table", "json", "yaml", "sarif"] {
            let all = [&ALL[..], arguments, &["-o", form]].concat();
            let ended = desk.run(&all)?;
            assert_eq!(ended.code, Some(expected), "{all:?}: {ended:?}");
        }
    }
    Ok(())
}
