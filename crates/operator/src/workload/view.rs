//! What is known of the cluster and of our own objects, kept by watches and by what was done: as
//! little of each as is needed. Nothing here is true for ever; whoever acts on it writes only if
//! nobody else did.

use super::configuration::Configuration;
use super::ladder::{self, Holdings, Wishes};
use super::pod::Pod;
use super::report::{Held, Place};
use crate::missing;
use kube::api::ObjectMeta;
use muster_api::guard;
use muster_registry::Host;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What a namespace wants, by the Registry that gets it.
pub(crate) type Wanted = BTreeMap<Place, (Host, Wishes)>;

/// A report that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The hash of what it says.
    pub(crate) content: String,
    /// None if nobody can tell what it is about.
    pub(crate) held: Option<Held>,
}

/// A Registry, by its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Registry {
    managed: bool,
    generation: i64,
    missing: BTreeSet<String>,
}

/// What is known.
#[derive(Default)]
pub(crate) struct View {
    configuration: Option<Arc<Configuration>>,
    namespaces: HashMap<String, BTreeMap<String, String>>,
    pods: HashMap<String, HashMap<String, Pod>>,
    registries: HashMap<Place, Registry>,
    /// How many Registries of others there are, by namespace.
    others: HashMap<String, usize>,
    reports: HashMap<String, BTreeMap<String, Report>>,
    /// What the namespaces want that have been looked at.
    wanted: HashMap<String, Wanted>,
    wanting: HashMap<Place, BTreeSet<String>>,
    /// Whether every namespace has been looked at.
    came_round: bool,
}

/// What matters when a namespace is looked at.
pub(crate) struct Scene {
    /// None if nothing of the namespace is to be scanned.
    pub(crate) configuration: Option<Arc<Configuration>>,
    pub(crate) pods: Vec<(String, Pod)>,
    pub(crate) reports: BTreeMap<String, Report>,
    /// Whether others than us have Registries where ours are.
    pub(crate) has_others: bool,
}

impl View {
    /// A configuration, or none; says whether that is news.
    pub(crate) fn configure(&mut self, configuration: Option<Configuration>) -> bool {
        let before = self.configuration.take();
        self.configuration = configuration.map(Arc::new);
        before != self.configuration
    }

    pub(crate) fn configuration(&self) -> Option<Arc<Configuration>> {
        self.configuration.clone()
    }

    /// A namespace that is there to stay, or none; says whether that is news.
    pub(crate) fn namespace(&mut self, name: &str, metadata: Option<ObjectMeta>) -> bool {
        let staying = metadata.filter(|metadata| metadata.deletion_timestamp.is_none());
        match staying {
            Some(metadata) => {
                let labels = metadata.labels.unwrap_or_default();
                let before = self.namespaces.insert(name.to_owned(), labels.clone());
                before != Some(labels)
            }
            None => self.namespaces.remove(name).is_some(),
        }
    }

    /// A pod that runs, or none; says whether that is news.
    pub(crate) fn pod(&mut self, namespace: &str, name: &str, pod: Option<Pod>) -> bool {
        match pod {
            Some(pod) => {
                let pods = self.pods.entry(namespace.to_owned()).or_default();
                let before = pods.insert(name.to_owned(), pod.clone());
                before != Some(pod)
            }
            None => {
                let Some(pods) = self.pods.get_mut(namespace) else {
                    return false;
                };
                let was_there = pods.remove(name).is_some();
                if pods.is_empty() {
                    self.pods.remove(namespace);
                }
                was_there
            }
        }
    }

    /// A Registry, or none; says which namespaces are to be looked at for it.
    pub(crate) fn registry(&mut self, place: &Place, metadata: Option<ObjectMeta>) -> Affected {
        let registry = metadata.map(|metadata| Registry {
            managed: guard::is_managed(&json!({"metadata": {"labels": metadata.labels}})),
            generation: metadata.generation.unwrap_or_default(),
            missing: missing::of(&metadata),
        });
        let before = match registry.clone() {
            Some(registry) => self.registries.insert(place.clone(), registry),
            None => self.registries.remove(place),
        };
        let is_other = |one: &Option<Registry>| one.as_ref().is_some_and(|one| !one.managed);
        let others = self.others.entry(place.namespace.clone()).or_default();
        match (is_other(&before), is_other(&registry)) {
            (false, true) => *others += 1,
            (true, false) => *others -= 1,
            _ => {}
        }
        match (&before, &registry) {
            (Some(Registry { managed: false, .. }), _)
            | (_, Some(Registry { managed: false, .. })) => {
                Affected::Around(place.namespace.clone())
            }
            // It went, or somebody wrote it: we ourselves, or an operator that led before.
            (Some(_), None) => Affected::Registry,
            (Some(before), Some(now)) if before.generation < now.generation => Affected::Registry,
            (Some(before), Some(now)) if before.missing != now.missing => {
                let wanting = self.wanting.get(place).cloned();
                Affected::Namespaces(wanting.unwrap_or_default())
            }
            (None, Some(now)) if !now.missing.is_empty() => {
                let wanting = self.wanting.get(place).cloned();
                Affected::Namespaces(wanting.unwrap_or_default())
            }
            _ => Affected::Nothing,
        }
    }

