//! The webhooks of two operators before a real kube-apiserver, as whoever writes meets them. No NATS
//! is there, so nobody reconciles: what is seen is what admission does.

use super::{MUSTER, SOON};
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use muster_testkit::balancer::Balancer;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{self, Kubernetes};
use muster_testkit::process::Process;
use muster_testkit::storage::{ROLES, role_path};
use muster_testkit::{port, wait};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tempfile::TempDir;

const CONTROLLER: &str = "system:serviceaccount:muster:muster-operator";
const WORKER: &str = "system:serviceaccount:muster:muster-worker";
const GROUP: &str = "sbomscanner.kubewarden.io";

static STAGE: Mutex<Weak<Stage>> = Mutex::new(Weak::new());

/// A cluster with two operators that answer.
struct Stage {
    // The order is the order of dropping.
    operators: Vec<Process>,
    ports: Vec<u16>,
    _balancer: Balancer,
    cluster: Cluster,
}

/// A cluster that knows our kinds and roles.
pub(super) struct Cluster {
    kubernetes: Kubernetes,
    pub(super) kubectl: Kubectl,
    pub(super) files: TempDir,
}

impl Cluster {
    pub(super) fn start() -> Result<Cluster> {
        let kubernetes = Kubernetes::start(&kubernetes::Options::default())?;
        let kubectl = Kubectl::new(&kubernetes.kubeconfig_path())?;
        kubectl.succeed(&["create", "namespace", "muster"])?;
        kubectl.succeed_with(&["apply", "-f", "-"], ROLES)?;
        let crds = Command::new(MUSTER)
            .args(["crds", "--group", GROUP, "-o", "json"])
            .output()?;
        ensure!(crds.status.success(), "{crds:?}");
        let mut crds: Value = serde_json::from_slice(&crds.stdout)?;
        // As if the definitions were older than the operator: this one knows a default that
        // kube-apiserver does not.
        let registry = crds["items"].as_array_mut().into_iter().flatten();
        let mut registry = registry.filter(|crd| crd["spec"]["names"]["kind"] == "Registry");
        let limit = registry.next().context("the definition of Registry")?.pointer_mut(
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/scanJobsHistoryLimit",
        );
        let limit = limit.and_then(Value::as_object_mut).context("a limit")?;
        limit.remove("default").context("a default")?;
        kubectl.define(&crds.to_string())?;
        Ok(Cluster {
            kubernetes,
            kubectl,
            files: tempfile::tempdir()?,
        })
    }

    /// Starts an operator that answers on a port and has kube-apiserver ask at another.
    pub(super) fn operator(
        &self,
        port: u16,
        asked_at: u16,
        arguments: &[&str],
        log: &str,
    ) -> Result<Process> {
        let address = format!("127.0.0.1:{port}");
        let url = format!("https://127.0.0.1:{asked_at}");
        let webhook = ["--webhook-listen", &address, "--webhook-url", &url];
        self.start_operator(&[&webhook[..], arguments].concat(), log)
    }

    /// Starts an operator with these arguments alone.
    pub(super) fn start_operator(&self, arguments: &[&str], log: &str) -> Result<Process> {
        let mut command = Command::new(MUSTER);
        command
            .args(["operator", "--nats", "nats://127.0.0.1:1", "--kubeconfig"])
            .arg(role_path(&self.kubernetes, "operator")?)
            .args(["--health-listen", "off"])
            .args(arguments);
        Process::start(
            "muster operator",
            &mut command,
            &self.files.path().join(log),
        )
    }

    /// The authorities that kube-apiserver is to believe.
    pub(super) fn bundle(&self, kind: &str) -> Result<Option<String>> {
        let found = self
            .kubectl
            .run(&["get", kind, "muster", "-o", "json"], "")?;
        if !found.status.success() {
            return Ok(None);
        }
        let found: Value = serde_json::from_str(&found.stdout)?;
        let Some(bundle) = found["webhooks"][0]["clientConfig"]["caBundle"].as_str() else {
            return Ok(None);
        };
        Ok(Some(String::from_utf8(STANDARD.decode(bundle)?)?))
    }

