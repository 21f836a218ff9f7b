//! A start is quick, an end is clean, and what was there before is there after.

use anyhow::{Context, Result, ensure};
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::muster::Muster;
use muster_testkit::process::{Directory, Process};
use muster_testkit::wait;
use muster_testkit::watch::Next;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const MUSTER: &str = env!("CARGO_BIN_EXE_muster");
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn it_serves_within_two_seconds() -> Result<()> {
    // Other tests run beside this one; the best of some starts shows what a start takes.
    let (begin, mut best) = (Instant::now(), Duration::MAX);
    while begin.elapsed() < PATIENCE {
        let start = Instant::now();
        Muster::start(MUSTER)?;
        best = best.min(start.elapsed());
        if best < Duration::from_secs(2) {
            return Ok(());
        }
    }
    panic!("the quickest of all starts in {PATIENCE:?} took {best:?}");
}

#[test]
fn the_help_says_how_to_go_on_with_kubectl() -> Result<()> {
    let output = Command::new(MUSTER).args(["up", "--help"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    for word in ["kubectl --kubeconfig", "--data", "--listen"] {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
    Ok(())
}

#[test]
fn secrets_are_readable_by_their_owner_alone() -> Result<()> {
    let muster = Muster::start(MUSTER)?;
    for name in ["kubeconfig", "pki/ca.key", "state.db"] {
        let mode = fs::metadata(muster.data().join(name))?.permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let mode = fs::metadata(muster.data())?.permissions().mode();
    assert_eq!(mode & 0o077, 0);
    Ok(())
}

#[test]
fn who_is_told_to_stop_while_it_starts_ends_too() -> Result<()> {
    let directory = Directory::new("brief")?;
    // At once, and at some of the moments in which controllers list what is there.
    for milliseconds in [0, 2, 5, 10, 20, 40, 80, 160] {
        let data = directory.join(&format!("data-{milliseconds}"));
        let mut command = Command::new(MUSTER);
        command.arg("up").arg("--data").arg(&data);
        command.args(["--listen", "127.0.0.1:0"]);
        command.env("MUSTER_DB_UPDATE", "off");
        let log = directory.join(&format!("log-{milliseconds}"));
        let mut process = Process::start("muster", &mut command, &log)?;
        wait::until("the kubeconfig", PATIENCE, || {
            let written = fs::read_to_string(data.join("kubeconfig"));
            Ok(written.is_ok_and(|text| !text.is_empty()).then_some(()))
        })?;
        std::thread::sleep(Duration::from_millis(milliseconds));
        let status = process.terminate(PATIENCE)?;
        ensure!(status.success(), "{status}: {}", process.log_tail());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_closes_open_watches_cleanly_and_soon() -> Result<()> {
    let mut muster = Muster::start(MUSTER)?;
    let client = Client::new(muster.kubeconfig())?;
    let mut watches = Vec::new();
    for path in [
        "/api/v1/namespaces",
        "/api/v1/configmaps",
        "/api/v1/secrets",
    ] {
        for _ in 0..10 {
            let request = Request::new(Method::GET, format!("{path}?watch=true"));
            watches.push(client.watch(request, PATIENCE).await?);
        }
    }
    let ended = tokio::task::spawn_blocking(move || muster.terminate());
    let mut start = None;
    for mut watch in watches {
        loop {
            match watch.next(PATIENCE).await? {
                Next::Line(line) => {
                    let event: serde_json::Value = serde_json::from_slice(&line)?;
                    assert_ne!(event["type"], "ERROR", "{event}");
                }
                end => {
                    assert_eq!(end, Next::End(Vec::new()));
                    start.get_or_insert_with(Instant::now);
                    break;
                }
            }
        }
    }
    ensure!(ended.await??.success(), "it did not end well");
    // From the first watch that ends: what is being worked on ends before, in its own time. Ten
    // seconds is where a server would stop waiting for connections that do not end.
    let took = start.context("a watch")?.elapsed();
    assert!(took < Duration::from_secs(9), "{took:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_the_data_and_old_kubeconfigs() -> Result<()> {
    let mut muster = Muster::start(MUSTER)?;
    let old = muster.kubeconfig().clone();
    let client = Client::new(&old)?;
    let collection = "/api/v1/namespaces/default/configmaps";
    let body = r#"{"metadata":{"name":"kept"},"data":{"a":"b"}}"#;
    let request = Request::new(Method::POST, collection).body("application/json", body)?;
    let created = client.send(request).await?.json()?;
    ensure!(muster.terminate()?.success());
    muster.restart()?;
    let new = muster.kubeconfig();
    assert_eq!(new.authority, old.authority);
    // Only the port is new, because the test leaves its choice to the kernel.
    let client = Client::new(&Kubeconfig {
        server: new.server.clone(),
        ..old
    })?;
    let found = client.get(&format!("{collection}/kept")).await?.json()?;
    assert_eq!(found, created);
    assert!(Path::new(&muster.kubeconfig_path()).exists());
    Ok(())
}

#[tokio::test]
async fn event_objects_are_deleted_when_their_time_is_over() -> Result<()> {
    let muster = Muster::start_with(MUSTER, &["--event-seconds", "2", "--upkeep-seconds", "1"])?;
    let client = Client::new(muster.kubeconfig())?;
    let events = "/api/v1/namespaces/default/events";
    let event = serde_json::json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "short"},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": "default"},
    });
    let kept = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "long"},
    });
    for (collection, object) in [
        (events, event),
        ("/api/v1/namespaces/default/configmaps", kept),
    ] {
        let request =
            Request::new(Method::POST, collection).body("application/json", object.to_string())?;
        let made = client.send(request).await?;
        ensure!(made.status == 201, "{}", made.json()?);
    }
    muster_testkit::wait::until_async("the end of the Event", PATIENCE, || async {
        let found = client.get(&format!("{events}/short")).await?;
        Ok((found.status == 404).then_some(()))
    })
    .await?;
    let kept = client
        .get("/api/v1/namespaces/default/configmaps/long")
        .await?;
    assert_eq!(kept.status, 200);
    Ok(())
}
