//! The report about one object, as Trivy operator's readers expect it: names, labels, owner, checks with
//! their places, and how many failed by severity. The two hashes it was made from are labels, so that
//! whether it is still right is known without reading it.

use crate::check::{Description, Finding, Outcome, Severity};
use crate::hash;
use crate::kinds;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The label of what an object was when it was judged.
pub const SPEC_HASH: &str = "resource-spec-hash";
/// The label of what the policies were.
pub const CONFIG_HASH: &str = "plugin-config-hash";
/// The labels that say what a report is about.
pub const KIND: &str = "trivy-operator.resource.kind";
/// See [`KIND`].
pub const NAME: &str = "trivy-operator.resource.name";
/// See [`KIND`].
pub const NAMESPACE: &str = "trivy-operator.resource.namespace";
/// In place of [`NAME`], where a name can be no label; the name is an annotation then.
pub const NAME_HASH: &str = "trivy-operator.resource.name-hash";
/// The label with the group of what a report is about, where it is not Kubernetes' own.
pub const GROUP: &str = "audit.kubewarden.io/resource-group";
/// The annotation of a report that may be old, or has no result of some policies: why.
pub const STALE: &str = "audit.kubewarden.io/stale";
/// The label that says who wrote a report.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Who we are.
pub const MANAGER: &str = "muster";
/// The most that all messages of a report may take: an object has to fit into etcd.
const ROOM: usize = 512 * 1024;
/// The identifier of the entry that says how many others there is no room for.
const LEFT_OUT: &str = "left-out";

/// What a report was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// Of the object.
    pub spec: String,
    /// Of the policies about its kind.
    pub config: String,
}

impl Hashes {
    /// What the labels of a report say.
    pub fn read(labels: &BTreeMap<String, String>) -> Option<Hashes> {
        Some(Hashes {
            spec: labels.get(SPEC_HASH)?.clone(),
            config: labels.get(CONFIG_HASH)?.clone(),
        })
    }
}

/// What has to be done about the report of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is right.
    Nothing,
    /// There is none, or it is not right: the object is judged.
    Judge,
    /// There should be none.
    Delete,
}

/// Decides it: `kept` is what the report that is there was made from, `wanted` what one would be made
/// from now, or nothing if nobody has anything to say about the object.
pub fn decide(kept: Option<&Hashes>, wanted: Option<&Hashes>) -> Action {
    match (kept, wanted) {
        (None, None) => Action::Nothing,
        (Some(_), None) => Action::Delete,
        (Some(kept), Some(wanted)) if kept == wanted => Action::Nothing,
        (_, Some(_)) => Action::Judge,
    }
}

/// What a report is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// `apiVersion` of the object.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
}

impl Subject {
    fn group(&self) -> &str {
        let group = self
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        if kinds::is_native(group) { "" } else { group }
    }

    /// What its report is called: readable, and nobody else's report is called so.
    pub fn report_name(&self) -> String {
        report_name(self.group(), &self.kind, &self.name)
    }
}

fn report_name(group: &str, kind: &str, name: &str) -> String {
    let kind = kind.to_lowercase();
    let is_label = name.len() <= 63
        && name
            .chars()
            .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    let name = match is_label {
        true => name.to_owned(),
        false => short(name),
    };
    match group {
        "" => format!("{kind}-{name}"),
        // Groups may have kinds of the same name.
        group => format!("{kind}-{name}-{}", short(group)),
    }
}

fn short(text: &str) -> String {
    hash::of([text]).chars().take(10).collect()
}

/// What a report is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis<'w> {
    /// Every policy was evaluated: the report is right as long as these hashes are.
    Complete(&'w Hashes),
    /// Some policies were not evaluated, and why: the report has no hashes, and says so.
    Incomplete(&'w str),
}

/// Which policies were not evaluated and why, if there are any. Such findings are no result.
pub fn incomplete(findings: &[Finding]) -> Option<String> {
    let mut missing = findings
        .iter()
        .filter(|finding| finding.outcome == Outcome::NotEvaluated);
    let first = missing.next()?;
    let why = first.messages.join("; ");
    let more = match missing.count() {
        0 => String::new(),
        more => format!("; {more} more policies were not evaluated"),
    };
    Some(format!("{}: {why}{more}", first.check.id))
}

/// What is written beside the findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writing<'w> {
    /// What the report is made from.
    pub basis: Basis<'w>,
    /// The version of the program.
    pub version: &'w str,
    /// When, as reports write it.
    pub now: &'w str,
    /// Whether checks that are kept are told too.
    pub all: bool,
}

