//! What is known of every object that is judged: where it is, what its report was made from, and
//! whether the report is still what was written. Of an object itself only hashes are kept. From it
//! follows what each policy says in all, without reading a single report.

use crate::note::{Key, Mark, Note, Pair, Stamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A resource, whatever the version: group and plural name.
pub type Place = Arc<(String, String)>;

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Whereabouts {
    /// Its resource.
    pub place: Place,
    /// Its namespace, if it has one.
    pub namespace: Option<Arc<str>>,
    /// Its name.
    pub name: String,
}

/// The report of an object, as far as it matters whether somebody else touched it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Revision {
    /// What we wrote, or took over; none if there is no report.
    written: Option<u64>,
    /// What was last seen.
    seen: Option<u64>,
    /// It is being written.
    writing: bool,
    /// It was seen to be gone while it was being written.
    lost: bool,
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub at: Whereabouts,
    /// What its report was made from.
    pub note: Note,
    /// The last revision of the object that was looked at; 0 before the first look.
    pub revision: u64,
    /// Whether its report is marked as stale.
    pub stale: bool,
    report: Revision,
}

impl Entry {
    /// Whether it has a report.
    pub fn has_report(&self) -> bool {
        self.report.written.is_some() || self.report.seen.is_some()
    }

    /// The revision of the report that we wrote, or took over.
    pub fn written(&self) -> Option<u64> {
        self.report.written
    }

    /// Whether the object itself has been seen since we began.
    pub fn is_seen(&self) -> bool {
        self.revision > 0
    }
}

/// How many objects ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects that keep the policy, changed ones too.
    pub pass: u64,
    /// Objects that do not.
    pub fail: u64,
    /// Objects that could not be judged.
    pub error: u64,
    /// Objects that would be changed.
    pub mutated: u64,
    /// Objects it is not asked about.
    pub skip: u64,
}

impl Counts {
    fn change(&mut self, mark: Mark, add: bool) {
        let step = |count: &mut u64| {
            *count = if add {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        };
        match mark {
            Mark::Pass => step(&mut self.pass),
            Mark::Fail => step(&mut self.fail),
            Mark::Error => step(&mut self.error),
            Mark::Skip => step(&mut self.skip),
            Mark::Unmet => {}
            Mark::Mutated => {
                step(&mut self.mutated);
                step(&mut self.pass);
            }
        }
    }
}

/// What is known of every object.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: HashMap<String, Entry>,
    counts: BTreeMap<Key, Counts>,
}

impl Ledger {
    /// What is known of an object.
    pub fn get(&self, uid: &str) -> Option<&Entry> {
        self.entries.get(uid)
    }

    /// How many objects are known.
    pub fn size(&self) -> usize {
        self.entries.len()
    }

    /// Notes that an object is there, in a revision; whether that is news: what is older than what was
    /// looked at before is not.
    pub fn see(&mut self, uid: &str, at: &Whereabouts, revision: u64) -> bool {
        let entry = self.entries.entry(uid.into()).or_insert_with(|| Entry {
            at: at.clone(),
            note: Note::default(),
            revision: 0,
            stale: false,
            report: Revision::default(),
        });
        if revision < entry.revision {
            return false;
        }
        entry.revision = revision;
        entry.at = at.clone();
        true
    }

    /// Takes over a report that is there, when beginning; `note` is what it says of itself.
    pub fn adopt(&mut self, uid: &str, at: Whereabouts, note: Note, stale: bool, revision: u64) {
        self.forget(uid);
        let report = Revision {
            written: Some(revision),
            seen: Some(revision),
            writing: false,
            lost: false,
        };
        self.count(&note, true);
        let entry = Entry {
            at,
            note,
            revision: 0,
            stale,
            report,
        };
        self.entries.insert(uid.into(), entry);
    }

