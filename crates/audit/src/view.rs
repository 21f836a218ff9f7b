//! What the audit knows of the cluster beside its objects: the policies and who judges by them, what is
//! served, and how namespaces are labelled. From it follows who is interested in which resource, and
//! what a change of it is a reason to look at again.

use crate::ledger::Place;
use crate::note::{Key, Stamp};
use crate::scope::Scope;
use muster_policy::{GroupVersionKind, Policy, Prepared, Served};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The labels of namespaces, by their names.
pub type Namespaces = BTreeMap<String, BTreeMap<String, String>>;

/// A policy, and its judge as far as there is one.
#[derive(Clone, Debug)]
pub struct Known {
    /// The policy as it is written now.
    pub policy: Arc<Policy>,
    /// What judges by it; none until it is known whether it loads.
    pub prepared: Option<Arc<Prepared>>,
    /// When what the policy reads beside objects last changed, as far as that is known.
    pub context: u64,
}

impl Known {
    /// What an answer of the policy depends on, as long as somebody can answer.
    fn stamp(&self) -> Option<Stamp> {
        let (written, code) = self.prepared.as_ref()?.stamp();
        Some(Stamp::new(
            written,
            code.wrapping_add(self.context.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        ))
    }
}

/// A policy that is interested in a resource.
#[derive(Clone, Debug)]
pub struct Interested {
    /// Which one.
    pub key: Key,
    /// The policy.
    pub policy: Arc<Policy>,
    /// What its answers depend on, and who answers; none while that is not known.
    pub ready: Option<(Stamp, Arc<Prepared>)>,
}

/// Who is interested in a resource.
#[derive(Clone, Debug)]
pub struct Interest {
    /// The resource.
    pub served: Arc<Served>,
    /// The policies.
    pub policies: Vec<Interested>,
}

/// What is known.
#[derive(Debug, Default)]
pub struct View {
    /// When it began to know anything.
    since: u64,
    served: Vec<Arc<Served>>,
    policies: BTreeMap<Key, Known>,
    namespaces: Arc<Namespaces>,
    interests: HashMap<Place, Arc<Interest>>,
}

/// What has to be looked at again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Resources in which other policies are interested than before, or the same in another way.
    pub places: BTreeSet<Place>,
    /// Resources in which nobody is interested any longer.
    pub left: BTreeSet<Place>,
}

impl View {
    /// A view that knows nothing of what was before.
    pub fn since(now: u64) -> View {
        View {
            since: now,
            ..View::default()
        }
    }

    /// Who is interested in a resource.
    pub fn interest(&self, place: &Place) -> Option<Arc<Interest>> {
        self.interests.get(place).cloned()
    }

    /// Every resource that somebody is interested in.
    pub fn interests(&self) -> impl Iterator<Item = (&Place, &Arc<Interest>)> {
        self.interests.iter()
    }

    /// Whether a resource is served.
    pub fn is_served(&self, place: &Place) -> bool {
        let mut served = self.served.iter();
        served.any(|one| one.group == place.0 && one.resource == place.1)
    }

    /// What is served.
    pub fn served(&self) -> Vec<Served> {
        self.served.iter().map(|one| Served::clone(one)).collect()
    }

    /// The labels of all namespaces.
    pub fn namespaces(&self) -> Arc<Namespaces> {
        self.namespaces.clone()
    }

    /// A policy.
    pub fn policy(&self, key: Key) -> Option<&Known> {
        self.policies.get(&key)
    }

    /// All policies.
    pub fn policies(&self) -> impl Iterator<Item = (Key, &Known)> {
        self.policies.iter().map(|(key, known)| (*key, known))
    }

    /// Notes a policy, or that it is gone; says whether it has to be prepared, that is, whether
    /// something was written in it that matters.
    pub fn write_policy(&mut self, key: Key, policy: Option<Policy>) -> bool {
        let Some(policy) = policy.map(Arc::new) else {
            self.policies.remove(&key);
            return false;
        };
        match self.policies.get_mut(&key) {
            Some(known) if known.policy.hash() == policy.hash() => {
                // Its status, or something else that does not matter; lines tell the new revision.
                if let Some(prepared) = &known.prepared {
                    let mut prepared = Prepared::clone(prepared);
                    prepared.policy = policy.clone();
                    known.prepared = Some(Arc::new(prepared));
                }
                known.policy = policy;
                false
            }
            Some(known) => {
                known.policy = policy;
                true
            }
            None => {
                // Nobody knows whether what it reads changed before.
                let reads = !policy.context_aware().is_empty();
                let known = Known {
                    policy,
                    prepared: None,
                    context: if reads { self.since } else { 0 },
                };
                self.policies.insert(key, known);
                true
            }
        }
    }

