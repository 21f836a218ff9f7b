//! Matching many bills with the same data. Bills share most of their packages, so what is read from
//! the database is taken apart once, and what holds for one version of a package is found once.
//! Many threads use one batch.

use super::distribution;
use super::end_of_life;
use super::language::{self, Ranges};
use super::{Finding, Findings, Match};
use crate::image::Component;
use crate::package::{Detector, Ecosystem};
use crate::sbom::Bill;
use crate::third_party;
use crate::vulnerability::severity::choose;
use crate::vulnerability::{Advisory, Database, DatabaseError, Status, Stream, Vulnerability};
use jiff::Timestamp;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

const SHARDS: usize = 32;
/// How many names a shard remembers, and versions a name: a bill may be made up.
const MAX_NAMES: usize = 32_768;
const MAX_VERSIONS: usize = 1024;

/// Packages of one shard, by stream and name.
type Names = HashMap<Stream, HashMap<String, Arc<Known>>>;

/// Data that many bills are matched with.
pub struct Batch<'a> {
    database: &'a dyn Database,
    now: Option<Timestamp>,
    names: Vec<RwLock<Names>>,
    vulnerabilities: Vec<RwLock<HashMap<String, Arc<Vulnerability>>>>,
}

/// What is known about a package in a stream.
struct Known {
    advisories: Vec<Advisory>,
    /// Those of a language have ranges, in the same order.
    ranges: Vec<Ranges>,
    matches: Vec<OnceLock<Arc<Match>>>,
    /// What holds for a version, by it and whatever else counts.
    answers: RwLock<HashMap<String, Arc<[Arc<Match>]>>>,
}

/// How the components of one bill are matched.
enum Rules<'a> {
    Distribution(&'a distribution::Rules),
    Language(language::Rules),
}

/// The rules for a bill, each made once.
struct Plan {
    distribution: Result<distribution::Rules, String>,
    languages: HashMap<Ecosystem, Option<language::Rules>>,
}

impl<'a> Batch<'a> {
    /// Without a time the age of the data stands for it, so that the same bill and data always
    /// yield the same.
    pub fn new(database: &'a dyn Database, now: Option<Timestamp>) -> Self {
        let age = || database.metadata().updated_at.as_deref()?.parse().ok();
        Batch {
            now: now.or_else(age),
            names: (0..SHARDS).map(|_| RwLock::default()).collect(),
            vulnerabilities: (0..SHARDS).map(|_| RwLock::default()).collect(),
            database,
        }
    }

    /// Matches a bill.
    pub fn find(&self, bill: &Bill) -> Result<Findings, DatabaseError> {
        let mut found = Findings {
            end_of_life: bill
                .os
                .as_ref()
                .and_then(|os| end_of_life::of(os, self.now)),
            ..Findings::default()
        };
        let mut plan = self.plan(bill)?;
        for (place, component) in bill.components.iter().enumerate() {
            let rules = match plan.rules(component) {
                Ok(Some(rules)) => rules,
                Ok(None) => continue,
                Err(note) => {
                    found.notes.push(note);
                    continue;
                }
            };
            for matched in self.component(component, &rules)?.iter() {
                found.findings.push(Finding {
                    component: place,
                    matched: matched.clone(),
                });
            }
        }
        found.notes.sort();
        found.notes.dedup();
        Ok(found)
    }

    fn plan(&self, bill: &Bill) -> Result<Plan, DatabaseError> {
        let is_os = |component: &Component| component.detector.is_os();
        let distribution = match &bill.os {
            _ if !bill.components.iter().any(is_os) => Err(String::new()),
            Some(os) => distribution::rules(os, self.database, self.now)?,
            None => Err("no distribution is known for the packages of a package manager".into()),
        };
        Ok(Plan {
            distribution,
            languages: HashMap::new(),
        })
    }

    fn component(
        &self,
        component: &Component,
        rules: &Rules,
    ) -> Result<Arc<[Arc<Match>]>, DatabaseError> {
        let package = &component.package;
        let name = match rules {
            Rules::Distribution(rules) => rules.name(package),
            Rules::Language(rules) => rules.name(package),
        };
        let Some(name) = name else {
            return Ok(Arc::default());
        };
        let known = match rules {
            Rules::Distribution(distribution) => self.known(distribution.stream(), &name, rules),
            Rules::Language(language) => self.known(&language.stream(), &name, rules),
        }?;
        if known.advisories.is_empty() {
            return Ok(Arc::default());
        }
        let question = match rules {
            Rules::Distribution(rules) => rules.question(component),
            Rules::Language(_) => package.version.clone(),
        };
        if let Some(answer) = read(&known.answers).get(&question) {
            return Ok(answer.clone());
        }
        let places = match rules {
            Rules::Distribution(rules) => rules.matched(component, &known.advisories),
            Rules::Language(rules) => {
                let hits = |place: &usize| rules.hits(&known.ranges[*place], &package.version);
                (0..known.ranges.len()).filter(hits).collect()
            }
        };
        let mut answer = Vec::with_capacity(places.len());
        for place in places {
            answer.push(self.matched(&known, place)?);
        }
        // Where two advisories speak of one vulnerability, the higher text of a fix counts.
        answer.sort_by(|left: &Arc<Match>, right| {
            let order = left.id.cmp(&right.id);
            order.then_with(|| right.fixed_text().cmp(&left.fixed_text()))
        });
        answer.dedup_by(|left, right| left.id == right.id);
        let answer: Arc<[Arc<Match>]> = answer.into();
        let mut answers = write(&known.answers);
        if answers.len() < MAX_VERSIONS {
            answers.insert(question, answer.clone());
        }
        Ok(answer)
    }

