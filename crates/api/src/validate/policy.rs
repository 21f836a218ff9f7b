//! Rules of ClusterAdmissionPolicy and AdmissionPolicy, most of which hold for groups as well.

use super::{items, selector, text, unchanged};
use muster_kind::{FieldError, FieldPath, name};
use serde_json::Value;

const SCHEMES: [&str; 4] = ["registry", "http", "https", "file"];
/// Languages that need no module.
const BUILTIN: [&str; 2] = ["builtin:cel", "builtin:rego"];

/// Resources in which others read what policies found; a namespace's own policy could hide it.
const REPORTS: [(&str, &str); 2] = [
    ("wgpolicyk8s.io", "policyreports"),
    ("openreports.io", "reports"),
];

/// Judges a ClusterAdmissionPolicy.
pub fn cluster_admission_policy(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = shared(new, old);
    errors.extend(single(new));
    errors
}

/// Judges an AdmissionPolicy.
pub fn admission_policy(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = cluster_admission_policy(new, old);
    errors.extend(of_a_namespace(new));
    errors
}

/// What holds for every sort of policy.
pub(super) fn shared(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = unchanged(new, old, "spec.policyServer")
        .into_iter()
        .collect();
    let was = old.and_then(|old| text(old, "spec.mode"));
    if was == Some("protect") && text(new, "spec.mode") == Some("monitor") {
        let fault = "cannot go back from protect to monitor; delete the policy and create it anew";
        errors.push(FieldError::forbidden("spec.mode", fault));
    }
    for (path, rule) in items(new, "spec.rules") {
        for list in ["apiGroups", "apiVersions", "resources", "operations"] {
            errors.extend(wildcard(&path, rule, list));
        }
    }
    for (path, condition) in items(new, "spec.matchConditions") {
        let faults = text(condition, "name")
            .map(name::qualified)
            .unwrap_or_default();
        let field = format!("{path}.name");
        errors.extend(
            faults
                .iter()
                .map(|f| FieldError::invalid(&field, &condition["name"], f)),
        );
    }
    errors.extend(selector::label_selector(new, "spec.objectSelector"));
    errors.extend(selector::label_selector(new, "spec.namespaceSelector"));
    errors
}

/// What holds for a policy that is not a group.
fn single(new: &Value) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = module(new, "spec.module").into_iter().collect();
    let seconds = |path: &str| FieldPath::parse(path).get(new).and_then(Value::as_i64);
    if let (Some(evaluation), Some(request)) = (
        seconds("spec.timeoutEvalSeconds"),
        seconds("spec.timeoutSeconds"),
    ) && evaluation > request
    {
        let fault = "must not be longer than timeoutSeconds";
        errors.push(FieldError::invalid(
            "spec.timeoutEvalSeconds",
            &evaluation.into(),
            fault,
        ));
    }
    errors
}

/// Where a policy's code may come from.
pub(super) fn module(object: &Value, path: &str) -> Option<FieldError> {
    let module = text(object, path)?;
    let scheme = module.split_once("://").map(|(scheme, _)| scheme);
    let fault = match scheme {
        Some(scheme) if !SCHEMES.contains(&scheme) => {
            "must begin with registry://, http://, https:// or file://, or be a reference"
        }
        _ if module.chars().any(char::is_whitespace) => "must not contain blanks",
        None if module.starts_with("builtin:") && !BUILTIN.contains(&module) => {
            "is not built in; there are builtin:cel and builtin:rego"
        }
        _ => return None,
    };
    Some(FieldError::invalid(path, &module.into(), fault))
}

/// `*` stands alone, and no name is empty but that of the core group.
fn wildcard(path: &str, rule: &Value, list: &str) -> Vec<FieldError> {
    let names = items(rule, list);
    let mut errors = Vec::new();
    if names.len() > 1 && names.iter().any(|(_, name)| *name == "*") {
        let field = format!("{path}.{list}");
        let fault = "if '*' is present, must not specify others";
        errors.push(FieldError::invalid(&field, &rule[list], fault));
    }
    for (place, name) in names {
        if list != "apiGroups" && *name == "" {
            errors.push(FieldError::required(&format!("{path}.{place}"), ""));
        }
    }
    errors
}

