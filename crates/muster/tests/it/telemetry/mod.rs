//! What Muster tells of itself while it scans: numbers, events, health and traces, each met by what
//! reads it in real life.

mod collector;
mod roles;

use crate::scan::conditions::Bench;
use crate::scan::{data, ended, get, job, manifests, push};
use anyhow::{Context, Result};
use collector::{Collector, Span};
use muster_testkit::http::Client;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);

/// The value of a line, such as `muster_leader` or `muster_images_total{outcome="read"}`.
fn value(metrics: &str, line: &str) -> Option<f64> {
    let mut values = metrics.lines().filter_map(|told| told.strip_prefix(line));
    values.find_map(|rest| rest.strip_prefix(' ')?.parse().ok())
}

/// Waits until `kubectl describe` shows an event.
fn described(kubectl: &Kubectl, what: &[&str], words: &[&str]) -> Result<()> {
    let described = wait::until(&format!("{words:?} about {what:?}"), LIMIT, || {
        let text = kubectl.succeed(&[&["describe"], what].concat())?;
        let mut events = text.lines().skip_while(|line| !line.starts_with("Events:"));
        let found = events.any(|line| words.iter().all(|word| line.contains(word)));
        Ok(found.then_some(()))
    });
    described.with_context(|| {
        kubectl
            .succeed(&["get", "events", "-A"])
            .unwrap_or_default()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_is_counted_told_and_traced() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let vulnerabilities = tempfile::tempdir()?;
    data(vulnerabilities.path())?;
    let directory = vulnerabilities.path().to_string_lossy().into_owned();
    let collector = Collector::start().await?;
    let muster = Muster::start_told(
        env!("CARGO_BIN_EXE_muster"),
        &["--database", &directory],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url()),
            ("OTEL_BSP_SCHEDULE_DELAY", "200"),
        ],
    )?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    for name in ["first", "second"] {
        kubectl.succeed_with(&["apply", "-f", "-"], &job(name, "local"))?;
        let reason = ended(&kubectl, name)?;
        assert!(reason.contains("AllImagesScanned"), "{reason}");
    }
    let metrics = wait::until("the numbers of two scans", LIMIT, || {
        let metrics = kubectl.succeed(&["get", "--raw", "/metrics"])?;
        let line = r#"muster_jobs_ended_total{kind="ScanJob",reason="AllImagesScanned"}"#;
        Ok((value(&metrics, line) == Some(2.0)).then_some(metrics))
    })?;
    for (line, count) in [
        (r#"muster_images_total{outcome="read"}"#, 2.0),
        (r#"muster_images_total{outcome="unchanged"}"#, 2.0),
        (r#"muster_reports_total{outcome="matched"}"#, 2.0),
        (r#"muster_reports_total{outcome="unchanged"}"#, 2.0),
        (r#"muster_findings_total{severity="critical"}"#, 2.0),
        (
            "muster_vulnerability_data_timestamp_seconds",
            1_767_323_045.0,
        ),
        ("muster_leader", 1.0),
        (
            r#"muster_queue_messages{subject="sbomscanner.catalog.create",state="dead"}"#,
            0.0,
        ),
    ] {
        assert_eq!(value(&metrics, line), Some(count), "{line}\n{metrics}");
    }
    for (line, least) in [
        (
            r#"muster_stages_ended_total{stage="catalog",outcome="done"}"#,
            2.0,
        ),
        (
            r#"muster_stages_ended_total{stage="generate",outcome="done"}"#,
            4.0,
        ),
        (
            r#"muster_stages_ended_total{stage="scan",outcome="done"}"#,
            4.0,
        ),
        (r#"muster_stage_duration_seconds_count{stage="scan"}"#, 4.0),
        (
            r#"muster_registry_requests_total{method="GET",code="2xx"}"#,
            3.0,
        ),
        ("muster_registry_read_bytes_total", 1000.0),
    ] {
        let told = value(&metrics, line).is_some_and(|told| told >= least);
        assert!(told, "{line}\n{metrics}");
    }
    assert!(metrics.contains("apiserver_requests_total{"), "{metrics}");
    assert_eq!(metrics.matches("# EOF").count(), 1);
    let stranger = Client::new(muster.kubeconfig())?.stranger()?;
    let refused = stranger.get("/metrics").await?;
    assert!(matches!(refused.status.as_u16(), 401 | 403), "{refused:?}");

    described(&kubectl, &["scanjob", "first"], &["Normal", "Started"])?;
    let words = ["Normal", "Complete", "2 of 2", "2 had to be read"];
    described(&kubectl, &["scanjob", "first"], &words)?;
    let words = ["Normal", "Complete", "0 had to be read and 0 matched"];
    described(&kubectl, &["scanjob", "second"], &words)?;

    let job = get(&kubectl, &["scanjob", "first"])?;
    let uid = job["metadata"]["uid"].as_str().context("a UID")?;
    let trace = uid.replace('-', "");
    let spans = wait::until("the whole trace of a scan", LIMIT, || {
        let spans = collector.trace(&trace);
        Ok(is_whole(&spans).then_some(spans))
    })
    .with_context(|| format!("{:#?}", collector.trace(&trace)))?;
    let root = spans.iter().find(|span| span.parent.is_empty());
    let root = root.context("a root")?;
    assert_eq!(root.name, "ScanJob");
    assert_eq!(root.said("job"), Some("first"));
    assert_eq!(root.said("outcome"), Some("AllImagesScanned"));
    let generated: BTreeSet<&str> = of(&spans, "generate").map(|span| &*span.id).collect();
    for span in of(&spans, "scan") {
        assert!(generated.contains(&*span.parent), "{span:?}");
        assert_eq!(span.said("outcome"), Some("done"));
        assert_eq!(span.said("registry"), Some("local"));
        assert!(span.said("image").is_some(), "{span:?}");
    }
    assert!(
        spans
            .iter()
            .all(|span| span.said("stage") != Some("rematch"))
    );
    Ok(())
}

fn of<'a>(spans: &'a [Span], name: &'a str) -> impl Iterator<Item = &'a Span> {
    spans.iter().filter(move |span| span.name == name)
}

/// Whether all stages of two images are there, and every span has its parent.
fn is_whole(spans: &[Span]) -> bool {
    let least = [
        ("ScanJob", 1),
        ("hand out", 1),
        ("catalog", 1),
        ("generate", 2),
        ("scan", 2),
        ("registry request", 3),
    ];
    let ids: BTreeSet<&str> = spans.iter().map(|span| &*span.id).collect();
    let has_parent = |span: &Span| span.parent.is_empty() || ids.contains(&*span.parent);
    least
        .iter()
        .all(|(name, least)| of(spans, name).count() >= *least)
        && spans.iter().all(has_parent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_wrong_is_told_where_people_look() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let bench = Bench::start()?;
    let kubectl = &bench.kubectl;
    let apply = |text: &str| kubectl.succeed_with(&["apply", "-f", "-"], text);
    apply(&job("lost", "nowhere"))?;
    described(
        kubectl,
        &["scanjob", "lost"],
        &["Warning", "Failed", "RegistryNotFound"],
    )?;

    let version = "sbomscanner.kubewarden.io/v1alpha1";
    let nobody = json!({
        "apiVersion": version, "kind": "Registry",
        "metadata": {"name": "nobody", "namespace": "default"},
        "spec": {
            "uri": "127.0.0.1:1", "catalogType": "NoCatalog", "insecure": true,
            "scanOnChange": false, "repositories": [{"name": "a/b"}],
            "discoveryJob": {"suspend": true},
        },
    });
    apply(&nobody.to_string())?;
    described(
        kubectl,
        &["registry", "nobody"],
        &["Warning", "Unreachable"],
    )?;
    let hub = json!({
        "apiVersion": version, "kind": "VEXHub", "metadata": {"name": "nobody"},
        "spec": {"url": "https://127.0.0.1:1/hub", "enabled": true},
    });
    apply(&hub.to_string())?;
    described(kubectl, &["vexhub", "nobody"], &["Warning", "FetchFailed"])?;

    // A scan that somebody asks for is scheduled; what it finds gone, it removes.
    apply(&manifests(&registry.host()))?;
    let rescan = "sbomscanner.kubewarden.io/rescan-requested=";
    kubectl.succeed(&["annotate", "registry", "local", rescan])?;
    described(
        kubectl,
        &["registry", "local"],
        &["ScanScheduled", "asked for it"],
    )?;
    wait::until("the end of the scan", LIMIT, || {
        let registry = get(kubectl, &["registry", "local"])?;
        Ok((registry["status"]["lastScan"]["result"] == "Succeeded").then_some(()))
    })?;
    push(&registry, 2025).await?;
    apply(&job("again", "local"))?;
    let reason = ended(kubectl, "again")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    described(
        kubectl,
        &["registry", "local"],
        &["ObsoleteImagesRemoved", "2 images"],
    )?;

    // What is called off says so.
    let discovery = json!({
        "apiVersion": version, "kind": "RegistryDiscovery",
        "metadata": {"name": "called-off", "namespace": "default"},
        "spec": {"registry": "local", "cancel": true},
    });
    apply(&discovery.to_string())?;
    described(kubectl, &["registrydiscovery", "called-off"], &["Canceled"])?;
    let metrics = kubectl.succeed(&["get", "--raw", "/metrics"])?;
    for (kind, reason) in [
        ("ScanJob", "RegistryNotFound"),
        ("RegistryDiscovery", "DiscoveryCanceled"),
    ] {
        let line = format!("muster_jobs_ended_total{{kind=\"{kind}\",reason=\"{reason}\"}}");
        assert_eq!(value(&metrics, &line), Some(1.0), "{line}\n{metrics}");
    }
    Ok(())
}
