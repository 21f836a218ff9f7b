//! Reports are right, whatever happens to policies, objects and reports, and say what people need.

use super::{
    BINARY, CONFIG, NAMESPACE, Place, SOON, config, hash, refusing, report, report_when, said,
    write,
};
use crate::auditing::Site;
use anyhow::{Context, Result, ensure};
use muster_testkit::wait;
use serde_json::{Value, json};
use std::process::Command;

fn pod(name: &str, changes: Value) -> Value {
    crate::auditing::pod("default", name, changes)
}

/// What is told of policies, once it is as it should be.
fn problems_when(site: &Site, is: impl Fn(&[Value]) -> bool) -> Result<Vec<Value>> {
    let mut last = Vec::new();
    let found = wait::until("what is told of policies", SOON, || {
        let notes = site.get(&["configmap", "muster-config-audit", "-n", "muster"])?;
        let text = notes["data"]["problems.json"].as_str().unwrap_or("[]");
        last = serde_json::from_str(text)?;
        Ok(is(&last).then(|| last.clone()))
    });
    found.with_context(|| format!("told is {last:#?}"))
}

#[test]
fn a_bad_policy_is_told_and_the_last_good_version_survives_a_kill() -> Result<()> {
    let mut place = Place::embedded(&[])?;
    let site = place.site()?;
    site.kubectl.succeed(&["create", "namespace", NAMESPACE])?;
    let (one, two) = (refusing("one"), refusing("two"));
    write(
        &site,
        &config(&[("a", &one, "Pod"), ("b", &two, "Pod")], &[]),
    )?;
    site.apply(&[pod("web", json!({}))])?;
    let both = ["a: one", "b: two"];
    report_when(&site, Some("default"), "pod-web", |report| {
        said(report) == both
    })?;
    // One breaks, the other changes in the same breath.
    let other = refusing("other");
    write(
        &site,
        &config(
            &[("a", "package main\nno", "Pod"), ("b", &other, "Pod")],
            &[],
        ),
    )?;
    let mixed = ["a: one", "b: other"];
    report_when(&site, Some("default"), "pod-web", |report| {
        said(report) == mixed
    })?;
    let problems = problems_when(&site, |told| told.len() == 1)?;
    assert_eq!(problems[0]["name"], "a");
    assert_eq!(problems[0]["source"], format!("{NAMESPACE}/{CONFIG}"));
    assert_eq!(problems[0]["lastGoodInForce"], true);
    assert_eq!(place.counted("policies", "state=\"older\"")?, 1);
    wait::until("an Event on the ConfigMap", SOON, || {
        let told = site
            .kubectl
            .succeed(&["describe", "configmap", CONFIG, "-n", NAMESPACE])?;
        Ok(told.contains("PolicyRefused").then_some(()))
    })?;
    // Whoever comes after a kill -9 still judges by it, and judges nothing again.
    let Place::Embedded(muster) = &mut place else {
        unreachable!();
    };
    muster.kill9()?;
    muster.restart_in_place()?;
    let site = place.site()?;
    place.settled()?;
    assert_eq!(place.evaluations("Pod")?, 0);
    site.apply(&[pod("later", json!({}))])?;
    report_when(&site, Some("default"), "pod-later", |report| {
        said(report) == mixed
    })?;
    // Mended, it is in force; unknown kinds and missing ones are told as well.
    let mended = refusing("mended");
    write(
        &site,
        &config(&[("a", &mended, "Pod"), ("b", &other, "Gadget")], &[]),
    )?;
    let now = ["a: mended", "b: other"];
    report_when(&site, Some("default"), "pod-web", |report| {
        said(report) == now
    })?;
    let problems = problems_when(&site, |told| told.iter().all(|one| one["name"] == "b"))?;
    let why = problems[0]["why"].as_str().unwrap_or_default();
    assert!(why.contains("no kind `Gadget` is served"), "{why}");
    Ok(())
}

