//! What really runs: the digest that the runtime tells, and whose pods they are.

use super::*;
use std::collections::BTreeSet;

/// An embedded Muster that looks at everything, with one namespace.
fn open(registry: &Registry, spec: Value) -> Result<Bench> {
    let bench = Bench::start()?;
    let site = site(&bench.kubectl, registry);
    site.namespace("web", json!({}))?;
    site.configure(spec)?;
    Ok(bench)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_tells_of_what_runs_and_not_of_what_the_tag_means_today() -> Result<()> {
    let registry = Registry::start()?;
    let pusher = Pusher::new(&registry)?;
    let old = push(&registry, "team/app", Some("1.0"), 2024).await?;
    let bench = open(&registry, json!({}))?;
    let site = site(&bench.kubectl, &registry);
    let image = site.image("team/app:1.0");
    let id = |digest: &str| format!("{}@{digest}", site.image("team/app"));
    site.pod("web", "old", None, &[("app", &image)])?;
    site.tell("web", "old", "Running", &[("app", id(&old.digest))])?;
    let running = format!("app team/app:1.0@{}", old.digest);
    let report = site.reported("web", "pod-old", "a scan", |report| {
        is_complete(report) && images(report) == [running.clone()]
    })?;
    assert_eq!(report["summary"]["critical"], 1);

    // The tag is built anew; the old pod still runs the old image, a new one the new.
    let new = push(&registry, "team/app", Some("1.0"), 2025).await?;
    site.pod("web", "new", None, &[("app", &image)])?;
    site.tell("web", "new", "Running", &[("app", id(&new.digest))])?;
    // Before the runtime has told what it runs, the tag is all that is known of it.
    let running = format!("app team/app:1.0@{}", new.digest);
    let report = site.reported("web", "pod-new", "a scan", |report| {
        is_complete(report) && images(report) == [running.clone()]
    })?;
    let quoted = &report["containers"][0]["vulnerabilityReports"];
    assert_eq!(
        quoted[0]["imageMetadata"]["indexDigest"],
        new.digest.as_str()
    );
    let report = site.reported("web", "pod-old", "the old image", is_complete)?;
    let quoted = &report["containers"][0]["vulnerabilityReports"];
    assert_eq!(
        quoted[0]["imageMetadata"]["indexDigest"],
        old.digest.as_str()
    );

    // A pinned image that the registry does not have is said to be missing, and nothing else is
    // shown in its place.
    let gone = push(&registry, "team/app", None, 2026).await?;
    pusher.delete("team/app", &gone.digest).await?;
    let pinned = site.image(&format!("team/app:1.0@{}", gone.digest));
    site.pod("web", "lost", None, &[("app", &pinned)])?;
    let report = site.reported("web", "pod-lost", "what is missing", |report| {
        let status = &report["status"]["containerStatuses"][0];
        status["message"]
            .as_str()
            .is_some_and(|told| told.contains(&gone.digest))
    })?;
    assert_eq!(statuses(&report), ["WaitingForScan"]);
    assert_eq!(report["summary"]["critical"], 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_only_its_configuration_tells_is_found_too() -> Result<()> {
    let registry = Registry::start()?;
    let pusher = Pusher::new(&registry)?;
    let (plain, packed) = crate::scan::layer()?;
    let config = json!({
        "os": "linux", "architecture": "amd64", "created": "2024-01-01T00:00:00Z",
        "rootfs": {"type": "layers", "diff_ids": [digest(&plain)]},
    });
    pusher
        .image("team/app", Some("1.0"), &[&packed], &config)
        .await?;
    let config = digest(config.to_string().as_bytes());
    let bench = open(&registry, json!({}))?;
    let site = site(&bench.kubectl, &registry);
    site.pod("web", "app", None, &[("app", &site.image("team/app:1.0"))])?;
    site.tell("web", "app", "Running", &[("app", config.clone())])?;
    let report = site.reported("web", "pod-app", "a scan", |report| {
        is_complete(report) && images(report) == [format!("app team/app:1.0@{config}")]
    })?;
    assert_eq!(report["summary"]["critical"], 1);
    Ok(())
}

#[test]
fn pods_belong_to_whoever_is_at_the_top() -> Result<()> {
    let registry = Registry::start()?;
    let mut bench = open(&registry, json!({"scanOnChange": false}))?;
    let site = site(&bench.kubectl, &registry);
    let image = site.image("team/app:1.0");
    let containers = [("app", image.as_str())];
    let owner = |api_version: &str, kind: &str, name: &str, above: Option<&Owner>| {
        site.owner("web", api_version, kind, name, above)
    };
    let (_, set) = site.deployment("web", "shop")?;
    site.pod("web", "shop-1-a", Some(&set), &containers)?;
    let stateful = owner("apps/v1", "StatefulSet", "base", None)?;
    site.pod("web", "base-0", Some(&stateful), &containers)?;
    let daemon = owner("apps/v1", "DaemonSet", "agent", None)?;
    site.pod("web", "agent-a", Some(&daemon), &containers)?;
    let nightly = owner("batch/v1", "CronJob", "nightly", None)?;
    let run = owner("batch/v1", "Job", "nightly-1", Some(&nightly))?;
    site.pod("web", "nightly-1-a", Some(&run), &containers)?;
    let replicated = owner("v1", "ReplicationController", "classic", None)?;
    site.pod("web", "classic-a", Some(&replicated), &containers)?;
    site.pod("web", "alone", None, &containers)?;
    // A static pod's owner is its node, which is nobody's workload.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}});
    let arguments = ["create", "-o", "json", "-f", "-"];
    let node: Value =
        serde_json::from_str(&site.kubectl.succeed_with(&arguments, &node.to_string())?)?;
    let node = Owner(json!({
        "apiVersion": "v1", "kind": "Node", "name": "one", "uid": node["metadata"]["uid"], "controller": true,
    }));
    site.pod("web", "etcd-one", Some(&node), &containers)?;
    // A finished pod runs nothing.
    site.pod("web", "done", None, &containers)?;
    site.tell("web", "done", "Succeeded", &[])?;
    let expected: BTreeSet<&str> = BTreeSet::from([
        "deployment-shop",
        "statefulset-base",
        "daemonset-agent",
        "cronjob-nightly",
        "replicationcontroller-classic",
        "pod-alone",
        "pod-etcd-one",
    ]);
    let mut found = String::new();
    let waited = wait::until("a report of every workload", LIMIT, || {
        let arguments = [
            "-n",
            "web",
            "get",
            "wsr",
            "-o",
            "jsonpath={.items[*].metadata.name}",
        ];
        found = site.kubectl.succeed(&arguments)?;
        let found: BTreeSet<&str> = found.split_whitespace().collect();
        Ok((found == expected).then_some(()))
    });
    waited.with_context(|| found)?;

    // Between two runs a CronJob keeps its report, and its images stay wanted; without it both go.
    site.kubectl.succeed(&[
        "-n",
        "web",
        "delete",
        "job",
        "nightly-1",
        "--cascade=foreground",
    ])?;
    wait::until("the end of the run", LIMIT, || {
        let arguments = [
            "-n",
            "web",
            "get",
            "pod",
            "nightly-1-a",
            "--ignore-not-found",
            "-o",
            "name",
        ];
        Ok(site
            .kubectl
            .succeed(&arguments)?
            .trim()
            .is_empty()
            .then_some(()))
    })?;
    // Another change is looked at after that one.
    site.pod(
        "web",
        "witness",
        None,
        &[("app", &site.image("team/other:1.0"))],
    )?;
    site.reported("web", "pod-witness", "a report", |_| true)?;
    let report = site
        .report("web", "cronjob-nightly")?
        .context("the report is kept")?;
    assert_eq!(images(&report), ["app team/app:1.0"]);
    site.kubectl
        .succeed(&["-n", "web", "delete", "cronjob", "nightly"])?;
    site.unreported("web", "cronjob-nightly")?;
    // What is scaled to nothing keeps its report too, whoever looks next; with the Deployment it goes.
    site.kubectl
        .succeed(&["-n", "web", "delete", "pod", "shop-1-a", "--force"])?;
    bench.muster.kill9()?;
    bench.muster.restart_in_place()?;
    let site = super::site(&bench.kubectl, &registry);
    site.pod(
        "web",
        "later",
        None,
        &[("app", &site.image("team/other:1.0"))],
    )?;
    site.reported("web", "pod-later", "a report", |_| true)?;
    let report = site
        .report("web", "deployment-shop")?
        .context("the report is kept")?;
    assert_eq!(images(&report), ["app team/app:1.0"]);
    site.kubectl
        .succeed(&["-n", "web", "delete", "deployment", "shop"])?;
    site.unreported("web", "deployment-shop")?;
    // An owner of a kind that nobody serves counts as the workload, whatever it is called.
    let strange = Owner(json!({
        "apiVersion": "nobody.example/v1", "kind": "Odd_Kind", "name": "x", "uid": "1", "controller": true,
    }));
    site.pod(
        "web",
        "odd",
        Some(&strange),
        &[("app", &site.image("team/app:1.0"))],
    )?;
    wait::until("a report of it", LIMIT, || {
        let arguments = ["-n", "web", "get", "wsr", "-o", "name"];
        Ok(site
            .kubectl
            .succeed(&arguments)?
            .contains("/odd-kind-x-")
            .then_some(()))
    })?;
    // A bare pod that ends is gone for good.
    site.tell("web", "alone", "Failed", &[])?;
    site.unreported("web", "pod-alone")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_another_registry_has_is_shown_at_once() -> Result<()> {
    let registry = Registry::start()?;
    let index = push(&registry, "team/app", Some("1.0"), 2024).await?;
    let bench = open(&registry, json!({"artifactsNamespace": "default"}))?;
    let site = site(&bench.kubectl, &registry);
    let own = json!({"catalogType": "NoCatalog", "repositories": [{"name": "team/app"}]});
    site.apply(&crate::scan::conditions::registry(&registry.host(), own))?;
    let (reason, _) = bench.scan("mine", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    site.pod("web", "app", None, &[("app", &site.image("team/app:1.0"))])?;
    let id = format!("{}@{}", site.image("team/app"), index.digest);
    site.tell("web", "app", "Running", &[("app", id)])?;
    let report = site.reported("web", "pod-app", "the findings", is_complete)?;
    assert_eq!(
        report["spec"]["containers"][0]["imageRef"]["registry"],
        "local"
    );
    assert_eq!(report["summary"]["critical"], 1);
    wait::until("that nothing else is scanned", LIMIT, || {
        Ok(site.registries("default")?.is_empty().then_some(()))
    })?;

    // When that one goes, its images are scanned like any other.
    site.kubectl.succeed(&["delete", "registry", "local"])?;
    let report = site.reported("web", "pod-app", "findings of our own", |report| {
        let registry = &report["spec"]["containers"][0]["imageRef"]["registry"];
        registry != "local" && is_complete(report)
    })?;
    assert_eq!(report["summary"]["critical"], 1);
    Ok(())
}