    /// Notes who judges by a policy, unless it has been written anew meanwhile.
    pub fn prepare_policy(&mut self, key: Key, prepared: Prepared) -> bool {
        match self.policies.get_mut(&key) {
            Some(known) if known.policy.hash() == prepared.policy.hash() => {
                let policy = known.policy.clone();
                known.prepared = Some(Arc::new(Prepared { policy, ..prepared }));
                true
            }
            _ => false,
        }
    }

    /// Something changed of a kind that policies read; says whether any does.
    pub fn touch(&mut self, kind: &GroupVersionKind, now: u64) -> bool {
        let mut any = false;
        for known in self.policies.values_mut() {
            if known.policy.context_aware().contains(kind) {
                known.context = now;
                any = true;
            }
        }
        any
    }

    /// The kinds that policies read.
    pub fn context(&self) -> BTreeSet<GroupVersionKind> {
        let policies = self.policies.values();
        policies
            .filter(|known| known.policy.background)
            .flat_map(|known| known.policy.context_aware())
            // Nobody is told what is in them.
            .filter(|kind| !kind.is_secret())
            .collect()
    }

    /// Notes what is served.
    pub fn serve(&mut self, served: Vec<Served>) {
        self.served = served.into_iter().map(Arc::new).collect();
    }

    /// Notes a namespace's labels, or that it is gone; says whether a policy could care.
    pub fn write_namespace(
        &mut self,
        name: &str,
        labels: Option<BTreeMap<String, String>>,
    ) -> bool {
        if self.namespaces.get(name) == labels.as_ref() {
            return false;
        }
        let namespaces = Arc::make_mut(&mut self.namespaces);
        let there = labels.is_some();
        match labels {
            Some(labels) => {
                namespaces.insert(name.into(), labels);
            }
            None => {
                namespaces.remove(name);
            }
        }
        let selects = |known: &Known| !known.policy.namespace_selector.is_empty();
        there && self.policies.values().any(selects)
    }

    /// Finds out anew who is interested in what.
    pub fn settle(&mut self, scope: &Scope) -> Changed {
        let mut interests = HashMap::new();
        for served in self.served.iter().filter(|served| scope.includes(served)) {
            let policies: Vec<Interested> = self
                .policies
                .iter()
                .filter(|(_, known)| known.policy.version_of(served).is_some())
                .map(|(key, known)| Interested {
                    key: *key,
                    policy: known.policy.clone(),
                    ready: known.stamp().zip(known.prepared.clone()),
                })
                .collect();
            if !policies.is_empty() {
                let place = Place::new((served.group.clone(), served.resource.clone()));
                let served = served.clone();
                interests.insert(place, Arc::new(Interest { served, policies }));
            }
        }
        let mut changed = Changed::default();
        for (place, interest) in &interests {
            let before = self.interests.get(place);
            if before.is_none_or(|before| before.differs(interest)) {
                changed.places.insert(place.clone());
            }
        }
        let left = self.interests.keys();
        changed.left = left
            .filter(|place| !interests.contains_key(*place))
            .cloned()
            .collect();
        self.interests = interests;
        changed
    }
}

impl Interest {
    /// Whether other policies would be asked, or the same would answer differently.
    fn differs(&self, other: &Interest) -> bool {
        let ask = |interest: &Interest| -> Vec<(Key, u64, Option<Stamp>)> {
            let policies = interest.policies.iter();
            policies
                .map(|one| {
                    let stamp = one.ready.as_ref().map(|(stamp, _)| *stamp);
                    (one.key, one.policy.hash(), stamp)
                })
                .collect()
        };
        self.served != other.served || ask(self) != ask(other)
    }
}

#[cfg(test)]
mod tests;
