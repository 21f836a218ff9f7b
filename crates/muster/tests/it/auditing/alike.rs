//! However resources are audited, the same is said of them: kept current by a server, once from the
//! files they came from, once from the server, and by a server that only looks at another.

use super::{Audited, BINARY, SOON, Site, cel, lines, pod};
use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::policies::{self, Abi};
use muster_testkit::wait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const REGO: &str = r#"
package policy

deny contains sprintf("%v has no limits", [container.name]) if {
    some container in input.request.object.spec.containers
    not container.resources.limits
}

warn contains "old" if input.request.object.metadata.labels.old
"#;

/// A bit of everything: languages, groups, selectors, conditions, exclusions, and what is broken.
fn policies(wasm: &Path) -> Vec<Value> {
    let rego = json!({"spec": {"module": "builtin:rego", "settings": {"rego": REGO}}});
    let mut rego_policy = cel("ClusterAdmissionPolicy", "limits", "true", json!({}));
    rego_policy["spec"]["settings"] = json!({});
    super::merge(&mut rego_policy, rego);
    let mut module = cel("ClusterAdmissionPolicy", "module", "true", json!({}));
    module["spec"]["module"] = format!("file://{}", wasm.display()).into();
    module["spec"]["settings"] = json!({});
    let severity = json!({"metadata": {"annotations": {"io.kubewarden.policy.severity": "high"}}});
    let condition = json!({"spec": {"matchConditions": [
        {"name": "named", "expression": "object.metadata.name != 'first'"}]}});
    let selector = json!({"spec": {"objectSelector": {"matchLabels": {"app": "a"}}}});
    vec![
        cel(
            "ClusterAdmissionPolicy",
            "pinned",
            "object.spec.containers.all(c, c.image.contains('@'))",
            severity,
        ),
        cel("ClusterAdmissionPolicy", "conditional", "false", condition),
        cel("ClusterAdmissionPolicy", "selective", "false", selector),
        cel(
            "ClusterAdmissionPolicy",
            "excluded",
            "false",
            json!({"spec": {"backgroundAudit": false}}),
        ),
        cel(
            "ClusterAdmissionPolicy",
            "broken",
            "object.spec.(",
            json!({}),
        ),
        cel(
            "ClusterAdmissionPolicy",
            "erring",
            "object.nothing == 1",
            json!({}),
        ),
        cel(
            "AdmissionPolicy",
            "own",
            "has(object.metadata.labels)",
            json!({"metadata": {"namespace": "default"}}),
        ),
        rego_policy,
        module,
    ]
}

fn pods() -> Vec<Value> {
    let privileged =
        json!([{"name": "c", "image": "nginx:1", "securityContext": {"privileged": true}}]);
    vec![
        pod("default", "first", json!({})),
        pod(
            "default",
            "second",
            json!({"metadata": {"labels": {"app": "a", "old": "yes"}}}),
        ),
        pod(
            "default",
            "third",
            json!({"spec": {"containers": privileged}}),
        ),
    ]
}

