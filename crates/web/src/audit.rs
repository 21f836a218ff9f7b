//! What resources fail: the reports of policies and of checks of configuration, both families distilled
//! to the lines that somebody has to do something about.

use crate::distil::Still;
use crate::read::{self, ReadError, Resource, Row};
use crate::reader::{LeftOut, Reader, Seen, Where};
use crate::shelf::Weighed;
use crate::stock::Stock;
use crate::upgrade::rated;
use muster_api::{config_audit, reports};
use muster_scan::vulnerability::Severity;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest message that is kept for lists.
const MESSAGE: usize = 400;

/// Which family of reports tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Family {
    Policy,
    Check,
}

impl Family {
    /// As addresses call it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Family::Policy => "policy",
            Family::Check => "check",
        }
    }
}

/// A resource that fails something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Audit {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) failures: Vec<Failure>,
    /// How many policies or checks are kept.
    pub(crate) passed: usize,
}

/// What it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) family: Family,
    /// The policy, or the identifier of the check.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) severity: Severity,
    /// It could not be judged.
    pub(crate) is_error: bool,
    pub(crate) message: String,
    pub(crate) remediation: String,
    /// The container or other part, if not all of it.
    pub(crate) part: String,
}

impl Weighed for Audit {
    fn weight(&self) -> usize {
        let failures = self.failures.iter();
        let failures = failures.map(|failure| {
            let texts = [
                &failure.id,
                &failure.title,
                &failure.message,
                &failure.remediation,
                &failure.part,
            ];
            size_of::<Failure>() + texts.iter().map(|text| text.len()).sum::<usize>()
        });
        let texts = self.kind.len() + self.namespace.len() + self.name.len() + self.uid.len();
        size_of::<Self>() + texts + failures.sum::<usize>()
    }
}

/// The kinds of reports: whether they are of checks, and whether they are outside of namespaces.
const KINDS: [(Resource, Family, Where); 6] = [
    (POLICY, Family::Policy, Where::Chosen),
    (
        of(reports::GROUP, "v1beta1", "clusterpolicyreports"),
        Family::Policy,
        Where::Cluster,
    ),
    (OPEN, Family::Policy, Where::Chosen),
    (
        of(reports::OPEN_GROUP, "v1alpha1", "clusterreports"),
        Family::Policy,
        Where::Cluster,
    ),
    (CHECKS, Family::Check, Where::Chosen),
    (
        of(
            config_audit::GROUP,
            config_audit::VERSION,
            "clusterconfigauditreports",
        ),
        Family::Check,
        Where::Cluster,
    ),
];

const POLICY: Resource = of(reports::GROUP, "v1beta1", "policyreports");
const OPEN: Resource = of(reports::OPEN_GROUP, "v1alpha1", "reports");
const CHECKS: Resource = of(
    config_audit::GROUP,
    config_audit::VERSION,
    "configauditreports",
);

const fn of(group: &'static str, version: &'static str, plural: &'static str) -> Resource {
    Resource {
        group,
        version,
        plural,
    }
}

/// Reads what fails.
pub(crate) async fn audits(reader: &Reader) -> Result<Seen<Arc<Audit>>, ReadError> {
    let mut seen = Seen {
        items: Vec::new(),
        left_out: LeftOut::default(),
    };
    for (resource, family, which) in KINDS {
        let mut rows = match reader.rows(resource, which).await {
            Err(error) if error.code() == Some(401) => return Err(error),
            // One family of reports that cannot be had costs no other.
            Err(error) => {
                tracing::warn!(%error, "reading for a page");
                seen.left_out.broke_off = true;
                continue;
            }
            Ok(rows) => rows,
        };
        let columns: &[&str] = match family {
            Family::Policy => &["Fail", "Error"],
            Family::Check => &["Critical", "High", "Medium", "Low", "Unknown", "Errors"],
        };
        let is_clean = |row: &Row| columns.iter().all(|column| row.number(column) == Some(0));
        rows.items.retain(|row| !is_clean(row));
        let still = Still {
            resource,
            shelf: |stock: &Stock| &stock.audits,
            distil: |report: Written, _: &Stock| report.audit(Some(MESSAGE)),
        };
        let (known, missing) = still.known(&reader.stock, rows.items);
        let read = still.read(reader, missing).await?;
        seen.items.extend(known);
        seen.items.extend(read.items);
        seen.left_out = seen.left_out.and(rows.left_out).and(read.left_out);
    }
    seen.items.retain(|audit| !audit.failures.is_empty());
    Ok(seen)
}

