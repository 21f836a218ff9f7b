//! What is kept though something is away, and whose it is: results of policies that cannot be reached,
//! reports of other tools, results on what cannot be listed.

use super::current::settled;
use super::{BINARY, SOON, Site, cel, lines, pod};
use anyhow::{Context, Result};
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// How long it may take until something that failed is tried again, on a busy machine.
const LATER: Duration = Duration::from_secs(180);

fn reason(policy: &Value) -> &str {
    let conditions = policy["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|one| one["type"] == "AuditReady");
    ready.map_or("", |one| one["reason"].as_str().unwrap_or_default())
}

#[test]
fn results_stay_while_a_policy_cannot_be_reached_after_a_restart() -> Result<()> {
    let mut muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    site.kubectl
        .succeed(&["create", "namespace", "kubewarden"])?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {".dockerconfigjson": "{}"},
        "metadata": {"name": "pull", "namespace": "kubewarden"},
        "type": "kubernetes.io/dockerconfigjson"});
    let server = json!({"apiVersion": "policies.kubewarden.io/v1", "kind": "PolicyServer",
        "metadata": {"name": "private"},
        "spec": {"image": "i", "replicas": 1, "imagePullSecret": "pull"}});
    let policy = cel(
        "ClusterAdmissionPolicy",
        "all",
        "false",
        json!({"spec": {"policyServer": "private"}}),
    );
    site.apply(&[secret.clone(), server, policy])?;
    let pod = site.pod("default", "pod", json!({}))?;
    let before = site.says(&pod, &["clusterwide-all=fail"])?;
    let delete = ["delete", "secret", "pull", "-n", "kubewarden"];
    site.kubectl.succeed(&delete)?;
    muster.kill9()?;
    muster.restart()?;
    let site = Site::of(&muster)?;
    let get = ["clusteradmissionpolicy", "all"];
    site.policy_when("that it cannot be reached", &get, |policy| {
        reason(policy) == "Unreachable"
    })?;
    settled(&site)?;
    let after = site.report(&pod)?;
    assert_eq!(after["results"], before["results"]);
    // What it never judged it cannot judge now, and once it can, it does.
    let other = site.pod("default", "other", json!({}))?;
    site.says(&other, &["clusterwide-all=error"])?;
    site.apply(&[secret])?;
    wait::until("the verdict", LATER, || {
        let said = lines(&site.report(&other)?);
        Ok((said == ["clusterwide-all=fail"]).then_some(()))
    })?;
    assert_eq!(site.report(&pod)?["results"], before["results"]);
    Ok(())
}

#[test]
fn a_report_of_another_tool_is_left_alone() -> Result<()> {
    let muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    let pod = site.pod("default", "pod", json!({}))?;
    let uid = pod["metadata"]["uid"].as_str().context("a UID")?;
    let theirs = json!({
        "apiVersion": "wgpolicyk8s.io/v1beta1", "kind": "PolicyReport",
        "metadata": {"name": uid, "namespace": "default",
            "labels": {"app.kubernetes.io/managed-by": "kyverno"}},
        "results": [{"policy": "theirs", "result": "pass", "source": "kyverno"}],
    });
    site.apply(&[theirs])?;
    let before = site.report(&pod)?;
    site.apply(&[cel("ClusterAdmissionPolicy", "all", "false", json!({}))])?;
    let get = ["clusteradmissionpolicy", "all"];
    site.policy_when("that it is not reported, and counted", &get, |policy| {
        reason(policy) == "Incomplete" && policy["status"]["audit"]["fail"] == 1
    })?;
    assert_eq!(site.report(&pod)?, before);
    // Neither when nobody is interested any longer.
    site.kubectl
        .succeed(&["delete", "clusteradmissionpolicy", "all"])?;
    settled(&site)?;
    assert_eq!(site.report(&pod)?, before);
    Ok(())
}

