//! Policies and libraries as they are written in a ConfigMap: keys `policy.NAME.rego`, `policy.NAME.kinds`
//! and `library.NAME.rego`, with or without `conftest.` before them. Nothing is judged here but what is
//! written: whether Rego can be read and kinds are served is somebody else's question ([`crate::force`]).

use crate::kinds::{Kinds, KindsError};
use std::collections::BTreeMap;

/// The ConfigMap of the first design, which says by an annotation in which schema it is written.
pub const CONFTEST: &str = "trivy-operator-conftest-config";
/// The ConfigMap that came after it, which has always named kinds.
pub const POLICIES: &str = "trivy-operator-policies-config";
/// The annotation that says in which schema a ConfigMap is written.
pub const SCHEMA: &str = "trivy-operator.plugin.config.version";
/// The label by which other ConfigMaps are known.
pub const LABEL: &str = "audit.kubewarden.io/config-policies";
/// The most that one ConfigMap may hold, in entries.
const MOST: usize = 2_000;

/// What one policy is written as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What it says.
    pub text: String,
    /// What it is about.
    pub kinds: Kinds,
    /// Whether it may turn out to be a library: in the old schema those are written alike.
    pub is_maybe_library: bool,
}

/// Why an entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Nobody knows what it is about.
    #[error("`{key}` is missing: it says which kinds the policy is about")]
    NoKinds {
        /// The key that would say so.
        key: String,
    },
    /// What it is about is written wrongly.
    #[error("`{key}`: {source}")]
    Kinds {
        /// The key that says so.
        key: String,
        /// Why not.
        source: KindsError,
    },
    /// There are kinds without a policy.
    #[error("`{key}` is missing: there are only its kinds")]
    NoText {
        /// The key that would have the text.
        key: String,
    },
}

/// All that is written in a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The policies, by their names.
    pub policies: BTreeMap<String, Result<Policy, EntryError>>,
    /// The libraries, by their names.
    pub libraries: BTreeMap<String, String>,
}

/// Why nothing of a ConfigMap can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrittenError {
    /// Nobody here knows how it is written.
    #[error("the annotation `{SCHEMA}` says {0:?}; only \"v2\" is known")]
    Schema(String),
    /// There is too much in it.
    #[error("there are more than {MOST} entries")]
    TooMany,
}

/// Whether a ConfigMap has policies: it is one of those that are known by name, or its label says so.
pub fn has_policies(name: &str, label: Option<&str>) -> bool {
    [CONFTEST, POLICIES].contains(&name) || label == Some("true")
}

/// How the policies of a ConfigMap are bound to kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schema {
    /// Every policy is about everything.
    Old,
    /// Every policy says what it is about.
    Kinds,
}

impl Written {
    /// Reads a ConfigMap.
    pub fn read(
        name: &str,
        schema: Option<&str>,
        data: &BTreeMap<String, String>,
    ) -> Result<Written, WrittenError> {
        let schema = match schema {
            Some("v2") => Schema::Kinds,
            Some("" | "v1") => Schema::Old,
            Some(other) => return Err(WrittenError::Schema(other.into())),
            None if name == CONFTEST => Schema::Old,
            None => Schema::Kinds,
        };
        if data.len() > MOST {
            return Err(WrittenError::TooMany);
        }
        let mut written = Written::default();
        for (key, text) in data {
            // What is left says how a job is run, and nothing is run in a job.
            let Some((entry, name, what)) = entry(key) else {
                continue;
            };
            match (entry, what) {
                ("library", "rego") => {
                    written.libraries.insert(name.into(), text.clone());
                }
                ("policy", "rego") => {
                    let policy = policy(schema, key, text, data);
                    written.policies.insert(name.into(), policy);
                }
                ("policy", "kinds") => {
                    let code = sibling(key, "rego");
                    if !data.contains_key(&code) {
                        let missing = EntryError::NoText { key: code };
                        written.policies.insert(name.into(), Err(missing));
                    }
                }
                _ => {}
            }
        }
        Ok(written)
    }
}

