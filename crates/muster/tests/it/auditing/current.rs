//! Always current: every change is reported, and nothing is done that no change asks for.

use super::{BINARY, SOON, Site, cel, everything, lines, merge};
use anyhow::{Context, Result};
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What the audit of a server has counted, over all labels.
fn counted(site: &Site, name: &str) -> Result<u64> {
    let text = site.kubectl.succeed(&["get", "--raw", "/metrics"])?;
    let lines = text.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    });
    let numbers = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(numbers.sum::<f64>() as u64)
}

fn evaluations(site: &Site) -> Result<u64> {
    counted(site, "muster_audit_evaluations_total")
}

/// For how long nothing may have been left to do: what is pending is told once a second.
const CALM: Duration = Duration::from_millis(2500);

/// Waits until nothing is left to do, and stays so for longer than that takes to be told.
pub(super) fn settled(site: &Site) -> Result<u64> {
    let (mut before, mut since) = (None, Instant::now());
    wait::until("the audit to settle", SOON, || {
        let now = (
            evaluations(site)?,
            counted(site, "muster_audit_reports_total")?,
            counted(site, "muster_audit_looks_total")?,
        );
        let quiet = counted(site, "muster_audit_pending")? == 0 && now.2 > 0;
        if !quiet || before != Some(now) {
            since = Instant::now();
        }
        before = Some(now);
        Ok((since.elapsed() >= CALM).then_some(now.0))
    })
}

#[test]
fn every_change_is_reported() -> Result<()> {
    let muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    changes(&site).context(muster.process().log_tail())
}

fn changes(site: &Site) -> Result<()> {
    let labelled = "has(object.metadata.labels) && 'app' in object.metadata.labels";
    let first = cel("ClusterAdmissionPolicy", "first", labelled, json!({}));
    site.apply(std::slice::from_ref(&first))?;
    let pod = site.pod("default", "pod", json!({}))?;
    site.says(&pod, &["clusterwide-first=fail"])?;
    // The resource changes.
    site.kubectl.succeed(&["label", "pod", "pod", "app=a"])?;
    let report = site.says(&pod, &["clusterwide-first=pass"])?;
    let line = report["results"][0].clone();
    // Another policy: the first line stays as it was, with its time and versions.
    let second = cel("ClusterAdmissionPolicy", "second", "true", json!({}));
    site.apply(std::slice::from_ref(&second))?;
    let both = ["clusterwide-first=pass", "clusterwide-second=pass"];
    let report = site.says(&pod, &both)?;
    assert_eq!(report["results"][0], line);
    // A policy changes.
    let strict = cel("ClusterAdmissionPolicy", "second", "false", json!({}));
    site.apply(&[strict])?;
    site.says(&pod, &["clusterwide-first=pass", "clusterwide-second=fail"])?;
    // A policy is no longer interested.
    let mut elsewhere = second.clone();
    merge(
        &mut elsewhere,
        json!({"spec": {"objectSelector": {"matchLabels": {"app": "b"}}}}),
    );
    site.apply(&[elsewhere])?;
    let report = site.says(&pod, &["clusterwide-first=pass"])?;
    assert_eq!(report["results"][0], line);
    // Neither by the labels of the namespace.
    site.apply(&[second])?;
    site.says(&pod, &both)?;
    let mut chosen = first.clone();
    let selector = json!({"spec": {"namespaceSelector": {"matchLabels": {"team": "a"}}}});
    merge(&mut chosen, selector);
    site.apply(&[chosen])?;
    site.says(&pod, &["clusterwide-second=pass"])?;
    site.kubectl
        .succeed(&["label", "namespace", "default", "team=a"])?;
    site.says(&pod, &both)?;
    // A policy is deleted.
    site.kubectl
        .succeed(&["delete", "clusteradmissionpolicy", "second"])?;
    site.says(&pod, &["clusterwide-first=pass"])?;
    // Somebody deletes or changes the report.
    let uid = pod["metadata"]["uid"].as_str().context("a UID")?;
    site.kubectl.succeed(&["delete", "policyreport", uid])?;
    site.says(&pod, &["clusterwide-first=pass"])?;
    let forged = json!({"results": [{"policy": "forged", "result": "pass"}]}).to_string();
    let patch = ["patch", "policyreport", uid, "--type=merge", "-p", &forged];
    site.kubectl.succeed(&patch)?;
    site.says(&pod, &["clusterwide-first=pass"])?;
    // The resource is deleted.
    let delete = ["delete", "pod", "pod", "--force", "--grace-period=0"];
    site.kubectl.succeed(&delete)?;
    site.report_when("the end of the report", &pod, Value::is_null)?;
    Ok(())
}