fn gadgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

/// Lets whoever may view a namespace view gadgets.
fn viewers() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "gadget-viewers",
            "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["example.com"], "resources": ["gadgets"], "verbs": ["get", "list", "watch"]}],
    })
}

#[test]
fn custom_resources_are_checked_in_a_cluster() -> Result<()> {
    let place = Place::cluster(&["--builtin-policies=off"])?;
    let checked = || -> Result<()> {
        let site = place.site()?;
        site.kubectl.succeed(&["create", "namespace", NAMESPACE])?;
        let text = refusing("no gadgets");
        let about = config(
            &[
                ("a", &text, "Gadget.example.com, Namespace"),
                ("b", &text, "Secret"),
            ],
            &[],
        );
        write(&site, &about)?;
        let problems = problems_when(&site, |told| told.len() == 1)?;
        let why = problems[0]["why"].as_str().unwrap_or_default();
        assert!(
            why.contains("no kind `Gadget.example.com` is served"),
            "{why}"
        );
        // Whoever brings a kind lets people view it, and so the operator.
        site.apply(&[viewers()])?;
        site.kubectl.define(&gadgets().to_string())?;
        let operator = "--as=system:serviceaccount:muster:muster-operator";
        wait::until("the right to list gadgets", SOON, || {
            let asked = [
                "auth",
                "can-i",
                "list",
                "gadgets.example.com",
                "-A",
                operator,
            ];
            Ok(site.kubectl.succeed(&asked).ok())
        })?;
        site.apply(&[json!({"apiVersion": "example.com/v1", "kind": "Gadget",
            "metadata": {"name": "one", "namespace": "default"}})])?;
        let owner = wait::until("the report on a custom resource", SOON, || {
            let selector = "trivy-operator.resource.kind=Gadget";
            let found = site.get(&["configauditreports", "-n", "default", "-l", selector])?;
            Ok(found["items"]
                .get(0)
                .map(|report| report["metadata"]["ownerReferences"][0].clone()))
        })?;
        assert_eq!(owner["apiVersion"], "example.com/v1");
        report_when(&site, None, "namespace-default", |report| {
            said(report) == ["a: no gadgets"]
        })?;
        problems_when(&site, <[Value]>::is_empty)?;
        // What the operator may not list is told where people look.
        wait::until("the word that Secrets cannot be listed", SOON, || {
            let notes = site.get(&["configmap", "muster-config-audit", "-n", "muster"])?;
            let kinds: Value =
                serde_json::from_str(notes["data"]["kinds.json"].as_str().unwrap_or("{}"))?;
            let why = kinds["Secret"]["unlisted"].as_str();
            let is_told = why.is_some_and(|why| why.contains("forbidden"));
            Ok((is_told && kinds["Namespace"]["unlisted"].is_null()).then_some(()))
        })?;
        wait::until("the metric of what cannot be listed", SOON, || {
            Ok((place.counted("unlisted", "")? == 1).then_some(()))
        })?;
        Ok(())
    };
    checked().with_context(|| place.log())
}

