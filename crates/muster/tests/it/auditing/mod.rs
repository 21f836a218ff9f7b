//! The audit that never ends, met by kubectl: policies and resources are applied, and reports follow.
//! What is told here holds on one process and on a real kube-apiserver alike.

mod alike;
mod config_alike;
mod current;
mod example;
mod faults;
mod kept;
mod stories;

use anyhow::{Context, Result, ensure};
use muster_testkit::installation::lacking_right;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{self, Kubernetes};
use muster_testkit::muster::Muster;
use muster_testkit::nats::Nats;
use muster_testkit::port;
use muster_testkit::process::{Directory, Process};
use muster_testkit::storage::{NAMESPACE, ROLES, role_path};
use muster_testkit::wait;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_muster");
/// How long a change may take to be reported, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// An audit of a real cluster; it ends when dropped.
pub(crate) struct Audited {
    // The order is the order of dropping.
    operators: Vec<Process>,
    /// Where the first operator tells how it is.
    health: u16,
    nats: Nats,
    kubernetes: Kubernetes,
    directory: Directory,
}

impl Audited {
    /// kube-apiserver with its controllers, and an operator with the rights it has in a cluster.
    pub(crate) fn start(arguments: &[&str]) -> Result<Audited> {
        let kubernetes = Kubernetes::start(&kubernetes::Options {
            controllers: true,
            // The pods of examples are privileged; nobody runs them.
            arguments: vec!["--allow-privileged=true".into()],
            ..kubernetes::Options::default()
        })?;
        let kubectl = Kubectl::new(&kubernetes.kubeconfig_path())?;
        kubectl.succeed(&["create", "namespace", NAMESPACE])?;
        kubectl.succeed_with(&["apply", "-f", "-"], ROLES)?;
        let crds = Command::new(BINARY).arg("crds").output()?;
        ensure!(crds.status.success(), "{crds:?}");
        let crds = String::from_utf8(crds.stdout)?;
        kubectl.define(&crds)?;
        // The operator reads by a role that the controller manager puts together.
        let operator = "system:serviceaccount:muster:muster-operator";
        kubectl.wait_allowed(operator, "list", "configmaps", "default")?;
        let mut audited = Audited {
            operators: Vec::new(),
            health: port::free()?,
            nats: Nats::start()?,
            kubernetes,
            directory: Directory::new("audited")?,
        };
        audited.add_operator(arguments)?;
        Ok(audited)
    }

    /// Starts one more operator.
    pub(crate) fn add_operator(&mut self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(BINARY);
        let port = if self.operators.is_empty() {
            self.health
        } else {
            0
        };
        command
            .args(["operator", "--health-listen", &format!("127.0.0.1:{port}")])
            // One that is about it says so.
            .env("MUSTER_CONFIG_AUDIT", "off")
            .args(["--webhook-listen", "off", "--nats", &self.nats.url()])
            .arg("--kubeconfig")
            .arg(role_path(&self.kubernetes, "operator")?)
            .args(arguments);
        let log = format!("operator-{}.log", self.operators.len());
        let log = self.directory.join(&log);
        let operator = Process::start("muster operator", &mut command, &log)?;
        self.operators.push(operator);
        Ok(())
    }

    pub(crate) fn site(&self) -> Result<Site> {
        Site::new(Kubectl::new(&self.kubernetes.kubeconfig_path())?)
    }

    /// Somebody who is not an administrator.
    pub(crate) fn kubectl_of(&self, user: &str, groups: &[&str]) -> Result<Kubectl> {
        Kubectl::new(&self.kubernetes.user_path(user, groups)?)
    }

    /// Whether the first operator tried nothing that it may not do.
    pub(crate) fn lacks_no_right(&self) -> Result<()> {
        let log = std::fs::read_to_string(self.directory.join("operator-0.log"))?;
        let refused = lacking_right(&log);
        ensure!(refused.is_none(), "{refused:?}");
        Ok(())
    }

