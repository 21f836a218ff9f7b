//! One policy, ready to judge: what its rules say of an object becomes findings. Both contracts are
//! kept: conftest's (`deny`, `violation` and `warn`, with any ending, and `exception`) and Trivy's (`deny`,
//! with what METADATA or `__rego_metadata__` tell of it). A policy that could not be asked is a finding
//! too, so that nobody takes it for kept.

use crate::check::{Description, Exemption, Finding, Outcome, Place, Severity};
use crate::exception::clip;
use crate::kinds::Kind;
use muster_rego::{AskError, Limits, LoadError, Metadata, Module, Owner, Program, Subtype, Value};
use std::collections::{BTreeMap, BTreeSet};

#[doc(hidden)]
pub use muster_rego::occupy;

/// The longest message, in bytes.
const LONGEST: usize = 1_000;
/// The longest description of a check, in bytes.
const LONGEST_DESCRIPTION: usize = 4_000;
/// The most results of one policy about one object.
const MOST: usize = 200;
/// The most messages of one finding.
const MOST_MESSAGES: usize = 50;
/// The category of a check that names none.
const CATEGORY: &str = "Kubernetes Security Check";
/// The places that a report knows.
const PLACES: [&str; 3] = ["Container", "ConfigMapKey", "JSONPath"];

/// A policy, ready to judge.
#[derive(Debug)]
pub struct Check {
    program: Program,
    description: Description,
    /// Whether the policy itself says how bad it is to fail it.
    is_rated: bool,
    rules: Vec<Rule>,
}

/// A rule whose results are findings.
#[derive(Debug)]
struct Rule {
    name: String,
    is_warning: bool,
    /// What exceptions call it: what follows `deny_`.
    ending: String,
}

/// Why a policy cannot judge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It is no Rego, or none that can be run.
    #[error(transparent)]
    Rego(#[from] LoadError),
    /// It has nothing to say.
    #[error("it has none of the rules `deny`, `violation` and `warn`")]
    NoRule,
}

impl CheckError {
    /// Whether the policy may load when it is tried again as it is.
    pub fn is_temporary(&self) -> bool {
        matches!(self, CheckError::Rego(LoadError::Unavailable(_)))
    }
}

/// The rule that lets results of others pass.
const EXCEPTION: &str = "exception";

/// The owner of all configuration checks: tenants do not write them.
pub const OWNER: Owner = Owner::Installation("configuration checks");

impl Check {
    /// Makes a policy ready; `name` is what it is called where it is written.
    pub fn load(name: &str, text: &str, libraries: &[Module]) -> Result<Check, CheckError> {
        Check::load_for(OWNER, name, text, libraries)
    }

    fn load_for(
        owner: Owner,
        name: &str,
        text: &str,
        libraries: &[Module],
    ) -> Result<Check, CheckError> {
        // Whoever tells what is wrong with it says which one it is.
        let policy = Module { name: "", text };
        let limits = Limits {
            owner,
            ..Limits::default()
        };
        let program = Program::load(policy, libraries, &[EXCEPTION], limits)?;
        let mut rules: Vec<Rule> = program.rules().filter_map(Rule::read).collect();
        if rules.is_empty() {
            return Err(CheckError::NoRule);
        }
        rules.sort_by(|one, other| one.name.cmp(&other.name));
        let metadata = program.metadata();
        Ok(Check {
            description: describe(name, metadata),
            is_rated: rating(metadata).is_some(),
            rules,
            program,
        })
    }

    /// The kinds that the policy says it is about.
    pub fn kinds(&self) -> Option<&str> {
        self.program.metadata().kinds.as_deref()
    }

    /// What people are told of it.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Whether its own words mean a kind, in whichever namespace.
    pub fn is_about(&self, kind: &Kind) -> bool {
        self.means(kind, |_| true)
    }

    /// Whether its own words mean a kind in a namespace.
    fn is_about_in(&self, kind: &Kind, namespace: &str) -> bool {
        self.means(kind, |wanted| is_same(&wanted.namespace, namespace))
    }

    /// Whether any of its selectors means a kind; without selectors it means every one.
    fn means(&self, kind: &Kind, is_there: impl Fn(&Subtype) -> bool) -> bool {
        let selectors = &self.program.metadata().selectors;
        let is_meant = |wanted: &Subtype| {
            let mut versions = kind.versions.iter();
            is_same(&wanted.kind, &kind.kind)
                && is_same(&wanted.group, &kind.group)
                && (wanted.version.is_none()
                    || versions.any(|version| is_same(&wanted.version, version)))
                && is_there(wanted)
        };
        let mut kubernetes = selectors
            .iter()
            .filter(|selector| selector.kind_of_input.eq_ignore_ascii_case("kubernetes"));
        selectors.is_empty()
            || kubernetes.any(|selector| {
                selector.subtypes.is_empty() || selector.subtypes.iter().any(is_meant)
            })
    }

