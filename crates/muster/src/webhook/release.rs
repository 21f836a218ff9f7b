//! What Helm does with the webhook configurations. The chart has both, without webhooks, and operators
//! fill them in. `helm uninstall` deletes them before it deletes the operators.

use kube::ResourceExt;
use kube::api::DynamicObject;

/// The label that says what owns an object.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const HELM: &str = "Helm";

/// What was seen of the configurations so far.
#[derive(Default)]
pub(super) struct Release {
    is_owner: bool,
    misses_one: bool,
}

impl Release {
    /// Whether to write the configurations now, given those that exist. If one that Helm owns is gone,
    /// Helm may be deleting the release: it is put back only if it is still missing the next time.
    pub(super) fn lets_write(&mut self, found: &[Option<DynamicObject>]) -> bool {
        let owner = |one: &DynamicObject| one.labels().get(MANAGED_BY).is_some_and(|by| by == HELM);
        self.is_owner |= found.iter().flatten().any(owner);
        let misses_one = found.iter().any(Option::is_none);
        let missed_one = std::mem::replace(&mut self.misses_one, misses_one);
        !misses_one || missed_one || !self.is_owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::{ApiResource, GroupVersionKind};

    fn found(by: &str) -> Option<DynamicObject> {
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "Some");
        let mut object = DynamicObject::new("muster", &ApiResource::from_gvk(&kind));
        object.labels_mut().insert(MANAGED_BY.into(), by.into());
        Some(object)
    }

    #[test]
    fn a_configuration_that_helm_deletes_is_not_put_back_at_once() {
        let both = |by: &str| [found(by), found(by)];
        let (none, one) = ([None, None], [found(HELM), None]);
        for (looks, expected) in [
            // Without Helm.
            (vec![none.clone(), both("")], vec![true, true]),
            (vec![both(""), none.clone()], vec![true, true]),
            // With Helm: deleted for good, by mistake, and while an operator starts.
            (vec![both(HELM), none.clone()], vec![true, false]),
            (
                vec![both(HELM), none.clone(), none.clone()],
                vec![true, false, true],
            ),
            (vec![one.clone(), none.clone()], vec![false, true]),
            (
                vec![both(HELM), one.clone(), both(HELM), one],
                vec![true, false, true, false],
            ),
        ] {
            let mut release = Release::default();
            let writes: Vec<bool> = looks.iter().map(|look| release.lets_write(look)).collect();
            assert_eq!(writes, expected, "{looks:?}");
        }
    }
}
