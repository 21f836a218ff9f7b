//! Label selectors in workloads: whether they are well-formed, and whether they select the pods
//! that the workload's own template makes.

use crate::builtin::cell::{entries, items, text};
use muster_kind::{FieldError, name};
use serde_json::{Map, Value};

/// Says what is wrong with a selector's requirements; whether it can select at all.
pub(super) fn check(selector: &Value, path: &str, errors: &mut Vec<FieldError>) -> bool {
    let mut usable = true;
    for (key, value) in entries(selector, "/matchLabels").into_iter().flatten() {
        let path = format!("{path}.matchLabels");
        let wrong = name::qualified(key);
        usable &= wrong.is_empty();
        errors.extend(
            wrong
                .iter()
                .map(|w| FieldError::invalid(&path, &key.as_str().into(), w)),
        );
        let wrong = name::label_value(value.as_str().unwrap_or_default());
        usable &= wrong.is_empty();
        errors.extend(wrong.iter().map(|w| FieldError::invalid(&path, value, w)));
    }
    for (index, requirement) in items(selector, "/matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let values = items(requirement, "/values");
        let before = errors.len();
        match (text(requirement, "/operator"), values.is_empty()) {
            ("In" | "NotIn", true) => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&format!("{path}.values"), detail));
            }
            ("Exists" | "DoesNotExist", false) => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&format!("{path}.values"), detail));
            }
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            (operator, _) => {
                let detail = "not a valid selector operator";
                let path = format!("{path}.operator");
                errors.push(FieldError::invalid(&path, &operator.into(), detail));
            }
        }
        super::named(
            text(requirement, "/key"),
            &format!("{path}.key"),
            name::qualified,
            errors,
        );
        for (index, value) in values.iter().enumerate() {
            let path = format!("{path}.values[{index}]");
            super::named(
                value.as_str().unwrap_or_default(),
                &path,
                name::label_value,
                errors,
            );
        }
        usable &= errors.len() == before;
    }
    usable
}

/// Whether a selector has no requirements.
pub(super) fn is_empty(selector: &Value) -> bool {
    entries(selector, "/matchLabels").is_none_or(Map::is_empty)
        && items(selector, "/matchExpressions").is_empty()
}

/// Whether labels satisfy a selector; an absent selector selects nothing.
pub(super) fn matches(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> bool {
    let Some(selector) = selector else {
        return false;
    };
    let label = |key: &str| labels.and_then(|labels| labels.get(key));
    let plain = |(key, value): (&String, &Value)| label(key) == Some(value);
    entries(selector, "/matchLabels")
        .into_iter()
        .flatten()
        .all(plain)
        && items(selector, "/matchExpressions")
            .iter()
            .all(|requirement| {
                let found = label(text(requirement, "/key"));
                let listed =
                    found.is_some_and(|found| items(requirement, "/values").contains(found));
                match text(requirement, "/operator") {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => found.is_some(),
                    _ => found.is_none(),
                }
            })
}
