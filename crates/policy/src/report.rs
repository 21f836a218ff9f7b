//! What is said of an object: one report with a line for each policy. A line that says the same as
//! before stays as it was, with its time and its versions, so that a report changes only when there is
//! something new in it, and a time says since when it has been so.

use crate::policy::Policy;
use crate::verdict::{Outcome, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Who judged, as reports call it.
pub const SOURCE: &str = "kubewarden";
/// The label that says who wrote a report.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const VERSION_LABEL: &str = "kubewarden.io/policyreport-version";
/// The most that all messages of a report may take: an object has to fit into etcd.
const ROOM: usize = 512 * 1024;
/// What is left of each message if they are too many.
const SHORT: usize = 200;

/// When.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Always 0: nobody needs to know more exactly.
    #[serde(default)]
    pub nanos: i32,
}

/// What one policy says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The policy, by the name it has in reports.
    pub policy: String,
    /// Who judged.
    #[serde(default)]
    pub source: String,
    /// What sort of concern it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// How bad it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// `pass`, `fail` or `error`.
    #[serde(default)]
    pub result: String,
    /// Always.
    #[serde(default)]
    pub scored: bool,
    /// Since when it says so.
    #[serde(default)]
    pub timestamp: Timestamp,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Nothing: the report is about one object.
    #[serde(default)]
    pub resource_selector: Map<String, Value>,
    /// More about the policy.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

impl Line {
    /// What `policy` says, as of `now`.
    pub fn new(policy: &Policy, verdict: &Verdict, now: i64) -> Line {
        let mut properties = BTreeMap::new();
        let mut note = |key: &str, value: &str| {
            if !value.is_empty() {
                properties.insert(key.to_owned(), value.to_owned());
            }
        };
        let sort = if policy.is_mutating() {
            "mutating"
        } else {
            "validating"
        };
        note(sort, "true");
        if !policy.context_aware().is_empty() {
            note("context-aware", "true");
        }
        note("policy-resource-version", &policy.resource_version);
        note("policy-uid", &policy.uid);
        note("policy-name", &policy.name);
        note(
            "policy-namespace",
            policy.namespace.as_deref().unwrap_or_default(),
        );
        if verdict.is_mutation() {
            note("mutated", "true");
        }
        let causes = verdict.causes.iter();
        let causes: Vec<String> = causes
            .map(|cause| format!("{}: {}", cause.policy, cause.message))
            .collect();
        note("causes", &causes.join("; "));
        Line {
            policy: policy.unique_name(),
            source: SOURCE.into(),
            category: policy.category().map(str::to_owned),
            severity: policy.severity().map(str::to_owned),
            result: verdict.outcome.as_str().into(),
            scored: true,
            timestamp: Timestamp {
                seconds: now,
                nanos: 0,
            },
            message: match verdict.outcome {
                Outcome::Pass => String::new(),
                Outcome::Fail | Outcome::Error => verdict.message.clone(),
            },
            resource_selector: Map::new(),
            properties,
        }
    }

    /// The identity of the policy.
    pub fn policy_uid(&self) -> &str {
        self.properties.get("policy-uid").map_or("", String::as_str)
    }

    /// This line, or the one before if it said the same: then nothing has happened since.
    pub fn unless_said_by(self, before: Option<&Line>) -> Line {
        let same = |before: &&Line| {
            let mut other = self.clone();
            other.timestamp = before.timestamp;
            if let Some(version) = before.properties.get("policy-resource-version") {
                let key = "policy-resource-version".to_owned();
                other.properties.insert(key, version.clone());
            }
            other == **before
        };
        before.filter(same).cloned().unwrap_or(self)
    }
}

/// In which of the two families reports are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// PolicyReport and ClusterPolicyReport.
    #[default]
    PolicyReport,
    /// Report and ClusterReport.
    OpenReports,
}

impl Format {
    /// The versions in which reports can be written, the newest first. What we write is the same in all.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            Format::PolicyReport => &["v1beta1", "v1alpha2"],
            Format::OpenReports => &["v1alpha1"],
        }
    }

    /// Group and newest version.
    pub fn group_version(self) -> (&'static str, &'static str) {
        match self {
            Format::PolicyReport => (muster_api::reports::GROUP, "v1beta1"),
            Format::OpenReports => (muster_api::reports::OPEN_GROUP, "v1alpha1"),
        }
    }

    /// Kind and plural name.
    pub fn kind(self, namespaced: bool) -> (&'static str, &'static str) {
        match (self, namespaced) {
            (Format::PolicyReport, true) => ("PolicyReport", "policyreports"),
            (Format::PolicyReport, false) => ("ClusterPolicyReport", "clusterpolicyreports"),
            (Format::OpenReports, true) => ("Report", "reports"),
            (Format::OpenReports, false) => ("ClusterReport", "clusterreports"),
        }
    }
}

/// What a report is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Group and version of the object.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its identity, which is the name of the report.
    pub uid: String,
    /// The revision that was judged.
    pub resource_version: String,
}

/// The report about an object. `annotations` are those of whoever writes it.
pub fn report(
    format: Format,
    subject: &Subject,
    mut lines: Vec<Line>,
    skipped: usize,
    annotations: &BTreeMap<String, String>,
) -> Value {
    lines.sort_by(|a, b| (&a.policy, a.policy_uid()).cmp(&(&b.policy, b.policy_uid())));
    shorten(&mut lines);
    let (group, version) = format.group_version();
    let (kind, _) = format.kind(subject.namespace.is_some());
    let count = |result: &str| lines.iter().filter(|line| line.result == result).count();
    let mut metadata = json!({
        "name": subject.uid,
        "labels": {MANAGED_BY: SOURCE, VERSION_LABEL: "v2"},
        "ownerReferences": [{
            "apiVersion": subject.api_version, "kind": subject.kind,
            "name": subject.name, "uid": subject.uid,
        }],
    });
    let mut scope = json!({
        "apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name,
        "uid": subject.uid,
    });
    if !subject.resource_version.is_empty() {
        scope["resourceVersion"] = subject.resource_version.as_str().into();
    }
    if let Some(namespace) = &subject.namespace {
        metadata["namespace"] = namespace.as_str().into();
        scope["namespace"] = namespace.as_str().into();
    }
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let mut report = json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": metadata,
        "scope": scope,
        "summary": {
            "pass": count("pass"), "fail": count("fail"), "warn": 0,
            "error": count("error"), "skip": skipped,
        },
        "results": lines,
    });
    if format == Format::OpenReports {
        report["source"] = SOURCE.into();
    }
    report
}

/// Cuts messages if they would not fit into one object; what matters of them comes first.
fn shorten(lines: &mut [Line]) {
    let size = |line: &Line| {
        let properties = line.properties.values();
        line.message.len() + properties.map(String::len).sum::<usize>()
    };
    if lines.iter().map(size).sum::<usize>() <= ROOM {
        return;
    }
    for line in lines {
        cut(&mut line.message);
        if let Some(causes) = line.properties.get_mut("causes") {
            cut(causes);
        }
    }
}

fn cut(text: &mut String) {
    if text.len() > SHORT {
        let end = (0..=SHORT).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
}

#[cfg(test)]
mod tests;
