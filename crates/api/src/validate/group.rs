//! Rules of ClusterAdmissionPolicyGroup and AdmissionPolicyGroup.

use super::{policy, text};
use crate::expression::{self, GroupExpression};
use muster_kind::{FieldError, FieldPath};
use serde_json::Value;

const POLICIES: &str = "spec.policies";
const EXPRESSION: &str = "spec.expression";
/// The longest that the API server waits for anyone.
const LONGEST: i64 = 30;

/// Judges a ClusterAdmissionPolicyGroup.
pub fn cluster_admission_policy_group(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = policy::shared(new, old);
    errors.extend(members(new));
    errors.extend(verdict(new));
    errors
}

/// Judges an AdmissionPolicyGroup.
pub fn admission_policy_group(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = cluster_admission_policy_group(new, old);
    errors.extend(policy::of_a_namespace(new));
    errors
}

fn members(new: &Value) -> Vec<FieldError> {
    let Some(Value::Object(members)) = FieldPath::parse(POLICIES).get(new) else {
        return Vec::new();
    };
    if members.is_empty() {
        return vec![FieldError::required(
            POLICIES,
            "a group needs at least one policy",
        )];
    }
    let mut errors = Vec::new();
    let mut seconds = 0;
    for (name, member) in members {
        if !expression::is_callable(name) {
            let fault = "must begin with a letter or '_', go on with letters, digits or '_', and \
                         not be a word that CEL keeps for itself";
            errors.push(FieldError::invalid(POLICIES, &name.as_str().into(), fault));
        }
        if let Some(mut error) = policy::module(member, "module") {
            error.field = format!("{POLICIES}[{name}].module");
            errors.push(error);
        }
        seconds += member["timeoutEvalSeconds"].as_i64().unwrap_or(0);
    }
    let limit = new
        .pointer("/spec/timeoutSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(LONGEST);
    if seconds > limit.min(LONGEST) {
        let fault = format!("the policies' timeoutEvalSeconds add up to {seconds}, more than this");
        errors.push(FieldError::invalid(
            "spec.timeoutSeconds",
            &limit.into(),
            &fault,
        ));
    }
    errors
}

fn verdict(new: &Value) -> Vec<FieldError> {
    let Some(written) = text(new, EXPRESSION) else {
        return Vec::new();
    };
    let invalid = |fault: &str| FieldError::invalid(EXPRESSION, &written.into(), fault);
    let parsed = match GroupExpression::parse(written) {
        Ok(parsed) => parsed,
        Err(error) => return vec![invalid(&error.to_string())],
    };
    let mut unknown = parsed.calls();
    unknown.retain(|name| new.pointer(&format!("/spec/policies/{name}")).is_none());
    unknown.sort_unstable();
    unknown.dedup();
    unknown
        .iter()
        .map(|name| invalid(&format!("there is no policy {name:?}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    fn group(expression: &str, policies: Value) -> Value {
        json!({"spec": {
            "expression": expression,
            "policies": policies,
            "timeoutSeconds": 10,
            "rules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"],
            }],
        }})
    }

    #[test]
    fn a_group_is_refused_field_by_field() {
        let one = json!({"a": {"module": "m"}});
        let slow = json!({
            "a": {"module": "m", "timeoutEvalSeconds": 5},
            "b": {"module": "m", "timeoutEvalSeconds": 6},
        });
        for (expression, policies, fields) in [
            ("a()", one.clone(), &[][..]),
            ("!a() || true", one.clone(), &[]),
            ("a() && b() && b()", one.clone(), &[EXPRESSION]),
            ("a() +", one, &[EXPRESSION]),
            ("true", json!({}), &[POLICIES]),
            ("true", json!({"in": {"module": "m"}}), &[POLICIES]),
            ("true", json!({"a-b": {"module": "m"}}), &[POLICIES]),
            (
                "a()",
                json!({"a": {"module": "x://y"}}),
                &["spec.policies[a].module"],
            ),
            ("a()", slow, &["spec.timeoutSeconds"]),
        ] {
            let object = group(expression, policies);
            let errors = cluster_admission_policy_group(&object, None);
            check::fields(&errors, fields, &object.to_string());
        }
    }

    #[test]
    fn a_group_of_a_namespace_may_judge_less() {
        let object = group("a()", json!({"a": {"module": "m"}}));
        check::fields(
            &admission_policy_group(&object, None),
            &["spec.rules[0].resources"],
            "",
        );
    }
}
