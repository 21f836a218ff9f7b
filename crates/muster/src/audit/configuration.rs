//! Configuration checks: what is in force, which sheet judges which kind, and what one says of an object.
//! Everything is decided where the audit that never ends decides it, so both say the same. Of what is said
//! only what is not well is kept, and what is told of a check is kept once, however many objects fail it.

use super::judge::Job;
use super::sources::called;
use jiff::Timestamp;
use muster_checks::check::{Description, Exemption};
use muster_checks::force::{Choice, Sources};
use muster_checks::report::{Basis, Hashes, Subject, Writing, incomplete, report};
use muster_checks::{Finding, Force, Kind, Outcome, Place, PolicyId, Severity, Sheet, Trouble};
use muster_checks::{sheet, subject};
use muster_policy::Served;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// So many descriptions of one check are kept: a policy may write another for every object.
const MOST_DESCRIPTIONS: usize = 16;

/// The checks in force, ready to judge.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    force: Force,
    /// By group and kind.
    desks: HashMap<(String, String), Desk>,
    described: Mutex<HashMap<String, Vec<Arc<Description>>>>,
    settings: Settings,
}

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Which checks of ours are wanted, and which none at all.
    pub(super) choice: Choice,
    /// Objects with one of these labels are left alone.
    pub(super) skip_labels: BTreeSet<String>,
    /// Whether exceptions count that are annotations of objects.
    pub(super) exceptions: bool,
    /// When it is judged: exceptions end.
    pub(super) now: Timestamp,
}

/// A kind, and what judges it.
#[derive(Debug)]
struct Desk {
    kind: Kind,
    sheet: Arc<Sheet>,
}

/// What was said of an object.
#[derive(Debug)]
pub(super) struct Checked {
    hashes: Hashes,
    /// Which checks were not evaluated and why, if there are any.
    incomplete: Option<String>,
    /// How many checks it keeps.
    pub(super) passed: usize,
    /// What others say, the worst first.
    pub(super) said: Vec<Said>,
}

/// What came of one check at one place, other than that all is well.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) check: Arc<Description>,
    pub(super) place: Option<Place>,
    pub(super) result: CheckResult,
    pub(super) messages: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckResult {
    Fail,
    Exempt(Exemption),
    Error,
}

impl Configuration {
    /// Takes up what is written; `served` is all that there is.
    pub(super) fn new(sources: &Sources, served: &[Served], settings: Settings) -> Configuration {
        let kinds: Vec<Kind> = served.iter().map(kind).collect();
        let mut force = Force::default();
        force.update(sources, &kinds, &settings.choice);
        let audited = served.iter().zip(&kinds);
        let audited = audited.filter(|(served, _)| served.is_audited());
        let desks = audited.filter_map(|(_, kind)| {
            let sheet = Arc::new(Sheet::of(&force, kind, &kinds)?);
            let kind = kind.clone();
            Some((
                (kind.group.clone(), kind.kind.clone()),
                Desk { kind, sheet },
            ))
        });
        Configuration {
            desks: desks.collect(),
            force,
            described: Mutex::default(),
            settings,
        }
    }

    /// What cannot be used, as people are told.
    pub(super) fn troubles(&self) -> impl Iterator<Item = String> {
        self.force.troubles().iter().map(told)
    }

    /// The checks to leave out that do not exist: neither built in nor in a ConfigMap that was read.
    pub(super) fn unknown(&self) -> Vec<&str> {
        let builtin = muster_checks::builtin::POLICIES;
        let is_builtin = |name: &str| {
            builtin
                .iter()
                .any(|one| one.name == name || one.id() == name)
        };
        let unused = self.force.unused().iter().map(String::as_str);
        unused
            .filter(|name| !name.is_empty() && !is_builtin(name))
            .collect()
    }

    /// How many checks there are.
    pub(super) fn count(&self) -> usize {
        self.force.policies().count()
    }

    /// What is told of every check in force, by where it is written.
    pub(super) fn descriptions(&self) -> impl Iterator<Item = &Description> {
        let policies = self.force.policies();
        policies.map(|accepted| accepted.check.description())
    }

    /// Whether there is a check about a resource.
    pub(super) fn is_about(&self, served: &Served) -> bool {
        let key = (served.group.clone(), served.kind.clone());
        served.is_audited() && self.desks.contains_key(&key)
    }

