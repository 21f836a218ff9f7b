//! RegistryDiscoveries: their states as users see them, who waits for whom, and what is left on the
//! Registry. A gate before the real registry holds a job where the test wants to look at it.

use super::{LIMIT, get, layer, push};
use anyhow::{Context, Result};
use http::StatusCode;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::digest;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const GROUP: &str = "sbomscanner.kubewarden.io";

/// Requests whose target contains one of these wait at the gate.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<BTreeSet<String>>>);

impl Gate {
    pub(crate) fn close(&self, part: &str) {
        self.0.lock().unwrap().insert(part.into());
    }

    pub(crate) fn open(&self, part: &str) {
        self.0.lock().unwrap().remove(part);
    }

    /// A proxy with this gate before a registry.
    pub(crate) async fn before(&self, registry: &Registry) -> Result<Proxy> {
        let gate = self.clone();
        Proxy::start(&registry.host(), move |seen, _| {
            let closed = gate.0.lock().unwrap();
            match closed.iter().any(|part| seen.target.contains(part)) {
                true => {
                    let later = vec![("retry-after", "1".to_owned())];
                    Fault::Answer(StatusCode::SERVICE_UNAVAILABLE, later, String::new())
                }
                false => Fault::Pass,
            }
        })
        .await
    }
}

/// A Registry that starts nothing by itself.
pub(crate) fn registry(name: &str, host: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "Registry",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "uri": host, "catalogType": "NoCatalog", "insecure": true, "scanOnChange": false,
            "repositories": [{"name": "team/app"}], "discoveryJob": {"suspend": true},
        },
    })
}

pub(super) fn discovery(name: &str, registry: &str) -> String {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "RegistryDiscovery",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"registry": registry},
    })
    .to_string()
}

