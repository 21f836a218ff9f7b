//! Many workloads of a few teams that share a few images, in a server that scans nothing itself: what pages
//! are looked at and measured with.

use crate::http::{Client, Request};
use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

const STORAGE: &str = "storage.sbomscanner.kubewarden.io/v1alpha1";
/// The namespace of the images.
const IMAGES: &str = "artifacts";
/// Who writes at the same time.
const WRITERS: usize = 16;

/// How many there are of each.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Workloads `web-00000` and so on, each with one container.
    pub workloads: usize,
    /// Images `app-0` and so on; each has one finding more than the one before, until that begins anew.
    pub images: usize,
    /// Namespaces `team-00` and so on, to which the workloads belong in turn.
    pub teams: usize,
}

impl Crowd {
    /// Has a server keep it.
    pub async fn fill(self, client: &Client) -> Result<()> {
        create_all(client, self.teams + 1, move |number| {
            let name = match number == self.teams {
                true => IMAGES.to_owned(),
                false => format!("team-{number:02}"),
            };
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            ("/api/v1/namespaces".into(), namespace)
        })
        .await?;
        create_all(client, self.images, |number| {
            let path = format!("/apis/{STORAGE}/namespaces/{IMAGES}/vulnerabilityreports");
            (path, findings(number))
        })
        .await?;
        create_all(client, self.workloads, move |number| {
            let team = number % self.teams;
            let path = format!("/apis/{STORAGE}/namespaces/team-{team:02}/workloadscanreports");
            (path, workload(number, number % self.images))
        })
        .await
    }
}

/// No image has more findings.
const MOST: usize = 300;

/// A report on an image.
fn findings(image: usize) -> Value {
    let count = image % MOST + 1;
    let findings: Vec<Value> = (0..count)
        .map(|number| {
            json!({
                "cve": format!("CVE-2026-{number:05}"), "packageName": format!("package-{number}"),
                "installedVersion": "1.0", "fixedVersions": ["1.1"], "severity": "HIGH",
            })
        })
        .collect();
    let summary = json!({
        "critical": 0, "high": count, "medium": 0, "low": 0, "unknown": 0, "suppressed": 0,
    });
    json!({
        "apiVersion": STORAGE, "kind": "VulnerabilityReport",
        "metadata": {"name": format!("image-{image}")},
        "imageMetadata": {
            "registry": "hub", "registryURI": "registry.example", "repository": format!("app-{image}"),
            "tag": "1", "digest": format!("sha256:{image:0>64}"),
            "platform": {"os": "linux", "architecture": "amd64"},
        },
        "report": {"summary": summary, "results": [
            {"class": "os-pkgs", "type": "debian", "target": "debian 12", "vulnerabilities": findings},
        ]},
    })
}

fn workload(number: usize, image: usize) -> Value {
    let image = json!({
        "registry": "hub", "namespace": IMAGES, "repository": format!("app-{image}"), "tag": "1",
    });
    json!({
        "apiVersion": STORAGE, "kind": "WorkloadScanReport",
        "metadata": {"name": format!("deployment-web-{number:05}")},
        "spec": {"containers": [{"name": "app", "imageRef": image}]},
    })
}

async fn create(client: &Client, path: &str, object: &Value) -> Result<()> {
    let request = Request::new(Method::POST, path).body("application/json", object.to_string())?;
    let answer = client.send(request).await?;
    ensure!(
        answer.status == 201,
        "{path}: {}",
        String::from_utf8_lossy(&answer.body)
    );
    Ok(())
}

/// Creates so many objects, several at a time.
async fn create_all(
    client: &Client,
    count: usize,
    object: impl Fn(usize) -> (String, Value) + Send + Sync + 'static,
) -> Result<()> {
    let (next, object) = (Arc::new(AtomicUsize::new(0)), Arc::new(object));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (client, next, object) = (client.clone(), next.clone(), object.clone());
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                let (path, object) = object(number);
                create(&client, &path, &object).await?;
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok(())
}