/// The report about an object.
pub fn report(subject: &Subject, findings: &[Finding], writing: &Writing) -> Value {
    let kind = match subject.namespace {
        Some(_) => "ConfigAuditReport",
        None => "ClusterConfigAuditReport",
    };
    let mut metadata = Map::new();
    metadata.insert("name".into(), subject.report_name().into());
    if let Some(namespace) = &subject.namespace {
        metadata.insert("namespace".into(), namespace.as_str().into());
    }
    let (mut labels, mut annotations) = names(subject);
    match writing.basis {
        Basis::Complete(hashes) => {
            labels.insert(SPEC_HASH, hashes.spec.clone());
            labels.insert(CONFIG_HASH, hashes.config.clone());
        }
        Basis::Incomplete(why) => {
            annotations.insert(STALE, why.to_owned());
        }
    }
    metadata.insert("labels".into(), json!(labels));
    if !annotations.is_empty() {
        metadata.insert("annotations".into(), json!(annotations));
    }
    let owner = json!([{
        "apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name,
        "uid": subject.uid, "controller": true, "blockOwnerDeletion": false,
    }]);
    metadata.insert("ownerReferences".into(), owner);
    json!({
        "apiVersion": "aquasecurity.github.io/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "report": {
            "updateTimestamp": writing.now,
            "scanner": {"name": "Muster", "vendor": "Muster", "version": writing.version},
            "summary": summary(findings),
            "checks": checks(findings, writing.all),
        },
    })
}

/// Labels and annotations by which a report is found.
fn names(
    subject: &Subject,
) -> (
    BTreeMap<&'static str, String>,
    BTreeMap<&'static str, String>,
) {
    let mut labels = BTreeMap::from([
        (MANAGED_BY, MANAGER.to_owned()),
        (KIND, subject.kind.clone()),
        (NAMESPACE, subject.namespace.clone().unwrap_or_default()),
    ]);
    let mut annotations = BTreeMap::new();
    if !subject.group().is_empty() {
        labels.insert(GROUP, subject.group().into());
    }
    match is_label(&subject.name) {
        true => {
            labels.insert(NAME, subject.name.clone());
        }
        false => {
            labels.insert(NAME_HASH, short(&subject.name));
            annotations.insert(NAME, subject.name.clone());
        }
    }
    (labels, annotations)
}

/// Whether a text can be the value of a label.
fn is_label(text: &str) -> bool {
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && is_end(text.chars().next())
        && is_end(text.chars().last())
}

/// How many checks failed, by severity.
pub fn summary(findings: &[Finding]) -> Value {
    let failed = |severity: Severity| {
        let findings = findings.iter();
        findings
            .filter(|finding| finding.is_failure() && finding.check.severity == severity)
            .count()
    };
    let count = |wanted: fn(&Outcome) -> bool| {
        let findings = findings.iter();
        findings.filter(|finding| wanted(&finding.outcome)).count()
    };
    json!({
        "criticalCount": failed(Severity::Critical),
        "highCount": failed(Severity::High),
        "mediumCount": failed(Severity::Medium),
        "lowCount": failed(Severity::Low),
        "unknownCount": failed(Severity::Unknown),
        "exemptCount": count(|outcome| matches!(outcome, Outcome::Exempt(_))),
        "errorCount": count(Outcome::is_unknown),
    })
}

/// What is told of checks, as far as there is room for it. What is left out is counted.
fn checks(findings: &[Finding], all: bool) -> Vec<Value> {
    let told = findings.iter();
    let told = told.filter(|finding| all || finding.outcome != Outcome::Pass);
    let mut room = ROOM;
    let (mut checks, mut left) = (Vec::new(), Vec::new());
    for finding in told {
        let check = check(finding);
        let size = check.to_string().len();
        match room.checked_sub(size) {
            Some(rest) => {
                room = rest;
                checks.push(check);
            }
            None => left.push(finding),
        }
    }
    if !left.is_empty() {
        checks.push(left_out(&left));
    }
    checks
}

/// The entry that stands for those for which there is no room.
fn left_out(left: &[&Finding]) -> Value {
    let outcome = match left.iter().all(|finding| is_success(finding)) {
        true => Outcome::Pass,
        false => Outcome::Fail,
    };
    let worst = left.iter().map(|finding| finding.check.severity).min();
    check(&Finding {
        check: Description {
            id: LEFT_OUT.into(),
            title: "Checks that are not shown".into(),
            severity: worst.unwrap_or_default(),
            category: "Report".into(),
            ..Description::default()
        },
        place: None,
        outcome,
        messages: vec![format!(
            "the report would be too long: {} more are not shown here; the summary counts them",
            left.len()
        )],
    })
}