    /// Waits until the webhooks refuse what is wrong.
    pub(super) fn wait_refusing(&self) -> Result<()> {
        let wrong = registry(
            "default",
            "wrong",
            json!({"uri": "x.io", "scanInterval": "1s"}),
        );
        let dry = ["create", "--dry-run=server", "-f", "-"];
        wait::until("the webhooks to refuse what is wrong", SOON, || {
            let outcome = self.kubectl.run(&dry, &wrong.to_string())?;
            Ok(outcome.stderr.contains("spec.scanInterval").then_some(()))
        })
    }

    fn user(&self, name: &str) -> Result<Kubectl> {
        Kubectl::new(&self.kubernetes.user_path(name, &["system:masters"])?)
    }
}

fn stage() -> Result<Arc<Stage>> {
    let mut shared = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stage) = shared.upgrade() {
        return Ok(stage);
    }
    let cluster = Cluster::start()?;
    let ports = vec![port::free()?, port::free()?];
    let balancer = Balancer::start(ports.clone())?;
    let operators = ports.iter().map(|port| {
        let log = format!("operator-{port}.log");
        cluster.operator(*port, balancer.port(), &[], &log)
    });
    let operators = operators.collect::<Result<Vec<_>>>()?;
    let stage = Stage {
        operators,
        ports,
        _balancer: balancer,
        cluster,
    };
    let tails = || -> String { stage.operators.iter().map(Process::log_tail).collect() };
    stage.cluster.wait_refusing().with_context(tails)?;
    // One replica is enough for kube-apiserver; tests ask each of them.
    for port in &stage.ports {
        wait::until("a webhook of every replica", SOON, || {
            Ok(TcpStream::connect(("127.0.0.1", *port)).ok().map(drop))
        })
        .with_context(tails)?;
    }
    let stage = Arc::new(stage);
    *shared = Arc::downgrade(&stage);
    Ok(stage)
}

/// A namespace of a test's own.
fn space(stage: &Stage, name: &str) -> Result<()> {
    let kubectl = &stage.cluster.kubectl;
    kubectl.succeed(&["create", "namespace", name]).map(drop)
}

fn object(kind: &str, namespace: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind,
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}

pub(super) fn registry(namespace: &str, name: &str, spec: Value) -> Value {
    object("Registry", namespace, name, spec)
}

fn job(namespace: &str, name: &str, registry: &str) -> String {
    object("ScanJob", namespace, name, json!({"registry": registry})).to_string()
}

fn read(kubectl: &Kubectl, namespace: &str, resource: &str, name: &str) -> Result<Value> {
    super::read(kubectl, namespace, resource, name)
}

#[test]
fn what_is_wrong_is_refused_with_its_field_and_what_is_lacking_added() -> Result<()> {
    let stage = stage()?;
    let (space_name, kubectl) = ("rules", &stage.cluster.kubectl);
    space(&stage, space_name)?;
    let expression =
        json!([{"name": "a", "matchConditions": [{"name": "c", "expression": "tag =="}]}]);
    for (spec, field) in [
        (
            json!({"uri": "x.io", "scanInterval": "1s"}),
            "spec.scanInterval",
        ),
        (
            json!({"uri": "x.io", "catalogType": "NoCatalog"}),
            "spec.repositories",
        ),
        (
            json!({"uri": "x.io", "repositories": expression}),
            "spec.repositories[0].matchConditions[0].expression",
        ),
    ] {
        let wrong = registry(space_name, "wrong", spec).to_string();
        let refused = kubectl.fail(&["apply", "-f", "-"], &wrong)?;
        assert!(refused.contains(field), "{refused}");
    }
    let hub = object("VEXHub", "", "wrong", json!({"url": "git://x.io"})).to_string();
    let refused = kubectl.fail(&["apply", "-f", "-"], &hub)?;
    assert!(refused.contains("spec.url"), "{refused}");

    let well = registry(space_name, "well", json!({"uri": "x.io"}));
    kubectl.succeed_with(&["apply", "-f", "-"], &well.to_string())?;
    let kept = read(kubectl, space_name, "registry", "well")?;
    assert_eq!(kept["spec"]["scanJobsHistoryLimit"], 10, "{kept}");
    assert_eq!(kept["spec"]["catalogType"], "OCIDistribution", "{kept}");
    let interval = r#"{"spec":{"scanInterval":"1s"}}"#;
    let patch = [
        "-n",
        space_name,
        "patch",
        "registry",
        "well",
        "--type=merge",
        "-p",
    ];
    let refused = kubectl.fail(&[&patch[..], &[interval]].concat(), "")?;
    assert!(refused.contains("must be at least 1m"), "{refused}");
    let create = ["create", "-f", "-"];
    kubectl.succeed_with(&create, &job(space_name, "kept", "nowhere"))?;
    let elsewhere = r#"{"spec":{"registry":"well"}}"#;
    let patch = [
        "-n",
        space_name,
        "patch",
        "scanjob",
        "kept",
        "--type=merge",
        "-p",
    ];
    let refused = kubectl.fail(&[&patch[..], &[elsewhere]].concat(), "")?;
    assert!(refused.contains("field is immutable"), "{refused}");
    Ok(())
}

