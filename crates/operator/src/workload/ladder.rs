//! What the managed Registries hold: for every repository the tags and digests that run, and for each
//! of them the namespaces that want it. A namespace that wants it no more takes its label away; a
//! condition without labels goes, then a repository without conditions, then a Registry without
//! repositories. The outcome depends on what is wanted now and on nothing that was before.

use super::seen::{Running, Seen};
use crate::registry::targets::Targets;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// One image of a repository, as a condition names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    Tag(String),
    Digest(String),
}

/// What a namespace wants of a registry, by repository.
pub(crate) type Wishes = BTreeMap<String, BTreeSet<Wish>>;

/// What a Registry holds: by repository and wish, the namespaces it is for.
pub(crate) type Holdings = BTreeMap<String, BTreeMap<Wish, BTreeSet<String>>>;

impl Wish {
    /// What a running image gives rise to. Its tag, for that is what people know it by, and the digest
    /// that runs, for the tag may move; a pinned image is its digest and nothing else.
    pub(crate) fn of(seen: &Seen) -> impl Iterator<Item = Wish> {
        let tag = match &seen.running {
            Running::Pinned(_) => None,
            _ => seen.tag.clone().map(Wish::Tag),
        };
        let digest = match &seen.running {
            Running::Pinned(digest) | Running::Pulled(digest) => {
                Some(Wish::Digest(digest.to_string()))
            }
            Running::Unknown | Running::Configured(_) => None,
        };
        tag.into_iter().chain(digest)
    }

    /// The name of its condition.
    pub(crate) fn name(&self) -> String {
        match self {
            Wish::Tag(tag) => format!("tag-{tag}"),
            Wish::Digest(digest) => format!("digest-{digest}"),
        }
    }

    fn expression(&self) -> String {
        match self {
            Wish::Tag(tag) => format!("tag == \"{tag}\""),
            Wish::Digest(digest) => format!("digest == \"{digest}\""),
        }
    }

    fn read(expression: &str) -> Option<Wish> {
        let (variable, text) = expression.strip_suffix('"')?.split_once(" == \"")?;
        match variable {
            "tag" => Some(Wish::Tag(text.to_owned())),
            "digest" => Some(Wish::Digest(text.to_owned())),
            _ => None,
        }
    }
}

/// What a Registry is to hold, given what it held and what the namespaces want. Of a namespace that
/// has not been looked at yet, everything stays.
pub(crate) fn climb<'a>(
    before: &Holdings,
    wishes: impl IntoIterator<Item = (&'a str, &'a Wishes)>,
    is_unknown: impl Fn(&str) -> bool,
) -> Holdings {
    let mut after = Holdings::new();
    let mut hold = |repository: &str, wish: &Wish, namespace: &str| {
        let held = after.entry(repository.to_owned()).or_default();
        let namespaces = held.entry(wish.clone()).or_default();
        namespaces.insert(namespace.to_owned());
    };
    for (repository, held) in before {
        for (wish, namespaces) in held {
            for namespace in namespaces.iter().filter(|namespace| is_unknown(namespace)) {
                hold(repository, wish, namespace);
            }
        }
    }
    for (namespace, wishes) in wishes {
        for (repository, wishes) in wishes {
            for wish in wishes {
                hold(repository, wish, namespace);
            }
        }
    }
    after
}

/// What is to be scanned because it was not held before.
pub(crate) fn added(before: &Holdings, after: &Holdings) -> Option<Targets> {
    let mut added = None;
    for (repository, held) in after {
        let known = before.get(repository);
        let new = held
            .keys()
            .filter(|wish| known.is_none_or(|known| !known.contains_key(wish)))
            .map(Wish::name);
        let mut new = new.peekable();
        if new.peek().is_some() {
            let target = Targets::repository(repository.clone(), new);
            added = Some(match added {
                Some(others) => Targets::unite(others, target),
                None => target,
            });
        }
    }
    added
}

/// The repositories of which less is held than before.
pub(crate) fn lessened<'a>(before: &'a Holdings, after: &Holdings) -> Vec<&'a str> {
    let lost = |(repository, held): &(&String, &BTreeMap<Wish, _>)| {
        let now = after.get(*repository);
        held.keys()
            .any(|wish| now.is_none_or(|now| !now.contains_key(wish)))
    };
    let repositories = before.iter().filter(lost);
    repositories
        .map(|(repository, _)| repository.as_str())
        .collect()
}

/// The `repositories` of a Registry's spec.
pub(crate) fn spell(holdings: &Holdings) -> Value {
    let repositories = holdings.iter().map(|(name, held)| {
        let conditions = held.iter().map(|(wish, namespaces)| {
            let labels = namespaces.iter().map(|name| (name.clone(), json!("true")));
            let labels: Map<String, Value> = labels.collect();
            json!({"name": wish.name(), "expression": wish.expression(), "labels": labels})
        });
        let conditions: Vec<Value> = conditions.collect();
        json!({"name": name, "matchOperator": "Or", "matchConditions": conditions})
    });
    repositories.collect()
}

/// What the `repositories` of a spec say; what we would not have written counts as nothing.
pub(crate) fn read(repositories: &Value) -> Holdings {
    let mut holdings = Holdings::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for repository in list(repositories) {
        let Some(name) = repository["name"].as_str() else {
            continue;
        };
        for condition in list(&repository["matchConditions"]) {
            let wish = condition["expression"].as_str().and_then(Wish::read);
            let labels = condition["labels"].as_object();
            if let (Some(wish), Some(labels)) = (wish, labels) {
                let held = holdings.entry(name.to_owned()).or_default();
                held.insert(wish, labels.keys().cloned().collect());
            }
        }
    }
    holdings
}

#[cfg(test)]
mod tests;
