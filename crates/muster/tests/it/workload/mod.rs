//! What runs, and what must be fixed in it: pods as a cluster has them, a real registry with what
//! they run, and the reports that follow. Nobody runs the pods; what a kubelet would say of them is
//! written by hand.

mod churn;
pub(crate) mod crowd;
mod history;
mod leaving;
mod running;
mod stories;

use crate::scan::conditions::Bench;
use crate::scan::{LIMIT, get};
use anyhow::{Context, Result};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::push::{Pushed, Pusher, digest};
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};

pub(crate) const MANAGED: &str = "sbomscanner.kubewarden.io/workloadscan=true";

/// A cluster to look at, and the registry that its images are from.
pub(crate) struct Site<'a> {
    pub(crate) kubectl: &'a Kubectl,
    pub(crate) host: String,
}

/// An owner reference.
#[derive(Clone)]
pub(crate) struct Owner(Value);

impl Site<'_> {
    pub(crate) fn apply(&self, object: &Value) -> Result<()> {
        let arguments = ["apply", "-f", "-"];
        self.kubectl
            .succeed_with(&arguments, &object.to_string())
            .map(drop)
    }

    /// Applies many objects at once.
    pub(crate) fn apply_all(&self, objects: &[Value]) -> Result<()> {
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        let arguments = ["apply", "-f", "-"];
        let documents = documents.join("\n---\n");
        self.kubectl.succeed_with(&arguments, &documents).map(drop)
    }

    pub(crate) fn namespace(&self, name: &str, labels: Value) -> Result<()> {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
        }))
    }

    /// Turns workload scanning on, or changes how it is done.
    pub(crate) fn configure(&self, spec: Value) -> Result<()> {
        let mut whole = json!({"insecure": true});
        if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
            whole.extend(spec.clone());
        }
        // Replaced as a whole, so that what is not said is not kept.
        let object = json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "WorkloadScanConfiguration",
            "metadata": {"name": "default"}, "spec": whole,
        });
        self.kubectl.put(&object.to_string())
    }

    /// Creates an object that owns others.
    pub(crate) fn owner(
        &self,
        namespace: &str,
        api_version: &str,
        kind: &str,
        name: &str,
        above: Option<&Owner>,
    ) -> Result<Owner> {
        let template = json!({
            "metadata": {"labels": {"app": name}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "unused.example/x:1"}]},
        });
        let selector = json!({"matchLabels": {"app": name}});
        let spec = match kind {
            "Job" => json!({"template": template}),
            "CronJob" => {
                json!({"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": template}}})
            }
            "ReplicationController" => {
                let mut template = template;
                template["spec"]["restartPolicy"] = json!("Always");
                json!({"selector": {"app": name}, "template": template})
            }
            "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" => {
                let mut template = template;
                template["spec"]["restartPolicy"] = json!("Always");
                json!({"selector": selector, "template": template})
            }
            _ => json!({}),
        };
        let mut object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        });
        if let Some(Owner(above)) = above {
            object["metadata"]["ownerReferences"] = json!([above]);
        }
        let arguments = ["create", "-o", "json", "-f", "-"];
        let made = self.kubectl.succeed_with(&arguments, &object.to_string())?;
        let made: Value = serde_json::from_str(&made)?;
        Ok(Owner(json!({
            "apiVersion": api_version, "kind": kind, "name": name,
            "uid": made["metadata"]["uid"], "controller": true,
        })))
    }

    /// A Deployment and its ReplicaSet.
    pub(crate) fn deployment(&self, namespace: &str, name: &str) -> Result<(Owner, Owner)> {
        let deployment = self.owner(namespace, "apps/v1", "Deployment", name, None)?;
        let set = format!("{name}-1");
        let set = self.owner(namespace, "apps/v1", "ReplicaSet", &set, Some(&deployment))?;
        Ok((deployment, set))
    }

    /// The full name of an image of the registry.
    pub(crate) fn image(&self, rest: &str) -> String {
        format!("{}/{rest}", self.host)
    }

    /// Creates a pod with containers and their images.
    pub(crate) fn pod(
        &self,
        namespace: &str,
        name: &str,
        owner: Option<&Owner>,
        containers: &[(&str, &str)],
    ) -> Result<()> {
        let containers: Vec<Value> = containers
            .iter()
            .map(|(name, image)| json!({"name": name, "image": image}))
            .collect();
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"containers": containers},
        });
        if let Some(Owner(owner)) = owner {
            pod["metadata"]["ownerReferences"] = json!([owner]);
        }
        let arguments = ["create", "-f", "-"];
        self.kubectl
            .succeed_with(&arguments, &pod.to_string())
            .map(drop)
    }

    /// Says of a pod what its kubelet would: its phase, and the image of each container.
    pub(crate) fn tell(
        &self,
        namespace: &str,
        pod: &str,
        phase: &str,
        running: &[(&str, String)],
    ) -> Result<()> {
        let statuses: Vec<Value> = running
            .iter()
            .map(|(name, id)| {
                json!({
                    "name": name, "image": id, "imageID": id, "ready": true, "restartCount": 0,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                })
            })
            .collect();
        let status = json!({"status": {"phase": phase, "containerStatuses": statuses}});
        let place = ["-n", namespace, "patch", "pod", pod, "--subresource=status"];
        let patch = ["--type=merge", "-p", &status.to_string()];
        self.kubectl
            .succeed(&[&place[..], &patch].concat())
            .map(drop)
    }

    /// A report of a workload, if there is one.
    pub(crate) fn report(&self, namespace: &str, name: &str) -> Result<Option<Value>> {
        let place = [
            "-n",
            namespace,
            "workloadscanreports",
            "--ignore-not-found",
            name,
        ];
        let arguments = [&["get", "-o", "json"][..], &place].concat();
        let text = self.kubectl.succeed(&arguments)?;
        match text.trim() {
            "" => Ok(None),
            text => Ok(Some(serde_json::from_str(text)?)),
        }
    }

    /// Waits until a report is as it should be.
    pub(crate) fn reported(
        &self,
        namespace: &str,
        name: &str,
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = None;
        let waited = wait::until(&format!("{what} in {namespace}/{name}"), LIMIT, || {
            last = self.report(namespace, name)?;
            Ok(last.clone().filter(&fits))
        });
        waited.with_context(|| format!("the report is {last:?}"))
    }

    /// Waits until a report is gone.
    pub(crate) fn unreported(&self, namespace: &str, name: &str) -> Result<()> {
        wait::until(&format!("the end of {namespace}/{name}"), LIMIT, || {
            Ok(self.report(namespace, name)?.is_none().then_some(()))
        })
    }

    /// The managed Registries of a namespace.
    pub(crate) fn registries(&self, namespace: &str) -> Result<Vec<Value>> {
        let list = get(
            self.kubectl,
            &["-n", namespace, "registries", "-l", MANAGED],
        )?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Waits until nothing that was made for workloads is left anywhere.
    pub(crate) fn nothing_remains(&self) -> Result<()> {
        let kinds = "registries,images,sboms,vulnerabilityreports,workloadscanreports";
        let mut left = String::new();
        let managed = ["get", kinds, "-A", "-l", MANAGED, "-o", "name"];
        // Of these tests nobody else has jobs.
        let jobs = ["get", "scanjobs", "-A", "-o", "name"];
        let waited = wait::until("that nothing managed remains", LIMIT, || {
            left = self.kubectl.succeed(&managed)? + &self.kubectl.succeed(&jobs)?;
            Ok(left.trim().is_empty().then_some(()))
        });
        waited.with_context(|| format!("left: {left}"))
    }
}

