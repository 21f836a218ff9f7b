//! What of a Registry is to be scanned: all of it, or some repositories and some of their
//! conditions. It is asked for by an annotation, and two requests are one for both.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The annotation that asks for a scan: empty for all, or JSON. With a suffix of its own behind a
/// hyphen, a request cannot overwrite another.
pub(crate) const REQUEST: &str = "sbomscanner.kubewarden.io/rescan-requested";

/// What is to be scanned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Targets {
    /// The whole Registry.
    All,
    /// Repositories, each with the names of its conditions; all of it where there are none.
    Some(BTreeMap<String, BTreeSet<String>>),
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    #[serde(default)]
    repositories: Vec<Repository>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Repository {
    name: String,
    #[serde(default)]
    match_conditions: Vec<String>,
}

impl Targets {
    /// Reads a request. One that cannot be read asks for all: too much is scanned rather than too
    /// little.
    pub(crate) fn parse(text: &str) -> Self {
        let repositories = match text.trim() {
            "" => Vec::new(),
            text => match serde_json::from_str::<Request>(text) {
                Ok(request) => request.repositories,
                Err(error) => {
                    tracing::warn!(%error, text, "{REQUEST} is not understood; all is scanned");
                    Vec::new()
                }
            },
        };
        let named = repositories.into_iter().map(|repository| {
            let Repository {
                name,
                match_conditions,
            } = repository;
            Targets::repository(name, match_conditions)
        });
        named.reduce(Targets::unite).unwrap_or(Targets::All)
    }

    /// One repository.
    pub(crate) fn repository(name: String, conditions: impl IntoIterator<Item = String>) -> Self {
        Targets::Some(BTreeMap::from([(name, conditions.into_iter().collect())]))
    }

    /// What serves both.
    pub(crate) fn unite(self, other: Targets) -> Targets {
        let (Targets::Some(mut all), Targets::Some(more)) = (self, other) else {
            return Targets::All;
        };
        for (name, conditions) in more {
            all.entry(name)
                .and_modify(|known| {
                    // A whole repository takes its conditions in.
                    if known.is_empty() || conditions.is_empty() {
                        known.clear();
                    } else {
                        known.extend(conditions.iter().cloned());
                    }
                })
                .or_insert(conditions);
        }
        Targets::Some(all)
    }

    /// The request that asks for it.
    pub(crate) fn request(&self) -> String {
        match self {
            Targets::All => String::new(),
            Targets::Some(_) => json!({"repositories": self.repositories()}).to_string(),
        }
    }

    /// The `repositories` of a ScanJob.
    pub(crate) fn repositories(&self) -> Value {
        let Targets::Some(targets) = self else {
            return json!([]);
        };
        let repositories = targets
            .iter()
            .map(|(name, conditions)| match conditions.is_empty() {
                true => json!({ "name": name }),
                false => json!({"name": name, "matchConditions": conditions}),
            });
        repositories.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_what_it_wants() {
        for (text, repositories) in [
            ("", json!([])),
            (" \n", json!([])),
            ("{}", json!([])),
            ("yes please", json!([])),
            (r#"{"repositories": [{}]}"#, json!([])),
            (
                r#"{"repositories": [{"name": "b"}, {"name": "a", "matchConditions": ["y", "x"]}]}"#,
                json!([{"name": "a", "matchConditions": ["x", "y"]}, {"name": "b"}]),
            ),
            (
                r#"{"repositories": [{"name": "a", "matchConditions": ["x"]}, {"name": "a"}]}"#,
                json!([{"name": "a"}]),
            ),
        ] {
            assert_eq!(Targets::parse(text).repositories(), repositories, "{text}");
        }
    }

    #[test]
    fn united_requests_want_what_each_of_them_wants() {
        let some = |name: &str, conditions: &[&str]| {
            Targets::repository(name.into(), conditions.iter().map(|c| (*c).to_owned()))
        };
        for (one, other, repositories) in [
            (Targets::All, some("a", &[]), json!([])),
            (
                some("a", &[]),
                some("b", &["x"]),
                json!([{"name": "a"}, {"name": "b", "matchConditions": ["x"]}]),
            ),
            (
                some("a", &["x"]),
                some("a", &["y"]),
                json!([{"name": "a", "matchConditions": ["x", "y"]}]),
            ),
            (some("a", &["x"]), some("a", &[]), json!([{"name": "a"}])),
        ] {
            assert_eq!(
                one.clone().unite(other.clone()).repositories(),
                repositories
            );
            assert_eq!(other.unite(one).repositories(), repositories);
        }
    }
}