    /// What checks say of an object, if it is judged at all.
    pub(super) fn check(&self, job: &Job) -> Option<Checked> {
        let served = &*job.served;
        // Of an object that comes in several versions the one that is preferred is judged.
        let preferred = served.versions.first().map(String::as_str);
        if job.version.is_some() && job.version.as_deref() != preferred {
            return None;
        }
        let desk = self.desk(&served.group, &served.kind)?;
        let (settings, now) = (&self.settings, self.settings.now);
        // A manifest may say that somebody else makes it, but nobody does: it is what will be applied.
        let is_made = job.origin.is_none();
        let sheet_of = |owner: &Kind| {
            let desk = self.desk(&owner.group, &owner.kind);
            Some(desk.filter(|_| is_made)?.sheet.clone())
        };
        let (kind, labels) = (&desk.kind, &settings.skip_labels);
        let left = subject::is_left(&job.object, kind, &desk.sheet, labels, sheet_of);
        if left.is_some() {
            return None;
        }
        let object = sheet::Object::new(job.object.clone(), settings.exceptions);
        let findings = desk.sheet.judge(kind, &object, now);
        let mut checked = Checked {
            incomplete: incomplete(&findings),
            hashes: Hashes {
                spec: object.hash(now),
                config: desk.sheet.hash().into(),
            },
            passed: 0,
            said: Vec::new(),
        };
        for finding in findings {
            let result = match finding.outcome {
                Outcome::Pass => {
                    checked.passed += 1;
                    continue;
                }
                Outcome::Fail => CheckResult::Fail,
                Outcome::Exempt(exemption) => CheckResult::Exempt(exemption),
                Outcome::Error | Outcome::NotEvaluated => CheckResult::Error,
            };
            checked.said.push(Said {
                check: self.described(finding.check),
                place: finding.place,
                result,
                messages: finding.messages,
            });
        }
        Some(checked)
    }

    fn desk(&self, group: &str, kind: &str) -> Option<&Desk> {
        self.desks.get(&(group.to_owned(), kind.to_owned()))
    }

    /// The same description, once.
    fn described(&self, check: Description) -> Arc<Description> {
        let described = self.described.lock();
        let mut described = described.unwrap_or_else(PoisonError::into_inner);
        let known = described.entry(check.id.clone()).or_default();
        if let Some(known) = known.iter().find(|known| ***known == check) {
            return known.clone();
        }
        let check = Arc::new(check);
        if known.len() < MOST_DESCRIPTIONS {
            known.push(check.clone());
        }
        check
    }
}

impl Checked {
    /// The report that a cluster would have; `now` is as reports write it.
    pub(super) fn report(&self, subject: &muster_policy::report::Subject, now: &str) -> Value {
        let subject = Subject {
            api_version: subject.api_version.clone(),
            kind: subject.kind.clone(),
            namespace: subject.namespace.clone(),
            name: subject.name.clone(),
            uid: subject.uid.clone(),
        };
        let findings: Vec<Finding> = self.said.iter().map(Said::finding).collect();
        let writing = Writing {
            basis: match &self.incomplete {
                Some(why) => Basis::Incomplete(why),
                None => Basis::Complete(&self.hashes),
            },
            version: env!("CARGO_PKG_VERSION"),
            now,
            // What passes is not told there either, unless somebody asks for it.
            all: false,
        };
        report(&subject, &findings, &writing)
    }
}

impl Said {
    fn finding(&self) -> Finding {
        Finding {
            check: Description::clone(&self.check),
            place: self.place.clone(),
            outcome: match &self.result {
                CheckResult::Fail => Outcome::Fail,
                CheckResult::Exempt(exemption) => Outcome::Exempt(exemption.clone()),
                CheckResult::Error => Outcome::Error,
            },
            messages: self.messages.clone(),
        }
    }

    /// Whether it is wrong, or nobody knows.
    pub(super) fn is_refusal(&self) -> bool {
        !matches!(self.result, CheckResult::Exempt(_))
    }

    /// How bad it is to fail it, in the words of policies.
    pub(super) fn severity(&self) -> Option<&'static str> {
        severity(&self.check)
    }

    /// What is wrong, and where, if the messages do not say so.
    pub(super) fn why(&self) -> String {
        let why = self.messages.join("; ");
        match &self.place {
            Some(place) if !why.contains(&place.value) => format!("{}: {why}", place.value),
            _ => why,
        }
    }
}

/// How bad it is to fail a check, in the words of policies.
pub(super) fn severity(check: &Description) -> Option<&'static str> {
    Some(match check.severity {
        Severity::Critical => "critical",
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
        Severity::Unknown => return None,
    })
}

/// A resource as checks know it.
pub(super) fn kind(served: &Served) -> Kind {
    Kind {
        group: served.group.clone(),
        kind: served.kind.clone(),
        versions: served.versions.clone(),
    }
}

fn told((id, trouble): (&PolicyId, &Trouble)) -> String {
    let sort = match trouble.is_library {
        true => "library",
        false => "policy",
    };
    let source = called(&id.source);
    match id.name.as_str() {
        "" => format!("{source} cannot be used: {}", trouble.why),
        name => format!("{sort} {name} of {source} cannot be used: {}", trouble.why),
    }
}