fn check(finding: &Finding) -> Value {
    let mut check = json!(finding.check);
    check["success"] = is_success(finding).into();
    if !finding.messages.is_empty() {
        check["messages"] = json!(finding.messages);
    }
    if let Some(place) = &finding.place {
        check["scope"] = json!(place);
    }
    match &finding.outcome {
        Outcome::Exempt(exemption) => check["exception"] = json!(exemption),
        Outcome::Error | Outcome::NotEvaluated => check["error"] = true.into(),
        Outcome::Pass | Outcome::Fail => {}
    }
    check
}

fn is_success(finding: &Finding) -> bool {
    matches!(finding.outcome, Outcome::Pass | Outcome::Exempt(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_name_that_nobody_else_s_has() {
        for (group, kind, name, expected) in [
            (
                "",
                "ReplicaSet",
                "web-78449c65d4",
                "replicaset-web-78449c65d4",
            ),
            ("", "ConfigMap", "kube-root-ca.crt", "configmap-"),
            ("", "ClusterRole", "system:node", "clusterrole-"),
            ("serving.knative.dev", "Service", "web", "service-web-"),
        ] {
            let made = report_name(group, kind, name);
            assert!(made.starts_with(expected), "{made}");
            assert!(
                made.len() <= 253 && made.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "{made}"
            );
        }
        assert_ne!(
            report_name("", "Role", "a.b"),
            report_name("", "Role", "a-b")
        );
    }

    #[test]
    fn a_report_is_judged_by_what_it_was_made_from() {
        let hashes = |spec: &str, config: &str| Hashes {
            spec: spec.into(),
            config: config.into(),
        };
        let (kept, other, policies) = (hashes("a", "b"), hashes("c", "b"), hashes("a", "d"));
        for (there, wanted, action) in [
            (None, None, Action::Nothing),
            (Some(&kept), None, Action::Delete),
            (None, Some(&kept), Action::Judge),
            (Some(&kept), Some(&kept), Action::Nothing),
            (Some(&kept), Some(&other), Action::Judge),
            (Some(&kept), Some(&policies), Action::Judge),
        ] {
            assert_eq!(decide(there, wanted), action, "{there:?} {wanted:?}");
        }
    }

    #[test]
    fn one_check_without_room_hides_no_other() {
        let finding = |id: &str, severity: Severity, outcome: Outcome, size: usize| Finding {
            check: Description {
                id: id.into(),
                severity,
                ..Description::default()
            },
            place: None,
            outcome,
            messages: vec!["x".repeat(size)],
        };
        let (high, low) = (Severity::High, Severity::Low);
        let (fail, pass) = (|| Outcome::Fail, || Outcome::Pass);
        for (findings, expected) in [
            (vec![], vec![]),
            (vec![finding("a", high, fail(), 9)], vec!["a HIGH false"]),
            (
                vec![
                    finding("a", high, fail(), ROOM),
                    finding("b", low, fail(), 9),
                    finding("c", low, fail(), ROOM),
                    finding("d", low, pass(), 9),
                ],
                vec!["b LOW false", "d LOW true", "left-out HIGH false"],
            ),
            (
                vec![finding("a", low, pass(), ROOM)],
                vec!["left-out LOW true"],
            ),
            (
                (0..9)
                    .map(|_| finding("a", low, fail(), ROOM / 3))
                    .collect(),
                vec!["a LOW false", "a LOW false", "left-out LOW false"],
            ),
        ] {
            let checks = checks(&findings, true);
            let shown: Vec<String> = checks
                .iter()
                .map(|check| {
                    let text = |key: &str| check[key].as_str().unwrap_or_default();
                    format!(
                        "{} {} {}",
                        text("checkID"),
                        text("severity"),
                        check["success"]
                    )
                })
                .collect();
            assert_eq!(shown, expected);
            assert!(json!(checks).to_string().len() < ROOM + 1_000);
        }
        let many: Vec<Finding> = (0..9)
            .map(|_| finding("a", low, fail(), ROOM / 3))
            .collect();
        let last = checks(&many, true).pop().unwrap();
        let told = last["messages"][0].as_str().unwrap();
        assert!(told.contains(": 7 more are not shown here"), "{told}");
    }
}
