//! Roles and bindings: rules that name something, and bindings that name a role and keep it.

use crate::builtin::cell::{items, text};
use muster_kind::{FieldError, name};
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(in crate::builtin) fn role(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    rules(new, true)
}

pub(in crate::builtin) fn cluster_role(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    rules(new, false)
}

fn rules(role: &Value, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in items(role, "/rules").iter().enumerate() {
        let path = format!("rules[{index}]");
        let absent = |field: &str| items(rule, &format!("/{field}")).is_empty();
        let mut require = |field: &str, detail: &str| {
            if absent(field) {
                errors.push(FieldError::required(&format!("{path}.{field}"), detail));
            }
        };
        require("verbs", "verbs must contain at least one value");
        if absent("nonResourceURLs") {
            require(
                "apiGroups",
                "resource rules must supply at least one api group",
            );
            require(
                "resources",
                "resource rules must supply at least one resource",
            );
            continue;
        }
        let path = format!("{path}.nonResourceURLs");
        let urls = &rule["nonResourceURLs"];
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(&path, urls, detail));
        }
        if ["apiGroups", "resources", "resourceNames"]
            .iter()
            .any(|field| !absent(field))
        {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(&path, urls, detail));
        }
    }
    errors
}

pub(in crate::builtin) fn role_binding(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    binding(new, old, &["Role", "ClusterRole"], true)
}

pub(in crate::builtin) fn cluster_role_binding(
    new: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    binding(new, old, &["ClusterRole"], false)
}

fn binding(new: &Value, old: Option<&Value>, kinds: &[&str], namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let part = |object: &Value, field: &str| text(object, &format!("/roleRef/{field}")).to_owned();
    let group = group_of(text(new, "/roleRef/apiGroup"));
    if group != GROUP {
        errors.push(FieldError::not_supported(
            "roleRef.apiGroup",
            &group.into(),
            &[GROUP],
        ));
    }
    let kind = part(new, "kind");
    if !kinds.contains(&kind.as_str()) {
        errors.push(FieldError::not_supported(
            "roleRef.kind",
            &kind.as_str().into(),
            kinds,
        ));
    }
    match part(new, "name").as_str() {
        "" => errors.push(FieldError::required("roleRef.name", "")),
        role => super::named(role, "roleRef.name", name::segment, &mut errors),
    }
    for (index, subject) in items(new, "/subjects").iter().enumerate() {
        check_subject(
            subject,
            &format!("subjects[{index}]"),
            namespaced,
            &mut errors,
        );
    }
    if let Some(old) = old {
        let of = |object| {
            ["apiGroup", "kind", "name"].map(|field| match (field, part(object, field)) {
                ("apiGroup", group) => group_of(&group).to_owned(),
                (_, value) => value,
            })
        };
        if of(new) != of(old) {
            let [group, kind, name] = of(new).map(Value::from);
            errors.push(FieldError {
                reason: "FieldValueInvalid",
                field: "roleRef".into(),
                message: format!(
                    "Invalid value: {{\"APIGroup\":{group},\"Kind\":{kind},\"Name\":{name}}}: cannot change roleRef"
                ),
            });
        }
    }
    errors
}

/// An absent group of a role reference is the one there is.
fn group_of(group: &str) -> &str {
    if group.is_empty() { GROUP } else { group }
}

fn check_subject(subject: &Value, path: &str, namespaced: bool, errors: &mut Vec<FieldError>) {
    let name = text(subject, "/name");
    if name.is_empty() {
        errors.push(FieldError::required(&format!("{path}.name"), ""));
    }
    let group = text(subject, "/apiGroup");
    match text(subject, "/kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                super::named(name, &format!("{path}.name"), name::subdomain, errors);
            }
            if !group.is_empty() {
                let path = format!("{path}.apiGroup");
                errors.push(FieldError::not_supported(&path, &group.into(), &[""]));
            }
            if !namespaced && text(subject, "/namespace").is_empty() {
                errors.push(FieldError::required(&format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group_of(group) != GROUP {
                let path = format!("{path}.apiGroup");
                errors.push(FieldError::not_supported(&path, &group.into(), &[GROUP]));
            }
        }
        kind => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(
                &format!("{path}.kind"),
                &kind.into(),
                &kinds,
            ));
        }
    }
}
