//! The inverse of matching: which bills does a change of the data touch. A bill is looked up under
//! a few hundred keys, and keys are shared; what changed is told by a fingerprint of what the data
//! says under a key, so that neither the old data nor any bill is needed to find out.

use super::batch::is_foreign;
use super::{distribution, language, red_hat};
use crate::digest::hexadecimal;
use crate::sbom::Bill;
use crate::vulnerability::{Database, DatabaseError, Stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::{self, Write};

/// How many bytes of a hash tell two states apart.
const FINGERPRINT: usize = 16;

/// What is looked up: a stream, or an index of products, and a name in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key {
    place: Place,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    Stream(Stream),
    Products(&'static str),
}

impl Key {
    /// The key of a package in a stream.
    pub fn new(stream: Stream, package: impl Into<String>) -> Self {
        Key {
            place: Place::Stream(stream),
            name: package.into(),
        }
    }
}

/// As text: the kind of place, the place and the name, with tabulators between them.
impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, place) = match &self.place {
            Place::Stream(Stream::Distribution(name)) => ("distribution", name.as_str()),
            Place::Stream(Stream::Ecosystem(name)) => ("ecosystem", *name),
            Place::Products(index) => ("products", *index),
        };
        write!(formatter, "{kind}\t{place}\t{}", self.name)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for Key {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut parts = text.splitn(3, '\t');
        let (kind, place, name) = (parts.next(), parts.next(), parts.next());
        let place = match (kind, place) {
            (Some("distribution"), Some(place)) => {
                Some(Place::Stream(Stream::Distribution(place.into())))
            }
            (Some("ecosystem"), Some(place)) => language::stream(place).map(Place::Stream),
            (Some("products"), Some(place)) => [red_hat::REPOSITORIES, red_hat::BUILDS]
                .into_iter()
                .find(|index| *index == place)
                .map(Place::Products),
            _ => None,
        };
        match (place, name) {
            (Some(place), Some(name)) => Ok(Key {
                place,
                name: name.into(),
            }),
            _ => Err(format!("{text:?} is no key of vulnerability data")),
        }
    }
}

/// Everything that a bill is looked up under at a time.
pub fn keys(bill: &Bill, now: Option<Timestamp>) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    let os = bill.os.as_ref();
    let rules = os.and_then(|os| distribution::unlimited(os, now).ok());
    let mut languages = HashMap::new();
    for component in &bill.components {
        if is_foreign(component) {
            continue;
        }
        let package = &component.package;
        let key = if component.detector.is_os() {
            let rules = rules.as_ref();
            rules.and_then(|rules| Some((rules.stream().clone(), rules.name(package)?)))
        } else {
            let ecosystem = component.detector.ecosystem();
            let rules = languages.entry(ecosystem);
            let rules = rules.or_insert_with(|| language::rules(ecosystem)).as_ref();
            rules.map(|rules| (rules.stream(), rules.name(package)))
        };
        keys.extend(key.map(|(stream, name)| Key::new(stream, name)));
    }
    if let (Some(os), Some(rules)) = (os, &rules)
        && rules.has_products()
    {
        for (index, name) in red_hat::questions(os) {
            let place = Place::Products(index);
            keys.insert(Key { place, name });
        }
    }
    keys
}

/// A state of what the data says under a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

/// Text that is hashed as it is written.
struct Hashing(Sha256);

