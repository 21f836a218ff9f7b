//! Matching many bills with the same data. Bills share most of their packages, so what is read from
//! the database is taken apart once, and what holds for one version of a package is found once.
//! Many threads use one batch.

use super::distribution;
use super::end_of_life;
use super::language::{self, Ranges};
use super::unmatched::{Collector, Gap, Problem, Reason};
use super::{Finding, Findings, Match};
use crate::image::Component;
use crate::package::{Detector, Ecosystem};
use crate::sbom::Bill;
use crate::third_party;
use crate::vulnerability::severity::choose;
use crate::vulnerability::{Advisory, Database, DatabaseError, Status, Stream, Vulnerability};
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
    /// Whether the data has anything for an ecosystem.
    ecosystems: RwLock<HashMap<Ecosystem, bool>>,
}

/// What is known about a package in a stream.
struct Known {
    advisories: Vec<Advisory>,
    /// Those of a language have ranges, in the same order.
    ranges: Vec<Ranges>,
    matches: Vec<OnceLock<Arc<Match>>>,
    /// What holds for a version, by it and whatever else counts.
    answers: RwLock<HashMap<String, Arc<Answer>>>,
}

/// What holds for one version of a package.
#[derive(Default)]
struct Answer {
    matches: Vec<Arc<Match>>,
    /// Why it could not be compared with every advisory.
    problem: Option<Problem>,
}

/// How the components of one bill are matched.
enum Rules<'a> {
    Distribution(&'a distribution::Rules),
    Language(language::Rules),
}

/// The rules for a bill, each made once.
struct Plan {
    distribution: Result<distribution::Rules, Gap>,
    languages: HashMap<Ecosystem, Result<language::Rules, Gap>>,
}

