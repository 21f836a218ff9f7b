//! What people change while a registry is scanned: they delete the job or an Image, edit the
//! Registry, or make it anew. Every job ends and says what it did; what is new is scanned after it.

use super::conditions::Bench;
use super::discovery::{Gate, registry};
use super::{LIMIT, ended, get, job, layer, push};
use anyhow::{Context, Result};
use http::Method;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::proxy::Proxy;
use muster_testkit::push::{Pusher, digest};
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};

/// A job that waits for the one layer of its images, and all around it.
struct Held {
    bench: Bench,
    gate: Gate,
    proxy: Proxy,
    server: Registry,
    layer: String,
}

impl Held {
    async fn start() -> Result<Held> {
        let server = Registry::start()?;
        push(&server, 2024).await?;
        let gate = Gate::default();
        let proxy = gate.before(&server).await?;
        let held = Held {
            bench: Bench::start()?,
            gate,
            proxy,
            server,
            layer: digest(&layer()?.1),
        };
        held.bench.apply(&held.registry())?;
        held.gate.close(&held.layer);
        let kubectl = &held.bench.kubectl;
        kubectl.succeed_with(&["apply", "-f", "-"], &job("first", "local"))?;
        wait::until("the job to ask for the layer", LIMIT, || {
            Ok((held.proxy.count(Method::GET, &held.layer) > 0).then_some(()))
        })?;
        Ok(held)
    }

    fn release(&self) {
        self.gate.open(&self.layer);
    }

    fn registry(&self) -> Value {
        registry("local", &self.proxy.host())
    }

    fn kubectl(&self) -> &Kubectl {
        &self.bench.kubectl
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_deleted_makes_room_for_the_next() -> Result<()> {
    let held = Held::start().await?;
    let kubectl = held.kubectl();
    kubectl.succeed_with(&["apply", "-f", "-"], &job("second", "local"))?;
    wait::until("the second job to wait for the first", LIMIT, || {
        let second = get(kubectl, &["scanjob", "second"])?;
        let said = second["status"]["conditions"][0]["message"].as_str();
        let waits = said.is_some_and(|said| said.contains("waits for ScanJob default/first"));
        Ok(waits.then_some(()))
    })?;
    kubectl.succeed(&["delete", "scanjob", "first"])?;
    held.release();
    let reason = ended(kubectl, "second")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let jobs = get(kubectl, &["scanjobs"])?;
    assert_eq!(jobs["items"].as_array().map(Vec::len), Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_is_deleted_is_told_and_comes_back_with_the_next_scan() -> Result<()> {
    let held = Held::start().await?;
    let kubectl = held.kubectl();
    let images = kubectl.succeed(&["get", "images", "-o", "name"])?;
    let one = images.lines().next().context("an image")?;
    kubectl.succeed(&["delete", one])?;
    held.release();
    let reason = ended(kubectl, "first")?;
    assert!(
        reason.contains("1 of 2 images") && reason.contains("deleted meanwhile"),
        "{reason}"
    );
    // What was under way when its Image went is collected with it.
    for kind in ["sboms", "vulnerabilityreports"] {
        wait::until(&format!("one of {kind}"), LIMIT, || {
            let found = get(kubectl, &[kind])?;
            let count = found["items"].as_array().map(Vec::len);
            Ok((count == Some(1)).then_some(()))
        })?;
    }
    let (reason, second) = held.bench.scan("second", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(second["status"]["imagesCount"], 2);
    assert_eq!(second["status"]["readImagesCount"], 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_grows_while_it_is_scanned_is_scanned_again() -> Result<()> {
    let held = Held::start().await?;
    let kubectl = held.kubectl();
    let pusher = Pusher::new(&held.server)?;
    super::conditions::image(&pusher, "team/more", Some("1"), 2001).await?;
    let mut grown = held.registry();
    grown["spec"]["repositories"] = json!([{"name": "team/app"}, {"name": "team/more"}]);
    grown["spec"]["scanOnChange"] = json!(true);
    held.bench.apply(&grown)?;
    held.release();
    let reason = ended(kubectl, "first")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    let first = get(kubectl, &["scanjob", "first"])?;
    assert_eq!(first["status"]["imagesCount"], 2, "what it was begun for");
    let kept = &first["metadata"]["annotations"]["sbomscanner.kubewarden.io/registry"];
    let kept: Value = serde_json::from_str(kept.as_str().context("a snapshot")?)?;
    let repositories = kept["spec"]["repositories"].as_array();
    assert_eq!(repositories.map(Vec::len), Some(1), "{kept}");
    wait::until("the images of the new repository", LIMIT, || {
        let reports = get(kubectl, &["vulnerabilityreports"])?;
        Ok((reports["items"].as_array().map(Vec::len) == Some(3)).then_some(()))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_is_made_anew_by_force_leaves_no_job_hanging() -> Result<()> {
    let held = Held::start().await?;
    let kubectl = held.kubectl();
    // Deleting waits for the job, and nobody can make another one meanwhile.
    kubectl.succeed(&["delete", "registry", "local", "--wait=false"])?;
    let leaving = get(kubectl, &["registry", "local"])?;
    assert!(leaving["metadata"]["deletionTimestamp"].is_string());
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    kubectl.succeed(&["patch", "registry", "local", "--type=merge", "-p", patch])?;
    wait::until("the end of the Registry", LIMIT, || {
        let found = kubectl.succeed(&["get", "registries", "-o", "name"])?;
        Ok(found.is_empty().then_some(()))
    })?;
    held.bench.apply(&held.registry())?;
    held.release();
    let reason = ended(kubectl, "first")?;
    assert!(
        reason.contains("RegistryNotFound") || reason.contains("InternalError"),
        "{reason}"
    );
    let (reason, second) = held.bench.scan("second", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(second["status"]["imagesCount"], 2);
    let uid = get(kubectl, &["registry", "local"])?["metadata"]["uid"].clone();
    let images = get(kubectl, &["images"])?;
    for image in images["items"].as_array().context("images")? {
        let owner = &image["metadata"]["ownerReferences"][0]["uid"];
        assert_eq!(*owner, uid, "an Image of the Registry that is gone");
    }
    Ok(())
}
