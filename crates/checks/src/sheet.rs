//! The policies that are about one kind, and their hash. Only these are asked about an object of that
//! kind; where there are none there is no sheet, and nothing is asked. The hash covers all that an answer
//! depends on beside the object: the policies of the kind, every library, and the engine.

use crate::builtin;
use crate::check::Finding;
use crate::exception::Exceptions;
use crate::force::{Accepted, Force};
use crate::hash::{self, Hasher};
use crate::kinds::Kind;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How findings are made of what policies say; a new number has everything judged anew.
const FORM: &str = "2";

/// The policies about a kind.
#[derive(Clone, Debug)]
pub struct Sheet {
    policies: Vec<Arc<Accepted>>,
    hash: String,
}

impl Sheet {
    /// The policies about a kind, if there are any; `served` is everything there is.
    pub fn of(force: &Force, kind: &Kind, served: &[Kind]) -> Option<Sheet> {
        let policies = force.policies();
        let policies: Vec<Arc<Accepted>> = policies
            .filter(|policy| policy.kinds.include(kind, served) && policy.check.is_about(kind))
            .cloned()
            .collect();
        if policies.is_empty() {
            return None;
        }
        let mut hasher = Hasher::default();
        hasher.add_all([muster_rego::VERSION, FORM]);
        for (name, text) in builtin::LIBRARIES {
            hasher.add_all([*name, *text]);
        }
        for (id, text) in force.libraries().iter() {
            hasher.add_all([id.source.as_str(), &id.name, text]);
        }
        for policy in &policies {
            let id = &policy.id;
            hasher.add_all(["policy", id.source.as_str(), &id.name, &policy.text]);
            if policy.libraries != *force.libraries() && id.source != crate::force::BUILTIN {
                for (id, text) in policy.libraries.iter() {
                    hasher.add_all(["for", id.source.as_str(), &id.name, text]);
                }
            }
        }
        Some(Sheet {
            policies,
            hash: hasher.end(),
        })
    }

    /// What the answers of these policies depend on.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// What a report of their answers depends on, beside the object; `all` is whether checks that are
    /// kept are told too.
    pub fn report_hash(&self, all: bool) -> String {
        match all {
            true => hash::of([&*self.hash, "all"]),
            false => self.hash.clone(),
        }
    }

    /// The policies.
    pub fn policies(&self) -> &[Arc<Accepted>] {
        &self.policies
    }

    /// Whether whoever is judged by this one need not be judged by the other too.
    pub fn covers(&self, other: &Sheet) -> bool {
        let own: BTreeSet<_> = self.policies.iter().map(|policy| &policy.id).collect();
        other.policies.iter().all(|policy| own.contains(&policy.id))
    }

    /// What the policies say of an object.
    pub fn judge(&self, kind: &Kind, object: &Object, now: Timestamp) -> Vec<Finding> {
        let input = muster_rego::input(&object.content);
        let namespace = object.content.pointer("/metadata/namespace");
        let namespace = namespace.and_then(Value::as_str);
        let judged = self.policies.iter();
        let mut findings: Vec<Finding> = judged
            .flat_map(|policy| policy.check.judge(&input, kind, namespace))
            .collect();
        if let Some(exceptions) = &object.exceptions {
            for finding in &mut findings {
                exceptions.apply(finding, now);
            }
        }
        findings.sort_by(|one, other| {
            let key = |finding: &Finding| (finding.check.severity, finding.check.id.clone());
            key(one)
                .cmp(&key(other))
                .then_with(|| one.place.cmp(&other.place))
        });
        findings
    }
}

/// An object, as it is judged.
#[derive(Clone, Debug)]
pub struct Object {
    content: Value,
    /// None if they do not count.
    exceptions: Option<Exceptions>,
}

impl Object {
    /// Without what is not judged; `exceptions` is whether those on the object count.
    pub fn new(object: Value, exceptions: bool) -> Object {
        let content = hash::content(object);
        let exceptions = exceptions.then(|| Exceptions::read(&content));
        Object {
            content,
            exceptions,
        }
    }

    /// Covers everything that is judged, and which of its exceptions have ended, or that none count.
    pub fn hash(&self, now: Timestamp) -> String {
        match &self.exceptions {
            Some(exceptions) => hash::of_content(&self.content, exceptions.passed(now)),
            // No check is called that.
            None => hash::of_content(&self.content, ["no exceptions"]),
        }
    }

    /// When it would be judged differently though nothing has changed.
    pub fn turns(&self, now: Timestamp) -> Option<Timestamp> {
        self.exceptions.as_ref()?.next_end(now)
    }
}
