//! A made-up cluster of twelve kinds, the same in every run: every kind has as many objects as any
//! other, in namespaces of five hundred.

use crate::bench::audit::cluster::{TOGETHER, metadata, namespace, spec};
use crate::bench::parallel::send_all;
use crate::bench::request::post;
use anyhow::Result;
use muster_checks::Kind;
use muster_testkit::http::Client;
use serde_json::{Value, json};
use std::time::Duration;

const WRITERS: usize = 32;

/// The kinds: where each is served, what it is called, and what its resource is.
const KINDS: [(&str, &str, &str); 12] = [
    ("v1", "Pod", "pods"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("apps/v1", "DaemonSet", "daemonsets"),
    ("batch/v1", "Job", "jobs"),
    ("batch/v1", "CronJob", "cronjobs"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Service", "services"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("networking.k8s.io/v1", "Ingress", "ingresses"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles"),
];

/// The kinds, as checks know them.
pub(super) fn kinds() -> Vec<Kind> {
    let kinds = KINDS.iter();
    kinds
        .map(|(api_version, kind, _)| Kind::parse(api_version, kind))
        .collect()
}

/// The kind of an object, by its place among [`kinds`].
pub(super) fn kind_of(number: usize) -> usize {
    number % KINDS.len()
}

/// How many of so many resources are of one kind.
pub(super) fn share(resources: usize, kind: usize) -> usize {
    (0..resources).filter(|one| kind_of(*one) == kind).count()
}

/// The namespaces of so many resources.
pub(super) fn namespaces(resources: usize) -> impl Iterator<Item = String> {
    (0..resources.div_ceil(TOGETHER)).map(|number| namespace(number * TOGETHER))
}

/// Creates all of it; gives how long the resources took.
pub(super) async fn populate(client: &Client, resources: usize) -> Result<Duration> {
    let names: Vec<String> = namespaces(resources).collect();
    send_all(client, WRITERS, names.len(), move |number| {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names[number]}});
        post("/api/v1/namespaces".into(), &object)
    })
    .await?;
    send_all(client, WRITERS, resources, |number| {
        let (api_version, _, resource) = KINDS[kind_of(number)];
        let root = match api_version {
            "v1" => "/api",
            _ => "/apis",
        };
        let within = namespace(number);
        let target = format!("{root}/{api_version}/namespaces/{within}/{resource}");
        post(target, &object(number))
    })
    .await
}

/// One of the objects.
pub(super) fn object(number: usize) -> Value {
    let (api_version, kind, _) = KINDS[kind_of(number)];
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata(number)});
    let labels = json!({"app": format!("app-{number}")});
    let mut pod = spec(number);
    if matches!(kind, "Job" | "CronJob") {
        pod["restartPolicy"] = "Never".into();
    }
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let selector = json!({"matchLabels": labels});
    match kind {
        "Pod" => object["spec"] = pod,
        "Deployment" => {
            object["spec"] = json!({"replicas": 3, "selector": selector, "template": template});
        }
        "StatefulSet" => {
            object["spec"] =
                json!({"serviceName": "app", "selector": selector, "template": template});
        }
        "DaemonSet" => object["spec"] = json!({"selector": selector, "template": template}),
        "Job" => object["spec"] = json!({"template": template}),
        "CronJob" => {
            let job = json!({"spec": {"template": template}});
            object["spec"] = json!({"schedule": "0 3 * * *", "jobTemplate": job});
        }
        "ConfigMap" => {
            let entry = |at: usize| (format!("setting-{at}"), json!(format!("{at} of {number}")));
            let data: serde_json::Map<String, Value> = (0..20).map(entry).collect();
            object["data"] = data.into();
        }
        "Service" => {
            let port = json!({"name": "http", "port": 8000 + number % 10, "targetPort": 8080});
            object["spec"] = json!({"type": "ClusterIP", "selector": labels, "ports": [port]});
        }
        "ServiceAccount" => {
            object["automountServiceAccountToken"] = number.is_multiple_of(2).into()
        }
        "Ingress" => {
            let service = json!({"service": {"name": "app", "port": {"number": 8080}}});
            let path = json!({"path": "/", "pathType": "Prefix", "backend": service});
            let host = format!("app-{number}.zone-{}.example", number % 10);
            object["spec"] = json!({"rules": [{"host": host, "http": {"paths": [path]}}]});
        }
        "NetworkPolicy" => {
            let from = json!([{"podSelector": {"matchLabels": labels}}]);
            object["spec"] = json!({"podSelector": selector, "policyTypes": ["Ingress"],
                "ingress": [{"from": from}]});
        }
        _ => {
            let verbs = ["get", "list", "watch", "create", "delete"];
            object["rules"] = json!([{"apiGroups": [""], "resources": ["pods", "services"],
                "verbs": [verbs[number % verbs.len()], "get"]}]);
        }
    }
    object
}
