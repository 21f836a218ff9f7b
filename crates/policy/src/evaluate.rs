//! Who judges. There is one way to ask a policy, whatever it is written in and wherever it runs; one
//! suite of tests holds for all of them (`tests/it/suite.rs`).

use crate::request::{GroupVersionKind, Request};
use crate::verdict::Verdict;
use serde_json::Value;
use std::fmt;

/// A policy with its settings, ready to judge.
pub trait Evaluator: Send + Sync + fmt::Debug {
    /// Judges. It may take as long as the policy's time allows, so it is called on a thread that may
    /// block; it never panics, and what goes wrong is a verdict too.
    fn judge(&self, request: &Request) -> Verdict;

    /// Whether somebody else judges, whose answer may be another tomorrow though nothing that is known
    /// here has changed.
    fn is_remote(&self) -> bool {
        false
    }
}

/// The cluster as policies may see it. Which kinds a policy may read is decided before: a lookup is only
/// asked for kinds that the policy declares.
pub trait Lookup: Send + Sync + fmt::Debug {
    /// One object.
    fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, LookupError>;

    /// All objects of a kind, of one namespace or of all, that meet the selectors, as a Kubernetes
    /// list.
    fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Value, LookupError>;
}

/// Why a lookup finds nothing. The first three are answers: whoever asks again gets the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// The object does not exist.
    NotFound,
    /// The kind is namespaced, and the question names no namespace.
    NoNamespace,
    /// The kind is cluster-wide, and the question is for those of one namespace.
    ClusterWide,
    /// The lookup could not look, so that nothing is known of the object.
    Unavailable {
        /// Why, for the user.
        reason: String,
        /// Whether the same question may have an answer later.
        is_transient: bool,
    },
}

impl LookupError {
    /// A lookup that may succeed when it is repeated.
    pub fn transient(reason: impl Into<String>) -> Self {
        LookupError::Unavailable {
            reason: reason.into(),
            is_transient: true,
        }
    }

    /// A lookup that fails until the question, or the installation, is another.
    pub fn permanent(reason: impl Into<String>) -> Self {
        LookupError::Unavailable {
            reason: reason.into(),
            is_transient: false,
        }
    }
}