    /// The object is about to be reported on: what is seen of its report meanwhile may be ours.
    pub fn begin(&mut self, uid: &str) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.report.writing = true;
            entry.report.lost = false;
        }
    }

    /// The report has been written, in that revision, or deleted if there is none; or, without an
    /// outcome, it was not touched. Says whether somebody else has touched it meanwhile.
    pub fn end(&mut self, uid: &str, outcome: Option<Option<u64>>) -> bool {
        let Some(entry) = self.entries.get_mut(uid) else {
            return false;
        };
        let report = &mut entry.report;
        report.writing = false;
        match outcome {
            // Whatever was seen of it before is gone with it.
            Some(None) => {
                (report.written, report.seen) = (None, None);
                return false;
            }
            Some(written) => report.written = written,
            None => {}
        }
        report.lost || report.seen > report.written
    }

    /// What the report of an object was made from by now.
    pub fn note(&mut self, uid: &str, note: Note, stale: bool) {
        let Some(entry) = self.entries.get_mut(uid) else {
            return;
        };
        entry.stale = stale;
        let before = std::mem::replace(&mut entry.note, note.clone());
        self.count(&before, false);
        self.count(&note, true);
    }

    /// The object in this revision is what its report was made from too.
    pub fn confirm(&mut self, uid: &str, revision: u64) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.note.revision = revision;
        }
    }

    /// The report says of itself that it is not current.
    pub fn mark_stale(&mut self, uid: &str) {
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.stale = true;
        }
    }

    /// A report was seen in a revision, or to be gone. Says whether that was somebody else's doing to
    /// the report of an object that is there.
    pub fn seen(&mut self, uid: &str, revision: Option<u64>) -> bool {
        let Some(entry) = self.entries.get_mut(uid) else {
            return false;
        };
        let report = &mut entry.report;
        let foreign = match revision {
            Some(revision) => {
                report.seen = Some(revision);
                report.seen > report.written
            }
            None => {
                let ours = report.written.is_none();
                report.lost = report.writing;
                report.written = None;
                report.seen = None;
                !ours
            }
        };
        foreign && !entry.report.writing && entry.is_seen()
    }

    /// Whatever is known of what an object's report was made from is not to be relied on.
    pub fn doubt(&mut self, uid: &str) {
        if let Some(entry) = self.entries.get(uid) {
            let note = Note {
                object: None,
                revision: 0,
                pairs: entry.note.pairs.clone(),
            };
            let stale = entry.stale;
            self.note(uid, note, stale);
        }
    }

    /// Whatever could not be judged is not to be relied on: the reason may have gone by itself.
    pub fn doubt_errors(&mut self) {
        for entry in self.entries.values_mut() {
            let pairs = entry.note.pairs.values_mut();
            for pair in pairs.filter(|pair| pair.mark == Mark::Error) {
                pair.stamp = Stamp::NONE;
            }
        }
    }

    /// What a policy said, where it ended so, is not to be relied on; says of which objects.
    pub fn doubt_policy(&mut self, key: Key, ended: impl Fn(&Pair) -> bool) -> Vec<String> {
        let mut doubted = Vec::new();
        for (uid, entry) in &mut self.entries {
            let pair = entry.note.pairs.get_mut(&key);
            if let Some(pair) = pair.filter(|pair| ended(pair) && pair.mark != Mark::Skip) {
                pair.stamp = Stamp::NONE;
                doubted.push(uid.clone());
            }
        }
        doubted
    }

    /// The object is gone; says whether it had a report.
    pub fn forget(&mut self, uid: &str) -> bool {
        let Some(entry) = self.entries.remove(uid) else {
            return false;
        };
        self.count(&entry.note, false);
        entry.has_report()
    }

    /// The resources of which objects are known.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        let places: BTreeSet<&Place> = self.entries.values().map(|entry| &entry.at.place).collect();
        places.into_iter()
    }

    /// The objects that meet a condition.
    pub fn find(&self, wanted: impl Fn(&str, &Entry) -> bool) -> Vec<String> {
        let all = self.entries.iter();
        all.filter(|(uid, entry)| wanted(uid, entry))
            .map(|(uid, _)| uid.clone())
            .collect()
    }

    /// What a policy says in all.
    pub fn counts(&self, policy: Key) -> Counts {
        self.counts.get(&policy).copied().unwrap_or_default()
    }

    fn count(&mut self, note: &Note, add: bool) {
        for (key, pair) in &note.pairs {
            let counts = self.counts.entry(*key).or_default();
            counts.change(pair.mark, add);
            if *counts == Counts::default() {
                self.counts.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
