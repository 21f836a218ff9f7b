//! What all looks share: distilled findings and audits, and the names in them, each kept once.

use crate::audit::Audit;
use crate::carrier::Carrier;
use crate::distil::Behind;
use crate::shelf::{Shelf, Weighed};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// So many other names are remembered.
const ALIASES: usize = 200_000;
/// So many vulnerabilities may have one in common.
const MEANT: usize = 1000;
/// What findings may take, and what audits may.
const ROOM: usize = 96 * 1024 * 1024;

pub(crate) struct Stock {
    pub(crate) findings: Shelf<Vec<Arc<Carrier>>>,
    pub(crate) audits: Shelf<Audit>,
    pub(crate) behind: Behind,
    names: RwLock<Names>,
}

/// A name that many findings share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) u32);

#[derive(Default)]
struct Names {
    by_text: HashMap<Arc<str>, Name>,
    texts: Vec<Arc<str>>,
    /// What else is meant by a text, in lower case.
    aliases: HashMap<String, Vec<Name>>,
}

impl Default for Stock {
    fn default() -> Self {
        Stock {
            findings: Shelf::new(ROOM),
            audits: Shelf::new(ROOM),
            behind: Behind::default(),
            names: RwLock::default(),
        }
    }
}

impl Stock {
    /// The name of a text.
    pub(crate) fn name(&self, text: &str) -> Name {
        let known = self.names.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.by_text.get(text) {
            return *name;
        }
        drop(known);
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = names.by_text.get(text) {
            return *name;
        }
        let name = Name(u32::try_from(names.texts.len()).unwrap_or(u32::MAX));
        let text: Arc<str> = text.into();
        names.texts.push(text.clone());
        names.by_text.insert(text, name);
        name
    }

    /// Notes what else names mean; how CVEs are called elsewhere is nobody's secret.
    pub(crate) fn also<'a>(&self, name: Name, aliases: impl Iterator<Item = &'a str>) {
        for alias in aliases {
            let alias = alias.to_lowercase();
            let known = self.names.read().unwrap_or_else(PoisonError::into_inner);
            let of = known.aliases.get(&alias);
            if of.is_some_and(|of| of.contains(&name)) || known.aliases.len() >= ALIASES {
                continue;
            }
            drop(known);
            let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
            let of = names.aliases.entry(alias).or_default();
            if of.len() < MEANT && !of.contains(&name) {
                of.push(name);
            }
        }
    }

    /// All that a text means: a name, or those that are also known by it.
    pub(crate) fn meant(&self, text: &str) -> Vec<Name> {
        if let Some(name) = self.known(text) {
            return vec![name];
        }
        let known = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let meant = known.aliases.get(&text.to_lowercase());
        meant.cloned().unwrap_or_default()
    }

    /// The name of a text that somebody has used, however it is written.
    pub(crate) fn known(&self, text: &str) -> Option<Name> {
        let known = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let written = || {
            let at = known
                .texts
                .iter()
                .position(|one| one.eq_ignore_ascii_case(text))?;
            u32::try_from(at).ok().map(Name)
        };
        known.by_text.get(text).copied().or_else(written)
    }

    /// All texts, by their names.
    pub(crate) fn texts(&self) -> Vec<Arc<str>> {
        let known = self.names.read().unwrap_or_else(PoisonError::into_inner);
        known.texts.clone()
    }
}

impl Weighed for Vec<Arc<Carrier>> {
    fn weight(&self) -> usize {
        self.iter().map(|carrier| carrier.weight()).sum()
    }
}
