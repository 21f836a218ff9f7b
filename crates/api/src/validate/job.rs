//! Rules of ScanJob and RegistryDiscovery: a run is about what it was created for, to its end.

use super::{present, unchanged};
use muster_kind::FieldError;
use serde_json::Value;

/// Judges a ScanJob.
pub fn scan_job(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    ["spec.registry", "spec.repositories"]
        .iter()
        .filter_map(|path| unchanged(new, old, path))
        .collect()
}

/// Judges a RegistryDiscovery. The copy of the Registry's spec is made after creation, once.
pub fn registry_discovery(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    const COPY: &str = "spec.registrySpec";
    let copied = old
        .is_some_and(|old| present(old, COPY).is_some_and(|spec| present(new, COPY) != Some(spec)));
    let copied = copied.then(|| FieldError::forbidden(COPY, "cannot be changed once it is set"));
    unchanged(new, old, "spec.registry")
        .into_iter()
        .chain(copied)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_scan_job_keeps_its_registry_and_its_targets() {
        let job = |spec: Value| json!({ "spec": spec });
        let created = job(json!({"registry": "a", "repositories": [{"name": "r"}]}));
        assert!(scan_job(&created, None).is_empty());
        for (old, new, fields) in [
            (json!({"registry": "a"}), json!({"registry": "a"}), &[][..]),
            (
                json!({"registry": "a"}),
                json!({"registry": "a", "repositories": []}),
                &[],
            ),
            (
                json!({"registry": "a"}),
                json!({"registry": "b"}),
                &["spec.registry"],
            ),
            (
                json!({"registry": "a", "repositories": [{"name": "r"}]}),
                json!({"registry": "a"}),
                &["spec.repositories"],
            ),
        ] {
            let case = format!("{old} -> {new}");
            check::fields(&scan_job(&job(new), Some(&job(old))), fields, &case);
        }
    }

    #[test]
    fn a_discovery_takes_its_copy_of_the_registry_once() {
        let discovery = |spec: Value| json!({ "spec": spec });
        let bare = json!({"registry": "a"});
        let copied = json!({"registry": "a", "registrySpec": {"uri": "x"}});
        let other = json!({"registry": "a", "registrySpec": {"uri": "y"}});
        for (old, new, fields) in [
            (&bare, &copied, &[][..]),
            (&copied, &copied, &[]),
            (&copied, &other, &["spec.registrySpec"]),
            (&copied, &bare, &["spec.registrySpec"]),
            (&bare, &json!({"registry": "b"}), &["spec.registry"]),
        ] {
            let (old, new) = (discovery(old.clone()), discovery(new.clone()));
            check::fields(
                &registry_discovery(&new, Some(&old)),
                fields,
                &new.to_string(),
            );
        }
    }
}
