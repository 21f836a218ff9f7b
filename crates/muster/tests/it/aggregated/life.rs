//! Starting, losing the database, ending: a replica says what it waits for, never half-writes, and
//! leaves nobody hanging.

use super::{API_VERSION, MUSTER, SOON, apply, image, namespace};
use anyhow::{Context, Result};
use http::Method;
use muster_testkit::etcd::Durability;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::postgres::Postgres;
use muster_testkit::storage::{Cluster, Options};
use muster_testkit::wait;
use serde_json::json;
use std::process::Command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_waits_for_its_database_and_outlives_its_loss() -> Result<()> {
    let mut postgres = Postgres::start(Durability::Unsynced)?;
    let url = postgres.url(&postgres.database()?);
    postgres.stop()?;
    let mut cluster = Cluster::prepare(MUSTER, &Options::on(url))?;
    let client = Client::new(cluster.replicas()[0].kubeconfig())?;
    wait::until_async("the replica to say that it waits", SOON, || async {
        let Ok(answer) = client.get("/readyz").await else {
            return Ok(None);
        };
        assert_ne!(answer.status, 200, "ready without a database");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        Ok(text.contains("waiting for the database").then_some(()))
    })
    .await?;
    assert_eq!(client.get("/livez").await?.status, 200);
    let images = format!("/apis/{API_VERSION}/namespaces/default/images");
    let answer = client.get(&images).await?;
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains_key("retry-after"));
    postgres.restart()?;
    cluster.replica(0).wait_ready()?;
    cluster.wait_available(false)?;
    let kubectl = cluster.kubectl()?;
    apply(&kubectl, &image("default", "one", "1.0"))?;

    postgres.kill9()?;
    let body = image("default", "two", "1.0").to_string();
    let write = || {
        Request::new(Method::POST, images.clone())
            .body("application/json", body.clone().into_bytes())
    };
    let answer = client.send(write()?).await?;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.headers.contains_key("retry-after"));
    assert_eq!(client.get(&images).await?.status, 503);
    assert_eq!(client.get("/readyz").await?.status, 200, "a hiccup");
    postgres.restart()?;
    wait::until_async("the database to be used again", SOON, || async {
        Ok((client.get(&images).await?.status == 200).then_some(()))
    })
    .await?;
    let answer = client.send(write()?).await?;
    assert!([201, 409].contains(&answer.status.as_u16()), "{answer:?}");
    let list = client.get(&images).await?.json()?;
    let names: Vec<_> = list["items"].as_array().into_iter().flatten().collect();
    assert_eq!(names.len(), 2, "{list:#}");
    let ended = cluster.replica(0).terminate()?;
    assert!(ended.success(), "{ended}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_ends_lets_watches_end_and_others_go_on() -> Result<()> {
    let postgres = Postgres::shared()?;
    let mut options = Options::on(postgres.url(&postgres.database()?));
    options.replicas = 2;
    options.arguments = vec!["--drain-seconds=5".into()];
    let mut cluster = Cluster::start(MUSTER, &options)?;
    let kubectl = cluster.kubectl()?;
    namespace(&kubectl, "ends")?;
    let client = Client::new(cluster.replicas()[0].kubeconfig())?;
    let path = format!("/apis/{API_VERSION}/images?watch=true");
    let mut watch = client.watch(Request::new(Method::GET, path), SOON).await?;
    apply(&kubectl, &image("ends", "one", "1.0"))?;
    let event = watch.next_event(SOON).await?.context("an event")?;
    assert_eq!(event["object"]["metadata"]["name"], "one");
    // It says at once that it will go, and still answers.
    cluster.replica(0).process()?.signal("TERM")?;
    wait::until_async("the replica to be unready", SOON, || async {
        Ok((client.get("/readyz").await?.status == 500).then_some(()))
    })
    .await?;
    let images = format!("/apis/{API_VERSION}/images");
    assert_eq!(client.get(&images).await?.status, 200);
    let ended = cluster.replica(0).terminate()?;
    assert!(ended.success(), "{ended}");
    watch.rest(SOON).await.context("a clean end")?;
    wait::until("kubectl to find the other replica", SOON, || {
        let outcome = kubectl.run(&["-n", "ends", "get", "images", "-o", "name"], "")?;
        Ok(outcome.stdout.contains("/one").then_some(()))
    })
}

#[test]
fn reports_are_not_served_where_somebody_else_has_them() -> Result<()> {
    let postgres = Postgres::shared()?;
    let mut options = Options::on(postgres.url(&postgres.database()?));
    options.replicas = 0;
    let cluster = Cluster::prepare(MUSTER, &options)?;
    let kubectl: Kubectl = cluster.kubectl()?;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "policyreports.wgpolicyk8s.io",
            "annotations": {"meta.helm.sh/release-name": "kyverno", "meta.helm.sh/release-namespace": "policy"},
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
        },
        "spec": {
            "group": "wgpolicyk8s.io", "scope": "Namespaced",
            "names": {"kind": "PolicyReport", "plural": "policyreports"},
            "versions": [{
                "name": "v1alpha2", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    // Groups with a dot are nobody's without a word; this one is somebody's.
    let mut approved = definition;
    approved["metadata"]["annotations"]["api-approved.kubernetes.io"] = json!("unapproved, a test");
    apply(&kubectl, &approved)?;
    let kubeconfig = cluster.role_path("storage")?;
    let (certificate, key) = cluster.certificate_files();
    let ended = Command::new(MUSTER)
        .args([
            "storage",
            "--listen",
            "127.0.0.1:0",
            "--reports-backend=served",
        ])
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .arg("--tls-cert")
        .arg(certificate)
        .arg("--tls-key")
        .arg(key)
        .env("MUSTER_POSTGRES", &options.database)
        .output()?;
    assert!(!ended.status.success());
    let said = String::from_utf8_lossy(&ended.stderr);
    for part in [
        "policyreports.wgpolicyk8s.io",
        "policy/kyverno",
        "--reports-backend=crd",
    ] {
        assert!(said.contains(part), "{part} in: {said}");
    }
    Ok(())
}
