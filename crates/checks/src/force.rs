//! What is in force: of every policy and library the last version that could be used. A version that
//! cannot be (bad Rego, no kinds, an unknown kind) is told, and the one before it stays, with the libraries
//! it was made for; so one bad policy changes nothing for anybody else, and nothing for itself.

use crate::builtin;
use crate::judge::{Check, CheckError};
use crate::kinds::{Kind, Kinds};
use crate::written::{EntryError, Policy, Written, WrittenError};
use muster_rego::{LoadError, Module};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Where our own policies are from.
pub const BUILTIN: &str = "builtin";

/// Which policy or library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PolicyId {
    /// Where it is written: `namespace/name` of a ConfigMap, or `builtin`.
    pub source: String,
    /// What it is called there.
    pub name: String,
}

impl PolicyId {
    /// A policy of a source.
    pub fn new(source: &str, name: &str) -> PolicyId {
        PolicyId {
            source: source.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{} {}", self.source, self.name)
    }
}

/// The libraries that a policy may use, by where they are from.
pub type Libraries = BTreeMap<PolicyId, Arc<str>>;

/// A policy in force.
#[derive(Debug)]
pub struct Accepted {
    /// Which one.
    pub id: PolicyId,
    /// What it says.
    pub text: Arc<str>,
    /// What it is about.
    pub kinds: Kinds,
    /// The libraries it was made for.
    pub libraries: Arc<Libraries>,
    /// What judges.
    pub check: Arc<Check>,
    /// Whether this is what is written now.
    pub is_current: bool,
}

/// Why something that is written is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Why.
    pub why: String,
    /// Whether an older version is.
    pub has_older: bool,
    /// Whether it is a library.
    pub is_library: bool,
    /// Whether it may be usable as it is when it is tried again.
    pub is_temporary: bool,
}

/// What is written everywhere: a source each.
pub type Sources = BTreeMap<String, Result<Written, WrittenError>>;

/// Which of our own policies are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Whether any are.
    pub builtin: bool,
    /// Checks that are not, ours or others', by identifier or name.
    pub disabled: BTreeSet<String>,
}

/// What is in force.
#[derive(Clone, Debug, Default)]
pub struct Force {
    policies: BTreeMap<PolicyId, Arc<Accepted>>,
    libraries: Arc<Libraries>,
    troubles: BTreeMap<PolicyId, Trouble>,
    unused: BTreeSet<String>,
}

/// Versions that are in force though something else is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    policies: Vec<RememberedPolicy>,
    /// Those libraries, by their places among all.
    in_force: Vec<usize>,
    /// Every library that somebody needs, once.
    libraries: Vec<(PolicyId, String)>,
}

/// See [`Remembered`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RememberedPolicy {
    id: PolicyId,
    text: String,
    kinds: String,
    /// The libraries it was made for. They are remembered whether or not they are in force: what is
    /// written when it is recalled may be something else again.
    libraries: Vec<usize>,
}

impl Remembered {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty() && self.in_force.is_empty()
    }

    fn library(&self, place: usize) -> Option<(PolicyId, Arc<str>)> {
        let (id, text) = self.libraries.get(place)?;
        Some((id.clone(), text.as_str().into()))
    }
}

/// Libraries on their way into memory.
#[derive(Default)]
struct Shelved<'f> {
    places: BTreeMap<(&'f PolicyId, &'f str), usize>,
    libraries: Vec<(PolicyId, String)>,
}

impl<'f> Shelved<'f> {
    fn place(&mut self, (id, text): (&'f PolicyId, &'f Arc<str>)) -> usize {
        let next = self.libraries.len();
        let place = *self.places.entry((id, text)).or_insert(next);
        if place == next {
            self.libraries.push((id.clone(), text.to_string()));
        }
        place
    }
}

impl Force {
    /// Takes up what is written now; `served` are the kinds there are.
    pub fn update(&mut self, sources: &Sources, served: &[Kind], choice: &Choice) {
        let mut next = Force::default();
        next.take_libraries(self, sources);
        let libraries = next.libraries.clone();
        for (source, written) in sources {
            match written {
                Ok(written) => {
                    for (name, policy) in &written.policies {
                        let id = PolicyId::new(source, name);
                        if policy.as_ref().is_ok_and(is_library) {
                            continue;
                        }
                        next.take(self, id, policy, &libraries, served);
                    }
                }
                Err(error) => next.keep_source(self, source, error),
            }
        }
        if choice.builtin {
            next.take_builtin(self);
        }
        next.unused = choice.disabled.clone();
        for id in next.troubles.keys() {
            next.unused.remove(&id.name);
        }
        let unused = &mut next.unused;
        next.policies.retain(|id, accepted| {
            let names = [id.name.as_str(), &accepted.check.description().id];
            for name in names {
                unused.remove(name);
            }
            !names.iter().any(|name| choice.disabled.contains(*name))
        });
        *self = next;
    }

