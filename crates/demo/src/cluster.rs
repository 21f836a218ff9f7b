//! What a cluster would have made of an object: a Deployment its ReplicaSet, that one its pods, and of each
//! what its controller or kubelet says. Nobody runs anything here, so this is what there is instead. Names
//! follow from what they are made of, so that doing it again makes nothing new.

use crate::image::digest;
use serde_json::{Value, json};

const STARTED: &str = "2026-11-01T03:00:00Z";

/// What an object, as it is stored, would have made at once.
pub fn children(owner: &Value) -> Vec<Value> {
    let name = owner["metadata"]["name"].as_str().unwrap_or_default();
    let template = &owner["spec"]["template"];
    match owner["kind"].as_str().unwrap_or_default() {
        "Deployment" => {
            let hash = short(template, 10);
            let mut template = template.clone();
            template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
            let mut selector = owner["spec"]["selector"].clone();
            selector["matchLabels"]["pod-template-hash"] = json!(hash);
            let labels = template["metadata"]["labels"].clone();
            let mut set = owned(owner, "apps/v1", "ReplicaSet", &format!("{name}-{hash}"));
            set["metadata"]["labels"] = labels;
            set["spec"] = json!({
                "replicas": owner["spec"]["replicas"], "selector": selector, "template": template,
            });
            vec![set]
        }
        "ReplicaSet" => {
            let pod = |number| pod(owner, &format!("{name}-{}", tail(name, number)), template);
            (0..replicas(owner)).map(pod).collect()
        }
        "StatefulSet" => {
            let pod = |number| pod(owner, &format!("{name}-{number}"), template);
            (0..replicas(owner)).map(pod).collect()
        }
        "CronJob" => {
            let made = &owner["spec"]["jobTemplate"];
            let mut job = owned(owner, "batch/v1", "Job", &format!("{name}-29362020"));
            job["metadata"]["labels"] = made["spec"]["template"]["metadata"]["labels"].clone();
            job["spec"] = made["spec"].clone();
            vec![job]
        }
        "Job" => vec![pod(owner, &format!("{name}-{}", tail(name, 0)), template)],
        _ => Vec::new(),
    }
}

/// What would be said of an object; `image_id` tells which image a name means. Nothing, if nobody says
/// anything.
pub fn status(object: &Value, image_id: impl Fn(&str) -> Option<String>) -> Option<Value> {
    let count = replicas(object);
    let generation = &object["metadata"]["generation"];
    match object["kind"].as_str()? {
        "Pod" => Some(pod_status(object, image_id)),
        "Deployment" => Some(json!({
            "observedGeneration": generation, "replicas": count, "updatedReplicas": count,
            "readyReplicas": count, "availableReplicas": count,
        })),
        "ReplicaSet" | "StatefulSet" => Some(json!({
            "observedGeneration": generation, "replicas": count, "readyReplicas": count,
            "availableReplicas": count,
        })),
        "Job" => Some(json!({"active": 1, "ready": 1, "startTime": STARTED})),
        _ => None,
    }
}

fn pod_status(pod: &Value, image_id: impl Fn(&str) -> Option<String>) -> Value {
    let containers = pod["spec"]["containers"].as_array();
    let container = |container: &Value| {
        let image = container["image"].as_str().unwrap_or_default();
        let id = image_id(image);
        // An image that the registry does not have cannot be pulled.
        let state = match id {
            Some(_) => json!({"running": {"startedAt": STARTED}}),
            None => json!({"waiting": {"reason": "ImagePullBackOff"}}),
        };
        json!({
            "name": container["name"], "image": image, "imageID": id.clone().unwrap_or_default(),
            "ready": id.is_some(), "started": id.is_some(), "restartCount": 0, "state": state,
        })
    };
    let statuses: Vec<Value> = containers.into_iter().flatten().map(container).collect();
    let is_ready = statuses.iter().all(|one| one["ready"] == true);
    let (phase, ready) = match is_ready {
        true => ("Running", "True"),
        false => ("Pending", "False"),
    };
    json!({
        "phase": phase, "startTime": STARTED, "containerStatuses": statuses,
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": STARTED}],
    })
}

fn pod(owner: &Value, name: &str, template: &Value) -> Value {
    let mut pod = owned(owner, "v1", "Pod", name);
    pod["metadata"]["labels"] = template["metadata"]["labels"].clone();
    pod["spec"] = template["spec"].clone();
    pod
}

fn owned(owner: &Value, version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": {
            "name": name, "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [{
                "apiVersion": owner["apiVersion"], "kind": owner["kind"],
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
    })
}

fn replicas(object: &Value) -> u64 {
    object["spec"]["replicas"].as_u64().unwrap_or(1)
}

/// The end of a pod's name.
fn tail(owner: &str, number: u64) -> String {
    short(&json!([owner, number]), 5)
}

/// The first digits of what something is.
fn short(value: &Value, length: usize) -> String {
    let digest = digest(value.to_string().as_bytes());
    digest.chars().skip("sha256:".len()).take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(kind: &str, replicas: u64) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "generation": 3},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "a", "image": "r/a:1"}]},
                },
            },
        })
    }

    #[test]
    fn a_deployment_has_a_replica_set_and_that_one_pods() {
        let set = children(&stored("Deployment", 2));
        let [set] = set.as_slice() else {
            panic!("one ReplicaSet: {set:?}");
        };
        assert_eq!(set["kind"], "ReplicaSet");
        assert_eq!(set["metadata"]["ownerReferences"][0]["uid"], "u-1");
        let hash = &set["metadata"]["labels"]["pod-template-hash"];
        assert_eq!(
            set["spec"]["selector"]["matchLabels"]["pod-template-hash"],
            *hash
        );
        let pods = children(set);
        assert_eq!(pods.len(), 2);
        assert_ne!(pods[0]["metadata"]["name"], pods[1]["metadata"]["name"]);
        assert_eq!(pods[0]["metadata"]["labels"]["pod-template-hash"], *hash);
        assert_eq!(children(set), pods, "doing it again makes nothing new");
        assert!(children(&pods[0]).is_empty());
    }

    #[test]
    fn a_stateful_set_numbers_its_pods() {
        let names: Vec<Value> = children(&stored("StatefulSet", 2))
            .iter()
            .map(|pod| pod["metadata"]["name"].clone())
            .collect();
        assert_eq!(names, ["web-0", "web-1"]);
    }

    #[test]
    fn a_pod_runs_what_the_registry_has() {
        let pod = &children(&stored("StatefulSet", 1))[0];
        for (id, phase) in [(Some("r/a@sha256:0"), "Running"), (None, "Pending")] {
            let status = status(pod, |_| id.map(str::to_owned)).expect("a kubelet's word");
            assert_eq!(status["phase"], phase);
            let said = &status["containerStatuses"][0]["imageID"];
            assert_eq!(*said, id.unwrap_or_default());
        }
    }
}
