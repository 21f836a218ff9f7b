//! Evaluations that are left running, counted for each owner. A thread cannot be stopped, so an evaluation
//! that does not answer in time runs on without a caller. An owner with [`MAX_LEFT_EACH`] of them evaluates
//! nothing more until one ends; other owners go on. All tenants together have at most [`MAX_LEFT_TENANTS`],
//! so the number of threads is bounded whatever the number of tenants. Evaluations of the installation have
//! counts of their own, which tenants cannot use up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most evaluations of one owner that are left running.
pub(crate) const MAX_LEFT_EACH: usize = 4;
/// The most evaluations of all tenants together that are left running.
pub(crate) const MAX_LEFT_TENANTS: usize = 32;

/// The owner of an evaluation: it is counted there while it is left running.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A part of the installation, whose policies only administrators write.
    Installation(&'static str),
    /// A tenant, such as a namespace.
    Tenant(Arc<str>),
}

impl Default for Owner {
    fn default() -> Owner {
        Owner::Installation("")
    }
}

/// How many evaluations of each owner are left running.
#[derive(Debug, Default)]
pub(crate) struct Left(Mutex<BTreeMap<Owner, usize>>);

/// The count of the process.
pub(crate) static LEFT: Left = Left::new();

impl Left {
    pub(crate) const fn new() -> Left {
        Left(Mutex::new(BTreeMap::new()))
    }

    /// Why nothing can be evaluated for an owner at the moment, if a limit is reached.
    pub(crate) fn refusal(&self, owner: &Owner) -> Option<&'static str> {
        let counts = self.counts();
        let own = counts.get(owner).copied().unwrap_or_default();
        if own >= MAX_LEFT_EACH {
            return Some("too many evaluations of the same owner are still running");
        }
        let is_tenant = |owner: &Owner| matches!(owner, Owner::Tenant(_));
        let tenants = counts.iter().filter(|(other, _)| is_tenant(other));
        let all: usize = tenants.map(|(_, count)| count).sum();
        (is_tenant(owner) && all >= MAX_LEFT_TENANTS)
            .then_some("too many evaluations of all namespaces together are still running")
    }

    pub(crate) fn add(&self, owner: &Owner, more: usize) {
        let mut counts = self.counts();
        let count = counts.entry(owner.clone()).or_default();
        *count = count.saturating_add(more);
    }

    pub(crate) fn remove(&self, owner: &Owner, less: usize) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(owner) {
            *count = count.saturating_sub(less);
            if *count == 0 {
                counts.remove(owner);
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<Owner, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All places of an owner, taken; see [`occupy`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Occupied(Owner);

/// Takes all places of an owner until the result is dropped, as evaluations without an end do. For tests.
#[doc(hidden)]
pub fn occupy(owner: &Owner) -> Occupied {
    LEFT.add(owner, MAX_LEFT_EACH);
    Occupied(owner.clone())
}

impl Drop for Occupied {
    fn drop(&mut self) {
        LEFT.remove(&self.0, MAX_LEFT_EACH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_at_its_limit_refuses_nothing_to_others() {
        let left = Left::new();
        let tenant = |number: usize| Owner::Tenant(format!("n{number}").into());
        let (checks, cluster) = (
            Owner::Installation("checks"),
            Owner::Installation("cluster"),
        );
        let is_refused = |owner: &Owner| left.refusal(owner).is_some();
        left.add(&tenant(0), MAX_LEFT_EACH);
        for (owner, refused) in [
            (&tenant(0), true),
            (&tenant(1), false),
            (&checks, false),
            (&cluster, false),
        ] {
            assert_eq!(is_refused(owner), refused, "{owner:?}");
        }
        // All tenants together have a limit too; the installation is not part of it.
        for number in 1..MAX_LEFT_TENANTS / MAX_LEFT_EACH {
            left.add(&tenant(number), MAX_LEFT_EACH);
        }
        for (owner, refused) in [(&tenant(99), true), (&checks, false), (&cluster, false)] {
            assert_eq!(is_refused(owner), refused, "{owner:?}");
        }
        left.add(&checks, MAX_LEFT_EACH);
        left.remove(&tenant(0), 1);
        for (owner, refused) in [
            (&tenant(0), false),
            (&tenant(99), false),
            (&checks, true),
            (&cluster, false),
        ] {
            assert_eq!(is_refused(owner), refused, "{owner:?}");
        }
    }
}