/// What is to be done with a component.
enum Step<'a> {
    Match(Rules<'a>),
    /// It is no package.
    Skip,
    Gap(Cow<'a, Gap>),
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
            ecosystems: RwLock::default(),
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
        let (mut plan, mut unmatched) = (self.plan(bill)?, Collector::default());
        for (place, component) in bill.components.iter().enumerate() {
            let rules = match self.step(&mut plan, component)? {
                Step::Match(rules) => rules,
                Step::Skip => continue,
                Step::Gap(gap) => {
                    unmatched.add(component, &gap);
                    continue;
                }
            };
            let Some(answer) = self.component(component, &rules)? else {
                continue;
            };
            if let Some(problem) = &answer.problem {
                unmatched.problem(component, problem);
            }
            for matched in &answer.matches {
                found.findings.push(Finding {
                    component: place,
                    matched: matched.clone(),
                });
            }
        }
        unmatched.unsupported(&bill.unsupported);
        found.unmatched = unmatched.finish();
        Ok(found)
    }

    fn plan(&self, bill: &Bill) -> Result<Plan, DatabaseError> {
        let is_os = |component: &Component| component.detector.is_os();
        let distribution = match &bill.os {
            Some(os) if bill.components.iter().any(is_os) => {
                distribution::rules(os, self.database, self.now)?
            }
            _ => {
                let message = "the distribution is not known";
                Err(Gap::new(Reason::NoRules, true, message))
            }
        };
        Ok(Plan {
            distribution,
            languages: HashMap::new(),
        })
    }

    /// What is to be done with a component.
    fn step<'p>(
        &self,
        plan: &'p mut Plan,
        component: &Component,
    ) -> Result<Step<'p>, DatabaseError> {
        if is_foreign(component) {
            return Ok(Step::Gap(Cow::Owned(Gap::foreign())));
        }
        if component.package.name == "gpg-pubkey" && component.detector == Detector::Rpm {
            return Ok(Step::Skip);
        }
        if component.detector.is_os() {
            return Ok(match &plan.distribution {
                Ok(rules) => Step::Match(Rules::Distribution(rules)),
                Err(gap) => Step::Gap(Cow::Borrowed(gap)),
            });
        }
        let rules = match plan.languages.entry(component.detector.ecosystem()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let rules = self.language(*place.key())?;
                place.insert(rules)
            }
        };
        Ok(match rules {
            Ok(rules) => Step::Match(Rules::Language(*rules)),
            Err(gap) => Step::Gap(Cow::Borrowed(gap)),
        })
    }

    /// The rules for an ecosystem; a gap if there are none, or if the data has nothing for it.
    fn language(
        &self,
        ecosystem: Ecosystem,
    ) -> Result<Result<language::Rules, Gap>, DatabaseError> {
        let kind = ecosystem.purl_type();
        let Some(rules) = language::rules(ecosystem) else {
            let message = format!("packages of type {kind} are not supported");
            return Ok(Err(Gap::new(Reason::NoRules, false, message)));
        };
        let known = read(&self.ecosystems).get(&ecosystem).copied();
        let has_data = match known {
            Some(has_data) => has_data,
            None => {
                let has_data = self.database.has(&rules.stream())?;
                write(&self.ecosystems).insert(ecosystem, has_data);
                has_data
            }
        };
        Ok(match has_data {
            true => Ok(rules),
            false => Err(Gap::no_data(format!("{kind} packages"))),
        })
    }

    /// What holds for a component; nothing if the data has no advisory for its package.
    fn component(
        &self,
        component: &Component,
        rules: &Rules,
    ) -> Result<Option<Arc<Answer>>, DatabaseError> {
        let package = &component.package;
        let name = match rules {
            Rules::Distribution(rules) => rules.name(package),
            Rules::Language(rules) => Some(rules.name(package)),
        };
        let Some(name) = name else {
            return Ok(Some(Arc::new(Answer {
                problem: Some(Problem::Module),
                ..Answer::default()
            })));
        };
        let known = match rules {
            Rules::Distribution(distribution) => self.known(distribution.stream(), &name, rules),
            Rules::Language(language) => self.known(&language.stream(), &name, rules),
        }?;
        if known.advisories.is_empty() {
            return Ok(None);
        }
        let question = match rules {
            Rules::Distribution(rules) => rules.question(component),
            Rules::Language(_) => package.version.clone(),
        };
        if let Some(answer) = read(&known.answers).get(&question) {
            return Ok(Some(answer.clone()));
        }
        let (is_version, (places, unclear)) = match rules {
            Rules::Distribution(rules) => (
                rules.is_version(component),
                rules.matched(component, &known.advisories),
            ),
            Rules::Language(rules) => match rules.is_version(&package.version) {
                true => (true, rules.matched(&known.ranges, &package.version)),
                false => (false, Default::default()),
            },
        };
        let problem = match (is_version, unclear) {
            (false, _) => Some(Problem::Version),
            (true, Some(place)) => Some(Problem::Range(known.advisories[place].id.clone())),
            (true, None) => None,
        };
        let mut matches = Vec::with_capacity(places.len());
        for place in places {
            matches.push(self.matched(&known, place)?);
        }
        // Where two advisories speak of one vulnerability, the higher text of a fix counts.
        matches.sort_by(|left: &Arc<Match>, right| {
            let order = left.id.cmp(&right.id);
            order.then_with(|| right.fixed_text().cmp(&left.fixed_text()))
        });
        matches.dedup_by(|left, right| left.id == right.id);
        let answer = Arc::new(Answer { matches, problem });
        let mut answers = write(&known.answers);
        if answers.len() < MAX_VERSIONS {
            answers.insert(question, answer.clone());
        }
        Ok(Some(answer))
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
        let vulnerability = self.vulnerability(advisory)?;
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
            aliases: advisory.aliases().map(str::to_owned).collect(),
            fixed_versions,
            status,
            severity,
            severity_source,
            vulnerability,
        };
        Ok(known.matches[place].get_or_init(|| matched.into()).clone())
    }

    /// Packages that one advisory hits share the text of that advisory.
    fn vulnerability(&self, advisory: &Advisory) -> Result<Arc<Vulnerability>, DatabaseError> {
        let record = advisory.vendor_ids.first().map_or("", String::as_str);
        let key = format!("{}\0{record}", advisory.id);
        let shard = &self.vulnerabilities[shard(&advisory.id)];
        if let Some(known) = read(shard).get(&key) {
            return Ok(known.clone());
        }
        let known = Arc::new(self.database.described(advisory)?.unwrap_or_default());
        write(shard).insert(key, known.clone());
        Ok(known)
    }
}

/// Whether a package is of another maker than the distribution, whose advisories do not cover it.
pub(super) fn is_foreign(component: &Component) -> bool {
    let package = &component.package;
    let vendor = package.vendor.as_deref();
    match component.detector {
        Detector::Dpkg => third_party::is_one(vendor),
        // An SBOM that another tool wrote, or a list without vendors, says nothing about them.
        Detector::Rpm if !component.path.is_empty() && !component.path.contains("rpmmanifest") => {
            third_party::is_vendor(vendor, &package.version)
        }
        _ => false,
    }
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
