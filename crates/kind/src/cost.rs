//! The memory that a document takes as a tree. A few bytes of text become a value of 32 bytes, and a map with
//! one field a node of 640, so the length of a body says little. A parser counts each value before it builds
//! it and stops at the limit. The counts are estimates of what `serde_json` allocates and do not depend on
//! the allocator.

use std::cell::Cell;
use std::fmt;

/// The most bytes that the tree of one request body may take.
pub const MAX_TREE_BYTES: usize = 32 * 1024 * 1024;

/// A value within a list, twice: a list doubles when it is full.
const ITEM: usize = 64;
/// The first values of a list, for which it allocates at once.
const FIRST_ITEMS: usize = 4;
/// A node of a map.
const NODE: usize = 640;
/// The entries of the first node of a map.
const FIRST_ENTRIES: usize = 11;
/// The entries of each further node: a full one is split in two.
const ENTRIES: usize = 6;
/// What an allocation takes beside its bytes.
const ALLOCATION: usize = 16;

/// The bytes that a tree may still take.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    spent: Cell<usize>,
}

/// The tree would take more than its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The budget in bytes.
    pub limit: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the body takes more than {} bytes of memory when it is read",
            self.limit
        )
    }
}

impl std::error::Error for TooLarge {}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(MAX_TREE_BYTES)
    }
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Budget {
            limit,
            spent: Cell::new(0),
        }
    }

    /// The bytes counted so far; more than the limit if something was refused.
    pub fn spent(&self) -> usize {
        self.spent.get()
    }

    /// Forgets what was counted: what was built of it has been dropped.
    pub fn reset(&self) {
        self.spent.set(0);
    }

    /// The error, if something was refused.
    pub fn exceeded(&self) -> Option<TooLarge> {
        let limit = self.limit;
        (self.spent.get() > limit).then_some(TooLarge { limit })
    }

    /// Counts text of `length` bytes.
    pub fn text(&self, length: usize) -> Result<(), TooLarge> {
        match length {
            0 => Ok(()),
            length => self.spend(length.saturating_add(ALLOCATION)),
        }
    }

    /// Counts a value that is added to a list of `length` values.
    pub fn item(&self, length: usize) -> Result<(), TooLarge> {
        match length {
            0 => self.spend(FIRST_ITEMS * ITEM / 2 + ALLOCATION),
            length if length < FIRST_ITEMS => Ok(()),
            _ => self.spend(ITEM),
        }
    }

    /// Counts an entry with a key of `key` bytes that is added to a map of `length` entries.
    pub fn entry(&self, length: usize, key: usize) -> Result<(), TooLarge> {
        let fills = length.checked_sub(FIRST_ENTRIES);
        if length == 0 || fills.is_some_and(|more| more % ENTRIES == 0) {
            self.spend(NODE)?;
        }
        self.text(key)
    }

    fn spend(&self, bytes: usize) -> Result<(), TooLarge> {
        self.spent.set(self.spent.get().saturating_add(bytes));
        self.exceeded().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_refuses_what_does_not_fit_and_everything_after_it() {
        let budget = Budget::new(100);
        assert_eq!(budget.text(84), Ok(()));
        assert_eq!((budget.spent(), budget.exceeded()), (100, None));
        let refused = TooLarge { limit: 100 };
        assert_eq!(budget.text(1), Err(refused));
        assert_eq!(budget.exceeded(), Some(refused));
        assert_eq!(budget.text(usize::MAX), Err(refused));
        assert_eq!(budget.text(1), Err(refused));
    }

    #[test]
    fn lists_and_maps_are_counted_as_they_grow() {
        let budget = Budget::default();
        let spent = |count: &dyn Fn()| {
            let before = budget.spent();
            count();
            budget.spent() - before
        };
        let items: Vec<usize> = (0..6)
            .map(|length| spent(&|| budget.item(length).unwrap()))
            .collect();
        assert_eq!(items, [144, 0, 0, 0, 64, 64]);
        let nodes: Vec<usize> = (0..30)
            .filter(|length| spent(&|| budget.entry(*length, 0).unwrap()) == NODE)
            .collect();
        assert_eq!(nodes, [0, 11, 17, 23, 29]);
        assert_eq!(spent(&|| budget.entry(1, 5).unwrap()), 5 + ALLOCATION);
    }
}