/// What one resource fails, in full; and whether some of it may not be read.
pub(crate) async fn of_workload(
    reader: &Reader,
    namespace: &str,
    kind: &str,
    name: &str,
    uid: &str,
) -> Result<Seen<Audit>, ReadError> {
    let mut seen = Seen {
        items: Vec::new(),
        left_out: LeftOut::default(),
    };
    for resource in [POLICY, OPEN] {
        if uid.is_empty() {
            break;
        }
        // The report about an object is called like its identity.
        match read::get::<Written>(&reader.client, resource, Some(namespace), uid).await {
            Ok(report) => seen.items.extend(report.map(|report| report.audit(None))),
            Err(error) if error.code() == Some(403) => seen.left_out.forbidden = true,
            Err(error) => return Err(error),
        }
    }
    // A name that is no label is noted otherwise, so that all reports of the kind are looked at.
    let labels = match is_label(name) {
        true => format!("trivy-operator.resource.kind={kind},trivy-operator.resource.name={name}"),
        false => format!("trivy-operator.resource.kind={kind}"),
    };
    let see = |report: Written| {
        if report.is_about(kind, name, uid) {
            seen.items.push(report.audit(None));
        }
    };
    let place = Some(namespace);
    let limits = reader.limits();
    match read::objects(&reader.client, CHECKS, place, &labels, limits, see).await {
        Ok(all) => seen.left_out.broke_off = !all,
        Err(error) if matches!(error.code(), Some(400 | 404)) => {}
        Err(error) if error.code() == Some(403) => seen.left_out.forbidden = true,
        Err(error) => return Err(error),
    }
    Ok(seen)
}

/// Whether a text can be the value of a label.
fn is_label(text: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= 63
        && text.bytes().all(is_sound)
        && is_end(text.bytes().next())
        && is_end(text.bytes().last())
}

/// A report of either family, as far as it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    metadata: Metadata,
    scope: Option<Scope>,
    results: Option<Vec<Line>>,
    report: Option<Sheet>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    owner_references: Option<Vec<crate::workload::Owner>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Scope {
    kind: String,
    name: String,
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    policy: String,
    category: String,
    severity: Option<String>,
    result: String,
    message: String,
    properties: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sheet {
    checks: Option<Vec<Checked>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Checked {
    #[serde(rename = "checkID")]
    check_id: String,
    title: String,
    severity: String,
    messages: Option<Vec<String>>,
    remediation: String,
    success: bool,
    error: bool,
    exception: Option<serde_json::Value>,
    scope: Option<Part>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    value: String,
}

impl Written {
    fn is_about(&self, kind: &str, name: &str, uid: &str) -> bool {
        let mut owners = self.metadata.owner_references.iter().flatten();
        owners.any(|owner| match uid.is_empty() {
            true => owner.kind == kind && owner.name == name,
            false => owner.uid == uid,
        })
    }

    fn audit(self, longest: Option<usize>) -> Audit {
        let mut owners = self.metadata.owner_references.into_iter().flatten();
        let scope = self.scope.or_else(|| {
            owners.next().map(|owner| Scope {
                kind: owner.kind,
                name: owner.name,
                uid: owner.uid,
            })
        });
        let scope = scope.unwrap_or_default();
        let mut audit = Audit {
            kind: scope.kind,
            namespace: self.metadata.namespace,
            name: scope.name,
            uid: scope.uid,
            failures: Vec::new(),
            passed: 0,
        };
        for line in self.results.into_iter().flatten() {
            match line.result.as_str() {
                "fail" | "warn" | "error" => audit.failures.push(line.failure(longest)),
                "pass" => audit.passed += 1,
                _ => {}
            }
        }
        for check in self
            .report
            .and_then(|sheet| sheet.checks)
            .into_iter()
            .flatten()
        {
            match check.success || check.exception.is_some() {
                true => audit.passed += 1,
                false => audit.failures.push(check.failure(longest)),
            }
        }
        audit
            .failures
            .sort_by(|a, b| (b.severity, &a.id, &a.part).cmp(&(a.severity, &b.id, &b.part)));
        audit
    }
}

impl Line {
    fn failure(self, longest: Option<usize>) -> Failure {
        let properties = self.properties.unwrap_or_default();
        let name = properties.get("policy-name").cloned();
        Failure {
            family: Family::Policy,
            title: name.unwrap_or_else(|| self.category.clone()),
            id: self.policy,
            severity: rated(self.severity.as_deref().unwrap_or_default()),
            is_error: self.result == "error",
            message: cut(self.message, longest),
            remediation: String::new(),
            part: String::new(),
        }
    }
}

impl Checked {
    fn failure(self, longest: Option<usize>) -> Failure {
        Failure {
            family: Family::Check,
            id: self.check_id,
            title: self.title,
            severity: rated(&self.severity),
            is_error: self.error,
            message: cut(self.messages.unwrap_or_default().join("; "), longest),
            remediation: cut(self.remediation, longest),
            part: self.scope.map(|scope| scope.value).unwrap_or_default(),
        }
    }
}

fn cut(mut text: String, longest: Option<usize>) -> String {
    let Some(longest) = longest.filter(|longest| text.len() > *longest) else {
        return text;
    };
    let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or_default());
    text.push('…');
    text
}