    /// What the policy says of an object: one finding for each place, or one that all is well.
    pub fn judge(&self, input: &Value, kind: &Kind, namespace: Option<&str>) -> Vec<Finding> {
        if !self.is_about_in(kind, namespace.unwrap_or_default()) {
            return Vec::new();
        }
        let names = self.rules.iter().map(|rule| rule.name.as_str());
        let names: Vec<&str> = names.chain([EXCEPTION]).collect();
        let mut values = match self.program.ask(input.clone(), &names) {
            Ok(values) => values,
            Err(error) => {
                let (outcome, why) = match error {
                    AskError::Unavailable(why) => {
                        (Outcome::NotEvaluated, format!("not evaluated yet: {why}"))
                    }
                    error => (Outcome::Error, format!("could not be evaluated: {error}")),
                };
                return vec![self.finding(outcome, vec![clip(&why, LONGEST).into()])];
            }
        };
        let excepted = values
            .pop()
            .map(|value| endings(&value))
            .unwrap_or_default();
        let values = self.rules.iter().zip(&values);
        let results = values.flat_map(|(rule, value)| {
            let results = results(value);
            results.map(move |result| (rule, result))
        });
        let mut said = Said::default();
        for (rule, result) in results.take(MOST) {
            said.add(self.read(rule, &excepted, result));
        }
        match said.0.is_empty() {
            true => vec![self.finding(Outcome::Pass, Vec::new())],
            false => said.findings(),
        }
    }

    fn finding(&self, outcome: Outcome, messages: Vec<String>) -> Finding {
        Finding {
            check: self.description.clone(),
            place: None,
            outcome,
            messages,
        }
    }

    /// What one result says.
    fn read(&self, rule: &Rule, excepted: &BTreeSet<String>, result: &Value) -> Finding {
        let outcome = match excepted.contains(&rule.ending) {
            true => Outcome::Exempt(Exemption {
                reason: "an exception of the policy".into(),
                until: None,
                by: "policy".into(),
            }),
            false => Outcome::Fail,
        };
        let told = field(result, "msg").or_else(|| field(result, "message"));
        let message = match (told, result) {
            (Some(message), _) => message.to_owned(),
            (None, Value::Bool(true)) => "the object is refused".into(),
            // One value may be in another many times, so it is not written out before it is clipped.
            (None, other) => muster_rego::show(other, LONGEST),
        };
        let mut finding = self.finding(outcome, vec![clip(&message, LONGEST).into()]);
        let check = &mut finding.check;
        if !self.is_rated && rule.is_warning {
            check.severity = Severity::Low;
        }
        for (key, into) in [
            ("id", &mut check.id),
            ("title", &mut check.title),
            ("description", &mut check.description),
            ("remediation", &mut check.remediation),
        ] {
            if let Some(text) = field(result, key) {
                *into = clip(text, LONGEST).into();
            }
        }
        let severity = field(result, "severity");
        if let Some(severity) = severity.and_then(Severity::read) {
            check.severity = severity;
        }
        finding.place = place(result);
        finding
    }
}

impl Rule {
    fn read(name: &str) -> Option<Rule> {
        let (word, ending) = name.split_once('_').unwrap_or((name, ""));
        matches!(word, "deny" | "violation" | "warn").then(|| Rule {
            name: name.into(),
            is_warning: word == "warn",
            ending: ending.into(),
        })
    }
}

/// What was said, one finding for each check and place, and how many messages of it are left out.
#[derive(Default)]
struct Said(BTreeMap<(String, Option<Place>, bool), (Finding, usize)>);

impl Said {
    fn add(&mut self, finding: Finding) {
        let key = (
            finding.check.id.clone(),
            finding.place.clone(),
            finding.is_failure(),
        );
        match self.0.get_mut(&key) {
            Some((known, more)) => {
                for message in finding.messages {
                    match known.messages.contains(&message) {
                        true => {}
                        false if known.messages.len() < MOST_MESSAGES => {
                            known.messages.push(message);
                        }
                        false => *more += 1,
                    }
                }
            }
            None => {
                self.0.insert(key, (finding, 0));
            }
        }
    }

    fn findings(self) -> Vec<Finding> {
        let said = self.0.into_values();
        said.map(|(mut finding, more)| {
            if more > 0 {
                finding.messages.push(format!("… and {more} more"));
            }
            finding
        })
        .collect()
    }
}

/// Selectors write names as they like, and what they do not name is any.
fn is_same(wanted: &Option<String>, is: &str) -> bool {
    let wanted = wanted.as_ref();
    wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(is))
}

/// What is told of a policy; what it does not say follows from its name.
fn describe(name: &str, metadata: &Metadata) -> Description {
    let text = |text: &Option<String>, most: usize| {
        let text = text.as_deref();
        text.map(|text| clip(text, most).to_owned())
    };
    let long = |one: &Option<String>| text(one, LONGEST_DESCRIPTION).unwrap_or_default();
    Description {
        id: text(&metadata.id, LONGEST).unwrap_or_else(|| name.to_owned()),
        title: text(&metadata.title, LONGEST).unwrap_or_else(|| name.replace('_', " ")),
        description: long(&metadata.description),
        severity: rating(metadata).unwrap_or(Severity::Critical),
        category: text(&metadata.category, LONGEST).unwrap_or_else(|| CATEGORY.into()),
        remediation: long(&metadata.remediation),
    }
}