impl Write for Hashing {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

/// The state of what the data says under a key: the advisories, and what their vulnerabilities are.
pub fn fingerprint(database: &dyn Database, key: &Key) -> Result<Fingerprint, DatabaseError> {
    let mut hashing = Hashing(Sha256::new());
    // Writing into a hash cannot fail.
    match &key.place {
        Place::Products(index) => {
            let products = database.products(index, &key.name)?;
            let _ = write!(hashing, "{products:?}");
        }
        Place::Stream(stream) => {
            for advisory in database.advisories(stream, &key.name)? {
                let vulnerability = database.vulnerability(&advisory.id)?;
                let _ = writeln!(hashing, "{advisory:?} {vulnerability:?}");
            }
        }
    }
    let hash = hashing.0.finalize();
    Ok(Fingerprint(hexadecimal(&hash[..FINGERPRINT])))
}

/// Those keys under which two states of the data say something else.
pub fn changed<'a>(
    old: &dyn Database,
    new: &dyn Database,
    keys: impl IntoIterator<Item = &'a Key>,
) -> Result<Vec<&'a Key>, DatabaseError> {
    let mut changed = Vec::new();
    for key in keys {
        if fingerprint(old, key)? != fingerprint(new, key)? {
            changed.push(key);
        }
    }
    Ok(changed)
}

/// Which bills are looked up under which keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Numbers of the bills.
    bills: BTreeMap<String, u32>,
    /// The number of the next bill.
    next: u32,
    /// How many numbers under the keys are of bills that are gone.
    gone: usize,
    keys: BTreeMap<Key, Entry>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// The state that the bills were last matched with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Fingerprint>,
    /// Numbers of the bills, ascending.
    bills: Vec<u32>,
}

impl Index {
    /// Adds a bill, or replaces what was known of it.
    pub fn insert(&mut self, bill: &str, keys: BTreeSet<Key>) {
        self.remove(bill);
        if self.next == u32::MAX {
            self.number_anew();
        }
        let number = self.next;
        self.next += 1;
        self.bills.insert(bill.to_owned(), number);
        for key in keys {
            // The newest number is the highest, so the list stays in order.
            self.keys.entry(key).or_default().bills.push(number);
        }
    }

    /// Forgets a bill. What is under its keys goes when half of all numbers are of bills that are
    /// gone, so that many can be replaced in little time.
    pub fn remove(&mut self, bill: &str) {
        if self.bills.remove(bill).is_none() {
            return;
        }
        self.gone += 1;
        if self.gone >= self.bills.len() {
            self.number_anew();
        }
    }

    /// Gives the bills the lowest numbers, and forgets the keys that none is looked up under.
    fn number_anew(&mut self) {
        let mut numbers: Vec<u32> = self.bills.values().copied().collect();
        numbers.sort_unstable();
        let place = |number: &u32| {
            let place = numbers.binary_search(number).ok()?;
            u32::try_from(place).ok()
        };
        for number in self.bills.values_mut() {
            *number = place(number).unwrap_or_default();
        }
        self.keys.retain(|_, entry| {
            entry.bills = entry.bills.iter().filter_map(place).collect();
            !entry.bills.is_empty()
        });
        self.next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        self.gone = 0;
    }

    /// How many bills and keys there are.
    pub fn size(&self) -> (usize, usize) {
        (self.bills.len(), self.keys.len())
    }

    /// The bills that are looked up under any of some keys.
    pub fn touched<'a>(&self, keys: impl IntoIterator<Item = &'a Key>) -> BTreeSet<&str> {
        let entries = keys.into_iter().filter_map(|key| self.keys.get(key));
        let numbers: HashSet<u32> = entries.flat_map(|entry| entry.bills.clone()).collect();
        let bills = self.bills.iter();
        let touched = bills.filter(|(_, number)| numbers.contains(number));
        touched.map(|(name, _)| name.as_str()).collect()
    }

    /// Takes over another state of the data and tells the keys under which it differs from the one
    /// before. Those that no state was seen of yet differ.
    pub fn update(&mut self, database: &dyn Database) -> Result<Vec<Key>, DatabaseError> {
        let mut changed = Vec::new();
        for (key, entry) in &mut self.keys {
            let fingerprint = Some(fingerprint(database, key)?);
            if entry.fingerprint != fingerprint {
                entry.fingerprint = fingerprint;
                changed.push(key.clone());
            }
        }
        Ok(changed)
    }
}