    fn known(
        &self,
        stream: &Stream,
        name: &str,
        rules: &Rules,
    ) -> Result<Arc<Known>, DatabaseError> {
        let shard = &self.names[shard(name)];
        if let Some(known) = read(shard).get(stream).and_then(|names| names.get(name)) {
            return Ok(known.clone());
        }
        let mut advisories = self.database.advisories(stream, name)?;
        let mut ranges = Vec::new();
        match rules {
            Rules::Distribution(rules) => {
                for advisory in &mut advisories {
                    rules.read(advisory);
                }
            }
            Rules::Language(rules) => {
                language::Rules::last_sources(&mut advisories);
                ranges = advisories.iter().map(|one| rules.ranges(one)).collect();
            }
        }
        let known = Arc::new(Known {
            matches: advisories.iter().map(|_| OnceLock::new()).collect(),
            answers: RwLock::default(),
            advisories,
            ranges,
        });
        let mut names = write(shard);
        let names = names.entry(stream.clone()).or_default();
        if names.len() < MAX_NAMES {
            names.insert(name.to_owned(), known.clone());
        }
        Ok(known)
    }

    /// What an advisory makes of every package that it hits.
    fn matched(&self, known: &Known, place: usize) -> Result<Arc<Match>, DatabaseError> {
        if let Some(matched) = known.matches[place].get() {
            return Ok(matched.clone());
        }
        let advisory = &known.advisories[place];
        let vulnerability = self.vulnerability(&advisory.id)?;
        let (severity, severity_source) = choose(advisory, &vulnerability);
        let fixed_versions = match advisory.fixed_version.as_str() {
            "" => language::fixed_versions(advisory),
            fixed => vec![fixed.to_owned()],
        };
        let status = match advisory.status {
            _ if !fixed_versions.is_empty() => Status::Fixed,
            Status::Unknown => Status::Affected,
            status => status,
        };
        let matched = Match {
            id: advisory.id.clone(),
            fixed_versions,
            status,
            severity,
            severity_source,
            vulnerability,
        };
        Ok(known.matches[place].get_or_init(|| matched.into()).clone())
    }

    fn vulnerability(&self, id: &str) -> Result<Arc<Vulnerability>, DatabaseError> {
        let shard = &self.vulnerabilities[shard(id)];
        if let Some(known) = read(shard).get(id) {
            return Ok(known.clone());
        }
        let known = Arc::new(self.database.vulnerability(id)?.unwrap_or_default());
        write(shard).insert(id.to_owned(), known.clone());
        Ok(known)
    }
}

impl Plan {
    /// The rules for a component; nothing where it is none to be judged, a note where it cannot be.
    fn rules(&mut self, component: &Component) -> Result<Option<Rules<'_>>, String> {
        if let Some(note) = excluded(component) {
            return Err(note);
        }
        if component.package.name == "gpg-pubkey" && component.detector == Detector::Rpm {
            return Ok(None);
        }
        if component.detector.is_os() {
            return match &self.distribution {
                Ok(rules) => Ok(Some(Rules::Distribution(rules))),
                Err(note) => Err(note.clone()),
            };
        }
        let ecosystem = component.detector.ecosystem();
        let rules = self.languages.entry(ecosystem);
        match rules.or_insert_with(|| language::rules(ecosystem)) {
            Some(rules) => Ok(Some(Rules::Language(*rules))),
            None => Err(format!(
                "packages of type {} are not matched",
                ecosystem.purl_type()
            )),
        }
    }
}

/// Why the advisories of the distribution do not speak of a package.
pub(super) fn excluded(component: &Component) -> Option<String> {
    let package = &component.package;
    let vendor = package.vendor.as_deref();
    let is_foreign = match component.detector {
        Detector::Dpkg => third_party::is_one(vendor),
        // A bill that another tool wrote, or a list without vendors, says nothing about them.
        Detector::Rpm if !component.path.is_empty() && !component.path.contains("rpmmanifest") => {
            third_party::is_vendor(vendor, &package.version)
        }
        _ => false,
    };
    is_foreign.then(|| {
        let name = &package.name;
        format!("{name} is not of the distribution, whose advisories leave it out")
    })
}

fn shard(name: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    (hasher.finish() % SHARDS as u64) as usize
}

/// What is behind the locks is whole at any time, whoever panicked while holding them.
fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
