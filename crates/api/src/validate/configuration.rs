//! Rules of WorkloadScanConfiguration and VEXHub.

use super::{address, flag, present, registry, selector, text};
use crate::scanner::configuration::NAME;
use muster_kind::{FieldError, name};
use serde_json::Value;

const ARTIFACTS: &str = "spec.artifactsNamespace";

/// Judges a WorkloadScanConfiguration.
pub fn workload_scan_configuration(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(name) = text(new, "metadata.name").filter(|name| *name != NAME) {
        let fault = format!("there is one configuration, and its name is {NAME:?}");
        errors.push(FieldError::invalid("metadata.name", &name.into(), &fault));
    }
    if let Some(namespace) = text(new, ARTIFACTS) {
        let faults = name::label(namespace);
        errors.extend(
            faults
                .iter()
                .map(|f| FieldError::invalid(ARTIFACTS, &namespace.into(), f)),
        );
    }
    // Only while the feature runs is there somebody who moves what lies in the old namespace.
    let moved = old.is_some_and(|old| present(old, ARTIFACTS) != present(new, ARTIFACTS));
    if moved && flag(new, "spec.enabled") == Some(false) {
        let fault = "can only be changed when `enabled` is `true`";
        errors.push(FieldError::forbidden(ARTIFACTS, fault));
    }
    errors.extend(selector::label_selector(new, "spec.namespaceSelector"));
    errors.extend(registry::connection(new));
    errors
}

/// Judges a VEXHub.
pub fn vex_hub(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let url = text(new, "spec.url").unwrap_or_default();
    address::http_url(url)
        .map(|fault| FieldError::invalid("spec.url", &url.into(), fault))
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    fn configuration(name: &str, spec: Value) -> Value {
        json!({"metadata": {"name": name}, "spec": spec})
    }

    #[test]
    fn there_is_one_configuration() {
        for (name, spec, fields) in [
            ("default", json!({}), &[][..]),
            ("other", json!({}), &["metadata.name"]),
            (
                "default",
                json!({"scanInterval": "1s"}),
                &["spec.scanInterval"],
            ),
            ("default", json!({"artifactsNamespace": "A"}), &[ARTIFACTS]),
            (
                "default",
                json!({"namespaceSelector": {"matchLabels": {"a": "?"}}}),
                &["spec.namespaceSelector.matchLabels[a]"],
            ),
        ] {
            let object = configuration(name, spec);
            check::fields(
                &workload_scan_configuration(&object, None),
                fields,
                &object.to_string(),
            );
        }
    }

    #[test]
    fn artifacts_move_only_while_workloads_are_scanned() {
        let at = |enabled: bool, namespace: &str| {
            configuration(
                "default",
                json!({"enabled": enabled, "artifactsNamespace": namespace}),
            )
        };
        for (old, new, fields) in [
            (at(true, "a"), at(true, "b"), &[][..]),
            (at(true, "a"), at(true, ""), &[]),
            (at(false, "a"), at(true, "b"), &[]),
            (at(false, "a"), at(false, "a"), &[]),
            (at(false, "a"), at(false, "b"), &[ARTIFACTS]),
            (at(true, "a"), at(false, "b"), &[ARTIFACTS]),
        ] {
            let case = format!("{old} -> {new}");
            check::fields(
                &workload_scan_configuration(&new, Some(&old)),
                fields,
                &case,
            );
        }
    }

    #[test]
    fn a_hub_needs_an_address() {
        for (url, fields) in [("https://a.b/c", &[][..]), ("git://a.b/c", &["spec.url"])] {
            let object = json!({"spec": {"url": url}});
            check::fields(&vex_hub(&object, None), fields, url);
        }
    }
}
