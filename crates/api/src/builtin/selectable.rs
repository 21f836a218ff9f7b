//! What field selectors compare of Kubernetes' own kinds, where that is not the text of the field
//! they name: another field, or the default that an absent one stands for.

use super::cell::text;
use serde_json::Value;

/// The value that a field selector compares; `path` is one of the kind's selectable fields.
pub fn selectable_value(kind: &str, path: &str, object: &Value) -> String {
    let own = || {
        let value = path
            .split('.')
            .try_fold(object, |value, name| value.get(name));
        match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        }
    };
    let or = |default: &str| match own() {
        value if value.is_empty() => default.to_owned(),
        value => value,
    };
    match (kind, path) {
        ("Event", "source") => match text(object, "/source/component") {
            "" => text(object, "/reportingComponent").to_owned(),
            component => component.to_owned(),
        },
        ("Job", "status.successful") => {
            let succeeded = object.pointer("/status/succeeded").and_then(Value::as_i64);
            succeeded.unwrap_or_default().to_string()
        }
        ("Pod", "spec.restartPolicy") => or("Always"),
        ("Pod", "spec.schedulerName") => or("default-scheduler"),
        ("Pod", "spec.hostNetwork") | ("Node", "spec.unschedulable") => or("false"),
        ("ReplicationController", "status.replicas") => or("0"),
        ("Secret", "type") => or("Opaque"),
        ("Service", "spec.type") => or("ClusterIP"),
        _ => own(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_compare_what_the_real_server_compares() {
        for (kind, path, object, value) in [
            (
                "Pod",
                "spec.nodeName",
                json!({"spec": {"nodeName": "n"}}),
                "n",
            ),
            ("Pod", "spec.nodeName", json!({}), ""),
            (
                "Pod",
                "spec.hostNetwork",
                json!({"spec": {"hostNetwork": true}}),
                "true",
            ),
            ("Pod", "spec.hostNetwork", json!({"spec": {}}), "false"),
            ("Pod", "spec.restartPolicy", json!({}), "Always"),
            (
                "Job",
                "status.successful",
                json!({"status": {"succeeded": 2}}),
                "2",
            ),
            ("Job", "status.successful", json!({}), "0"),
            ("Event", "source", json!({"reportingComponent": "r"}), "r"),
            (
                "Event",
                "source",
                json!({"source": {"component": "c"}, "reportingComponent": "r"}),
                "c",
            ),
            (
                "ReplicationController",
                "status.replicas",
                json!({"status": {"replicas": 3}}),
                "3",
            ),
        ] {
            assert_eq!(
                selectable_value(kind, path, &object),
                value,
                "{kind} {path} {object}"
            );
        }
    }
}