#[test]
fn the_checks_that_come_with_it_judge_each_workload_once() -> Result<()> {
    let place = Place::embedded(&[
        ("MUSTER_BUILTIN_POLICIES", "on"),
        ("MUSTER_DISABLE_CHECKS", "MST-W002"),
        ("MUSTER_SKIP_LABELS", "example.com/skip"),
    ])?;
    let site = place.site()?;
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "nginx:latest", "securityContext": {"privileged": true}}]}});
    site.apply(&[json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}})])?;
    let owned = |kind: &str,
                 name: &str,
                 api_version: &str,
                 owner: &str,
                 by: &str,
                 spec: Value|
     -> Result<()> {
        let uid = site.get(&[owner, by, "-n", "default"])?["metadata"]["uid"].clone();
        let kinds = site.get(&[owner, by, "-n", "default"])?["kind"].clone();
        site.apply(&[json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": "default", "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": kinds, "name": by, "uid": uid, "controller": true}]},
            "spec": spec})])
    };
    let set =
        json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    owned(
        "ReplicaSet",
        "web-1",
        "apps/v1",
        "deployment",
        "web",
        set.clone(),
    )?;
    owned(
        "Pod",
        "web-1-x",
        "v1",
        "replicaset",
        "web-1",
        template["spec"].clone(),
    )?;
    // Nobody's, and one that runs nothing any longer; one that is to be left alone.
    let mut lonely = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "lonely", "namespace": "default"}, "spec": set});
    site.apply(&[lonely.clone()])?;
    site.apply(&[pod(
        "skipped",
        json!({"metadata": {"labels": {"example.com/skip": ""}}}),
    )])?;
    let web = report_when(&site, Some("default"), "deployment-web", |report| {
        !report.is_null()
    })?;
    let checks: Vec<&str> = web["report"]["checks"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|check| check["checkID"].as_str())
        .collect();
    assert!(
        checks.contains(&"MST-B001") && checks.contains(&"MST-W001"),
        "{checks:?}"
    );
    assert!(!checks.contains(&"MST-W002"), "{checks:?}");
    report_when(&site, Some("default"), "replicaset-lonely", |report| {
        !report.is_null()
    })?;
    place.settled()?;
    for name in ["replicaset-web-1", "pod-web-1-x", "pod-skipped"] {
        assert_eq!(report(&site, Some("default"), name)?, Value::Null, "{name}");
    }
    lonely["spec"]["replicas"] = 0.into();
    site.apply(&[lonely])?;
    report_when(&site, Some("default"), "replicaset-lonely", Value::is_null)?;
    // Somebody answers for a check, for a while.
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60);
    let exception = format!("exception.audit.kubewarden.io/MST-B001=until {soon:.0}: a driver");
    site.kubectl
        .succeed(&["annotate", "deployment", "web", &exception])?;
    let critical = |report: &Value| report["report"]["summary"]["criticalCount"].clone();
    let exempt = report_when(&site, Some("default"), "deployment-web", |report| {
        critical(report) == 0
    })?;
    assert_eq!(
        exempt["report"]["checks"][0]["exception"]["reason"],
        "a driver"
    );
    // Nothing changes but the time.
    report_when(&site, Some("default"), "deployment-web", |report| {
        critical(report) == 1
    })?;
    Ok(())
}