/// The scan statuses of a report.
pub(crate) fn statuses(report: &Value) -> Vec<&str> {
    let statuses = report["status"]["containerStatuses"].as_array();
    let statuses = statuses.into_iter().flatten();
    statuses
        .filter_map(|one| one["scanStatus"].as_str())
        .collect()
}

pub(crate) fn is_complete(report: &Value) -> bool {
    let statuses = statuses(report);
    !statuses.is_empty() && statuses.iter().all(|one| *one == "ScanComplete")
}

/// What the containers of a report run: `name repository:tag@digest`.
pub(crate) fn images(report: &Value) -> Vec<String> {
    let containers = report["spec"]["containers"].as_array();
    let text = |value: &Value, before: &str| match value.as_str() {
        Some(text) => format!("{before}{text}"),
        None => String::new(),
    };
    let one = |container: &Value| {
        let image = &container["imageRef"];
        format!(
            "{} {}{}{}",
            container["name"].as_str().unwrap_or_default(),
            image["repository"].as_str().unwrap_or_default(),
            text(&image["tag"], ":"),
            text(&image["digest"], "@"),
        )
    };
    containers.into_iter().flatten().map(one).collect()
}

/// Pushes `repository:tag` for two platforms, as it was built in some year; returns the index.
pub(crate) async fn push(
    registry: &Registry,
    repository: &str,
    tag: Option<&str>,
    year: u32,
) -> Result<Pushed> {
    let [index, _] = crate::scan::push_as(registry, repository, tag, year).await?;
    Ok(index)
}

/// `muster up` with data, and a registry.
pub(crate) fn embedded() -> Result<(Bench, Registry)> {
    Ok((Bench::start()?, Registry::start()?))
}

pub(crate) fn site<'a>(kubectl: &'a Kubectl, registry: &Registry) -> Site<'a> {
    Site {
        kubectl,
        host: registry.host(),
    }
}
