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
    values: HashMap<String, (String, Arc<T>)>,
    weight: usize,
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
            }),
            room,
        }
    }

    /// What was distilled from this revision.
    pub(crate) fn find(&self, uid: &str, revision: &str) -> Option<Arc<T>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, value) = kept.values.get(uid)?;
        (known == revision && !uid.is_empty()).then(|| value.clone())
    }

    /// Keeps it in place of what was distilled before.
    pub(crate) fn keep(&self, uid: &str, revision: &str, value: Arc<T>) {
        let weight = value.weight() + uid.len();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.weight + weight > self.room {
            // Objects come and go; what is still there is read again.
            kept.values.clear();
            kept.weight = 0;
        }
        let before = kept
            .values
            .insert(uid.into(), (revision.into(), value))
            .map_or(0, |(_, before)| before.weight() + uid.len());
        kept.weight = (kept.weight + weight).saturating_sub(before);
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
        shelf.keep("c", "1", Arc::new("0123456789012345678901234567"));
        assert_eq!((shelf.find("a", "2"), shelf.find("b", "1")), (None, None));
        assert!(shelf.find("c", "1").is_some());
    }
}