/// What reports say, by object, without what differs from one time to another.
fn said(list: &Value) -> BTreeMap<String, Value> {
    let reports = list["items"].as_array().into_iter().flatten();
    let reports = reports.map(|report| {
        let mut results = report["results"].clone();
        for line in results.as_array_mut().into_iter().flatten() {
            line["timestamp"] = Value::Null;
            for property in ["policy-uid", "policy-resource-version"] {
                if let Some(properties) = line["properties"].as_object_mut() {
                    properties.remove(property);
                }
            }
        }
        let name = report["scope"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (
            name,
            json!([report["scope"]["kind"], report["summary"], results]),
        )
    });
    reports.collect()
}

fn once(arguments: &[&str]) -> Result<Value> {
    let output = Command::new(BINARY)
        .arg("audit")
        .args(["-o", "json", "--builtin-policies=off"])
        .args(arguments)
        .output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    // A policy that does not load leaves the audit incomplete, which the code says.
    ensure!(output.status.code() == Some(1), "{output:?}");
    serde_json::from_slice(&output.stdout).with_context(|| told.into_owned())
}

#[test]
fn a_server_and_a_single_audit_say_the_same() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let home = directory.path().canonicalize()?;
    let wasm = home.join("privileged.wasm");
    let forbids = policies::forbidding(Abi::Wapc, r#""privileged":true"#, "no privileges");
    std::fs::write(&wasm, forbids)?;
    let files = home.to_str().context("a path is text")?;
    let muster = Muster::start_with(BINARY, &["--policy-files", files])?;
    let site = Site::of(&muster)?;
    site.apply(&policies(&wasm))?;
    site.apply(&pods())?;
    let kept = wait::until("all verdicts", SOON, || {
        let list = site.get(&["policyreports", "-n", "default"])?;
        let found = said(&list);
        let count = |name: &str| {
            let results = found.get(name).and_then(|one| one[2].as_array());
            results.map_or(0, Vec::len)
        };
        let all = ["first", "second", "third"].map(count) == [6, 8, 7];
        Ok(all.then_some(found))
    })
    .with_context(|| {
        format!(
            "{:#}",
            site.get(&["policyreports", "-A"]).unwrap_or_default()
        )
    })?;
    assert_eq!(kept["first"][1]["skip"], 1);
    // Once, from the files.
    let write = |name: &str, objects: &[Value]| -> Result<String> {
        let path = home.join(name);
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        std::fs::write(&path, documents.join("\n---\n"))?;
        Ok(path.display().to_string())
    };
    let (manifests, written) = (
        write("pods.yaml", &pods())?,
        write("policies.yaml", &policies(&wasm))?,
    );
    let from_files = said(&once(&["-f", &manifests, "--policy", &written])?);
    assert_eq!(from_files, kept);
    // Once, from the server, with policies from files.
    let kubeconfig = muster.kubeconfig_path().display().to_string();
    let from_server = said(&once(&[
        "--kubeconfig",
        &kubeconfig,
        "--policy",
        &written,
        "-n",
        "default",
    ])?);
    assert_eq!(from_server, kept);
    Ok(())
}

#[test]
fn a_cluster_is_audited_from_outside_and_nothing_is_written_there() -> Result<()> {
    let cluster = Muster::start_idle(BINARY)?;
    let there = Site::of(&cluster)?;
    there.kubectl.succeed(&["create", "namespace", "shop"])?;
    let pod = there.pod("shop", "pod", json!({}))?;
    let kubeconfig = cluster.kubeconfig_path().display().to_string();
    let home = Muster::start_with(BINARY, &["--kubeconfig", &kubeconfig])?;
    let here = Site::of(&home)?;
    here.apply(&[cel("ClusterAdmissionPolicy", "all", "false", json!({}))])?;
    here.says(&pod, &["clusterwide-all=fail"])?;
    assert!(there.report(&pod)?.is_null());
    let delete = [
        "delete",
        "pod",
        "pod",
        "-n",
        "shop",
        "--force",
        "--grace-period=0",
    ];
    there.kubectl.succeed(&delete)?;
    here.report_when("the end of the report", &pod, Value::is_null)?;
    Ok(())
}

#[test]
fn shares_of_several_operators_add_up() -> Result<()> {
    let mut audited = Audited::start(&["--audit-shard", "1/2"])?;
    audited.add_operator(&["--audit-shard", "2/2"])?;
    let site = audited.site()?;
    let pods: Vec<Value> = (0..12)
        .map(|number| pod("default", &format!("pod-{number}"), json!({})))
        .collect();
    site.apply(&pods)?;
    site.apply(&[cel("ClusterAdmissionPolicy", "all", "true", json!({}))])?;
    let get = ["clusteradmissionpolicy", "all"];
    let policy = site
        .policy_when("the sum of both", &get, |policy| {
            policy["status"]["audit"]["pass"] == 12
        })
        .context(audited.log())?;
    let shards = policy["status"]["audit"]["shards"]
        .as_array()
        .context("shards")?;
    assert_eq!(shards.len(), 2, "{shards:?}");
    assert!(
        shards.iter().all(|shard| shard["pass"].as_u64() > Some(0)),
        "{shards:?}"
    );
    let reports = site.get(&["policyreports", "-n", "default"])?;
    let reports = reports["items"].as_array().context("reports")?;
    assert_eq!(reports.len(), 12);
    assert!(
        reports
            .iter()
            .all(|report| lines(report) == ["clusterwide-all=pass"])
    );
    Ok(())
}

/// What a reader of reports such as Policy Reporter makes of them: it follows the metadata, gets each
/// report in the older version, and keeps one row for each result.
fn rows(kubectl: &Kubectl) -> Result<Vec<Value>> {
    let text = |value: &Value, or: &str| value.as_str().unwrap_or(or).to_owned();
    let mut rows = Vec::new();
    for resource in ["policyreports", "clusterpolicyreports"] {
        let older = format!("{resource}.v1alpha2.wgpolicyk8s.io");
        let list: Value =
            serde_json::from_str(&kubectl.succeed(&["get", &older, "-A", "-o", "json"])?)?;
        for report in list["items"].as_array().into_iter().flatten() {
            let scope = &report["scope"];
            for result in report["results"].as_array().into_iter().flatten() {
                // Without resources of its own a result is about what the report is about.
                assert!(result["resources"].as_array().is_none_or(Vec::is_empty));
                assert!(result["timestamp"]["seconds"].as_i64() > Some(0));
                let identity = [
                    &scope["name"],
                    &scope["uid"],
                    &result["policy"],
                    &result["rule"],
                    &result["result"],
                    &result["category"],
                    &result["message"],
                ];
                rows.push(json!({
                    "id": identity.map(|part| text(part, "")).join("\u{0}"),
                    "source": text(&result["source"], ""), "namespace": text(&report["metadata"]["namespace"], ""),
                    "kind": text(&scope["kind"], ""), "apiVersion": text(&scope["apiVersion"], ""),
                    "name": text(&scope["name"], ""), "policy": text(&result["policy"], ""),
                    "result": text(&result["result"], ""), "severity": text(&result["severity"], ""),
                    "category": text(&result["category"], "Other"), "message": text(&result["message"], ""),
                    "scored": result["scored"], "summary": report["summary"],
                }));
            }
        }
    }
    rows.sort_by_key(|row| {
        (
            row["kind"].to_string(),
            row["name"].to_string(),
            row["policy"].to_string(),
        )
    });
    Ok(rows)
}

#[test]
fn readers_of_reports_find_what_they_expect() -> Result<()> {
    let mut muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    let annotated = json!({"metadata": {"annotations": {
        "io.kubewarden.policy.severity": "critical", "io.kubewarden.policy.category": "PSP"}}});
    site.apply(&[
        cel("ClusterAdmissionPolicy", "first", "false", annotated),
        cel(
            "ClusterAdmissionPolicy",
            "second",
            "true",
            json!({"spec": {"mode": "monitor"}}),
        ),
    ])?;
    let pod = site.pod("default", "pod", json!({}))?;
    site.says(&pod, &["clusterwide-first=fail", "clusterwide-second=pass"])?;
    let golden = json!([
        {"source": "kubewarden", "namespace": "default", "kind": "Pod", "apiVersion": "v1", "name": "pod",
            "policy": "clusterwide-first", "result": "fail", "severity": "critical", "category": "PSP",
            "message": "not first", "scored": true,
            "summary": {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0}},
        {"source": "kubewarden", "namespace": "default", "kind": "Pod", "apiVersion": "v1", "name": "pod",
            "policy": "clusterwide-second", "result": "pass", "severity": "info", "category": "Other",
            "message": "", "scored": true,
            "summary": {"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0}},
    ]);
    let found = rows(&site.kubectl)?;
    let mut shown = found.clone();
    for row in &mut shown {
        row.as_object_mut().context("a row")?.remove("id");
    }
    assert_eq!(json!(shown), golden);
    // A result has the same identity when it is found again, so nobody is notified twice.
    muster.kill9()?;
    muster.restart()?;
    let again = Site::of(&muster)?;
    again.says(&pod, &["clusterwide-first=fail", "clusterwide-second=pass"])?;
    assert_eq!(rows(&again.kubectl)?, found);
    Ok(())
}