#[test]
fn a_managed_registry_is_the_controllers_alone() -> Result<()> {
    let stage = stage()?;
    let (space_name, kubectl) = ("managed-registry", &stage.cluster.kubectl);
    space(&stage, space_name)?;
    let controller = stage.cluster.user(CONTROLLER)?;
    let worker = stage.cluster.user(WORKER)?;
    let mut managed = registry(space_name, "made", json!({"uri": "x.io"}));
    managed["metadata"]["labels"] = json!({format!("{GROUP}/workloadscan"): "true"});
    let managed = managed.to_string();
    let apply = ["apply", "--server-side", "-f", "-"];
    let refused = kubectl.fail(&apply, &managed)?;
    assert!(
        refused.contains("managed by the workload scan"),
        "{refused}"
    );
    controller.succeed_with(&apply, &managed)?;
    let about = |verb: &'static str, rest: &[&'static str]| -> Vec<&'static str> {
        [&["-n", "managed-registry", verb, "registry", "made"], rest].concat()
    };
    let uri = about(
        "patch",
        &["--type=merge", "-p", r#"{"spec":{"uri":"y.io"}}"#],
    );
    let note = "sbomscanner.kubewarden.io/last-job-name=x";
    let status = r#"{"status":{"imagesCount":7}}"#;
    let status = about(
        "patch",
        &["--subresource=status", "--type=merge", "-p", status],
    );
    let free = about("label", &["sbomscanner.kubewarden.io/workloadscan-"]);
    for arguments in [&uri, &status, &free, &about("delete", &[])] {
        // Not even an administrator, nor the worker.
        for who in [kubectl, &worker] {
            let refused = who.fail(arguments, "")?;
            assert!(
                refused.contains("managed by the workload scan"),
                "{arguments:?}: {refused}"
            );
        }
    }
    worker.succeed(&about("annotate", &[note]))?;
    controller.succeed(&status)?;
    controller.succeed(&uri)?;
    controller.succeed(&about("delete", &[]))?;
    Ok(())
}

#[test]
fn nothing_begins_on_a_registry_that_is_being_deleted() -> Result<()> {
    let stage = stage()?;
    let (space_name, kubectl) = ("closing", &stage.cluster.kubectl);
    space(&stage, space_name)?;
    let mut closing = registry(space_name, "old", json!({"uri": "x.io"}));
    closing["metadata"]["finalizers"] = json!(["example.org/wait"]);
    kubectl.succeed_with(&["apply", "-f", "-"], &closing.to_string())?;
    kubectl.succeed(&[
        "-n",
        space_name,
        "delete",
        "registry",
        "old",
        "--wait=false",
    ])?;
    let spec = json!({"registry": "old"});
    for kind in ["ScanJob", "RegistryDiscovery"] {
        let late = object(kind, space_name, "late", spec.clone()).to_string();
        let refused = kubectl.fail(&["create", "-f", "-"], &late)?;
        let why = r#"the Registry "old" is being deleted"#;
        assert!(refused.contains(why), "{refused}");
    }
    let free = r#"{"metadata":{"finalizers":null}}"#;
    let patch = [
        "-n",
        space_name,
        "patch",
        "registry",
        "old",
        "--type=merge",
        "-p",
        free,
    ];
    kubectl.succeed(&patch)?;
    Ok(())
}

