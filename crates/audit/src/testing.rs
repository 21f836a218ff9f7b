//! Policies and judges that say what a test wants.

use crate::note::Key;
use crate::view::View;
use muster_policy::cel::Conditions;
use muster_policy::{Evaluator, Judge, LoadError, Policy, Prepared, Request, Served, Verdict};
use serde_json::{Value, json};
use std::sync::Arc;

/// Refuses everything.
#[derive(Debug)]
pub(crate) struct Refuses;

impl Evaluator for Refuses {
    fn judge(&self, _: &Request) -> Verdict {
        Verdict::fail("no")
    }
}

/// A policy about pods with the name `name`, with changes in its spec.
pub(crate) fn policy(name: &str, changes: Value) -> Policy {
    let mut policy = json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name, "uid": name},
        "spec": {"module": "m", "mutating": false, "rules": [{"apiGroups": [""],
            "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]},
    });
    for (key, value) in changes.as_object().unwrap() {
        policy["spec"][key] = value.clone();
    }
    Policy::read(&policy).unwrap()
}

/// The code of a policy that does not load, and of one that cannot be reached.
pub(crate) const REFUSED: u64 = 0;
pub(crate) const UNREACHABLE: u64 = u64::MAX;

/// The same, with a judge.
pub(crate) fn prepared(policy: Policy, code: u64) -> Prepared {
    let judge = Judge {
        evaluator: Arc::new(Refuses),
        conditions: Conditions::compile(&[]).unwrap(),
        // Of a hash the first half is kept.
        code: code << 32,
    };
    Prepared {
        policy: Arc::new(policy),
        judge: match code {
            REFUSED => Err(LoadError::Module("no".into())),
            UNREACHABLE => Err(LoadError::Unreachable("not now".into())),
            _ => Ok(Arc::new(judge)),
        },
    }
}

/// A served resource of the core group.
pub(crate) fn served(resource: &str, kind: &str) -> Served {
    Served {
        group: String::new(),
        resource: resource.into(),
        kind: kind.into(),
        namespaced: true,
        versions: vec!["v1".into()],
    }
}

/// Writes a policy into a view, and prepares it.
pub(crate) fn put(view: &mut View, policy: Policy, code: u64) -> Key {
    let key = Key::of(&policy.uid);
    view.write_policy(key, Some(policy.clone()));
    assert!(view.prepare_policy(key, prepared(policy, code)));
    key
}