fn policy(
    schema: Schema,
    key: &str,
    text: &str,
    data: &BTreeMap<String, String>,
) -> Result<Policy, EntryError> {
    let written = |kinds, is_maybe_library| Policy {
        text: text.into(),
        kinds,
        is_maybe_library,
    };
    if schema == Schema::Old {
        return Ok(written(Kinds::any(), true));
    }
    let key = sibling(key, "kinds");
    let Some(kinds) = data.get(&key) else {
        return Err(EntryError::NoKinds { key });
    };
    match Kinds::read(kinds) {
        Ok(kinds) => Ok(written(kinds, false)),
        Err(source) => Err(EntryError::Kinds { key, source }),
    }
}

/// What a key is about: a policy or a library, its name, and what of it.
fn entry(key: &str) -> Option<(&str, &str, &str)> {
    let rest = key.strip_prefix("conftest.").unwrap_or(key);
    let (entry, rest) = rest.split_once('.')?;
    let (name, what) = rest.rsplit_once('.')?;
    (!name.is_empty()).then_some((entry, name, what))
}

/// The key of another thing about the same policy.
fn sibling(key: &str, what: &str) -> String {
    let stem = key.rsplit_once('.').map_or(key, |(stem, _)| stem);
    format!("{stem}.{what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        let entries = entries.iter();
        entries
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    }

    fn told(written: &Written) -> Vec<String> {
        let policies = written.policies.iter().map(|(name, policy)| match policy {
            Ok(policy) => format!("{name} {}", policy.kinds),
            Err(error) => format!("{name}: {error}"),
        });
        let libraries = written
            .libraries
            .keys()
            .map(|name| format!("library {name}"));
        policies.chain(libraries).collect()
    }

    #[test]
    fn keys_are_read_with_and_without_their_prefix() {
        let entries = data(&[
            ("conftest.imageRef", "openpolicyagent/conftest:v0.30.0"),
            ("conftest.resources.requests.cpu", "50"),
            ("conftest.policy.a.rego", "package a"),
            ("conftest.policy.a.kinds", "Pod, Service"),
            ("policy.b.c.rego", "package b"),
            ("policy.b.c.kinds", "*"),
            ("conftest.library.k.rego", "package k"),
            ("library.l.rego", "package l"),
            ("something", "else"),
        ]);
        let written = Written::read(CONFTEST, Some("v2"), &entries).unwrap();
        assert_eq!(
            told(&written),
            ["a Pod,Service", "b.c *", "library k", "library l"]
        );
    }

    #[test]
    fn a_bad_entry_is_told_and_leaves_the_others_alone() {
        let entries = data(&[
            ("policy.good.rego", ""),
            ("policy.good.kinds", "Workload"),
            ("policy.bare.rego", ""),
            ("policy.wrong.rego", ""),
            ("policy.wrong.kinds", "a b"),
            ("policy.lost.kinds", "Pod"),
        ]);
        let written = Written::read(POLICIES, None, &entries).unwrap();
        assert_eq!(
            told(&written),
            [
                "bare: `policy.bare.kinds` is missing: it says which kinds the policy is about",
                "good Workload",
                "lost: `policy.lost.rego` is missing: there are only its kinds",
                "wrong: `policy.wrong.kinds`: \"a b\" is no kind; write `Pod`, `Deployment.apps`, `apps/v1/Deployment`, `Workload` or `*`",
            ]
        );
    }

    #[test]
    fn in_the_old_schema_every_policy_is_about_everything() {
        let entries = data(&[
            ("conftest.policy.a.rego", ""),
            ("conftest.policy.a.kinds", "Pod"),
            ("conftest.policy.helpers.rego", ""),
        ]);
        for (name, schema, expected) in [
            (CONFTEST, None, "a *"),
            (CONFTEST, Some("v1"), "a *"),
            (CONFTEST, Some("v2"), "a Pod"),
            (POLICIES, None, "a Pod"),
            ("mine", None, "a Pod"),
        ] {
            let written = Written::read(name, schema, &entries).unwrap();
            assert_eq!(told(&written)[0], expected, "{name} {schema:?}");
        }
        let error = Written::read("mine", Some("v3"), &entries).unwrap_err();
        let complaint = "the annotation `trivy-operator.plugin.config.version` says \"v3\"; only \"v2\" is known";
        assert_eq!(error.to_string(), complaint);
    }
}