#[test]
fn of_two_jobs_at_the_same_instant_one_claims_and_one_is_warned() -> Result<()> {
    let stage = stage()?;
    let (space_name, kubectl) = ("instant", &stage.cluster.kubectl);
    space(&stage, space_name)?;
    let place = registry(space_name, "one", json!({"uri": "x.io"}));
    kubectl.succeed_with(&["apply", "-f", "-"], &place.to_string())?;
    let lease = [
        "-n",
        "muster",
        "get",
        "lease",
        "lease-instant-one",
        "-o",
        "json",
    ];
    let dry = ["create", "--dry-run=server", "-f", "-"];
    kubectl.succeed_with(&dry, &job(space_name, "dry", "one"))?;
    assert!(kubectl.fail(&lease, "")?.contains("NotFound"));

    let create = |name: &str| kubectl.run(&["create", "-f", "-"], &job(space_name, name, "one"));
    let both = std::thread::scope(|scope| {
        let started = ["left", "right"].map(|name| scope.spawn(move || create(name)));
        started.map(|one| one.join().unwrap())
    });
    let [left, right] = both;
    let (left, right) = (left?, right?);
    assert!(
        left.status.success() && right.status.success(),
        "{left:?} {right:?}"
    );
    let claim: Value = serde_json::from_str(&kubectl.succeed(&lease)?)?;
    let (first, second, name) = match left.stderr.contains("Warning") {
        true => (&right, &left, "right"),
        false => (&left, &right, "left"),
    };
    assert!(!first.stderr.contains("Warning"), "{first:?}");
    let why = format!("ScanJob instant/{name} works on the Registry \"one\"");
    assert!(second.stderr.contains(&why), "{second:?}");
    let uid = read(kubectl, space_name, "scanjob", name)?["metadata"]["uid"].clone();
    let holder = format!("ScanJob/instant/{name}/{}", uid.as_str().context("a UID")?);
    assert_eq!(claim["spec"]["holderIdentity"], holder, "{claim}");
    // It is there for the reconciler to take over, or lapses.
    assert_eq!(claim["spec"]["leaseDurationSeconds"], 10, "{claim}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_replica_answers_whatever_it_is_asked() -> Result<()> {
    let stage = stage()?;
    let secret = [
        "-n",
        "muster",
        "get",
        "secret",
        "muster-webhook",
        "-o",
        "json",
    ];
    let secret: Value = serde_json::from_str(&stage.cluster.kubectl.succeed(&secret)?)?;
    let authority = secret["data"]["ca.crt"].as_str().context("an authority")?;
    for port in &stage.ports {
        let place = Kubeconfig {
            server: format!("https://127.0.0.1:{port}"),
            authority: Some(STANDARD.decode(authority)?),
            token: None,
            certificate: None,
        };
        let post = |path: &str, body: Vec<u8>| {
            Request::new(Method::POST, path).body("application/json", body)
        };
        let stranger = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "operation": "CREATE"},
        });
        for (request, code, says) in [
            (
                post("/validate", b"{".to_vec())?,
                400,
                "reading an AdmissionReview",
            ),
            (
                post("/validate", "[".repeat(100_000).into())?,
                400,
                "reading an AdmissionReview",
            ),
            (post("/validate", vec![b' '; 8 << 20])?, 413, "at most"),
            (post("/mutate", stranger.to_string().into())?, 400, "Pod"),
            (post("/", Vec::new())?, 404, "not found"),
            (Request::new(Method::GET, "/validate"), 405, "method"),
        ] {
            let case = format!("{} {}", request.method, request.target);
            // What is too much is not read, so a connection may end with it.
            let answer = Client::new(&place)?.send(request).await;
            let answer = answer.context(case.clone())?;
            assert_eq!(answer.status, code, "{case}");
            let said = String::from_utf8_lossy(&answer.body);
            assert!(said.contains(says), "{case}: {said}");
        }
    }
    stage.cluster.wait_refusing()
}
