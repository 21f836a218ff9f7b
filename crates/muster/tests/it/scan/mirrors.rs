//! Mirrors, as a place has them that reaches nothing else: images keep the name of their registry, and
//! come from elsewhere.

use super::discovery::registry;
use super::{data, ended, get, job, push};
use anyhow::{Context, Result};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::registry::Registry;
use serde_json::json;

/// A name that nobody has, by RFC 2606.
const NOWHERE: &str = "registry.example";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_nobody_reaches_is_scanned_at_its_mirror() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let vulnerabilities = tempfile::tempdir()?;
    data(vulnerabilities.path())?;
    let directory = vulnerabilities.path().to_string_lossy();
    let mirror = format!("{NOWHERE}=http://{}", server.host());
    let arguments = ["--database", &*directory, "--mirror", &mirror];
    let muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &arguments)?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let mut manifest = registry("local", NOWHERE);
    manifest["spec"]["insecure"] = json!(false);
    for object in [manifest.to_string(), job("first", "local")] {
        kubectl.succeed_with(&["apply", "-f", "-"], &object)?;
    }
    let reason = ended(&kubectl, "first")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let images = get(&kubectl, &["images"])?;
    let images = images["items"].as_array().context("items")?;
    assert_eq!(images.len(), 2);
    for image in images {
        assert_eq!(image["imageMetadata"]["registryURI"], NOWHERE, "{image}");
    }
    Ok(())
}
