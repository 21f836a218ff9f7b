//! The law of watches, pure: what a watcher with a selection must have seen, given the log of its
//! resource. Entering a selection is an addition, leaving it a deletion that shows the object as it
//! was, at the revision at which it left.

use super::selection::Selection;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The revision before the first event of every resource.
pub(super) const BEGINNING: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One event as somebody saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) change: Change,
    /// `namespace/name`
    pub(super) key: Box<str>,
    pub(super) revision: u64,
    /// A hash of the object without its revision: equal objects, equal contents.
    pub(super) content: u64,
}

impl fmt::Display for Sighting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sighting {
            change,
            key,
            revision,
            content,
        } = self;
        write!(f, "{change:?} {key} at {revision} (content {content:x})")
    }
}

/// What selectors look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) repository: String,
}

/// One event of the log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) sighting: Sighting,
    pub(super) facts: Facts,
    pub(super) uid: String,
    /// What the writer called this write; every write has another.
    pub(super) mark: String,
}

/// What a watcher saw.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A whole list: key to revision and content.
    State(u64, BTreeMap<Box<str>, (u64, u64)>),
    /// An event.
    Event(Sighting),
    /// A bookmark: everything up to here has been sent.
    Mark(u64),
}

/// The text at a path, or nothing.
pub(super) fn text(object: &Value, pointer: &str) -> String {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}

/// The revision, key and content of an object.
pub(super) fn identify(object: &Value) -> Option<(u64, Box<str>, u64)> {
    let revision = text(object, "/metadata/resourceVersion").parse().ok()?;
    let (namespace, name) = (
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name"),
    );
    let mut bare = object.clone();
    bare["metadata"].as_object_mut()?.remove("resourceVersion");
    // The items of some lists do not say what they are.
    for field in ["apiVersion", "kind"] {
        bare.as_object_mut()?.remove(field);
    }
    let mut hasher = DefaultHasher::new();
    bare.to_string().hash(&mut hasher);
    let key = format!("{namespace}/{name}").into();
    Some((revision, key, hasher.finish()))
}

/// An object as an entry of the log.
pub(super) fn entry(change: Change, object: &Value) -> Option<Entry> {
    let (revision, key, content) = identify(object)?;
    let labels = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    Some(Entry {
        sighting: Sighting {
            change,
            key,
            revision,
            content,
        },
        facts: Facts {
            namespace: text(object, "/metadata/namespace"),
            name: text(object, "/metadata/name"),
            labels: labels
                .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().into()))
                .collect(),
            repository: text(object, "/imageMetadata/repository"),
        },
        uid: text(object, "/metadata/uid"),
        mark: text(object, "/metadata/annotations/mark"),
    })
}

/// The log played forwards before the eyes of one selection.
struct Replay<'a> {
    log: std::slice::Iter<'a, Entry>,
    selection: &'a Selection,
    at: u64,
    /// What exists: the newest entry of each key.
    present: BTreeMap<&'a str, &'a Entry>,
}

impl<'a> Replay<'a> {
    fn new(log: &'a [Entry], selection: &'a Selection) -> Self {
        Replay {
            log: log.iter(),
            selection,
            at: BEGINNING,
            present: BTreeMap::new(),
        }
    }

    /// The next event the selection sees, up to a revision.
    fn next(&mut self, up_to: u64) -> Option<Sighting> {
        while let Some(entry) = self.log.as_slice().first()
            && entry.sighting.revision <= up_to
        {
            self.log.next();
            self.at = entry.sighting.revision;
            if let Some(seen) = self.see(entry) {
                return Some(seen);
            }
        }
        if up_to != u64::MAX {
            self.at = self.at.max(up_to);
        }
        None
    }