    /// The policies in force.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<Accepted>> {
        self.policies.values()
    }

    /// The libraries in force.
    pub fn libraries(&self) -> &Arc<Libraries> {
        &self.libraries
    }

    /// Disabled names that no policy has.
    pub fn unused(&self) -> &BTreeSet<String> {
        &self.unused
    }

    /// What is written and not in force.
    pub fn troubles(&self) -> &BTreeMap<PolicyId, Trouble> {
        &self.troubles
    }

    fn take_libraries(&mut self, before: &Force, sources: &Sources) {
        let mut libraries = Libraries::new();
        for (source, written) in sources {
            let Ok(written) = written else {
                let kept = before
                    .libraries
                    .iter()
                    .filter(|(id, _)| id.source == *source);
                libraries.extend(kept.map(|(id, text)| (id.clone(), text.clone())));
                continue;
            };
            let maybe = written.policies.iter().filter_map(|(name, policy)| {
                let policy = policy.as_ref().ok().filter(|policy| is_library(policy))?;
                Some((name, &policy.text))
            });
            for (name, text) in written.libraries.iter().chain(maybe) {
                let id = PolicyId::new(source, name);
                let old = before.libraries.get(&id);
                let module = Module { name, text };
                let flaw = match old {
                    Some(old) if **old == **text => None,
                    _ => muster_rego::check_library(&module).err(),
                };
                match flaw {
                    None => {
                        libraries.insert(id, text.as_str().into());
                    }
                    Some(error) => {
                        libraries.extend(old.map(|old| (id.clone(), old.clone())));
                        let trouble = Trouble {
                            why: error.to_string(),
                            has_older: old.is_some(),
                            is_library: true,
                            is_temporary: matches!(error, LoadError::Unavailable(_)),
                        };
                        self.troubles.insert(id, trouble);
                    }
                }
            }
        }
        self.libraries = match *before.libraries == libraries {
            true => before.libraries.clone(),
            false => Arc::new(libraries),
        };
    }

    fn take(
        &mut self,
        before: &Force,
        id: PolicyId,
        policy: &Result<Policy, EntryError>,
        libraries: &Arc<Libraries>,
        served: &[Kind],
    ) {
        let old = before.policies.get(&id);
        match accept(&id, policy, libraries, served, old) {
            Ok(accepted) => {
                self.policies.insert(id, Arc::new(accepted));
            }
            Err(error) => {
                let trouble = Trouble {
                    is_temporary: error.is_temporary(),
                    why: error.to_string(),
                    has_older: old.is_some(),
                    is_library: false,
                };
                self.troubles.insert(id.clone(), trouble);
                if let Some(old) = old {
                    self.policies.insert(id, Arc::new(old.stays()));
                }
            }
        }
    }

    /// Nothing of a source can be read: all that was in force of it stays.
    fn keep_source(&mut self, before: &Force, source: &str, error: &WrittenError) {
        let of_it = before.policies.iter().filter(|(id, _)| id.source == source);
        let of_it: Vec<(PolicyId, Arc<Accepted>)> = of_it
            .map(|(id, old)| (id.clone(), Arc::new(old.stays())))
            .collect();
        let trouble = Trouble {
            why: error.to_string(),
            has_older: !of_it.is_empty(),
            is_library: false,
            is_temporary: false,
        };
        self.troubles.insert(PolicyId::new(source, ""), trouble);
        self.policies.extend(of_it);
    }

    /// Our own policies know no other libraries than our own, so nobody can break them.
    fn take_builtin(&mut self, before: &Force) {
        let empty = Arc::new(Libraries::new());
        for policy in builtin::POLICIES {
            let id = PolicyId::new(BUILTIN, policy.name);
            if let Some(known) = before.policies.get(&id) {
                self.policies.insert(id, known.clone());
                continue;
            }
            let loaded = Check::load(policy.name, policy.text, &own_libraries(&empty));
            let accepted = loaded.map_err(Refusal::from).and_then(|check| {
                let kinds = check.kinds().unwrap_or_default();
                let kinds =
                    Kinds::read(kinds).map_err(|error| Refusal::Entry(error.to_string()))?;
                Ok(Accepted {
                    id: id.clone(),
                    text: policy.text.into(),
                    kinds,
                    libraries: empty.clone(),
                    check: Arc::new(check),
                    is_current: true,
                })
            });
            match accepted {
                Ok(accepted) => {
                    self.policies.insert(id, Arc::new(accepted));
                }
                Err(error) => {
                    let trouble = Trouble {
                        is_temporary: error.is_temporary(),
                        why: error.to_string(),
                        has_older: false,
                        is_library: false,
                    };
                    self.troubles.insert(id, trouble);
                }
            }
        }
    }

    /// What has to be remembered, so that it is in force after a restart.
    pub fn remember(&self) -> Remembered {
        let mut shelved = Shelved::default();
        let older = self.policies.values().filter(|one| !one.is_current);
        let policies = older.map(|one| RememberedPolicy {
            id: one.id.clone(),
            text: one.text.to_string(),
            kinds: one.kinds.to_string(),
            libraries: one.libraries.iter().map(|one| shelved.place(one)).collect(),
        });
        let policies = policies.collect();
        // Those that cannot be used as they are written, and all of a source that cannot be read.
        let is_older = |id: &PolicyId| {
            let of_it = self.troubles.get(id);
            of_it.is_some_and(|trouble| trouble.is_library)
                || self.troubles.contains_key(&PolicyId::new(&id.source, ""))
        };
        let in_force = self.libraries.iter().filter(|(id, _)| is_older(id));
        Remembered {
            policies,
            in_force: in_force.map(|one| shelved.place(one)).collect(),
            libraries: shelved.libraries,
        }
    }

    /// Takes up what was remembered, before anything that is written is.
    pub fn recall(remembered: &Remembered) -> Force {
        let mut force = Force::default();
        let libraries = |places: &[usize]| -> Arc<Libraries> {
            let places = places.iter();
            Arc::new(
                places
                    .filter_map(|place| remembered.library(*place))
                    .collect(),
            )
        };
        force.libraries = libraries(&remembered.in_force);
        for one in &remembered.policies {
            let made_for = libraries(&one.libraries);
            let kinds = Kinds::read(&one.kinds);
            let check = Check::load(&one.id.name, &one.text, &own_libraries(&made_for));
            // What worked once works again, unless another Muster remembered it.
            if let (Ok(kinds), Ok(check)) = (kinds, check) {
                let accepted = Accepted {
                    id: one.id.clone(),
                    text: one.text.as_str().into(),
                    kinds,
                    libraries: made_for,
                    check: Arc::new(check),
                    is_current: false,
                };
                force.policies.insert(one.id.clone(), Arc::new(accepted));
            }
        }
        force
    }
}

