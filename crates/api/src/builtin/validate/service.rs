//! Services: their type and their ports.

use crate::builtin::cell::{items, number, text};
use muster_kind::{FieldError, name};
use serde_json::{Value, json};
use std::collections::HashSet;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

pub(in crate::builtin) fn service(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let ports = items(new, "/spec/ports");
    let of = text(new, "/spec/type");
    let headless = text(new, "/spec/clusterIP") == "None";
    if ports.is_empty() && !headless && of != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    if of == "ExternalName" {
        let external = text(new, "/spec/externalName").trim_end_matches('.');
        match external {
            "" => errors.push(FieldError::required("spec.externalName", "")),
            external => super::named(external, "spec.externalName", name::subdomain, &mut errors),
        }
    }
    if !of.is_empty() && !TYPES.contains(&of) {
        errors.push(FieldError::not_supported("spec.type", &of.into(), &TYPES));
    }
    let mut names = HashSet::new();
    let mut taken = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = text(port, "/name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(&format!("{path}.name"), ""));
        } else if !name.is_empty() {
            super::named(name, &format!("{path}.name"), name::label, &mut errors);
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&format!("{path}.name"), &name.into()));
            }
        }
        let zero = json!(0);
        let own = port.get("port").unwrap_or(&zero);
        super::port(own, &format!("{path}.port"), &mut errors);
        super::protocol(port, &format!("{path}.protocol"), &mut errors);
        // An absent target is the port itself.
        let target = port.get("targetPort").unwrap_or(own);
        if target.is_number() {
            super::port(target, &format!("{path}.targetPort"), &mut errors);
        }
        let protocol = match text(port, "/protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        if !taken.insert((number(port, "/port"), protocol)) {
            // The real server shows its internal form of the pair.
            errors.push(FieldError {
                reason: "FieldValueDuplicate",
                field: path,
                message: format!(
                    "Duplicate value: {{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{own},\"TargetPort\":0,\"NodePort\":0}}"
                ),
            });
        }
    }
    errors
}