#[test]
fn a_policy_about_everything_does_not_feed_on_what_it_says() -> Result<()> {
    let muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    let policy = json!({"spec": {"rules": everything()}});
    site.apply(&[cel("ClusterAdmissionPolicy", "everything", "true", policy)])?;
    let namespace = site.get(&["namespace", "default"])?;
    site.says(&namespace, &["clusterwide-everything=pass"])?;
    let before = settled(&site)?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "default"}});
    site.apply(&[map])?;
    let map = site.get(&["configmap", "one", "-n", "default"])?;
    site.says(&map, &["clusterwide-everything=pass"])?;
    assert_eq!(settled(&site)?, before + 1, "one object, one evaluation");
    // Nothing is said of reports, nor of what only shows that somebody is alive.
    let reports = site.get(&["policyreports,clusterpolicyreports", "-A"])?;
    let kinds = reports["items"].as_array().into_iter().flatten();
    let kinds: Vec<&str> = kinds
        .filter_map(|one| one["scope"]["kind"].as_str())
        .collect();
    assert!(kinds.contains(&"ClusterAdmissionPolicy"), "{kinds:?}");
    for kind in [
        "PolicyReport",
        "ClusterPolicyReport",
        "Event",
        "Lease",
        "EndpointSlice",
    ] {
        assert!(!kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    Ok(())
}

#[test]
fn what_is_unchanged_is_neither_judged_nor_written_not_even_after_a_crash() -> Result<()> {
    let mut muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    let pods: Vec<Value> = (0..20)
        .map(|number| super::pod("default", &format!("pod-{number}"), json!({})))
        .collect();
    site.apply(&pods)?;
    let policies: Vec<Value> = (0..3)
        .map(|number| {
            cel(
                "ClusterAdmissionPolicy",
                &format!("p-{number}"),
                "true",
                json!({}),
            )
        })
        .collect();
    site.apply(&policies)?;
    let all = [
        "clusterwide-p-0=pass",
        "clusterwide-p-1=pass",
        "clusterwide-p-2=pass",
    ];
    let list = || site.get(&["policyreports", "-n", "default"]);
    wait::until("all reports", SOON, || {
        let reports = list()?;
        let items = reports["items"].as_array().cloned().unwrap_or_default();
        let done = items.len() == 20 && items.iter().all(|report| lines(report) == all);
        Ok(done.then_some(()))
    })?;
    settled(&site)?;
    // What does not matter to a policy.
    let patch = r#"{"status": {"phase": "Running"}}"#;
    let arguments = [
        "patch",
        "pod",
        "pod-0",
        "--subresource=status",
        "--type=merge",
        "-p",
        patch,
    ];
    let (judged, looked) = (
        evaluations(&site)?,
        counted(&site, "muster_audit_looks_total")?,
    );
    site.kubectl.succeed(&arguments)?;
    wait::until("a look", SOON, || {
        Ok((counted(&site, "muster_audit_looks_total")? > looked).then_some(()))
    })?;
    assert_eq!(settled(&site)?, judged);
    let before = list()?;
    muster.kill9()?;
    muster.restart()?;
    let again = Site::of(&muster)?;
    assert_eq!(settled(&again)?, 0, "nobody is asked after a restart");
    assert_eq!(
        counted(&again, "muster_audit_reports_total")?,
        0,
        "nothing is written"
    );
    let after = again.get(&["policyreports", "-n", "default"])?;
    assert_eq!(after["items"], before["items"]);
    Ok(())
}

#[test]
fn reports_are_written_as_open_reports_if_wanted() -> Result<()> {
    let muster = Muster::start_with(BINARY, &["--report-format", "openreports"])?;
    let site = Site::of(&muster)?;
    let pod = site.pod("default", "pod", json!({}))?;
    site.apply(&[cel("ClusterAdmissionPolicy", "all", "false", json!({}))])?;
    let uid = pod["metadata"]["uid"].as_str().context("a UID")?;
    let report = wait::until("a report", SOON, || {
        let get = ["reports.openreports.io", uid, "-n", "default"];
        let report = site.get(&get)?;
        Ok((lines(&report) == ["clusterwide-all=fail"]).then_some(report))
    })?;
    assert_eq!(report["source"], "kubewarden");
    assert_eq!(report["summary"]["fail"], 1);
    assert!(site.report(&pod)?.is_null());
    Ok(())
}

#[test]
fn only_what_is_in_scope_is_audited() -> Result<()> {
    let arguments = [
        "--audit-ignore-namespaces",
        "quiet",
        "--audit-kinds",
        "pods",
    ];
    let muster = Muster::start_with(BINARY, &arguments)?;
    let site = Site::of(&muster)?;
    site.kubectl.succeed(&["create", "namespace", "quiet"])?;
    let policy = json!({"spec": {"rules": everything()}});
    site.apply(&[cel("ClusterAdmissionPolicy", "all", "true", policy)])?;
    let ignored = site.pod("quiet", "ignored", json!({}))?;
    let pod = site.pod("default", "pod", json!({}))?;
    site.says(&pod, &["clusterwide-all=pass"])?;
    settled(&site)?;
    assert!(site.report(&ignored)?.is_null());
    let namespace = site.get(&["namespace", "default"])?;
    assert!(site.report(&namespace)?.is_null());
    Ok(())
}

#[test]
fn a_policy_that_comes_back_is_asked_again() -> Result<()> {
    let muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    let pod = site.pod("default", "pod", json!({}))?;
    let policy = cel("ClusterAdmissionPolicy", "all", "false", json!({}));
    for _ in 0..2 {
        site.apply(std::slice::from_ref(&policy))?;
        site.says(&pod, &["clusterwide-all=fail"])?;
        site.kubectl
            .succeed(&["delete", "clusteradmissionpolicy", "all"])?;
        site.report_when("the end of the report", &pod, Value::is_null)?;
    }
    // A report that somebody makes about an object of which nothing is said goes.
    let mut excluded = policy;
    merge(&mut excluded, json!({"spec": {"backgroundAudit": false}}));
    site.apply(&[excluded])?;
    let uid = pod["metadata"]["uid"].as_str().context("a UID")?;
    let forged = json!({
        "apiVersion": "wgpolicyk8s.io/v1beta1", "kind": "PolicyReport",
        "metadata": {"name": uid, "namespace": "default",
            "labels": {"app.kubernetes.io/managed-by": "kubewarden"}},
        "results": [{"policy": "forged", "result": "pass"}],
    });
    wait::until("the count of what is left out", SOON, || {
        let policy = site.get(&["clusteradmissionpolicy", "all"])?;
        Ok((policy["status"]["audit"]["skip"] == 1).then_some(()))
    })?;
    site.kubectl
        .succeed_with(&["create", "-f", "-"], &forged.to_string())?;
    site.report_when("the end of what was forged", &pod, Value::is_null)?;
    Ok(())
}