impl Accepted {
    /// The same, now that something else is written that cannot be used.
    fn stays(&self) -> Accepted {
        Accepted {
            id: self.id.clone(),
            text: self.text.clone(),
            kinds: self.kinds.clone(),
            libraries: self.libraries.clone(),
            check: self.check.clone(),
            is_current: false,
        }
    }
}

/// Why a policy is not in force.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    /// What is written cannot be used.
    #[error("{0}")]
    Entry(String),
    /// It does not load.
    #[error(transparent)]
    Check(#[from] CheckError),
}

impl Refusal {
    fn is_temporary(&self) -> bool {
        matches!(self, Refusal::Check(error) if error.is_temporary())
    }
}

fn accept(
    id: &PolicyId,
    policy: &Result<Policy, EntryError>,
    libraries: &Arc<Libraries>,
    served: &[Kind],
    old: Option<&Arc<Accepted>>,
) -> Result<Accepted, Refusal> {
    let policy = policy
        .as_ref()
        .map_err(|error| Refusal::Entry(error.to_string()))?;
    let unknown = policy.kinds.check(served);
    unknown.map_err(|error| Refusal::Entry(format!("`{}.kinds`: {error}", id.name)))?;
    let same = |old: &&Arc<Accepted>| *old.text == *policy.text && old.libraries == *libraries;
    let check = match old.filter(same) {
        Some(old) => old.check.clone(),
        None => {
            let loaded = Check::load(&id.name, &policy.text, &own_libraries(libraries));
            Arc::new(loaded?)
        }
    };
    Ok(Accepted {
        id: id.clone(),
        text: policy.text.as_str().into(),
        kinds: policy.kinds.clone(),
        libraries: libraries.clone(),
        check,
        is_current: true,
    })
}

/// These libraries, and our own of packages that they do not have.
fn own_libraries(libraries: &Libraries) -> Vec<Module<'_>> {
    let packages: BTreeSet<&str> = libraries
        .values()
        .filter_map(|text| package(text))
        .collect();
    let written = libraries.iter().map(|(id, text)| Module {
        name: &id.name,
        text,
    });
    let own = builtin::LIBRARIES.iter();
    let own = own.filter(|(_, text)| package(text).is_none_or(|one| !packages.contains(one)));
    written
        .chain(own.map(|(name, text)| Module { name, text }))
        .collect()
}

/// The package that a module says it is.
fn package(text: &str) -> Option<&str> {
    let mut lines = text.lines();
    let package = lines.find_map(|line| line.trim().strip_prefix("package "))?;
    Some(package.split('#').next().unwrap_or(package).trim())
}

/// Whether something of the old schema, where all are written alike, is a library: it refuses nothing.
fn is_library(policy: &Policy) -> bool {
    let refuses = |line: &str| {
        let line = line.strip_prefix("default ").unwrap_or(line);
        let end = line
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(line.len());
        matches!(&line[..end], "deny" | "violation" | "warn")
    };
    policy.is_maybe_library && !policy.text.lines().any(refuses)
}
