//! What was distilled from objects, kept by identity and revision. Only who has just been shown that an
//! object is there, in that revision, finds what was distilled from it: so nothing is told that its reader
//! may not read, though all readers share the shelf.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps what costs something to read.
pub(crate) struct Shelf<T> {
    kept: Mutex<Kept<T>>,
    room: usize,
}

struct Kept<T> {
    /// By UID.
    values: HashMap<String, Entry<T>>,
    weight: usize,
    /// How often something was looked for.
    looks: u64,
}

struct Entry<T> {
    revision: String,
    value: Arc<T>,
    weight: usize,
    /// When it was last looked for.
    look: u64,
}

/// How much room something takes, about.
pub(crate) trait Weighed {
    fn weight(&self) -> usize;
}

impl<T: Weighed> Shelf<T> {
    pub(crate) fn new(room: usize) -> Self {
        Shelf {
            kept: Mutex::new(Kept {
                values: HashMap::new(),
                weight: 0,
                looks: 0,
            }),
            room,
        }
    }

    /// What was distilled from this revision.
    pub(crate) fn find(&self, uid: &str, revision: &str) -> Option<Arc<T>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.looks += 1;
        let look = kept.looks;
        let entry = kept.values.get_mut(uid)?;
        entry.look = look;
        (entry.revision == revision && !uid.is_empty()).then(|| entry.value.clone())
    }

    /// Keeps it in place of what was distilled before.
    pub(crate) fn keep(&self, uid: &str, revision: &str, value: Arc<T>) {
        let weight = value.weight() + uid.len();
        if weight > self.room {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(uid);
        if kept.weight + weight > self.room {
            kept.make(self.room - weight);
        }
        kept.looks += 1;
        let entry = Entry {
            revision: revision.into(),
            value,
            weight,
            look: kept.looks,
        };
        kept.weight += weight;
        kept.values.insert(uid.into(), entry);
    }
}

impl<T> Kept<T> {
    fn remove(&mut self, uid: &str) {
        if let Some(entry) = self.values.remove(uid) {
            self.weight -= entry.weight;
        }
    }

    /// Drops what nobody has looked for the longest, until no more than this is left. A good part of the
    /// room goes at once, so that this is seldom done.
    fn make(&mut self, left: usize) {
        let mut oldest: Vec<(u64, String)> = self
            .values
            .iter()
            .map(|(uid, entry)| (entry.look, uid.clone()))
            .collect();
        oldest.sort_unstable();
        let left = left - left / 8;
        for (_, uid) in oldest {
            if self.weight <= left {
                return;
            }
            self.remove(&uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weighed for &str {
        fn weight(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn a_shelf_keeps_one_revision_of_each_and_never_too_much() {
        let shelf = Shelf::new(40);
        shelf.keep("a", "1", Arc::new("0123456789"));
        shelf.keep("b", "1", Arc::new("0123456789"));
        assert_eq!(shelf.find("a", "1").as_deref(), Some(&"0123456789"));
        assert_eq!(shelf.find("a", "2"), None);
        shelf.keep("a", "2", Arc::new("x"));
        assert_eq!(shelf.find("a", "1"), None);
        assert_eq!(shelf.find("a", "2").as_deref(), Some(&"x"));
        // What was looked for last stays the longest.
        shelf.keep("c", "1", Arc::new("012345678901234567890123456"));
        assert_eq!(shelf.find("b", "1"), None);
        assert!(shelf.find("a", "2").is_some() && shelf.find("c", "1").is_some());
        shelf.keep(
            "d",
            "1",
            Arc::new("0123456789012345678901234567890123456789"),
        );
        assert_eq!(shelf.find("d", "1"), None, "what has no room is not kept");
        assert!(shelf.find("a", "2").is_some() && shelf.find("c", "1").is_some());
    }
}
