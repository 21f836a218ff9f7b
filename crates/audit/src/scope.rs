//! What is audited at all: which namespaces and kinds, and which share of them is this process's.

use muster_policy::{Served, request};
use std::collections::BTreeSet;
use std::str::FromStr;

/// What is audited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only these namespaces, if any are named; then nothing outside of namespaces.
    pub namespaces: BTreeSet<String>,
    /// Never these.
    pub ignored: BTreeSet<String>,
    /// Only these resources, as `pods` or `deployments.apps`, or kinds, if any are named.
    pub kinds: BTreeSet<String>,
    /// Which share.
    pub shard: Shard,
}

impl Scope {
    /// Whether a resource is audited.
    pub fn includes(&self, served: &Served) -> bool {
        if !self.namespaces.is_empty() && !served.namespaced {
            return false;
        }
        self.kinds.is_empty()
            || self.kinds.iter().any(|written| {
                let (name, group) = match written.split_once('.') {
                    Some((name, group)) => (name, Some(group)),
                    None => (written.as_str(), None),
                };
                let named = name.eq_ignore_ascii_case(&served.resource)
                    || name.eq_ignore_ascii_case(&served.kind);
                named && group.is_none_or(|group| group == served.group)
            })
    }

    /// Whether what is in a namespace is audited; a namespace itself is in itself.
    pub fn reaches(&self, namespace: Option<&str>) -> bool {
        let Some(namespace) = namespace else {
            return self.namespaces.is_empty();
        };
        !self.ignored.contains(namespace)
            && (self.namespaces.is_empty() || self.namespaces.contains(namespace))
    }
}

/// Which share of all objects, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Default for Shard {
    fn default() -> Self {
        Shard { number: 1, of: 1 }
    }
}

impl Shard {
    /// Whether an object is in this share. An object is always in the same one.
    pub fn has(self, uid: &str) -> bool {
        self.is_whole()
            || request::hash(uid.as_bytes()) % u64::from(self.of) == u64::from(self.number - 1)
    }

    /// Whether it is the first one, which does what has to be done once.
    pub fn is_first(self) -> bool {
        self.number == 1
    }

    /// Whether it is all there is.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no share; write the second of three as 2/3");
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let read = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (number, of) = (read(number)?, read(of)?);
        if number == 0 || number > of || of > 1000 {
            return Err(wrong());
        }
        Ok(Shard { number, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, resource: &str, kind: &str, namespaced: bool) -> Served {
        Served {
            group: group.into(),
            resource: resource.into(),
            kind: kind.into(),
            namespaced,
            versions: vec!["v1".into()],
        }
    }

    #[test]
    fn kinds_are_named_by_resource_or_kind_with_or_without_their_group() {
        let deployments = served("apps", "deployments", "Deployment", true);
        for (kinds, included) in [
            (&[][..], true),
            (&["deployments"], true),
            (&["Deployment"], true),
            (&["deployment.apps"], true),
            (&["deployments.extensions"], false),
            (&["pods", "deployments.apps"], true),
            (&["pods"], false),
        ] {
            let scope = Scope {
                kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
                ..Scope::default()
            };
            assert_eq!(scope.includes(&deployments), included, "{kinds:?}");
        }
    }

    #[test]
    fn namespaces_are_chosen_and_ignored() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (only, ignored, namespace, reached) in [
            (&[][..], &[][..], Some("a"), true),
            (&[], &["a"], Some("a"), false),
            (&["a"], &[], Some("a"), true),
            (&["a"], &["a"], Some("a"), false),
            (&["a"], &[], Some("b"), false),
            (&[], &["a"], None, true),
            (&["a"], &[], None, false),
        ] {
            let scope = Scope {
                namespaces: names(only),
                ignored: names(ignored),
                ..Scope::default()
            };
            assert_eq!(scope.reaches(namespace), reached, "{only:?} {ignored:?}");
        }
        let scope = Scope {
            namespaces: names(&["a"]),
            ..Scope::default()
        };
        assert!(!scope.includes(&served("", "nodes", "Node", false)));
    }

    #[test]
    fn every_object_is_in_one_share() {
        let shards: Vec<Shard> = (1..=3)
            .map(|number| format!("{number}/3").parse().unwrap())
            .collect();
        let mut sizes = [0; 3];
        for number in 0..300 {
            let uid = number.to_string();
            let in_it: Vec<usize> = (0..3).filter(|at| shards[*at].has(&uid)).collect();
            assert_eq!(in_it.len(), 1, "{uid}");
            sizes[in_it[0]] += 1;
        }
        assert!(sizes.iter().all(|size| *size > 60), "{sizes:?}");
        for wrong in ["", "1", "0/1", "2/1", "a/b", "1/1001", "1/0"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