/// What a policy of a namespace may not judge: what lies outside of it, everything at once, and
/// the reports about itself.
pub(super) fn of_a_namespace(new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (path, rule) in items(new, "spec.rules") {
        let has = |list: &str, wanted: &str| items(rule, list).iter().any(|(_, v)| *v == wanted);
        if rule["scope"] == "Cluster" {
            let field = format!("{path}.scope");
            errors.push(FieldError::not_supported(
                &field,
                &rule["scope"],
                &["Namespaced", "*"],
            ));
        }
        let field = format!("{path}.resources");
        if has("apiGroups", "*") && (has("resources", "*") || has("resources", "*/*")) {
            let fault = "a policy of a namespace must name its API groups or its resources";
            errors.push(FieldError::forbidden(&field, fault));
        }
        let reports = REPORTS.iter().any(|(group, resource)| {
            (has("apiGroups", group) || has("apiGroups", "*"))
                && ["", "/*"]
                    .iter()
                    .any(|part| has("resources", &format!("{resource}{part}")))
        });
        if reports {
            let fault = "a policy of a namespace must not judge reports of policies";
            errors.push(FieldError::forbidden(&field, fault));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    fn policy(changes: Value) -> Value {
        let mut spec = json!({
            "policyServer": "default",
            "mode": "protect",
            "module": "registry://ghcr.io/kubewarden/policies/pod-privileged:v0.2.2",
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["pods"], "operations": ["CREATE"],
            }],
            "timeoutSeconds": 10,
        });
        for (key, value) in changes.as_object().unwrap() {
            spec[key] = value.clone();
        }
        json!({ "spec": spec })
    }

    fn rule(groups: &[&str], resources: &[&str]) -> Value {
        json!({"rules": [{
            "apiGroups": groups, "apiVersions": ["*"],
            "resources": resources, "operations": ["*"],
        }]})
    }

    #[test]
    fn a_policy_is_refused_field_by_field() {
        for (changes, fields) in [
            (json!({}), &[][..]),
            (json!({"module": "ghcr.io/a/b:1"}), &[]),
            (json!({"module": "ssh://a/b"}), &["spec.module"]),
            (json!({"module": "builtin:cel"}), &[]),
            (json!({"module": "builtin:lua"}), &["spec.module"]),
            (json!({"module": "ghcr.io/a b"}), &["spec.module"]),
            (json!({"timeoutEvalSeconds": 10}), &[]),
            (
                json!({"timeoutEvalSeconds": 11}),
                &["spec.timeoutEvalSeconds"],
            ),
            (
                json!({"matchConditions": [{"name": "a/b", "expression": "true"}]}),
                &[],
            ),
            (
                json!({"matchConditions": [{"name": "a b", "expression": "true"}]}),
                &["spec.matchConditions[0].name"],
            ),
            (rule(&["", "apps"], &["pods", "deployments/*"]), &[]),
            (
                rule(&["*", "apps"], &["pods"]),
                &["spec.rules[0].apiGroups"],
            ),
            (rule(&["*"], &["*", "pods"]), &["spec.rules[0].resources"]),
            (rule(&["*"], &["pods", ""]), &["spec.rules[0].resources[1]"]),
            (rule(&["*"], &["*"]), &[]),
            (
                json!({"objectSelector": {"matchLabels": {"a": "?"}}}),
                &["spec.objectSelector.matchLabels[a]"],
            ),
        ] {
            let object = policy(changes);
            check::fields(
                &cluster_admission_policy(&object, None),
                fields,
                &object.to_string(),
            );
        }
    }

    #[test]
    fn a_policy_of_a_namespace_may_judge_less() {
        for (changes, fields) in [
            (json!({}), &[][..]),
            (rule(&["*"], &["pods"]), &[]),
            (rule(&["apps"], &["*"]), &[]),
            (rule(&["*"], &["*"]), &["spec.rules[0].resources"]),
            (rule(&["*"], &["*/*"]), &["spec.rules[0].resources"]),
            (
                rule(&["wgpolicyk8s.io"], &["policyreports"]),
                &["spec.rules[0].resources"],
            ),
            (
                rule(&["*"], &["policyreports/*"]),
                &["spec.rules[0].resources"],
            ),
            (
                rule(&["openreports.io"], &["reports"]),
                &["spec.rules[0].resources"],
            ),
            (rule(&["example.com"], &["reports"]), &[]),
        ] {
            let object = policy(changes);
            check::fields(
                &admission_policy(&object, None),
                fields,
                &object.to_string(),
            );
        }
        let mut object = policy(json!({}));
        object["spec"]["rules"][0]["scope"] = "Cluster".into();
        check::fields(
            &admission_policy(&object, None),
            &["spec.rules[0].scope"],
            "scope",
        );
    }

    #[test]
    fn a_policy_stays_with_its_server_and_never_becomes_milder() {
        let monitor = json!({"mode": "monitor"});
        for (old, new, fields) in [
            (json!({}), json!({}), &[][..]),
            (monitor.clone(), json!({}), &[]),
            (json!({}), monitor, &["spec.mode"]),
            (
                json!({}),
                json!({"policyServer": "other"}),
                &["spec.policyServer"],
            ),
        ] {
            let case = format!("{old} -> {new}");
            let (old, new) = (policy(old), policy(new));
            check::fields(&cluster_admission_policy(&new, Some(&old)), fields, &case);
        }
    }
}