/// Waits until a discovery's status is as wanted.
pub(super) fn until(
    kubectl: &Kubectl,
    name: &str,
    what: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Result<Value> {
    wait::until(&format!("RegistryDiscovery {name} {what}"), LIMIT, || {
        let discovery = get(kubectl, &["registrydiscovery", name])?;
        Ok(wanted(&discovery["status"]).then_some(discovery))
    })
}

fn is(word: &'static str) -> impl Fn(&Value) -> bool {
    move |status| status["currentStatus"] == word
}

/// The conditions without their times.
fn conditions(discovery: &Value) -> Value {
    let mut conditions = discovery["status"]["conditions"].clone();
    for condition in conditions.as_array_mut().into_iter().flatten() {
        let fields = condition.as_object_mut().unwrap();
        assert!(fields.remove("lastTransitionTime").is_some());
        assert!(fields.remove("observedGeneration").is_some());
    }
    conditions
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

/// What is noted about the last job.
fn notes(kubectl: &Kubectl, registry: &str) -> Result<Value> {
    let registry = get(kubectl, &["registry", registry])?;
    let annotations = registry["metadata"]["annotations"].as_object().cloned();
    let prefix = format!("{GROUP}/last-");
    let notes = annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| {
            let key = key.strip_prefix(&prefix)?.to_owned();
            Some((key, value))
        });
    Ok(Value::Object(notes.collect()))
}

/// Who holds a Registry.
fn holder(kubectl: &Kubectl, registry: &str) -> Result<Option<String>> {
    let lease = format!("lease-default-{registry}");
    let found = kubectl.succeed(&[
        "get",
        "lease",
        "-n",
        "muster",
        &lease,
        "--ignore-not-found",
        "-o",
        "jsonpath={.spec.holderIdentity}",
    ])?;
    Ok((!found.is_empty()).then_some(found))
}

fn count(kubectl: &Kubectl, kind: &str) -> Result<usize> {
    let list = get(kubectl, &[kind])?;
    Ok(list["items"].as_array().context("items")?.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discovery_tells_how_far_it_has_come() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let gate = Gate::default();
    let proxy = gate.before(&server).await?;
    let muster = Muster::start(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let manifest = registry("local", &proxy.host());
    kubectl.succeed_with(&["apply", "-f", "-"], &manifest.to_string())?;

    let (tags, blob) = ("/tags/list", digest(&layer()?.1));
    gate.close(tags);
    gate.close(&blob);
    kubectl.succeed_with(&["apply", "-f", "-"], &discovery("first", "local"))?;
    let running = until(&kubectl, "first", "runs", is("Running"))?;
    assert_eq!(
        conditions(&running),
        json!([
            condition(
                "Discovering",
                "True",
                "DiscoveryRunning",
                "Registry discovery in progress"
            ),
            condition(
                "Discovered",
                "False",
                "DiscoveryRunning",
                "Registry discovery in progress"
            ),
        ])
    );
    assert_eq!(running["status"]["canceled"], false);
    assert_eq!(running["status"]["finishedAt"], Value::Null);
    assert_eq!(
        running["spec"]["registrySpec"],
        get(&kubectl, &["registry", "local"])?["spec"]
    );
    let started = running["status"]["startedAt"].clone();
    assert!(started.is_string(), "{running}");
    assert_eq!(
        notes(&kubectl, "local")?,
        json!({
            "discovery-completed": "false", "discovery-completed-at": "",
            "discovery-started-at": started, "job-name": "first", "job-type": "discovery",
        })
    );
    let uid = running["metadata"]["uid"].as_str().context("a UID")?;
    let identity = format!("RegistryDiscovery/default/first/{uid}");
    assert_eq!(holder(&kubectl, "local")?, Some(identity.clone()));

    // All images are there: it has succeeded, and still has SBOMs made.
    gate.open(tags);
    let found = until(&kubectl, "first", "succeeds", is("Succeeded"))?;
    assert_eq!(
        conditions(&found),
        json!([
            condition(
                "Discovering",
                "True",
                "DiscoveryRunning",
                "Registry discovery in progress"
            ),
            condition(
                "Discovered",
                "True",
                "DiscoveryFinished",
                "Registry discovery finished"
            ),
        ])
    );
    assert_eq!(found["status"]["startedAt"], started);
    assert!(found["status"]["finishedAt"].is_string());
    assert_eq!(found["status"]["imagesCount"], 2);
    assert_eq!(found["status"]["completedAt"], Value::Null);
    assert_eq!(count(&kubectl, "images")?, 2);
    let noted = notes(&kubectl, "local")?;
    assert_eq!(noted["discovery-completed"], "false");
    let last = noted["discovered-image-name"]
        .as_str()
        .context("an image")?;
    get(&kubectl, &["image", last])?;
    assert_eq!(holder(&kubectl, "local")?, Some(identity));

    // Every image has its SBOM: it is complete, and the Registry is free.
    gate.open(&blob);
    let done = until(&kubectl, "first", "completes", |status| {
        status["completedAt"].is_string()
    })?;
    assert_eq!(conditions(&done), conditions(&found));
    assert_eq!(done["status"]["finishedAt"], found["status"]["finishedAt"]);
    assert_eq!(done["status"]["sbomsCount"], 2);
    let noted = notes(&kubectl, "local")?;
    assert_eq!(noted["discovery-completed"], "true");
    assert!(
        noted["discovery-completed-at"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z'))
    );
    assert_eq!(noted["job-name"], "first");
    assert_eq!(
        (
            count(&kubectl, "sboms")?,
            count(&kubectl, "vulnerabilityreports")?
        ),
        (2, 0)
    );
    wait::until("the end of the Lease", LIMIT, || {
        Ok(holder(&kubectl, "local")?.is_none().then_some(()))
    })?;
    let table = kubectl.succeed(&["get", "registrydiscoveries"])?;
    assert!(
        table.contains("first") && table.contains("Succeeded"),
        "{table}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discovery_waits_is_called_off_or_cannot_be_done() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let gate = Gate::default();
    let proxy = gate.before(&server).await?;
    let muster = Muster::start(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let manifest = registry("local", &proxy.host());
    kubectl.succeed_with(&["apply", "-f", "-"], &manifest.to_string())?;

    kubectl.succeed_with(&["apply", "-f", "-"], &discovery("lost", "nowhere"))?;
    let lost = until(&kubectl, "lost", "fails", is("FailStopped"))?;
    let why = "The Registry nowhere does not exist";
    assert_eq!(
        conditions(&lost),
        json!([
            condition("Discovering", "False", "FailedToRequestDiscovery", why),
            condition("Discovered", "False", "FailedToRequestDiscovery", why),
        ])
    );
    assert!(lost["status"]["finishedAt"].is_string());

    gate.close("/tags/list");
    kubectl.succeed_with(&["apply", "-f", "-"], &discovery("first", "local"))?;
    until(&kubectl, "first", "runs", is("Running"))?;
    kubectl.succeed_with(&["apply", "-f", "-"], &discovery("second", "local"))?;
    let waiting = until(&kubectl, "second", "waits", is("Pending"))?;
    let why = "Registry discovery pending until RegistryDiscovery default/first has ended";
    assert_eq!(
        conditions(&waiting),
        json!([
            condition("Discovering", "False", "DiscoveryPending", why),
            condition("Discovered", "False", "DiscoveryPending", why),
        ])
    );

    let off = r#"{"spec":{"cancel":true}}"#;
    kubectl.succeed(&[
        "patch",
        "registrydiscovery",
        "first",
        "--type=merge",
        "-p",
        off,
    ])?;
    let canceled = until(&kubectl, "first", "is called off", is("Cancel"))?;
    assert_eq!(canceled["status"]["canceled"], true);
    assert!(canceled["status"]["finishedAt"].is_string());

    // The second one goes on where the first was; both fit, because each kind has its own limit.
    gate.open("/tags/list");
    until(&kubectl, "second", "completes", |status| {
        status["completedAt"].is_string()
    })?;
    assert_eq!(
        get(&kubectl, &["registrydiscovery", "first"])?["status"]["currentStatus"],
        "Cancel"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_goes_when_its_job_has_ended() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let gate = Gate::default();
    let proxy = gate.before(&server).await?;
    let muster = Muster::start(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    let manifest = registry("local", &proxy.host());
    kubectl.succeed_with(&["apply", "-f", "-"], &manifest.to_string())?;
    wait::until("a status", LIMIT, || {
        let registry = get(&kubectl, &["registry", "local"])?;
        let reachable = &registry["status"]["conditions"][0];
        Ok((reachable["type"] == "Reachable" && reachable["status"] == "True").then_some(()))
    })?;

    let idle = get(&kubectl, &["registry", "local"])?;
    assert_eq!(idle["metadata"]["finalizers"], Value::Null, "{idle}");

    let blob = digest(&layer()?.1);
    gate.close(&blob);
    kubectl.succeed_with(&["apply", "-f", "-"], &discovery("first", "local"))?;
    until(&kubectl, "first", "succeeds", is("Succeeded"))?;
    kubectl.succeed(&["delete", "registry", "local", "--wait=false"])?;
    let leaving = get(&kubectl, &["registry", "local"])?;
    assert!(
        leaving["metadata"]["deletionTimestamp"].is_string(),
        "{leaving}"
    );

    // Nothing new begins on it.
    let refused = kubectl.fail(&["apply", "-f", "-"], &discovery("late", "local"))?;
    let why = r#"the Registry "local" is being deleted"#;
    assert!(refused.contains(why), "{refused}");
    assert_eq!(count(&kubectl, "images")?, 2);
    get(&kubectl, &["registry", "local"])?;

    gate.open(&blob);
    kubectl.succeed(&["wait", "--for=delete", "registry/local", "--timeout=180s"])?;
    wait::until("the end of what was found", LIMIT, || {
        Ok((count(&kubectl, "images")? == 0 && holder(&kubectl, "local")?.is_none()).then_some(()))
    })
}
