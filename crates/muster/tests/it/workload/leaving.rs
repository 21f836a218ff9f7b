//! Whatever ends the workload scan of something ends all of it.

use super::*;

/// A namespace with a workload whose scan is through.
async fn scanned(site: &Site<'_>, registry: &Registry, namespace: &str) -> Result<()> {
    push(registry, "team/app", Some("1.0"), 2024).await?;
    site.namespace(namespace, json!({"scan": "me"}))?;
    let (_, set) = site.deployment(namespace, "shop")?;
    let image = site.image("team/app:1.0");
    site.pod(namespace, "shop-1", Some(&set), &[("app", &image)])?;
    site.reported(namespace, "deployment-shop", "a scan", is_complete)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespaces_and_configurations_leave_nothing_behind() -> Result<()> {
    let (bench, registry) = embedded()?;
    let site = site(&bench.kubectl, &registry);
    site.namespace("art", json!({}))?;
    let selected = json!({"matchLabels": {"scan": "me"}});
    let spec = json!({"artifactsNamespace": "art", "namespaceSelector": selected});
    site.configure(spec.clone())?;
    scanned(&site, &registry, "a").await?;
    scanned(&site, &registry, "b").await?;
    let labels = |site: &Site<'_>| -> Result<Value> {
        let registries = site.registries("art")?;
        let first = registries.first().cloned().unwrap_or_default();
        let repository = &first["spec"]["repositories"][0];
        Ok(repository["matchConditions"][0]["labels"].clone())
    };
    // The second report is complete as soon as it is written, since its image is scanned already;
    // the Registry learns of the second namespace on its own.
    wait::until("the labels of both", LIMIT, || {
        Ok((labels(&site)? == json!({"a": "true", "b": "true"})).then_some(()))
    })?;

    // A namespace that is deleted takes its label with it, and no more.
    site.kubectl.succeed(&["delete", "namespace", "b"])?;
    wait::until("the label of the other", LIMIT, || {
        Ok((labels(&site)? == json!({"a": "true"})).then_some(()))
    })?;
    let report = site.report("a", "deployment-shop")?.context("a report")?;
    assert!(is_complete(&report));

    // So does one that is selected no longer.
    site.kubectl
        .succeed(&["label", "namespace", "a", "scan-"])?;
    site.nothing_remains()?;

    // Deleted, the configuration takes everything along.
    scanned_again(&site, "a")?;
    site.kubectl.succeed(&["delete", "wsc", "default"])?;
    site.nothing_remains()?;

    // And made again, it is all there again.
    site.configure(spec)?;
    scanned_again(&site, "a")
}

fn scanned_again(site: &Site<'_>, namespace: &str) -> Result<()> {
    site.kubectl
        .succeed(&["label", "namespace", namespace, "scan=me", "--overwrite"])?;
    let name = "deployment-shop";
    site.reported(namespace, name, "a scan", is_complete)
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_went_while_nobody_looked_is_seen_at_the_next_start() -> Result<()> {
    let (mut bench, registry) = embedded()?;
    {
        let site = site(&bench.kubectl, &registry);
        site.namespace("art", json!({}))?;
        site.configure(json!({"artifactsNamespace": "art", "namespaceSelector": {"matchLabels": {"scan": "me"}}}))?;
        scanned(&site, &registry, "a").await?;
        scanned(&site, &registry, "b").await?;
    }
    // Without the workload scan nothing is watched, and nobody notices.
    bench.muster.tell("MUSTER_WORKLOAD_SCAN", "off");
    bench.muster.kill9()?;
    bench.muster.restart_in_place()?;
    let site = super::site(&bench.kubectl, &registry);
    site.kubectl.succeed(&["delete", "namespace", "b"])?;
    site.kubectl
        .succeed(&["label", "namespace", "a", "scan-"])?;
    assert!(site.report("a", "deployment-shop")?.is_some());
    assert_eq!(site.registries("art")?.len(), 1);
    assert!(!asks_for_pods(site.kubectl)?);
    bench.muster.tell("MUSTER_WORKLOAD_SCAN", "on");
    bench.muster.kill9()?;
    bench.muster.restart_in_place()?;
    super::site(&bench.kubectl, &registry).nothing_remains()?;
    assert!(asks_for_pods(&bench.kubectl)?);
    Ok(())
}

/// Whether anybody has asked this server for pods.
fn asks_for_pods(kubectl: &Kubectl) -> Result<bool> {
    let metrics = kubectl.succeed(&["get", "--raw", "/metrics"])?;
    assert!(metrics.contains("resource=\"registries\""), "{metrics}");
    Ok(metrics.contains("resource=\"pods\""))
}
