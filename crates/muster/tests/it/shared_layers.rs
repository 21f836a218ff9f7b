//! Layers that several images share: read once, and never taken for what they are not.

use crate::scan::{data, ended, get, job, layer, manifests, push};
use anyhow::{Context, Result};
use http::Method;
use muster_scan::layer::ANALYZER_VERSION;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::digest;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use std::time::Duration;

const INVENTORY: &str = "application/vnd.muster.layer-inventory+json";

const LIMIT: Duration = Duration::from_secs(180);

/// A registry behind a proxy that counts, and a server that scans it.
struct Scene {
    registry: Registry,
    proxy: Proxy,
    muster: Muster,
    kubectl: Kubectl,
    client: Client,
    _vulnerabilities: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Result<Scene> {
        let registry = Registry::start()?;
        push(&registry, 2024).await?;
        let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
        let vulnerabilities = tempfile::tempdir()?;
        data(vulnerabilities.path())?;
        let directory = vulnerabilities.path().to_string_lossy().into_owned();
        let arguments = ["--database", &directory];
        let muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &arguments)?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&proxy.host()))?;
        Ok(Scene {
            client: Client::new(muster.kubeconfig())?,
            registry,
            proxy,
            muster,
            kubectl,
            _vulnerabilities: vulnerabilities,
        })
    }

    /// Scans, and asserts that the one flaw was found on both platforms.
    fn scan(&self, name: &str) -> Result<()> {
        let job = job(name, "local");
        self.kubectl.succeed_with(&["apply", "-f", "-"], &job)?;
        let reason = ended(&self.kubectl, name)?;
        let log = self.muster.process().log_tail();
        assert!(reason.contains("AllImagesScanned"), "{reason}: {log}");
        // What was found in older images goes a little later.
        wait::until("one report for each platform", LIMIT, || {
            let reports = get(&self.kubectl, &["vulnerabilityreports"])?;
            let items = reports["items"].as_array().context("items")?;
            for report in items {
                assert_eq!(report["report"]["summary"]["critical"], 1, "{report}");
            }
            Ok((items.len() == 2).then_some(()))
        })
    }

    /// How often the layer was fetched from the registry.
    fn fetched(&self) -> Result<usize> {
        let (_, packed) = layer()?;
        Ok(self.proxy.count(Method::GET, &digest(&packed)))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_layer_of_many_images_is_fetched_once() -> Result<()> {
    let scene = Scene::new().await?;
    scene.scan("first")?;
    assert_eq!(scene.fetched()?, 1, "for two platforms");
    // Two more images with the same layer.
    push(&scene.registry, 2025).await?;
    scene.scan("second")?;
    assert_eq!(scene.fetched()?, 1, "for four images");
    let (plain, _) = layer()?;
    let path = format!("/layers/{}?analyzers={ANALYZER_VERSION}", digest(&plain));
    let shared = scene.client.get(&path).await?;
    assert_eq!(shared.status, 200);
    let packages = &shared.json()?["files"]["var/lib/dpkg/status"]["packages"];
    assert_eq!(packages["packages"].as_array().map(Vec::len), Some(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_kept_of_a_layer_never_breaks_its_scan() -> Result<()> {
    let scene = Scene::new().await?;
    let (plain, _) = layer()?;
    let path = format!("/layers/{}?analyzers={ANALYZER_VERSION}", digest(&plain));
    for (number, kept) in [
        "this is no inventory".to_owned(),
        "[".repeat(100_000),
        format!(r#"{{"version":{}}}"#, ANALYZER_VERSION + 1),
        format!(r#"{{"version":{ANALYZER_VERSION},"files":{{"../../etc/shadow":"nothing"}}}}"#),
        format!(
            r#"{{"version":{ANALYZER_VERSION},"links":{{"lib":"{}"}}}}"#,
            "x/".repeat(100_000)
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let put = Request::new(Method::PUT, &path).body(INVENTORY, kept.clone())?;
        let put = scene.client.send(put).await?;
        assert_eq!(put.status, 201, "{:?}", put.body);
        push(&scene.registry, 2000 + number as u32).await?;
        scene.scan(&format!("scan-{number}"))?;
        assert!(scene.fetched()? > number, "scan {number} read the layer");
        // The first content stays until somebody removes it.
        assert_eq!(scene.client.get(&path).await?.body, kept);
        let gone = scene
            .client
            .send(Request::new(Method::DELETE, &path))
            .await?;
        assert_eq!(gone.status, 200);
    }
    Ok(())
}