    /// What the first operator has counted.
    pub(crate) fn metrics(&self) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.health))?;
        stream.set_read_timeout(Some(SOON))?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(
            answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"),
            "{answer}"
        );
        Ok(answer)
    }

    /// How the logs of the operators end.
    pub(crate) fn log(&self) -> String {
        let tails = self.operators.iter().map(Process::log_tail);
        tails.collect::<Vec<_>>().join("\n")
    }
}

/// A cluster whose resources are audited.
pub(crate) struct Site {
    pub(crate) kubectl: Kubectl,
}

impl Site {
    pub(crate) fn new(kubectl: Kubectl) -> Result<Site> {
        Ok(Site { kubectl })
    }

    pub(crate) fn of(muster: &Muster) -> Result<Site> {
        Site::new(Kubectl::new(&muster.kubeconfig_path())?)
    }

    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
        let documents = documents.join("\n---\n");
        let arguments = ["apply", "-f", "-"];
        self.kubectl.succeed_with(&arguments, &documents).map(drop)
    }

    pub(crate) fn get(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = vec!["get", "-o", "json", "--ignore-not-found"];
        all.extend(arguments);
        let read = self.kubectl.succeed(&all)?;
        if read.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&read).context("what kubectl printed")
    }

    /// Creates a pod, and returns it.
    pub(crate) fn pod(&self, namespace: &str, name: &str, changes: Value) -> Result<Value> {
        self.apply(&[pod(namespace, name, changes)])?;
        self.get(&["pod", name, "-n", namespace])
    }

    /// The report on an object, as it is now.
    pub(crate) fn report(&self, of: &Value) -> Result<Value> {
        let uid = of["metadata"]["uid"].as_str().context("a UID")?;
        match of["metadata"]["namespace"].as_str() {
            Some(namespace) => self.get(&["policyreport", uid, "-n", namespace]),
            None => self.get(&["clusterpolicyreport", uid]),
        }
    }

    /// The report on an object, once it is as it should be.
    pub(crate) fn report_when(
        &self,
        what: &str,
        of: &Value,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = Value::Null;
        let found = wait::until(what, SOON, || {
            last = self.report(of)?;
            Ok(is(&last).then(|| last.clone()))
        });
        found.with_context(|| format!("the report is {last:#}"))
    }

    /// Waits until what policies say of an object is this, as `policy=result` in order.
    pub(crate) fn says(&self, of: &Value, expected: &[&str]) -> Result<Value> {
        let what = format!("{} to be {expected:?}", of["metadata"]["name"]);
        self.report_when(&what, of, |report| lines(report) == expected)
    }

    /// A policy, once its status is as it should be.
    pub(crate) fn policy_when(
        &self,
        what: &str,
        arguments: &[&str],
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let mut last = Value::Null;
        let found = wait::until(what, SOON, || {
            last = self.get(arguments)?;
            Ok(is(&last).then(|| last.clone()))
        });
        found.with_context(|| format!("the policy is {last:#}"))
    }
}

/// What a report says, as `policy=result`.
pub(crate) fn lines(report: &Value) -> Vec<String> {
    let results = report["results"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    results
        .map(|line| format!("{}={}", text(&line["policy"]), text(&line["result"])))
        .collect()
}

pub(crate) fn pod(namespace: &str, name: &str, changes: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
    });
    merge(&mut pod, changes);
    pod
}

/// A policy about the creation of pods, judged by CEL.
pub(crate) fn cel(kind: &str, name: &str, expression: &str, changes: Value) -> Value {
    let mut policy = json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "module": "builtin:cel", "mutating": false,
            "settings": {"validations": [{"expression": expression, "message": format!("not {name}")}]},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
                "operations": ["CREATE"]}],
        },
    });
    merge(&mut policy, changes);
    policy
}

/// Lays changes over an object; lists are replaced.
pub(crate) fn merge(object: &mut Value, changes: Value) {
    match (object, changes) {
        (Value::Object(object), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, changes) => *object = changes,
    }
}

pub(crate) fn everything() -> Value {
    json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}])
}
