//! What all looks share: distilled findings and audits, and the names in them, each kept once.

use crate::audit::Audit;
use crate::carrier::Carrier;
use crate::shelf::{Shelf, Weighed};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// What findings may take, and what audits may.
const ROOM: usize = 96 * 1024 * 1024;

pub(crate) struct Stock {
    pub(crate) findings: Shelf<Vec<Arc<Carrier>>>,
    pub(crate) audits: Shelf<Audit>,
    names: RwLock<Names>,
}

/// A name that many findings share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) u32);

#[derive(Default)]
struct Names {
    by_text: HashMap<Arc<str>, Name>,
    texts: Vec<Arc<str>>,
}

impl Default for Stock {
    fn default() -> Self {
        Stock {
            findings: Shelf::new(ROOM),
            audits: Shelf::new(ROOM),
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

    /// The name of a text that somebody has used.
    pub(crate) fn known(&self, text: &str) -> Option<Name> {
        let known = self.names.read().unwrap_or_else(PoisonError::into_inner);
        known.by_text.get(text).copied()
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