#[test]
fn results_stay_while_nothing_can_be_listed() -> Result<()> {
    let mut cluster = Muster::start_idle(BINARY)?;
    let there = Site::of(&cluster)?;
    let first = there.pod("default", "first", json!({}))?;
    let kubeconfig = cluster.kubeconfig_path().display().to_string();
    let home = Muster::start_with(BINARY, &["--kubeconfig", &kubeconfig])?;
    let here = Site::of(&home)?;
    here.apply(&[cel("ClusterAdmissionPolicy", "all", "false", json!({}))])?;
    here.says(&first, &["clusterwide-all=fail"])?;
    cluster.kill9()?;
    let get = ["clusteradmissionpolicy", "all"];
    wait::until("that it cannot be listed", LATER, || {
        let policy = here.get(&get)?;
        Ok((reason(&policy) == "Incomplete").then_some(()))
    })?;
    assert_eq!(lines(&here.report(&first)?), ["clusterwide-all=fail"]);
    cluster.restart_in_place()?;
    let there = Site::of(&cluster)?;
    let second = there.pod("default", "second", json!({}))?;
    wait::until("what is new", LATER, || {
        let said = lines(&here.report(&second)?);
        let policy = here.get(&get)?;
        let well = said == ["clusterwide-all=fail"] && reason(&policy) == "Ready";
        Ok(well.then_some(()))
    })?;
    assert_eq!(lines(&here.report(&first)?), ["clusterwide-all=fail"]);
    Ok(())
}

#[test]
fn everything_is_verified_again_and_again() -> Result<()> {
    let arguments = [
        "--audit-verify-seconds",
        "1",
        "--audit-namespaces",
        "shop",
        "--audit-requests-per-second",
        "50",
    ];
    let muster = Muster::start_with(BINARY, &arguments)?;
    let site = Site::of(&muster)?;
    site.kubectl.succeed(&["create", "namespace", "shop"])?;
    let outside = site.pod("default", "pod", json!({}))?;
    let inside = site.pod("shop", "pod", json!({}))?;
    site.apply(&[cel("ClusterAdmissionPolicy", "all", "true", json!({}))])?;
    site.says(&inside, &["clusterwide-all=pass"])?;
    let get = ["clusteradmissionpolicy", "all"];
    let verified = |policy: &Value| policy["status"]["audit"]["lastVerified"].clone();
    let first = site.policy_when("a verification", &get, |policy| !verified(policy).is_null())?;
    site.policy_when("another one", &get, |policy| {
        !verified(policy).is_null() && verified(policy) != verified(&first)
    })?;
    assert!(site.report(&outside)?.is_null(), "out of scope");
    assert_eq!(lines(&site.report(&inside)?), ["clusterwide-all=pass"]);
    Ok(())
}

/// A policy server that answers every question with this status; 200 is a refusal.
fn serve(status: Arc<AtomicU16>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever breaks off asks again.
            let _ = answer(stream, status.load(Ordering::SeqCst));
        }
    });
    Ok(address)
}

fn answer(mut stream: std::net::TcpStream, status: u16) -> Result<()> {
    stream.set_read_timeout(Some(SOON))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let review: Value = serde_json::from_slice(&body)?;
    let said = json!({"response": {"uid": review["request"]["uid"], "allowed": false,
        "status": {"message": "not there", "code": 400}}})
    .to_string();
    let head = format!(
        "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        said.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(said.as_bytes())?;
    Ok(())
}

#[test]
fn a_policy_server_that_could_not_answer_is_asked_again() -> Result<()> {
    let status = Arc::new(AtomicU16::new(503));
    let address = serve(status.clone())?;
    let muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    let server = json!({"apiVersion": "policies.kubewarden.io/v1", "kind": "PolicyServer",
        "metadata": {"name": "remote"}, "spec": {"address": address}});
    let remote = json!({"spec": {"policyServer": "remote"}});
    let policy = cel("ClusterAdmissionPolicy", "remote", "true", remote);
    site.apply(&[server, policy, pod("default", "pod", json!({}))])?;
    let pod = site.get(&["pod", "pod", "-n", "default"])?;
    let report = site.says(&pod, &["clusterwide-remote=error"])?;
    let message = report["results"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("503"), "{message}");
    status.store(200, Ordering::SeqCst);
    wait::until("its verdict", LATER, || {
        let report = site.report(&pod)?;
        let said = lines(&report) == ["clusterwide-remote=fail"];
        Ok(said.then_some(report))
    })
    .map(|report| assert_eq!(report["results"][0]["message"], "not there"))
}