fn rating(metadata: &Metadata) -> Option<Severity> {
    metadata.severity.as_deref().and_then(Severity::read)
}

/// The results that the value of a rule is made of. What these are made of in turn is nobody's business:
/// a value of forty lines can hold another as often as there are atoms.
fn results(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    let all: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Set(items) => Box::new(items.iter()),
        Value::Array(items) => Box::new(items.iter()),
        // `deny[message] if …` of Rego v1 makes an object of messages and of whether they hold.
        Value::Object(fields) if !fields.contains_key(&"msg".into()) && is_flagged(value) => {
            let held = fields
                .iter()
                .filter(|(_, holds)| **holds == Value::Bool(true));
            Box::new(held.map(|(result, _)| result))
        }
        other => Box::new(std::iter::once(other)),
    };
    Box::new(all.filter(|one| !matches!(one, Value::Undefined | Value::Null | Value::Bool(false))))
}

fn is_flagged(value: &Value) -> bool {
    let Value::Object(fields) = value else {
        return false;
    };
    let mut flags = fields.values();
    flags.all(|flag| matches!(flag, Value::Bool(_)))
}

/// The endings that are excepted: `exception contains ["a", "b"]`.
fn endings(value: &Value) -> BTreeSet<String> {
    let all = results(value).flat_map(results).take(MOST);
    let texts = all.filter_map(|one| match one {
        Value::String(text) => Some(text.to_string()),
        _ => None,
    });
    texts.collect()
}

fn field<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    let Value::Object(fields) = value else {
        return None;
    };
    match fields.get(&name.into())? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Where a result is: it says so, or names the container it is about.
fn place(result: &Value) -> Option<Place> {
    let Value::Object(fields) = result else {
        return None;
    };
    let place = |sort: &str, value: &str| Place {
        sort: sort.into(),
        value: clip(value, LONGEST).into(),
    };
    if let Some(scope) = fields.get(&"scope".into()) {
        let (sort, value) = (field(scope, "type")?, field(scope, "value")?);
        return PLACES.contains(&sort).then(|| place(sort, value));
    }
    if let Some(name) = field(result, "container") {
        return Some(place("Container", name));
    }
    let cause = fields.get(&"cause".into())?;
    let name = field(cause, "image").and(field(cause, "name"))?;
    Some(place("Container", name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Basis, Hashes, Subject, Writing, incomplete, report};

    #[test]
    fn what_was_not_evaluated_is_no_result_and_is_evaluated_once_there_is_room() {
        let owner = Owner::Installation("a test");
        let text = "package main\nimport rego.v1\ndeny contains \"too much\" if true";
        let check = Check::load_for(owner.clone(), "named", text, &[]).unwrap();
        let pod = Kind::parse("v1", "Pod");
        let judge = || check.judge(&Value::new_object(), &pod, None);
        let hashes = Hashes {
            spec: "s".into(),
            config: "c".into(),
        };
        let written = |findings: &[Finding]| {
            let why = incomplete(findings);
            let basis = match &why {
                Some(why) => Basis::Incomplete(why),
                None => Basis::Complete(&hashes),
            };
            let writing = Writing {
                basis,
                version: "1",
                now: "2026-06-15T12:00:00Z",
                all: false,
            };
            report(&Subject::default(), findings, &writing)
        };
        let occupied = muster_rego::occupy(&owner);
        let refused = judge();
        drop(occupied);
        let evaluated = judge();
        assert_eq!(refused[0].outcome, Outcome::NotEvaluated);
        assert_eq!(evaluated[0].outcome, Outcome::Fail);
        let (refused, evaluated) = (written(&refused), written(&evaluated));
        let labels = |report: &serde_json::Value| {
            let labels = report["metadata"]["labels"].clone();
            Hashes::read(&serde_json::from_value(labels).unwrap())
        };
        // Without hashes it is not taken for a report that is right.
        assert_eq!(labels(&refused), None);
        assert_eq!(labels(&evaluated), Some(hashes.clone()));
        let stale = |report: &serde_json::Value| {
            let annotations = &report["metadata"]["annotations"];
            annotations[crate::report::STALE]
                .as_str()
                .map(str::to_owned)
        };
        let why = stale(&refused).unwrap();
        assert!(why.starts_with("named: not evaluated yet: "), "{why}");
        assert_eq!(stale(&evaluated), None);
        assert_eq!(refused["report"]["summary"]["errorCount"], 1);
        assert_eq!(refused["report"]["checks"][0]["error"], true);
        assert_eq!(evaluated["report"]["summary"]["errorCount"], 0);
    }
}
