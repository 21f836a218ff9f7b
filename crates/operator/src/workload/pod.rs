//! A pod as far as it matters here: who made it, and which images it runs. The rest of it is never
//! kept, nor is a pod that has finished.

use super::seen::Seen;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ApiResource, GroupVersionKind, ObjectMeta};
use kube::core::Object;
use muster_api::storage::MAX_CONTAINERS;
use serde::Deserialize;
use std::collections::HashMap;

/// The longest part of a reference.
const LONGEST: usize = 253;

/// A pod as it comes over the wire.
pub(crate) type Wire = Object<Spec, Status>;

/// Where pods are served.
pub(crate) fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"))
}

/// Which images it asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    containers: Vec<Asked>,
    init_containers: Vec<Asked>,
    ephemeral_containers: Vec<Asked>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    name: String,
    image: String,
}

/// Which images it got.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    phase: String,
    container_statuses: Vec<Got>,
    init_container_statuses: Vec<Got>,
    ephemeral_container_statuses: Vec<Got>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Got {
    name: String,
    #[serde(rename = "imageID")]
    image_id: String,
}

/// Who made an object, or an object that made others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Owner {
    /// Who controls an object; nobody if it stands for itself.
    pub(crate) fn of(metadata: &ObjectMeta) -> Option<Owner> {
        let mut owners = metadata.owner_references.iter().flatten();
        Owner::read(owners.find(|one| one.controller == Some(true))?)
    }

    /// Reads a reference. Whoever creates pods writes what he likes there, at any length; what no
    /// object can be called refers to none.
    pub(crate) fn read(reference: &OwnerReference) -> Option<Owner> {
        let OwnerReference {
            api_version,
            kind,
            name,
            uid,
            ..
        } = reference;
        let all = [api_version, kind, name, uid];
        all.iter().all(|text| text.len() <= LONGEST).then(|| Owner {
            api_version: api_version.clone(),
            kind: kind.clone(),
            name: name.clone(),
            uid: uid.clone(),
        })
    }

    /// The API group.
    pub(crate) fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}

/// A container, and the image that it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: Seen,
}

/// A pod that runs, or is about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) owner: Option<Owner>,
    pub(crate) containers: Box<[Container]>,
}

impl Pod {
    /// What is kept of a pod; nothing of one that has finished.
    pub(crate) fn read(wire: &Wire) -> Option<Pod> {
        let status = wire.status.as_ref();
        let phase = status.map_or("", |status| status.phase.as_str());
        if matches!(phase, "Succeeded" | "Failed") {
            return None;
        }
        let Spec {
            containers,
            init_containers,
            ephemeral_containers,
        } = &wire.spec;
        let got = |of: fn(&Status) -> &Vec<Got>| status.map(of);
        let read = [
            (
                init_containers,
                got(|status| &status.init_container_statuses),
            ),
            (containers, got(|status| &status.container_statuses)),
            (
                ephemeral_containers,
                got(|status| &status.ephemeral_container_statuses),
            ),
        ];
        let mut found: Vec<Container> = Vec::new();
        for (asked, got) in read {
            let got = got.into_iter().flatten();
            let ids: HashMap<&str, &str> = got
                .map(|got| (got.name.as_str(), got.image_id.as_str()))
                .collect();
            for one in asked.iter().take(MAX_CONTAINERS - found.len()) {
                let image_id = ids.get(one.name.as_str()).copied().unwrap_or_default();
                match Seen::read(&one.image, image_id) {
                    Ok(image) => found.push(Container {
                        name: one.name.clone(),
                        image,
                    }),
                    // Nor can the node run it.
                    Err(error) => tracing::debug!(%error, container = one.name, "an image"),
                }
            }
        }
        Some(Pod {
            uid: wire.metadata.uid.clone().unwrap_or_default(),
            owner: Owner::of(&wire.metadata),
            containers: found.into_boxed_slice(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(value: Value) -> Option<Pod> {
        Pod::read(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn every_container_of_a_pod_that_has_not_finished_counts() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let object = |phase: &str| {
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "p", "namespace": "n", "uid": "u", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "1"},
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": true},
                ]},
                "spec": {
                    "nodeName": "one", "restartPolicy": "Never",
                    "initContainers": [{"name": "i", "image": "init:1", "restartPolicy": "Always"}],
                    "containers": [{"name": "a", "image": "app:1"}, {"name": "b", "image": "NO NO"}],
                    "ephemeralContainers": [{"name": "e", "image": "debug", "targetContainerName": "a"}],
                },
                "status": {"phase": phase, "containerStatuses": [
                    {"name": "a", "image": "app:1", "imageID": format!("docker.io/library/app@{digest}")},
                ]},
            })
        };
        for phase in ["Succeeded", "Failed"] {
            assert_eq!(pod(object(phase)), None, "{phase}");
        }
        for phase in ["Pending", "Running", "Unknown", ""] {
            let pod = pod(object(phase)).unwrap();
            let names: Vec<&str> = pod.containers.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(names, ["i", "a", "e"]);
            let digests = pod.containers.iter().map(|c| c.image.digest().is_some());
            assert_eq!(digests.collect::<Vec<_>>(), [false, true, false]);
            let owner = pod.owner.unwrap();
            assert_eq!((owner.group(), owner.kind.as_str()), ("apps", "ReplicaSet"));
        }
        let long = json!([{
            "apiVersion": "v1", "kind": "K".repeat(300), "name": "o", "uid": "1", "controller": true,
        }]);
        let many: Vec<Value> = (0..600)
            .map(|number| json!({"name": format!("c{number}"), "image": format!("app:{number}")}))
            .collect();
        let strange = pod(json!({
            "metadata": {"name": "p", "ownerReferences": long}, "spec": {"containers": many},
        }));
        let strange = strange.unwrap();
        assert_eq!(
            (strange.owner, strange.containers.len()),
            (None, MAX_CONTAINERS)
        );
        let bare = pod(json!({"metadata": {"name": "p"}, "spec": {"containers": []}})).unwrap();
        assert_eq!((bare.owner, bare.containers.len()), (None, 0));
    }
}
