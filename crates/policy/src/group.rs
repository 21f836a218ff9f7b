//! A group of policies: an expression makes one verdict of theirs. Only the members that matter are
//! asked. A member that would change the object counts as refusing it, since a group changes nothing.

use crate::evaluate::Evaluator;
use crate::request::Request;
use crate::verdict::{Cause, Outcome, Verdict};
use muster_api::expression::GroupExpression;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group, ready to judge.
#[derive(Debug)]
pub struct GroupPolicy {
    members: BTreeMap<String, Arc<dyn Evaluator>>,
    expression: GroupExpression,
    message: String,
}

impl GroupPolicy {
    /// A group of `members`, which are all that `expression` asks; `message` is said when it does not
    /// hold.
    pub fn new(
        members: BTreeMap<String, Arc<dyn Evaluator>>,
        expression: GroupExpression,
        message: String,
    ) -> Self {
        GroupPolicy {
            members,
            expression,
            message,
        }
    }
}

impl Evaluator for GroupPolicy {
    fn judge(&self, request: &Request) -> Verdict {
        let mut asked: BTreeMap<&str, Verdict> = BTreeMap::new();
        let mut ask = |name: &str| {
            let Some((name, member)) = self.members.get_key_value(name) else {
                let why = format!("the policy {name:?} is not in the group");
                return Err(Verdict::error(why));
            };
            let verdict = asked
                .entry(name.as_str())
                .or_insert_with(|| member.judge(request));
            match verdict.outcome {
                Outcome::Pass => Ok(verdict.patch.is_none()),
                Outcome::Fail => Ok(false),
                // An expression over an unknown result has none, whatever its other members say.
                Outcome::Error => Err(Verdict {
                    is_transient: verdict.is_transient,
                    was_evaluated: verdict.was_evaluated,
                    ..Verdict::error(format!("the policy {name:?}: {}", verdict.message))
                }),
            }
        };
        let held = self.expression.evaluate(&mut ask);
        let causes: Vec<Cause> = asked
            .iter()
            .filter_map(|(name, verdict)| {
                let message = match verdict.outcome {
                    Outcome::Pass if verdict.patch.is_some() => {
                        "the policy would change the object, which it cannot do in a group".into()
                    }
                    Outcome::Fail => verdict.message.clone(),
                    _ => return None,
                };
                let policy = (*name).to_owned();
                Some(Cause { policy, message })
            })
            .collect();
        let warnings: Vec<String> = asked
            .values()
            .flat_map(|verdict| verdict.warnings.iter().cloned())
            .collect();
        let verdict = match held {
            Ok(true) => Verdict::pass(),
            Ok(false) => Verdict::fail(&self.message).with_causes(causes),
            Err(error) => error,
        };
        verdict.with_warnings(warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A member that always says the same.
    #[derive(Debug)]
    struct Says(Verdict);

    impl Evaluator for Says {
        fn judge(&self, _: &Request) -> Verdict {
            self.0.clone()
        }
    }

    fn judge(expression: &str) -> Verdict {
        let patch = vec![json!({"op": "add", "path": "/a", "value": 1})];
        let says = |verdict| Arc::new(Says(verdict)) as Arc<dyn Evaluator>;
        let members = BTreeMap::from([
            (
                "good".into(),
                says(Verdict::pass().with_warnings(["old".into()])),
            ),
            ("bad".into(), says(Verdict::fail("too bad"))),
            ("changes".into(), says(Verdict::pass().with_patch(patch))),
            ("broken".into(), says(Verdict::error("boom"))),
            ("away".into(), says(Verdict::transient_error("later"))),
            ("refused".into(), says(Verdict::transient_error("not now"))),
        ]);
        let expression = GroupExpression::parse(expression).unwrap();
        let group = GroupPolicy::new(members, expression, "not like this".into());
        group.judge(&Request::create("pods", json!({})))
    }

    #[test]
    fn a_group_holds_if_its_expression_does() {
        for (expression, outcome, message, causes) in [
            ("good()", Outcome::Pass, "", &[][..]),
            ("bad() || good()", Outcome::Pass, "", &[]),
            ("good() && bad()", Outcome::Fail, "not like this", &["bad"]),
            (
                "bad() || changes()",
                Outcome::Fail,
                "not like this",
                &["bad", "changes"],
            ),
            ("!bad() && !changes()", Outcome::Pass, "", &[]),
            ("good() || broken()", Outcome::Pass, "", &[]),
            (
                "good() && broken()",
                Outcome::Error,
                "the policy \"broken\": boom",
                &[],
            ),
            (
                "good() && !broken()",
                Outcome::Error,
                "the policy \"broken\": boom",
                &[],
            ),
            (
                "broken() == bad()",
                Outcome::Error,
                "the policy \"broken\": boom",
                &[],
            ),
        ] {
            let verdict = judge(expression);
            assert_eq!(
                (verdict.outcome, verdict.message.as_str()),
                (outcome, message),
                "{expression}"
            );
            let found: Vec<&str> = verdict.causes.iter().map(|c| c.policy.as_str()).collect();
            assert_eq!(found, causes, "{expression}");
        }
        assert_eq!(judge("good()").warnings, ["old"]);
        assert!(judge("good() && !away()").is_transient);
        assert!(!judge("good() && !broken()").is_transient);
    }

    #[test]
    fn a_group_without_a_result_is_retried_only_if_a_member_was_not_evaluated() {
        for (expression, is_transient) in [
            ("good()", false),
            ("good() && broken()", false),
            ("good() && refused()", true),
        ] {
            let verdict = judge(expression);
            assert_eq!(
                verdict.is_transient, is_transient,
                "{expression}: {verdict:?}"
            );
        }
    }
}