    fn see(&mut self, entry: &'a Entry) -> Option<Sighting> {
        let key: &str = &entry.sighting.key;
        let before = match entry.sighting.change {
            Change::Deleted => self.present.remove(key),
            _ => self.present.insert(key, entry),
        };
        let was = before.filter(|before| self.selection.matches(&before.facts));
        let is = entry.sighting.change != Change::Deleted && self.selection.matches(&entry.facts);
        let seen = |change, content| Sighting {
            change,
            content,
            ..entry.sighting.clone()
        };
        match (was, is) {
            (None, false) => None,
            (None, true) => Some(seen(Change::Added, entry.sighting.content)),
            (Some(_), true) => Some(seen(Change::Modified, entry.sighting.content)),
            (Some(before), false) => Some(seen(Change::Deleted, before.sighting.content)),
        }
    }

    fn state(&self) -> BTreeMap<Box<str>, (u64, u64)> {
        let selected = self.present.values();
        selected
            .filter(|entry| self.selection.matches(&entry.facts))
            .map(|Entry { sighting, .. }| {
                let shown = (sighting.revision, sighting.content);
                (sighting.key.clone(), shown)
            })
            .collect()
    }
}

/// Whether a watcher saw exactly what it should have, up to revision `head`; else the first fault.
pub(super) fn check(
    log: &[Entry],
    selection: &Selection,
    trace: &[Step],
    head: u64,
) -> Result<(), String> {
    let mut replay = Replay::new(log, selection);
    for (number, step) in trace.iter().enumerate() {
        follow(&mut replay, step).map_err(|fault| format!("step {number}: {fault}"))?;
    }
    match replay.next(head) {
        Some(missed) => Err(format!("at the end: missed {missed}")),
        None => Ok(()),
    }
}

fn follow(replay: &mut Replay<'_>, step: &Step) -> Result<(), String> {
    match step {
        Step::State(revision, _) if *revision < replay.at => {
            let at = replay.at;
            Err(format!("the list went back to {revision} from {at}"))
        }
        Step::State(revision, objects) => {
            // Who lists anew forgoes what happened meanwhile.
            while replay.next(*revision).is_some() {}
            let expected = replay.state();
            match expected == *objects {
                true => Ok(()),
                false => Err(format!(
                    "the list at {revision} shows {objects:?}, which should be {expected:?}"
                )),
            }
        }
        Step::Mark(revision) => match replay.next(*revision) {
            Some(missed) => Err(format!("missed {missed} before the bookmark {revision}")),
            None => Ok(()),
        },
        Step::Event(seen) if seen.revision <= replay.at => {
            let at = replay.at;
            Err(format!("doubled or too late behind {at}: {seen}"))
        }
        Step::Event(seen) => match replay.next(seen.revision) {
            Some(expected) if expected == *seen => Ok(()),
            Some(expected) if expected.revision < seen.revision => {
                Err(format!("missed {expected} before {seen}"))
            }
            Some(expected) => Err(format!("saw {seen}, which should be {expected}")),
            None => Err(format!("leaked: {seen}")),
        },
    }
}

/// Whether a log is one: every revision once, in order, and every change possible where it stands.
pub(super) fn check_log(log: &[Entry]) -> Result<(), String> {
    let mut present: BTreeMap<&str, &Entry> = BTreeMap::new();
    for (entry, revision) in log.iter().zip(BEGINNING + 1..) {
        let seen = &entry.sighting;
        if seen.revision != revision {
            return Err(format!("revision {revision} is missing before {seen}"));
        }
        let before = match seen.change {
            Change::Deleted => present.remove(&*seen.key),
            _ => present.insert(&seen.key, entry),
        };
        let possible = match (before, seen.change) {
            (None, change) => change == Change::Added,
            (Some(before), Change::Modified) => before.uid == entry.uid,
            (Some(before), Change::Deleted) => {
                before.uid == entry.uid && before.sighting.content == seen.content
            }
            (Some(_), Change::Added) => false,
        };
        if !possible {
            return Err(format!("{seen} cannot follow {before:?}"));
        }
    }
    Ok(())
}
