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

/// The cluster as policies may see it. What they may see of it is decided before: whoever implements
/// this is only asked for kinds that the policy declares.
pub trait Lookup: Send + Sync + fmt::Debug {
    /// One object; none if it is not there. The error is for people.
    fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, String>;

    /// All objects of a kind, of one namespace or of all, that meet the selectors, as a Kubernetes
    /// list. The error is for people.
    fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Value, String>;
}
