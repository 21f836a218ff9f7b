//! What has to be done about one object: which policies keep their answer, and which are asked again. A
//! policy is asked only if the object, the policy or its code is another than when it answered. One that
//! cannot be reached has no other code: what it answered stands until it can, and the report is stale.

use crate::note::{Key, Mark, Note, Pair, Stamp};
use crate::view::{Interest, Namespaces};
use muster_policy::{Prepared, Standing, Target};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A policy that is to be asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Which one.
    pub key: Key,
    /// What its answer will depend on.
    pub stamp: Stamp,
    /// Who answers.
    pub prepared: Arc<Prepared>,
    /// In which version it is to be shown the object.
    pub version: String,
}

/// What has to be done about an object.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// What stays as it is.
    pub kept: BTreeMap<Key, Pair>,
    /// Who is asked.
    pub questions: Vec<Question>,
    /// Who could be asked again to say what it said before.
    pub others: Vec<Question>,
}

impl Plan {
    /// For an object with the hash `object`, about which `known` was noted.
    pub fn new(
        interest: &Interest,
        target: Target,
        namespaces: &Namespaces,
        controller: Option<&str>,
        object: u64,
        known: &Note,
    ) -> Plan {
        let mut plan = Plan::default();
        for one in &interest.policies {
            let standing = one
                .policy
                .standing(&interest.served, target, namespaces, controller);
            let before = known.pairs.get(&one.key);
            match (standing, &one.ready) {
                (Standing::Apart, _) => {}
                (Standing::Excluded, _) => {
                    let pair = Pair {
                        stamp: Stamp::new(one.policy.hash(), 0),
                        mark: Mark::Skip,
                    };
                    plan.kept.insert(one.key, pair);
                }
                // It is not known yet who answers; what was answered stands until then.
                (Standing::Asked(_), None) => {
                    if let Some(before) = before {
                        plan.kept.insert(one.key, *before);
                    }
                }
                (Standing::Asked(version), Some((stamp, prepared))) => {
                    let question = Question {
                        key: one.key,
                        stamp: *stamp,
                        prepared: prepared.clone(),
                        version: version.into(),
                    };
                    // While a policy cannot be reached it still says what it said, if it is the same.
                    let says_so = |before: &Pair| match prepared.is_unreachable() {
                        true => before.stamp.says_the_same(*stamp),
                        false => before.stamp == *stamp,
                    };
                    let same = before.filter(|before| {
                        known.object == Some(object) && says_so(before) && before.mark != Mark::Skip
                    });
                    match same {
                        Some(before) => {
                            plan.kept.insert(one.key, *before);
                            plan.others.push(question);
                        }
                        None => plan.questions.push(question),
                    }
                }
            }
        }
        plan
    }

    /// Why the report is stale, if it keeps the line of a policy that cannot be reached. Other code, or an
    /// earlier version of Muster, may have made that line.
    pub fn stale(&self) -> Option<String> {
        let other = self.others.iter().find(|other| {
            let is_in_doubt = |before: &Pair| before.mark.is_said() && before.stamp != other.stamp;
            other.prepared.is_unreachable() && self.kept.get(&other.key).is_some_and(is_in_doubt)
        })?;
        let policy = other.prepared.policy.unique_name();
        Some(format!(
            "not evaluated: {policy}: the policy cannot be reached"
        ))
    }

    /// Whether everything is as it was noted, and current.
    pub fn is_done(&self, object: u64, known: &Note) -> bool {
        self.questions.is_empty()
            && self.stale().is_none()
            && self.kept == known.pairs
            && (known.object == Some(object) || self.kept.is_empty())
    }

    /// Asks also those whose line, which they said before, is not found any longer.
    pub fn ask_again(&mut self, is_lost: impl Fn(&Question) -> bool) {
        let (lost, others) = std::mem::take(&mut self.others)
            .into_iter()
            .partition(|other| self.kept[&other.key].mark.is_said() && is_lost(other));
        self.others = others;
        for question in &lost as &Vec<Question> {
            self.kept.remove(&question.key);
        }
        self.questions.extend(lost);
    }
}

#[cfg(test)]
mod tests;