    /// Whether the registry of a managed Registry was found not to have something.
    pub(crate) fn is_missing(&self, place: &Place, what: &str) -> bool {
        let registry = self.registries.get(place);
        registry.is_some_and(|registry| registry.missing.contains(what))
    }

    /// We have written a Registry, which then is of this generation.
    pub(crate) fn wrote(&mut self, place: &Place, generation: i64) {
        if let Some(registry) = self.registries.get_mut(place) {
            registry.generation = generation;
        }
    }

    /// A report of ours, or none; says what there was before.
    pub(crate) fn report(
        &mut self,
        namespace: &str,
        name: &str,
        report: Option<Report>,
    ) -> Option<Report> {
        match report {
            Some(report) => {
                let reports = self.reports.entry(namespace.to_owned()).or_default();
                reports.insert(name.to_owned(), report)
            }
            None => {
                let reports = self.reports.get_mut(namespace)?;
                let before = reports.remove(name);
                if reports.is_empty() {
                    self.reports.remove(namespace);
                }
                before
            }
        }
    }

    /// What is known of a namespace.
    pub(crate) fn scene(&self, namespace: &str) -> Scene {
        let labels = self.namespaces.get(namespace);
        let selects = |configuration: &Arc<Configuration>| {
            labels.is_some_and(|labels| configuration.selects(labels))
        };
        let configuration = self.configuration.clone().filter(selects);
        let home = configuration.as_ref().map(|one| one.home(namespace));
        let others = home.and_then(|home| self.others.get(home));
        let has_others = others.is_some_and(|count| *count > 0);
        let pods = self.pods.get(namespace).into_iter().flatten();
        Scene {
            configuration,
            pods: pods
                .map(|(name, pod)| (name.clone(), pod.clone()))
                .collect(),
            reports: self.reports.get(namespace).cloned().unwrap_or_default(),
            has_others,
        }
    }

    /// Notes what a namespace wants; says which Registries are affected. One that went while it was
    /// looked at wants nothing.
    pub(crate) fn note(&mut self, namespace: &str, wanted: Wanted) -> Vec<Place> {
        let (before, wanted) = match self.namespaces.contains_key(namespace) {
            true => (
                self.wanted.insert(namespace.to_owned(), wanted.clone()),
                wanted,
            ),
            false => (self.wanted.remove(namespace), Wanted::new()),
        };
        let before = before.unwrap_or_default();
        let places: BTreeSet<&Place> = before.keys().chain(wanted.keys()).collect();
        let mut affected = Vec::new();
        for place in places {
            if before.get(place) == wanted.get(place) {
                continue;
            }
            affected.push(place.clone());
            let wanting = self.wanting.entry(place.clone()).or_default();
            match wanted.contains_key(place) {
                true => drop(wanting.insert(namespace.to_owned())),
                false => drop(wanting.remove(namespace)),
            }
            if wanting.is_empty() {
                self.wanting.remove(place);
            }
        }
        affected
    }

    /// What a Registry is to hold, and of which host.
    pub(crate) fn wanted(&self, place: &Place, before: &Holdings) -> (Option<Host>, Holdings) {
        let wanting = self.wanting.get(place).into_iter().flatten();
        let wishes: Vec<(&str, &(Host, Wishes))> = wanting
            .filter_map(|name| Some((name.as_str(), self.wanted.get(name)?.get(place)?)))
            .collect();
        let host = wishes.first().map(|(_, (host, _))| host.clone());
        let wishes = wishes.into_iter().map(|(name, (_, wishes))| (name, wishes));
        // Of a namespace that is there and was not looked at yet nothing is known, unless nothing
        // is scanned at all.
        let is_unknown = |name: &str| {
            self.configuration.is_some()
                && self.namespaces.contains_key(name)
                && !self.wanted.contains_key(name)
        };
        (host, ladder::climb(before, wishes, is_unknown))
    }

    /// Every namespace that there is something about.
    pub(crate) fn everywhere(&self) -> BTreeSet<String> {
        let known = self.namespaces.keys().chain(self.reports.keys());
        known.chain(self.wanted.keys()).cloned().collect()
    }

    /// The namespaces whose Registries are in this one.
    pub(crate) fn around(&self, home: &str) -> Vec<String> {
        let Some(configuration) = &self.configuration else {
            return Vec::new();
        };
        let names = self.namespaces.keys();
        names
            .filter(|name| configuration.home(name) == home)
            .cloned()
            .collect()
    }

    /// The Registries that are ours.
    pub(crate) fn managed(&self) -> Vec<Place> {
        let managed = self.registries.iter().filter(|(_, one)| one.managed);
        managed.map(|(place, _)| place.clone()).collect()
    }

    /// Whether every namespace has been looked at once; says so once.
    pub(crate) fn has_come_round(&mut self) -> bool {
        let mut names = self.namespaces.keys();
        let is_new = !self.came_round && names.all(|name| self.wanted.contains_key(name));
        self.came_round |= is_new;
        is_new
    }
}

/// What a change of a Registry is a reason to look at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Affected {
    Nothing,
    /// The Registry itself.
    Registry,
    /// Some namespaces.
    Namespaces(BTreeSet<String>),
    /// All whose Registries are in this namespace.
    Around(String),
}

#[cfg(test)]
mod tests;
