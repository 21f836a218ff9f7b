//! What keeps a Registry from being deleted: a job that works on it, and nothing else. An idle one
//! carries no finalizer, so whoever takes Muster away can delete what is left.

use super::conditions::Bench;
use super::discovery::{Gate, registry};
use super::{LIMIT, ended, get, job, push};
use anyhow::{Context, Result};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};

const FINALIZER: &str = "sbomscanner.kubewarden.io/running-job";

fn finalizers(kubectl: &Kubectl) -> Result<Value> {
    Ok(get(kubectl, &["registry", "local"])?["metadata"]["finalizers"].clone())
}

fn untied(kubectl: &Kubectl) -> Result<()> {
    wait::until("the Registry without a finalizer", LIMIT, || {
        Ok(finalizers(kubectl)?.is_null().then_some(()))
    })
}

/// The names of the ScanJobs, once one of them is worked on.
fn begun(kubectl: &Kubectl) -> Result<Vec<String>> {
    wait::until("a ScanJob that has begun", LIMIT, || {
        let jobs = get(kubectl, &["scanjobs"])?;
        let jobs = jobs["items"].as_array().context("items")?;
        let begun = jobs.iter().any(|job| {
            let status = &job["status"];
            status["startTime"].is_string() && status["completionTime"].is_null()
        });
        let names = jobs.iter().map(|job| job["metadata"]["name"].as_str());
        let names = names.map(|name| name.unwrap_or_default().to_owned());
        Ok(begun.then(|| names.collect()))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_is_tied_only_while_a_job_works_on_it() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let gate = Gate::default();
    let proxy = gate.before(&server).await?;
    let bench = Bench::start()?;
    let kubectl = &bench.kubectl;
    let mut manifest = registry("local", &proxy.host());
    manifest["spec"]["scanOnChange"] = json!(true);

    // What it starts itself ties it, and unties it when it has ended.
    gate.close("/tags/list");
    bench.apply(&manifest)?;
    let first = begun(kubectl)?;
    assert_eq!(finalizers(kubectl)?, json!([FINALIZER]));
    gate.open("/tags/list");
    let reason = ended(kubectl, first.first().context("a job")?)?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    untied(kubectl)?;

    // One from before, when every Registry was tied for good; that of another stays.
    let others = "example.org/hold";
    let patch = json!({"metadata": {"finalizers": [others, FINALIZER]}}).to_string();
    kubectl.succeed(&["patch", "registry", "local", "--type=merge", "-p", &patch])?;
    wait::until("the Registry with the finalizer of another", LIMIT, || {
        Ok((finalizers(kubectl)? == json!([others])).then_some(()))
    })?;
    let patch = json!({"metadata": {"finalizers": null}}).to_string();
    kubectl.succeed(&["patch", "registry", "local", "--type=merge", "-p", &patch])?;

    // Somebody else's job ties it too, whatever is taken away by hand, and its end lets it go.
    gate.close("/tags/list");
    bench.apply(&serde_json::from_str(&job("second", "local"))?)?;
    let both = begun(kubectl)?;
    assert_eq!(both.len(), 2, "a finalizer is no reason to scan: {both:?}");
    assert_eq!(finalizers(kubectl)?, json!([FINALIZER]));
    kubectl.succeed(&["patch", "registry", "local", "--type=merge", "-p", &patch])?;
    wait::until("the finalizer again", LIMIT, || {
        Ok((finalizers(kubectl)? == json!([FINALIZER])).then_some(()))
    })?;
    kubectl.succeed(&["delete", "registry", "local", "--wait=false"])?;
    let leaving = get(kubectl, &["registry", "local"])?;
    assert!(leaving["metadata"]["deletionTimestamp"].is_string());
    gate.open("/tags/list");
    let reason = ended(kubectl, "second")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    kubectl.succeed(&["wait", "--for=delete", "registry/local", "--timeout=180s"])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_registry_goes_with_nobody_here_to_let_it_go() -> Result<()> {
    let server = Registry::start()?;
    let bench = Bench::start()?;
    let kubectl = &bench.kubectl;
    bench.apply(&registry("local", &server.host()))?;
    wait::until("a status", LIMIT, || {
        let registry = get(kubectl, &["registry", "local"])?;
        Ok(registry["status"]["conditions"].is_array().then_some(()))
    })?;
    assert_eq!(finalizers(kubectl)?, Value::Null);
    // Nobody is waited for, so it is gone when the answer comes.
    kubectl.succeed(&["delete", "registry", "local", "--wait=false"])?;
    let left = kubectl.succeed(&["get", "registries", "-o", "name"])?;
    assert_eq!(left, "");
    Ok(())
}
