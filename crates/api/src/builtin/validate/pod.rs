//! Pods and pod templates: their containers, and what of a pod may change.

use crate::builtin::cell::{items, text};
use muster_kind::{FieldError, name};
use serde_json::Value;
use std::collections::HashSet;

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];

pub(in crate::builtin) fn pod(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    spec(&new["spec"], "spec", &mut errors);
    if let Some(old) = old {
        update(new, old, &mut errors);
    }
    errors
}

/// Only images and a few deadlines of a pod may change; the real server adds a difference of its
/// internal form to the message, which is left out here.
fn update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    for list in ["containers", "initContainers"] {
        let pointer = format!("/spec/{list}");
        if items(new, &pointer).len() != items(old, &pointer).len() {
            let detail = match list {
                "containers" => "pod updates may not add or remove containers",
                _ => "pod updates may not add or remove init containers",
            };
            errors.push(FieldError::forbidden(&format!("spec.{list}"), detail));
            return;
        }
    }
    if fixed(new) != fixed(old) {
        errors.push(FieldError::forbidden("spec", UPDATABLE));
    }
}

/// The part of a pod's spec that stays as it is.
fn fixed(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    for list in ["containers", "initContainers"] {
        for container in spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        for field in [
            "activeDeadlineSeconds",
            "ephemeralContainers",
            "schedulingGates",
            "terminationGracePeriodSeconds",
            "tolerations",
        ] {
            spec.remove(field);
        }
        spec.retain(|_, value| *value != serde_json::json!([]));
    }
    spec
}

/// The spec of a pod or of a template.
pub(super) fn spec(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let containers = items(spec, "/containers");
    if containers.is_empty() {
        errors.push(FieldError::required(&format!("{path}.containers"), ""));
    }
    let mut names = HashSet::new();
    for (list, containers) in [
        ("containers", containers),
        ("initContainers", items(spec, "/initContainers")),
    ] {
        for (index, container) in containers.iter().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            check_container(container, spec, &path, errors);
            let name = text(container, "/name");
            if !names.insert(name) && !name.is_empty() {
                errors.push(FieldError::duplicate(&format!("{path}.name"), &name.into()));
            }
        }
    }
    if let Some(policy) = spec.get("restartPolicy")
        && !policy
            .as_str()
            .is_some_and(|policy| POLICIES.contains(&policy))
    {
        let path = format!("{path}.restartPolicy");
        errors.push(FieldError::not_supported(&path, policy, &POLICIES));
    }
}

fn check_container(container: &Value, spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match text(container, "/name") {
        "" => errors.push(FieldError::required(&format!("{path}.name"), "")),
        name => super::named(name, &format!("{path}.name"), name::label, errors),
    }
    if text(container, "/image").is_empty() {
        errors.push(FieldError::required(&format!("{path}.image"), ""));
    }
    for (index, port) in items(container, "/ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        match port.get("containerPort") {
            None => errors.push(FieldError::required(&format!("{path}.containerPort"), "")),
            Some(number) if *number == 0 => {
                errors.push(FieldError::required(&format!("{path}.containerPort"), ""));
            }
            Some(number) => super::port(number, &format!("{path}.containerPort"), errors),
        }
        super::protocol(port, &format!("{path}.protocol"), errors);
    }
    let volumes = items(spec, "/volumes");
    for (index, mount) in items(container, "/volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        match text(mount, "/name") {
            "" => errors.push(FieldError::required(&format!("{path}.name"), "")),
            name if volumes.iter().any(|volume| text(volume, "/name") == name) => {}
            name => errors.push(FieldError {
                reason: "FieldValueNotFound",
                field: format!("{path}.name"),
                message: format!("Not found: {name:?}"),
            }),
        }
        if text(mount, "/mountPath").is_empty() {
            errors.push(FieldError::required(&format!("{path}.mountPath"), ""));
        }
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    if let Some(policy) = container.get("imagePullPolicy")
        && !policy
            .as_str()
            .is_some_and(|policy| policies.contains(&policy))
    {
        let path = format!("{path}.imagePullPolicy");
        errors.push(FieldError::not_supported(&path, policy, &policies));
    }
}
