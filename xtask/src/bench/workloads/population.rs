//! A made-up cluster, the same in every run: namespaces with Deployments, each with a ReplicaSet and
//! its pods, which run an image of their own and a sidecar. Nobody runs the pods, so what a kubelet
//! would say of them is written too.

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use muster_testkit::http::{Client, Request};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::ops::Range;

/// How many Deployments a namespace has, and pods a Deployment.
pub(super) const WORKLOADS: usize = 5;
pub(super) const PODS: usize = 5;
/// How many registries the images are from.
const HOSTS: usize = 3;
const WRITERS: usize = 16;
/// The container that a change is about.
const OWN: &str = "app";

/// How large the cluster is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) namespaces: usize,
}

impl Size {
    pub(super) fn workloads(self) -> usize {
        self.namespaces * WORKLOADS
    }

    pub(super) fn pods(self) -> usize {
        self.workloads() * PODS
    }
}

/// How many images there are, the sidecar among them: fewer than workloads, so that they are shared.
fn images(size: Size) -> usize {
    size.namespaces * 3 / 2
}

pub(super) fn namespace(number: usize) -> String {
    format!("team-{number}")
}

/// The name of a pod of a workload.
pub(super) fn pod(workload: usize, number: usize) -> String {
    format!("app-{workload}-1-{number}")
}

/// An image by its tag, and by what the runtime says of it in some round.
fn image(number: usize, round: usize) -> (String, String) {
    let host = format!("registry-{}.example", number % HOSTS);
    let digest = digest(number, round);
    let repository = format!("{host}/team/app-{number}");
    let tag = format!("{repository}:1.{}", number % 7);
    (tag, format!("{repository}@{digest}"))
}

/// What an image is known by in some round.
pub(super) fn digest(number: usize, round: usize) -> String {
    let hash = Sha256::digest(format!("{number}/{round}"));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}

/// Which image a workload runs.
pub(super) fn image_of(size: Size, namespace: usize, workload: usize) -> usize {
    (namespace * WORKLOADS + workload) % (images(size).max(2) - 1)
}

/// What the kubelet says of a pod whose own image is that of some round.
pub(super) fn status(size: Size, namespace: usize, workload: usize, round: usize) -> Value {
    let told = |name: &str, (image, id): (String, String)| {
        json!({
            "name": name, "image": image, "imageID": id, "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        })
    };
    let own = image_of(size, namespace, workload);
    json!({"status": {"phase": "Running", "containerStatuses": [
        told(OWN, image(own, round)), told("sidecar", image(images(size), 0)),
    ]}})
}

/// Creates some of the namespaces with all that is in them.
pub(super) async fn populate(client: &Client, size: Size, part: Range<usize>) -> Result<()> {
    let spaces = part.clone().map(namespace).collect::<Vec<_>>();
    let made = stream::iter(spaces).map(|name| async move {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create(client, "/api/v1/namespaces", &object).await
    });
    made.buffer_unordered(WRITERS)
        .try_for_each(async |_| Ok(()))
        .await?;
    let workloads = part.flat_map(|space| (0..WORKLOADS).map(move |number| (space, number)));
    let workloads: Vec<(usize, usize)> = workloads.collect();
    let total = workloads.len();
    let made = stream::iter(workloads)
        .map(|(space, number)| deploy(client, size, space, number))
        .buffer_unordered(WRITERS);
    let count = made.try_fold(0, async |count, ()| {
        let count = count + 1;
        if count % 1000 == 0 {
            eprintln!("    {count} of {total} workloads");
        }
        Ok(count)
    });
    count.await.map(drop)
}

async fn deploy(client: &Client, size: Size, space: usize, number: usize) -> Result<()> {
    let place = namespace(space);
    let name = format!("app-{number}");
    let (own, _) = image(image_of(size, space, number), 0);
    let (sidecar, _) = image(images(size), 0);
    let containers = json!([{"name": OWN, "image": own}, {"name": "sidecar", "image": sidecar}]);
    let labels = json!({"app": name});
    let spec = json!({
        "replicas": PODS, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    });
    let controlled = |kind: &str, name: &str, uid: &Value| {
        json!([{
            "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true,
        }])
    };
    let apps = format!("/apis/apps/v1/namespaces/{place}");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec,
    });
    let deployment = create(client, &format!("{apps}/deployments"), &deployment).await?;
    let set = format!("{name}-1");
    let owner = controlled("Deployment", &name, &deployment["metadata"]["uid"]);
    let object = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": set, "ownerReferences": owner}, "spec": spec,
    });
    let made = create(client, &format!("{apps}/replicasets"), &object).await?;
    let owner = controlled("ReplicaSet", &set, &made["metadata"]["uid"]);
    let pods = format!("/api/v1/namespaces/{place}/pods");
    for at in 0..PODS {
        let name = pod(number, at);
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels, "ownerReferences": owner},
            "spec": {"containers": containers},
        });
        create(client, &pods, &object).await?;
        tell(client, &place, &name, &status(size, space, number, 0)).await?;
    }
    Ok(())
}

async fn create(client: &Client, place: &str, object: &Value) -> Result<Value> {
    let request = Request::new(Method::POST, place);
    let request = request.body("application/json", object.to_string())?;
    let answer = client.send(request).await?;
    ensure!(
        answer.status.is_success(),
        "creating {object}: {}",
        answer.status
    );
    answer.json().with_context(|| format!("creating {object}"))
}

/// Writes what a kubelet says of a pod.
pub(super) async fn tell(client: &Client, place: &str, pod: &str, status: &Value) -> Result<()> {
    let target = format!("/api/v1/namespaces/{place}/pods/{pod}/status");
    let request = Request::new(Method::PATCH, target);
    let request = request.body("application/merge-patch+json", status.to_string())?;
    client.skim(request).await.map(drop)
}
