//! Rules of ScanJob and RegistryDiscovery: a run is about what it was created for, to its end.

use super::{present, text, unchanged};
use muster_kind::{FieldError, name};
use serde_json::Value;

/// Judges a ScanJob.
pub fn scan_job(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let kept = ["spec.registry", "spec.repositories"]
        .iter()
        .filter_map(|path| unchanged(new, old, path));
    registry(new).into_iter().chain(kept).collect()
}

/// A Registry that cannot exist is no Registry that may come to be.
fn registry(new: &Value) -> Option<FieldError> {
    let registry = text(new, "spec.registry")?;
    let fault = name::subdomain(registry).into_iter().next()?;
    let registry = registry.into();
    Some(FieldError::invalid("spec.registry", &registry, &fault))
}

/// Judges a RegistryDiscovery. The copy of the Registry's spec is made after creation, once.
pub fn registry_discovery(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    const COPY: &str = "spec.registrySpec";
    let copied = old
        .is_some_and(|old| present(old, COPY).is_some_and(|spec| present(new, COPY) != Some(spec)));
    let copied = copied.then(|| FieldError::forbidden(COPY, "cannot be changed once it is set"));
    registry(new)
        .into_iter()
        .chain(unchanged(new, old, "spec.registry"))
        .chain(copied)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_is_about_something_that_can_be_a_registry() {
        for (registry, fields) in [
            ("hub", &[][..]),
            ("hub.example", &[]),
            ("my registry", &["spec.registry"]),
            ("hub/status", &["spec.registry"]),
            ("hub?x", &["spec.registry"]),
            ("%68ub", &["spec.registry"]),
            ("é", &["spec.registry"]),
        ] {
            let job = json!({"spec": {"registry": registry}});
            check::fields(&scan_job(&job, None), fields, registry);
            check::fields(&registry_discovery(&job, None), fields, registry);
        }
    }

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
