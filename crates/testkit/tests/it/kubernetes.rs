//! A real control plane starts, answers over HTTPS, streams watches and obeys `kubectl`.

use anyhow::{Context, Result};
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};
use muster_testkit::wait;
use serde_json::json;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_real_control_plane_answers_streams_and_deletes() -> Result<()> {
    let kubernetes = Kubernetes::start(&Options {
        controllers: true,
        ..Options::default()
    })?;
    let client = Client::new(kubernetes.kubeconfig())?;
    let kubectl = Kubectl::new(&kubernetes.kubeconfig_path())?;

    let version = client.get("/version").await?.json()?;
    assert_eq!(version["gitVersion"], muster_testkit::binaries::VERSION);

    let request = Request::new(Method::GET, "/api/v1/namespaces?watch=true");
    let mut watch = client.watch(request, SOON).await?;
    assert_eq!(watch.status, 200);
    let body = json!({"metadata": {"name": "here"}}).to_string();
    let create = Request::new(Method::POST, "/api/v1/namespaces").body("application/json", body)?;
    assert_eq!(client.send(create).await?.status, 201);
    loop {
        let event = watch.next_event(SOON).await?.context("the watch ended")?;
        if event["object"]["metadata"]["name"] == "here" {
            assert_eq!(event["type"], "ADDED");
            break;
        }
    }

    assert!(kubectl.succeed(&["get", "namespaces"])?.contains("here"));
    assert!(
        kubectl
            .fail(&["get", "namespace", "gone"], "")?
            .contains("NotFound")
    );
    kubectl.succeed(&["delete", "namespace", "here", "--wait=false"])?;
    wait::until_async("the end of the namespace", SOON, || async {
        let status = client.get("/api/v1/namespaces/here").await?.status;
        Ok((status == 404).then_some(()))
    })
    .await
}
