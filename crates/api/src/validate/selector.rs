//! Label selectors: keys and values must be such that a label could ever have them.

use super::items;
use muster_kind::{FieldError, FieldPath, name};
use serde_json::Value;

/// Judges the label selector at a path, if there is one.
pub(super) fn label_selector(object: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let labels = format!("{path}.matchLabels");
    if let Some(Value::Object(wanted)) = FieldPath::parse(&labels).get(object) {
        for (key, value) in wanted {
            judge(
                &mut errors,
                &labels,
                &Value::from(key.as_str()),
                name::qualified,
            );
            judge(
                &mut errors,
                &format!("{labels}[{key}]"),
                value,
                name::label_value,
            );
        }
    }
    for (path, requirement) in items(object, &format!("{path}.matchExpressions")) {
        judge(
            &mut errors,
            &format!("{path}.key"),
            &requirement["key"],
            name::qualified,
        );
        let values = items(requirement, "values");
        let field = format!("{path}.values");
        match requirement["operator"].as_str() {
            Some("In" | "NotIn") if values.is_empty() => errors.push(FieldError::required(
                &field,
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            Some("Exists" | "DoesNotExist") if !values.is_empty() => {
                errors.push(FieldError::forbidden(
                    &field,
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ));
            }
            _ => {}
        }
        for (place, value) in values {
            judge(
                &mut errors,
                &format!("{path}.{place}"),
                value,
                name::label_value,
            );
        }
    }
    errors
}

fn judge(errors: &mut Vec<FieldError>, field: &str, value: &Value, rule: fn(&str) -> Vec<String>) {
    let faults = value.as_str().map(rule).unwrap_or_default();
    errors.extend(
        faults
            .iter()
            .map(|fault| FieldError::invalid(field, value, fault)),
    );
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_must_be_one_that_labels_can_meet() {
        for (selector, fields) in [
            (json!({}), &[][..]),
            (
                json!({"matchLabels": {"kubernetes.io/metadata.name": "production"}}),
                &[],
            ),
            (
                json!({"matchLabels": {"a b": "c"}}),
                &["spec.s.matchLabels"],
            ),
            (
                json!({"matchLabels": {"a": "b c"}}),
                &["spec.s.matchLabels[a]"],
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}),
                &[],
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                &[],
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "NotIn"}]}),
                &["spec.s.matchExpressions[0].values"],
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
                &["spec.s.matchExpressions[0].values"],
            ),
            (
                json!({"matchExpressions": [{"key": "", "operator": "In", "values": ["?"]}]}),
                &[
                    "spec.s.matchExpressions[0].key",
                    "spec.s.matchExpressions[0].key",
                    "spec.s.matchExpressions[0].values[0]",
                ],
            ),
        ] {
            let object = json!({"spec": {"s": selector}});
            check::fields(
                &label_selector(&object, "spec.s"),
                fields,
                &object.to_string(),
            );
        }
    }
}
