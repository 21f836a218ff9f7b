//! The configuration audit, met by kubectl: policies in ConfigMaps and resources are applied, and
//! ConfigAuditReports follow, on one process and on a real kube-apiserver alike.

mod change;
mod current;
mod scenarios;

use super::auditing::{Audited, Site};
use anyhow::{Context, Result};
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_muster");
/// How long a change may take to be reported, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);
/// Where policies are written.
pub(crate) const NAMESPACE: &str = "trivy-operator";
pub(crate) const CONFIG: &str = "trivy-operator-conftest-config";

/// What is audited, and by whom.
pub(crate) enum Place {
    Embedded(Box<Muster>),
    Cluster(Box<Audited>),
}

impl Place {
    /// One process, with custom policies only unless told otherwise.
    pub(crate) fn embedded(variables: &[(&str, &str)]) -> Result<Place> {
        let custom = [
            ("MUSTER_CONFIG_AUDIT", "on"),
            ("MUSTER_BUILTIN_POLICIES", "off"),
        ];
        let variables: Vec<(&str, &str)> = custom.iter().chain(variables).copied().collect();
        let muster = Muster::start_told(BINARY, &[], &variables)?;
        Ok(Place::Embedded(Box::new(muster)))
    }

    /// A real kube-apiserver and an operator with the rights it has there.
    pub(crate) fn cluster(arguments: &[&str]) -> Result<Place> {
        let mut all = vec!["--config-audit=on", "--audit=off"];
        all.extend(arguments);
        Ok(Place::Cluster(Box::new(Audited::start(&all)?)))
    }

    pub(crate) fn site(&self) -> Result<Site> {
        match self {
            Place::Embedded(muster) => Site::of(muster),
            Place::Cluster(audited) => audited.site(),
        }
    }

    /// How the log ends.
    pub(crate) fn log(&self) -> String {
        match self {
            Place::Embedded(muster) => muster.process().log_tail(),
            Place::Cluster(audited) => audited.log(),
        }
    }

    /// The counters of the configuration audit: the sum of those of a name whose labels have this.
    pub(crate) fn counted(&self, name: &str, label: &str) -> Result<u64> {
        let text = match self {
            Place::Embedded(_) => self
                .site()?
                .kubectl
                .succeed(&["get", "--raw", "/metrics"])?,
            Place::Cluster(audited) => audited.metrics()?,
        };
        let name = format!("muster_config_audit_{name}");
        let lines = text.lines().filter(|line| {
            let rest = line.strip_prefix(&name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
        });
        let numbers = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(numbers.sum::<f64>() as u64)
    }

    /// Policies that were asked about objects of a kind.
    pub(crate) fn evaluations(&self, kind: &str) -> Result<u64> {
        self.counted("evaluations_total", &format!("kind=\"{kind}\""))
    }

    /// Waits until nothing is left to do, and stays so between two looks at what was counted.
    pub(crate) fn settled(&self) -> Result<()> {
        let mut before = None;
        wait::until("the audit to settle", SOON, || {
            let now = (
                self.counted("evaluations_total", "")?,
                self.counted("reports_total", "")?,
                self.counted("requests_total", "")?,
            );
            let quiet = self.counted("pending", "")? == 0;
            let done = quiet && before == Some(now);
            before = Some(now);
            Ok(done.then_some(()))
        })
    }
}

/// A policy that refuses every object, with a message.
pub(crate) fn refusing(message: &str) -> String {
    format!("package main\nimport rego.v1\ndeny contains \"{message}\" if true")
}

/// The ConfigMap of policies: name, text and kinds of each, and the texts of libraries.
pub(crate) fn config(policies: &[(&str, &str, &str)], libraries: &[(&str, &str)]) -> Value {
    let mut data = json!({"conftest.imageRef": "openpolicyagent/conftest:v0.30.0"});
    for (name, text, kinds) in policies {
        data[format!("conftest.policy.{name}.rego")] = (*text).into();
        data[format!("conftest.policy.{name}.kinds")] = (*kinds).into();
    }
    for (name, text) in libraries {
        data[format!("conftest.library.{name}.rego")] = (*text).into();
    }
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": CONFIG, "namespace": NAMESPACE,
            "annotations": {"trivy-operator.plugin.config.version": "v2"}},
        "data": data,
    })
}

/// Writes the ConfigMap of policies; nothing of the one before is left.
pub(crate) fn write(site: &Site, config: &Value) -> Result<()> {
    site.kubectl.put(&config.to_string())
}

/// The report of that name, as it is now.
pub(crate) fn report(site: &Site, namespace: Option<&str>, name: &str) -> Result<Value> {
    match namespace {
        Some(namespace) => site.get(&["configauditreport", name, "-n", namespace]),
        None => site.get(&["clusterconfigauditreport", name]),
    }
}

/// The report of that name, once it is as it should be.
pub(crate) fn report_when(
    site: &Site,
    namespace: Option<&str>,
    name: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let mut last = Value::Null;
    let found = wait::until(&format!("the report {name}"), SOON, || {
        last = report(site, namespace, name)?;
        Ok(is(&last).then(|| last.clone()))
    });
    found.with_context(|| format!("the report is {last:#}"))
}

/// What a report says, as `check: message`.
pub(crate) fn said(report: &Value) -> Vec<String> {
    let checks = report["report"]["checks"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    checks
        .map(|check| {
            format!(
                "{}: {}",
                text(&check["checkID"]),
                text(&check["messages"][0])
            )
        })
        .collect()
}

pub(crate) fn hash(report: &Value) -> &str {
    report["metadata"]["labels"]["plugin-config-hash"]
        .as_str()
        .unwrap_or_default()
}
