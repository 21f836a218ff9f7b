//! A made-up cluster, the same in every run: of ten resources seven are pods, two are Deployments and
//! one is a ConfigMap, in namespaces of five hundred.

use crate::bench::parallel::send_all;
use crate::bench::request::post;
use anyhow::Result;
use muster_testkit::http::Client;
use serde_json::{Value, json};
use std::time::Duration;

/// How many resources a namespace has.
pub(in crate::bench) const TOGETHER: usize = 500;
const WRITERS: usize = 32;

pub(in crate::bench) fn namespace(number: usize) -> String {
    format!("team-{}", number / TOGETHER)
}

/// Creates all of it; gives how long the resources took.
pub(super) async fn populate(client: &Client, resources: usize) -> Result<Duration> {
    send_all(client, WRITERS, resources.div_ceil(TOGETHER), |number| {
        let name = namespace(number * TOGETHER);
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        post("/api/v1/namespaces".into(), &object)
    })
    .await?;
    send_all(client, WRITERS, resources, |number| {
        let within = format!("namespaces/{}", namespace(number));
        match number % 10 {
            0..7 => post(format!("/api/v1/{within}/pods"), &pod(number)),
            7 | 8 => post(
                format!("/apis/apps/v1/{within}/deployments"),
                &deployment(number),
            ),
            _ => post(format!("/api/v1/{within}/configmaps"), &map(number)),
        }
    })
    .await
}

/// The name of a resource.
pub(in crate::bench) fn name(number: usize) -> String {
    format!("resource-{number}")
}

pub(in crate::bench) fn metadata(number: usize) -> Value {
    json!({
        "name": name(number), "namespace": namespace(number),
        "labels": {
            "app": format!("app-{}", number % 97), "team": format!("team-{}", number % 13),
            "revision": "none", "app.kubernetes.io/part-of": "bench",
        },
        "annotations": {"example.com/contact": "somebody@example.com",
            "example.com/description": "one of many, so that there is something to judge"},
    })
}

fn container(name: &str, number: usize) -> Value {
    let probe = |path: &str| {
        json!({"httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10,
            "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3})
    };
    let variable = |at: usize| json!({"name": format!("SETTING_{at}"), "value": format!("a value of {number} and {at}")});
    json!({
        "name": name, "image": format!("registry.example/team/{name}-{}:1.{}", number % 97, number % 7),
        "imagePullPolicy": "IfNotPresent",
        "args": ["--listen", ":8080", "--log-format", "json"],
        "env": (0..6).map(variable).collect::<Vec<_>>(),
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "readinessProbe": probe("/ready"), "livenessProbe": probe("/alive"),
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
            "privileged": number.is_multiple_of(50), "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"},
            {"name": "settings", "mountPath": "/etc/settings", "readOnly": true}],
    })
}

pub(in crate::bench) fn spec(number: usize) -> Value {
    json!({
        "containers": [container("app", number), container("sidecar", number + 1)],
        "serviceAccountName": "app", "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000},
        "volumes": [{"name": "data", "emptyDir": {}},
            {"name": "settings", "configMap": {"name": "settings"}}],
        "tolerations": [{"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"}],
    })
}

/// A pod of about 3 kB.
pub(super) fn pod(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata(number), "spec": spec(number)})
}

fn deployment(number: usize) -> Value {
    let labels = json!({"app": name(number)});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(number),
        "spec": {"replicas": 3, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec(number)}},
    })
}

fn map(number: usize) -> Value {
    let entry = |at: usize| (format!("setting-{at}"), json!(format!("{at} of {number}")));
    let data: serde_json::Map<String, Value> = (0..20).map(entry).collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(number), "data": data})
}
