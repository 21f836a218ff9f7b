//! The user stories, by kubectl: on one process, and on kube-apiserver with what Muster adds to it.

use super::*;
use muster_testkit::installation::{Installation, Options};
use muster_testkit::postgres::Postgres;
use std::path::Path;
use std::process::Command;

const INTERVAL: &str = "24h0m0s";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_is_scanned_and_reported_by_one_process() -> Result<()> {
    let (bench, registry) = embedded()?;
    let kubeconfig = bench.muster.kubeconfig_path();
    stories(&site(&bench.kubectl, &registry), &registry, &kubeconfig).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_is_scanned_and_reported_by_a_cluster() -> Result<()> {
    let registry = Registry::start()?;
    let postgres = Postgres::shared()?;
    let options = Options::on(postgres.url(&postgres.database()?));
    let installation = Installation::start(env!("CARGO_BIN_EXE_muster"), &options)?;
    crate::scan::data(&installation.data())?;
    let kubectl = installation.kubectl()?;
    let kubeconfig = installation.cluster.kubernetes().kubeconfig_path();
    let site = site(&kubectl, &registry);
    let told = stories(&site, &registry, &kubeconfig).await;
    told.with_context(|| installation.logs())?;
    // A kind that only this cluster knows, with its own ReplicaSets.
    rollout(&site).with_context(|| installation.logs())?;
    installation.lacks_no_right()
}

/// What `muster why` answers.
fn why(kubeconfig: &Path, words: &[&str]) -> Result<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.arg("why").args(words).args(["-o", "json"]);
    let output = command.arg("--kubeconfig").arg(kubeconfig).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "why {words:?}: {error}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A workload of a kind that is no part of Kubernetes.
fn rollout(site: &Site<'_>) -> Result<()> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rollouts.argoproj.io"},
        "spec": {
            "group": "argoproj.io", "scope": "Namespaced",
            "names": {"kind": "Rollout", "plural": "rollouts", "singular": "rollout"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    site.kubectl.define(&definition.to_string())?;
    let rollout = wait::until("the kind to be served", LIMIT, || {
        Ok(site
            .owner("web", "argoproj.io/v1alpha1", "Rollout", "canary", None)
            .ok())
    })?;
    let set = site.owner("web", "apps/v1", "ReplicaSet", "canary-1", Some(&rollout))?;
    let image = site.image("team/app:1.0");
    site.pod("web", "canary-1-a", Some(&set), &[("app", &image)])?;
    site.configure(json!({"scanOnChange": false}))?;
    let report = site.reported("web", "rollout-canary", "a report", |_| true)?;
    let owner = &report["metadata"]["ownerReferences"][0];
    assert_eq!(owner["apiVersion"], "argoproj.io/v1alpha1");
    assert_eq!(site.report("web", "replicaset-canary-1")?, None);
    Ok(())
}

async fn stories(site: &Site<'_>, registry: &Registry, kubeconfig: &Path) -> Result<()> {
    let index = push(registry, "team/app", Some("1.0"), 2024).await?;
    push(registry, "team/app", Some("2.0"), 2025).await?;
    site.namespace("web", json!({"environment": "production"}))?;
    site.namespace("play", json!({}))?;
    let mine = json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
        "metadata": {"name": "mine", "namespace": "web"},
        "spec": {"uri": "mine.example", "catalogType": "NoCatalog", "scanOnChange": false,
            "repositories": [{"name": "x"}], "discoveryJob": {"suspend": true}},
    });
    site.apply(&mine)?;

    // Without a configuration nothing is looked at.
    let (_, set) = site.deployment("web", "shop")?;
    let (first, second) = (site.image("team/app:1.0"), site.image("team/app:2.0"));
    site.pod("web", "shop-1-a", Some(&set), &[("app", &first)])?;
    let (_, other) = site.deployment("play", "game")?;
    site.pod(
        "play",
        "game-1-a",
        Some(&other),
        &[("app", &first), ("side", &second)],
    )?;

    // The configuration says which namespaces, and how their registries are reached.
    let platforms = json!([
        {"os": "linux", "architecture": "amd64"}, {"os": "linux", "architecture": "arm64"},
    ]);
    let production = json!({
        "namespaceSelector": {"matchLabels": {"environment": "production"}},
        "scanInterval": INTERVAL, "platforms": platforms,
    });
    site.configure(production.clone())?;
    let report = site.reported("web", "deployment-shop", "a scan", is_complete)?;
    assert_eq!(images(&report), ["app team/app:1.0"]);
    assert_eq!(report["summary"]["critical"], 1, "{report}");
    let owner = &report["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"]),
        (&json!("Deployment"), &json!("shop"))
    );
    let labels = &report["metadata"]["labels"];
    for label in [
        "app.kubernetes.io/managed-by",
        "sbomscanner.kubewarden.io/managed-by",
    ] {
        assert_eq!(labels[label], "sbomscanner");
    }
    let managed = site.registries("web")?;
    let [managed] = &managed[..] else {
        panic!("{managed:?}")
    };
    let spec = &managed["spec"];
    assert_eq!(spec["uri"], registry.host());
    assert_eq!(spec["scanInterval"], INTERVAL);
    assert_eq!(spec["platforms"], platforms);
    assert_eq!(spec["insecure"], true);
    let repository = &spec["repositories"][0];
    assert_eq!(repository["name"], "team/app");
    assert_eq!(repository["matchOperator"], "Or");
    let condition = &repository["matchConditions"][0];
    assert_eq!(condition["expression"], r#"tag == "1.0""#);
    assert_eq!(condition["labels"], json!({"web": "true"}));
    assert_eq!(site.report("play", "deployment-game")?, None);
    assert!(site.registries("play")?.is_empty());
    let configuration = get(site.kubectl, &["wsc", "default"])?;
    assert_eq!(
        configuration["status"]["conditions"][0]["reason"],
        "Scanning"
    );

    // What runs is what the kubelet says, and the image tells who uses it.
    let id = format!("{}@{}", site.image("team/app"), index.digest);
    site.tell("web", "shop-1-a", "Running", &[("app", id)])?;
    let running = [format!("app team/app:1.0@{}", index.digest)];
    site.reported("web", "deployment-shop", "the digest that runs", |report| {
        images(report) == running && is_complete(report)
    })?;
    let used = json!([{"name": "deployment-shop", "namespace": "web"}]);
    wait::until("the images to say who uses them", LIMIT, || {
        let found = get(site.kubectl, &["-n", "web", "images"])?;
        let found = found["items"].as_array().cloned().unwrap_or_default();
        let told = |image: &Value| image["status"]["workloadScanReports"] == used;
        Ok((found.len() == 2 && found.iter().all(told)).then_some(()))
    })?;

    // Who has it, and what would mend it.
    let answer = why(kubeconfig, &["CVE-2024-0001"])?;
    let found = &answer["workloads"][0];
    assert_eq!(found["namespace"], "web", "{answer}");
    assert_eq!(found["name"], "shop", "{answer}");
    let answer = why(kubeconfig, &["deployment/shop", "-n", "web"])?;
    assert!(answer.to_string().contains("3.0.11-1~deb12u3"), "{answer}");

    // A new revision beside the old one: both run, both count.
    site.pod("web", "shop-2-a", Some(&set), &[("app", &second)])?;
    site.reported("web", "deployment-shop", "both revisions", |report| {
        images(report).len() == 2 && is_complete(report) && report["summary"]["critical"] == 2
    })?;
    site.kubectl
        .succeed(&["-n", "web", "delete", "pod", "shop-1-a", "--force"])?;
    site.reported("web", "deployment-shop", "the new revision", |report| {
        images(report) == ["app team/app:2.0"] && report["summary"]["critical"] == 1
    })?;

    // What is managed is not to be touched; what is not, is nobody else's.
    let name = managed["metadata"]["name"].as_str().context("a name")?;
    for arguments in [
        &["-n", "web", "delete", "registry", name][..],
        &["-n", "web", "annotate", "registry", name, "a=b"],
        &[
            "-n",
            "web",
            "label",
            "registry",
            name,
            "sbomscanner.kubewarden.io/workloadscan-",
        ],
        &["-n", "web", "delete", "wsr", "deployment-shop"],
        &["-n", "web", "label", "wsr", "deployment-shop", "a=b"],
    ] {
        let told = site.kubectl.fail(arguments, "")?;
        assert!(told.contains("managed by the workload scan"), "{told}");
    }

    // A namespace that comes to be selected is looked at, and one that ceases to be is left.
    site.kubectl
        .succeed(&["label", "namespace", "play", "environment=production"])?;
    let report = site.reported("play", "deployment-game", "a scan", is_complete)?;
    assert_eq!(images(&report), ["app team/app:1.0", "side team/app:2.0"]);
    assert_eq!(report["summary"]["critical"], 2, "each container counts");
    site.kubectl
        .succeed(&["label", "namespace", "play", "environment-"])?;
    site.unreported("play", "deployment-game")?;
    wait::until("the end of its Registry", LIMIT, || {
        Ok(site.registries("play")?.is_empty().then_some(()))
    })?;

    // Artifacts move to one namespace, and nothing stays where they were.
    site.namespace("art", json!({}))?;
    let mut moved = production;
    moved["artifactsNamespace"] = json!("art");
    site.configure(moved.clone())?;
    let report = site.reported("web", "deployment-shop", "a scan elsewhere", |report| {
        is_complete(report) && report["spec"]["containers"][0]["imageRef"]["namespace"] == "art"
    })?;
    assert_eq!(report["summary"]["critical"], 1);
    wait::until("the end of the old artifacts", LIMIT, || {
        let left = [
            "get",
            "registries,images",
            "-n",
            "web",
            "-l",
            MANAGED,
            "-o",
            "name",
        ];
        Ok(site.kubectl.succeed(&left)?.trim().is_empty().then_some(()))
    })?;

    // A report goes with its workload, also while pods are still there, and stays away.
    let (_, brief) = site.deployment("web", "brief")?;
    site.pod("web", "brief-1-a", Some(&brief), &[("app", &first)])?;
    site.reported("web", "deployment-brief", "a report", |_| true)?;
    site.kubectl.succeed(&[
        "-n",
        "web",
        "delete",
        "deployment",
        "brief",
        "--cascade=orphan",
    ])?;
    site.unreported("web", "deployment-brief")?;
    site.reported(
        "web",
        "replicaset-brief-1",
        "the report of who is left",
        |_| true,
    )?;
    assert_eq!(site.report("web", "deployment-brief")?, None);

    // Turned off, nothing of it remains, and what is the user's does.
    moved["enabled"] = json!(false);
    site.configure(moved)?;
    site.nothing_remains()?;
    get(site.kubectl, &["-n", "web", "registry", "mine"])?;
    wait::until("the configuration to say so", LIMIT, || {
        let configuration = get(site.kubectl, &["wsc", "default"])?;
        let reason = &configuration["status"]["conditions"][0]["reason"];
        Ok((reason == "Disabled").then_some(()))
    })
}
