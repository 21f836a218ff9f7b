//! What a policy judges. It is decided as an API server decides which webhooks it asks, so that an
//! audit says of an object what admission would have said: the same wildcards, scopes, selectors and
//! versions. Only creations are simulated, and only of whole objects.

use crate::policy::Policy;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The label that every namespace has, with its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Whether other versions of a resource are meant too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum MatchPolicy {
    /// Only the versions that are written.
    Exact,
    /// All versions of the same resource.
    #[default]
    Equivalent,
}

/// One rule of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// API groups, or `*`.
    pub api_groups: Vec<String>,
    /// Versions, or `*`.
    pub api_versions: Vec<String>,
    /// Resources, with their subresources, or wildcards.
    pub resources: Vec<String>,
    /// Operations, or `*`.
    pub operations: Vec<String>,
    /// `Cluster`, `Namespaced`, `*` or nothing.
    pub scope: Option<String>,
}

/// A resource that an API server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The API group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// The kind.
    pub kind: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// The versions it is served in, the preferred one first.
    pub versions: Vec<String>,
}

impl Served {
    /// Whether objects of this resource are ever judged. What audits and scanners write about others
    /// is not, nor what only says that somebody is alive: judging it would never end, as every verdict
    /// would be another object to judge.
    pub fn is_audited(&self) -> bool {
        let told_about_others = self.resource.ends_with("reports")
            || self.group.ends_with("storage.sbomscanner.kubewarden.io")
            || matches!(
                self.group.as_str(),
                "wgpolicyk8s.io"
                    | "openreports.io"
                    | "aquasecurity.github.io"
                    | "reports.kyverno.io"
            );
        let alive = matches!(
            (self.group.as_str(), self.resource.as_str()),
            ("" | "events.k8s.io", "events")
                | ("coordination.k8s.io", "leases")
                | ("discovery.k8s.io", "endpointslices")
        );
        !told_about_others && !alive
    }

    /// Whether an API server asks webhooks about it: never about what says whom it asks, since a
    /// mistake there could not be put right.
    fn is_admitted(&self) -> bool {
        let configuration = matches!(
            self.resource.as_str(),
            "validatingwebhookconfigurations"
                | "mutatingwebhookconfigurations"
                | "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
        );
        !(configuration && self.group == "admissionregistration.k8s.io")
    }

    fn is_namespaces(&self) -> bool {
        self.group.is_empty() && self.resource == "namespaces"
    }
}

/// The namespaces of a cluster, as far as rules ask for them.
pub trait Namespaces {
    /// The labels of a namespace; none if it is not known.
    fn labels(&self, name: &str) -> Option<&BTreeMap<String, String>>;
}

impl Namespaces for BTreeMap<String, BTreeMap<String, String>> {
    fn labels(&self, name: &str) -> Option<&BTreeMap<String, String>> {
        self.get(name)
    }
}

/// An object, as far as rules ask about it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Its namespace, if it has one.
    pub namespace: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

impl Rule {
    fn covers(&self, served: &Served, version: &str) -> bool {
        let has =
            |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        let resource = self.resources.iter().any(|written| {
            let (resource, part) = written.split_once('/').unwrap_or((written, ""));
            (resource == "*" || resource == served.resource) && (part.is_empty() || part == "*")
        });
        let scope = match self.scope.as_deref() {
            Some("Namespaced") => served.namespaced,
            Some("Cluster") => !served.namespaced,
            _ => true,
        };
        resource
            && scope
            && has(&self.operations, "CREATE")
            && has(&self.api_groups, &served.group)
            && has(&self.api_versions, version)
    }
}

impl Policy {
    /// In which version the policy is shown objects of a resource; none if it does not judge them.
    /// Where it takes several, it is the one that the server prefers.
    pub fn version_of<'a>(&self, served: &'a Served) -> Option<&'a str> {
        let judged = served.is_audited() && served.is_admitted();
        if !judged || (self.sort.is_namespaced() && !served.namespaced) {
            return None;
        }
        // A webhook that names another version is sent the object in that one if versions are
        // equivalent; if not, it hears only of requests that were made in it. Objects that are there
        // have been written in some version, and nobody knows in which: so both are the same here.
        let mut versions = served.versions.iter();
        versions
            .find(|version| self.rules.iter().any(|rule| rule.covers(served, version)))
            .map(String::as_str)
    }

    /// Whether the policy judges an object of a resource that it judges in general. Conditions in CEL
    /// are asked later, by whoever has the whole object.
    pub fn selects(
        &self,
        served: &Served,
        target: Target,
        namespaces: &impl Namespaces,
        controller: Option<&str>,
    ) -> bool {
        self.object_selector.matches(target.labels)
            && self.is_in_reach(served, target, namespaces, controller)
    }

    fn is_in_reach(
        &self,
        served: &Served,
        target: Target,
        namespaces: &impl Namespaces,
        controller: Option<&str>,
    ) -> bool {
        if self.sort.is_namespaced() {
            return target.namespace.is_some() && target.namespace == self.namespace.as_deref();
        }
        // A namespace is in itself.
        let within = match served.is_namespaces() {
            true => Some(target.name),
            false => target.namespace,
        };
        if within.is_some() && within == controller && !self.everywhere {
            return false;
        }
        if self.namespace_selector.is_empty() {
            return true;
        }
        let labelled = |name: &str, labels: Option<&BTreeMap<String, String>>| {
            let mut labels = labels.cloned().unwrap_or_default();
            labels.insert(NAME_LABEL.into(), name.into());
            self.namespace_selector.matches(&labels)
        };
        match target.namespace {
            Some(namespace) => labelled(namespace, namespaces.labels(namespace)),
            // A namespace is chosen by its own labels; what is in none is always in reach.
            None if served.is_namespaces() => labelled(target.name, Some(target.labels)),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests;
