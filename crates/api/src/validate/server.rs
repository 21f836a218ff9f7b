//! Rules of PolicyServer.

use super::{present, text};
use muster_kind::{FieldError, FieldPath, name};
use serde_json::Value;

/// Judges a PolicyServer.
pub fn policy_server(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // The name becomes part of a Service's and of labels, which are shorter than other names.
    if let Some(name) = text(new, "metadata.name") {
        let faults = name::label(name);
        let invalid = |fault: &String| FieldError::invalid("metadata.name", &name.into(), fault);
        errors.extend(faults.iter().map(invalid));
    }
    if present(new, "spec.minAvailable").is_some() && present(new, "spec.maxUnavailable").is_some()
    {
        let fault = "may not be set together with minAvailable";
        errors.push(FieldError::forbidden("spec.maxUnavailable", fault));
    }
    for field in ["spec.image", "spec.replicas"] {
        if text(new, "spec.address").is_none() && present(new, field).is_none() {
            let need = "a server that Muster does not reach by an address is deployed from it";
            errors.push(FieldError::required(field, need));
        }
    }
    if let Some(address) = text(new, "spec.address") {
        let rest = ["https://", "http://"]
            .iter()
            .find_map(|scheme| address.strip_prefix(scheme));
        let blank = |c: char| c.is_whitespace() || c.is_control();
        if !rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(blank)) {
            let fault = "must be an address such as https://policy-server.example.com:8443";
            errors.push(FieldError::invalid("spec.address", &address.into(), fault));
        }
    }
    errors.extend(quantities(new, "spec.limits"));
    errors.extend(quantities(new, "spec.requests"));
    if let Some(Value::Object(requests)) = FieldPath::parse("spec.requests").get(new) {
        for (resource, request) in requests {
            let limit = new["spec"]["limits"].get(resource).and_then(quantity);
            if let (Some(limit), Some(asked)) = (limit, quantity(request))
                && asked > limit
            {
                let field = format!("spec.requests[{resource}]");
                errors.push(FieldError::invalid(
                    &field,
                    request,
                    "must not exceed the limit",
                ));
            }
        }
    }
    errors
}

fn quantities(new: &Value, path: &str) -> Vec<FieldError> {
    let Some(Value::Object(amounts)) = FieldPath::parse(path).get(new) else {
        return Vec::new();
    };
    amounts
        .iter()
        .filter(|(_, amount)| !quantity(amount).is_some_and(|amount| amount >= 0.0))
        .map(|(resource, amount)| {
            let fault = "must be a quantity such as 500m or 1Gi, and not negative";
            FieldError::invalid(&format!("{path}[{resource}]"), amount, fault)
        })
        .collect()
}

/// Reads a Kubernetes quantity; exact enough to compare two of them.
fn quantity(value: &Value) -> Option<f64> {
    let Some(text) = value.as_str() else {
        return value.as_f64();
    };
    let end = text
        .find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-'))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let scale = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024f64,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        "Pi" => 1024f64.powi(5),
        "Ei" => 1024f64.powi(6),
        _ => 10f64.powi(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    number.parse::<f64>().ok().map(|number| number * scale)
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_policy_server_is_refused_field_by_field() {
        let long = "a".repeat(64);
        for (name, spec, fields) in [
            ("default", json!({"minAvailable": 1}), &[][..]),
            (long.as_str(), json!({}), &["metadata.name"]),
            (
                "a",
                json!({"minAvailable": 1, "maxUnavailable": "50%"}),
                &["spec.maxUnavailable"],
            ),
            (
                "a",
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}),
                &[],
            ),
            (
                "a",
                json!({"limits": {"cpu": "2e0"}, "requests": {"cpu": 2}}),
                &[],
            ),
            (
                "a",
                json!({"limits": {"memory": "1G"}, "requests": {"memory": "1Gi"}}),
                &["spec.requests[memory]"],
            ),
            (
                "a",
                json!({"limits": {"cpu": "many"}}),
                &["spec.limits[cpu]"],
            ),
            (
                "a",
                json!({"requests": {"cpu": "-1"}}),
                &["spec.requests[cpu]"],
            ),
        ] {
            let mut object = json!({"metadata": {"name": name}, "spec": spec});
            object["spec"]["image"] = "policy-server:1".into();
            object["spec"]["replicas"] = 1.into();
            check::fields(&policy_server(&object, None), fields, &object.to_string());
        }
    }

    #[test]
    fn a_server_is_deployed_or_has_an_address() {
        for (spec, fields) in [
            (json!({"image": "a", "replicas": 1}), &[][..]),
            (json!({"address": "https://policy-server:8443"}), &[]),
            (json!({}), &["spec.image", "spec.replicas"]),
            (json!({"address": "policy-server:8443"}), &["spec.address"]),
            (json!({"address": "https://"}), &["spec.address"]),
        ] {
            let object = json!({"metadata": {"name": "a"}, "spec": spec});
            check::fields(&policy_server(&object, None), fields, &object.to_string());
        }
    }
}