#[test]
fn reports_are_restored_left_to_others_and_go_with_their_objects() -> Result<()> {
    let place = Place::embedded(&[])?;
    let site = place.site()?;
    site.kubectl.succeed(&["create", "namespace", NAMESPACE])?;
    // Somebody else has a report of that name already.
    site.apply(&[pod("theirs", json!({}))])?;
    site.apply(&[
        json!({"apiVersion": "aquasecurity.github.io/v1alpha1", "kind": "ConfigAuditReport",
        "metadata": {"name": "pod-theirs", "namespace": "default",
            "labels": {"app.kubernetes.io/managed-by": "trivy-operator"}},
        "report": {"checks": []}}),
    ])?;
    let text = refusing("one");
    write(&site, &config(&[("a", &text, "Pod")], &[]))?;
    site.apply(&[pod("web", json!({}))])?;
    let is_right = |report: &Value| said(report) == ["a: one"];
    let first = report_when(&site, Some("default"), "pod-web", is_right)?;
    place.settled()?;
    let theirs = report(&site, Some("default"), "pod-theirs")?;
    assert_eq!(said(&theirs), Vec::<String>::new());
    assert!(place.counted("reports_total", "outcome=\"foreign\"")? >= 1);
    // Deleted or written over, it comes back.
    site.kubectl
        .succeed(&["delete", "configauditreport", "pod-web"])?;
    let again = report_when(&site, Some("default"), "pod-web", is_right)?;
    assert_ne!(first["metadata"]["uid"], again["metadata"]["uid"]);
    let forged = json!({"report": {"checks": []}}).to_string();
    site.kubectl.succeed(&[
        "patch",
        "configauditreport",
        "pod-web",
        "--type=merge",
        "-p",
        &forged,
    ])?;
    report_when(&site, Some("default"), "pod-web", is_right)?;
    // Bookkeeping and a status are no reason to judge again; a label is.
    place.settled()?;
    let (evaluated, before) = (
        place.evaluations("Pod")?,
        report(&site, Some("default"), "pod-web")?,
    );
    let status = json!({"status": {"phase": "Running"}}).to_string();
    site.kubectl.succeed(&[
        "patch",
        "pod",
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        &status,
    ])?;
    place.settled()?;
    assert_eq!(place.evaluations("Pod")?, evaluated);
    assert_eq!(report(&site, Some("default"), "pod-web")?, before);
    site.kubectl.succeed(&["label", "pod", "web", "a=b"])?;
    let spec = |report: &Value| report["metadata"]["labels"]["resource-spec-hash"].clone();
    let after = report_when(&site, Some("default"), "pod-web", |report| {
        spec(report) != spec(&before)
    })?;
    assert_eq!(hash(&after), hash(&before));
    // An object takes its report along; one of the same name has its own.
    let owner = |report: &Value| report["metadata"]["ownerReferences"][0]["uid"].clone();
    site.kubectl.succeed(&["delete", "pod", "web"])?;
    site.apply(&[pod("web", json!({}))])?;
    report_when(&site, Some("default"), "pod-web", |report| {
        is_right(report) && owner(report) != owner(&after)
    })?;
    site.kubectl.succeed(&["delete", "pod", "web"])?;
    report_when(&site, Some("default"), "pod-web", Value::is_null)?;
    // Without its ConfigMap a policy is gone, and so is what it said.
    site.apply(&[pod("last", json!({}))])?;
    report_when(&site, Some("default"), "pod-last", is_right)?;
    site.kubectl
        .succeed(&["delete", "configmap", CONFIG, "-n", NAMESPACE])?;
    report_when(&site, Some("default"), "pod-last", Value::is_null)?;
    Ok(())
}

#[test]
fn configmaps_are_found_by_name_and_by_label_where_they_count() -> Result<()> {
    let place = Place::embedded(&[])?;
    let site = place.site()?;
    let labelled = |namespace: &str, name: &str, message: &str, label: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, "labels": {"audit.kubewarden.io/config-policies": label}},
            "data": {format!("policy.{name}.rego"): refusing(message), format!("policy.{name}.kinds"): "Pod"}})
    };
    site.apply(&[
        pod("web", json!({})),
        labelled("muster", "one", "one", "true"),
        labelled("muster", "trivy-operator-policies-config", "two", "no"),
        labelled("muster", "unlabelled", "three", "no"),
        // Whoever may write in a namespace of his own judges nobody.
        labelled("default", "four", "four", "true"),
    ])?;
    let expected = ["one: one", "trivy-operator-policies-config: two"];
    report_when(&site, Some("default"), "pod-web", |report| {
        said(report) == expected
    })?;
    place.settled()?;
    assert_eq!(said(&report(&site, Some("default"), "pod-web")?), expected);
    Ok(())
}

#[test]
fn the_help_names_the_checks_and_how_to_turn_them_off() -> Result<()> {
    let help = Command::new(BINARY).args(["up", "--help"]).output()?;
    let help = String::from_utf8(help.stdout)?;
    for flag in [
        "--config-audit",
        "--builtin-policies",
        "--disable-checks",
        "--skip-labels",
        "--exceptions",
        "--passed-checks",
    ] {
        ensure!(help.contains(flag), "{flag}");
    }
    Ok(())
}
