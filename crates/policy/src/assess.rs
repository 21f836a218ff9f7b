//! What each policy has to say about one object: nothing, that it is not asked, or a verdict. The audit
//! that never ends and the one that is made once decide it here, so that they cannot disagree.

use crate::cel::Conditions;
use crate::evaluate::Evaluator;
use crate::load::LoadError;
use crate::policy::Policy;
use crate::request::Request;
use crate::rules::{Namespaces, Served, Target};
use crate::verdict::Verdict;
use std::sync::Arc;

/// What a policy is judged with, once its code is there.
#[derive(Debug)]
pub struct Judge {
    /// Who judges.
    pub evaluator: Arc<dyn Evaluator>,
    /// What has to hold before it is asked.
    pub conditions: Conditions,
    /// Covers the code: the same code has the same number.
    pub code: u64,
}

/// A policy, and its judge or why there is none.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Who judges.
    pub judge: Result<Arc<Judge>, LoadError>,
}

/// How a policy stands to an object, as far as its rules and selectors tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing<'a> {
    /// It is not about this object.
    Apart,
    /// It is, but it leaves out what is already there.
    Excluded,
    /// It is to be asked, and to be shown the object in this version.
    Asked(&'a str),
}

impl Policy {
    /// How the policy stands to an object. `controller` is the namespace of the admission controller,
    /// which policies for the whole cluster leave alone.
    pub fn standing<'a>(
        &self,
        served: &'a Served,
        target: Target,
        namespaces: &impl Namespaces,
        controller: Option<&str>,
    ) -> Standing<'a> {
        let Some(version) = self.version_of(served) else {
            return Standing::Apart;
        };
        if !self.selects(served, target, namespaces, controller) {
            return Standing::Apart;
        }
        if self.background {
            Standing::Asked(version)
        } else {
            Standing::Excluded
        }
    }
}

impl Prepared {
    /// Asks the policy about an object that it is to be asked about; nothing if its conditions do not
    /// hold. It may take as long as the policy may, so it is called on a thread that may block.
    pub fn ask(&self, request: &Request) -> Option<Verdict> {
        let judge = match &self.judge {
            Ok(judge) => judge,
            Err(error) => {
                return Some(Verdict::error(format!("the policy does not load: {error}")));
            }
        };
        match judge.conditions.hold(request) {
            Ok(true) => Some(judge.evaluator.judge(request)),
            Ok(false) => None,
            // As at admission: a policy that fails open is not asked, one that fails closed refuses.
            Err(_) if !self.policy.fail_on_trouble => None,
            Err(why) => Some(Verdict::error(why)),
        }
    }

    /// Whether the policy cannot be asked only because something cannot be reached at the moment.
    pub fn is_unreachable(&self) -> bool {
        matches!(self.judge, Err(LoadError::Unreachable(_)))
    }

    /// Whether somebody else judges, whose answer may be another tomorrow.
    pub fn is_remote(&self) -> bool {
        let judge = self.judge.as_ref();
        judge.is_ok_and(|judge| judge.evaluator.is_remote())
    }

    /// Covers all that the answers depend on beside the object: what is written, and what runs.
    pub fn stamp(&self) -> (u64, u64) {
        let code = match &self.judge {
            Ok(judge) => judge.code,
            // In how many ways something is out of reach does not matter to any object.
            Err(LoadError::Unreachable(_)) => crate::request::hash(b"unreachable"),
            Err(error) => crate::request::hash(error.to_string().as_bytes()),
        };
        (self.policy.hash(), code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug)]
    struct Refuses;

    impl Evaluator for Refuses {
        fn judge(&self, _: &Request) -> Verdict {
            Verdict::fail("no")
        }
    }

    fn prepared(spec: serde_json::Value, condition: Option<&str>) -> Prepared {
        let mut policy = json!({
            "apiVersion": "policies.kubewarden.io/v1", "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"module": "m", "mutating": false, "rules": [{"apiGroups": [""],
                "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]},
        });
        for (key, value) in spec.as_object().unwrap() {
            policy["spec"][key] = value.clone();
        }
        let written: Vec<(String, String)> = condition
            .map(|text| ("c".to_owned(), text.to_owned()))
            .into_iter()
            .collect();
        Prepared {
            policy: Arc::new(Policy::read(&policy).unwrap()),
            judge: Ok(Arc::new(Judge {
                evaluator: Arc::new(Refuses),
                conditions: Conditions::compile(&written).unwrap(),
                code: 1,
            })),
        }
    }

    fn pod() -> Request {
        Request::create(
            "pods",
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}}),
        )
    }

    #[test]
    fn conditions_decide_whether_a_policy_is_asked() {
        for (spec, condition, said) in [
            (json!({}), None, Some("no")),
            (json!({}), Some("object.metadata.name == 'a'"), Some("no")),
            (json!({}), Some("object.metadata.name == 'b'"), None),
            (
                json!({"failurePolicy": "Ignore"}),
                Some("object.nothing == 1"),
                None,
            ),
        ] {
            let verdict = prepared(spec.clone(), condition).ask(&pod());
            assert_eq!(
                verdict.as_ref().map(|verdict| verdict.message.as_str()),
                said,
                "{spec} {condition:?}"
            );
        }
        let closed = prepared(json!({}), Some("object.nothing == 1"));
        let verdict = closed.ask(&pod()).unwrap();
        assert_eq!(verdict.outcome, crate::Outcome::Error, "{verdict:?}");
    }

    #[test]
    fn a_policy_that_leaves_out_what_is_there_is_told_from_one_that_is_not_concerned() {
        let served = |resource: &str| Served {
            group: String::new(),
            resource: resource.into(),
            kind: "Pod".into(),
            namespaced: true,
            versions: vec!["v1".into()],
        };
        let (pods, services) = (served("pods"), served("services"));
        let labels = BTreeMap::new();
        let target = Target {
            namespace: Some("n"),
            name: "a",
            labels: &labels,
        };
        let namespaces: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (spec, served, expected) in [
            (json!({}), &pods, Standing::Asked("v1")),
            (json!({}), &services, Standing::Apart),
            (json!({"backgroundAudit": false}), &pods, Standing::Excluded),
            (json!({"background": false}), &services, Standing::Apart),
            (
                json!({"objectSelector": {"matchLabels": {"a": "b"}}}),
                &pods,
                Standing::Apart,
            ),
        ] {
            let policy = prepared(spec.clone(), None).policy;
            let standing = policy.standing(served, target, &namespaces, None);
            assert_eq!(standing, expected, "{spec}");
        }
        let policy = prepared(json!({}), None).policy;
        let own = policy.standing(&pods, target, &namespaces, Some("n"));
        assert_eq!(own, Standing::Apart, "the controller's own namespace");
    }

    #[test]
    fn a_policy_that_does_not_load_says_so_of_every_object() {
        let mut prepared = prepared(json!({}), None);
        let before = prepared.stamp();
        prepared.judge = Err(LoadError::Settings("too few".into()));
        let verdict = prepared.ask(&pod()).unwrap();
        assert_eq!(
            (verdict.outcome, verdict.message.as_str()),
            (
                crate::Outcome::Error,
                "the policy does not load: the settings are refused: too few"
            )
        );
        assert_ne!(prepared.stamp(), before);
        assert!(!prepared.is_unreachable());
        // One that cannot be reached is the same whatever stands in the way.
        let stamps = ["429", "timeout"].map(|why| {
            prepared.judge = Err(LoadError::Unreachable(why.into()));
            assert!(prepared.is_unreachable());
            prepared.stamp()
        });
        assert_eq!(stamps[0], stamps[1]);
    }
}
