//! Who may write what a controller manages. A Registry or a WorkloadScanReport that the workload
//! scan made is the controller's alone: whoever else changed it would be overruled, or would hide
//! findings. The same judgement serves the API server's admission and the webhook.

use crate::{scanner, storage};
use muster_kind::object::meta;
use serde_json::{Map, Value};

/// The label of everything that the workload scan made.
pub const WORKLOAD_SCAN: &str = "sbomscanner.kubewarden.io/workloadscan";
/// The label that says who manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Its value on our objects.
pub const MANAGER: &str = "sbomscanner";
/// What the worker may note on a Registry.
const NOTES: &str = "sbomscanner.kubewarden.io/last-";

/// Kubernetes' own controllers, by the accounts they use: one each, or all the same.
const COLLECTORS: [&str; 2] = [
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
];
const NAMESPACES: &str = "system:serviceaccount:kube-system:namespace-controller";

/// The accounts of our own roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounts {
    /// Who reconciles.
    pub controller: String,
    /// Who scans.
    pub worker: String,
}

impl Accounts {
    /// The service accounts of an installation.
    pub fn in_namespace(namespace: &str) -> Self {
        let account = |role: &str| format!("system:serviceaccount:{namespace}:muster-{role}");
        Accounts {
            controller: account("operator"),
            worker: account("worker"),
        }
    }
}

/// A write: what was there, and what is to be there.
#[derive(Clone, Copy, Debug)]
pub struct Deed<'a> {
    /// The API group of the kind.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// Who does it.
    pub user: &'a str,
    /// The object before; none if it is created.
    pub old: Option<&'a Value>,
    /// The object after; none if it is deleted.
    pub new: Option<&'a Value>,
}

/// Whether the write may happen; if not, why.
pub fn judge(deed: Deed<'_>, accounts: &Accounts) -> Result<(), String> {
    let guarded = matches!(
        (deed.group, deed.kind),
        (scanner::GROUP, "Registry") | (storage::GROUP, "WorkloadScanReport")
    );
    let managed = [deed.old, deed.new].into_iter().flatten().any(is_managed);
    if !guarded || !managed || deed.user == accounts.controller {
        return Ok(());
    }
    let collector = COLLECTORS.contains(&deed.user);
    let allowed = match (deed.old, deed.new) {
        (Some(_), None) => collector || deed.user == NAMESPACES,
        (Some(old), Some(new)) if collector => equal_but(old, new, forget_ties),
        (Some(old), Some(new)) if deed.user == accounts.worker => equal_but(old, new, forget_notes),
        _ => false,
    };
    if allowed {
        return Ok(());
    }
    Err(format!(
        "this {} is managed by the workload scan and only {:?} may change it; change the WorkloadScanConfiguration, or the workload, instead",
        deed.kind, accounts.controller
    ))
}

/// Whether the workload scan made an object.
pub fn is_managed(object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    labels[WORKLOAD_SCAN] == "true" || labels[MANAGED_BY] == MANAGER
}

fn equal_but(old: &Value, new: &Value, forget: fn(&mut Map<String, Value>)) -> bool {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // What the server keeps of every write.
            for bookkeeping in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(bookkeeping);
            }
            forget(metadata);
        }
        object
    };
    meta(old, "name") == meta(new, "name") && rest(old) == rest(new)
}

/// What the garbage collector takes away.
fn forget_ties(metadata: &mut Map<String, Value>) {
    metadata.remove("finalizers");
    metadata.remove("ownerReferences");
}

fn forget_notes(metadata: &mut Map<String, Value>) {
    let annotations = metadata.get_mut("annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !key.starts_with(NOTES));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn registry(labels: Value) -> Value {
        json!({"metadata": {"name": "r", "labels": labels}, "spec": {"uri": "x.io"}})
    }

    fn with(mut object: Value, pointer: &str, key: &str, value: Value) -> Value {
        object.pointer_mut(pointer).unwrap()[key] = value;
        object
    }

    #[test]
    fn managed_objects_are_the_controllers() {
        let accounts = Accounts::in_namespace("muster");
        let (controller, worker) = (accounts.controller.as_str(), accounts.worker.as_str());
        let managed = registry(json!({WORKLOAD_SCAN: "true"}));
        let signed = registry(json!({MANAGED_BY: MANAGER}));
        let free = registry(json!({WORKLOAD_SCAN: "false", MANAGED_BY: "helm"}));
        let collector = COLLECTORS[0];
        let changed = with(managed.clone(), "/spec", "uri", json!("y.io"));
        let noted = with(
            managed.clone(),
            "/metadata",
            "annotations",
            json!({"sbomscanner.kubewarden.io/last-discovery-completed": "true"}),
        );
        let annotated = with(
            managed.clone(),
            "/metadata",
            "annotations",
            json!({"sbomscanner.kubewarden.io/rescan": "true"}),
        );
        let ending = with(managed.clone(), "/metadata", "finalizers", json!(["x/y"]));
        for (user, old, new, allowed) in [
            (controller, None, Some(&managed), true),
            (controller, Some(&managed), Some(&changed), true),
            (controller, Some(&managed), None, true),
            ("jane", None, Some(&managed), false),
            ("jane", None, Some(&signed), false),
            ("jane", None, Some(&free), true),
            ("jane", Some(&free), Some(&free), true),
            ("jane", Some(&free), Some(&managed), false),
            ("jane", Some(&managed), Some(&free), false),
            ("jane", Some(&managed), Some(&changed), false),
            ("jane", Some(&managed), None, false),
            ("admin", Some(&signed), None, false),
            (collector, Some(&managed), None, true),
            (collector, Some(&ending), Some(&managed), true),
            (collector, Some(&managed), Some(&changed), false),
            (collector, None, Some(&managed), false),
            (COLLECTORS[1], Some(&managed), None, true),
            (NAMESPACES, Some(&managed), None, true),
            (NAMESPACES, Some(&managed), Some(&changed), false),
            (worker, Some(&managed), Some(&noted), true),
            (worker, Some(&noted), Some(&managed), true),
            (worker, Some(&managed), Some(&annotated), false),
            (worker, Some(&managed), Some(&changed), false),
            (worker, Some(&managed), None, false),
        ] {
            let deed = Deed {
                group: scanner::GROUP,
                kind: "Registry",
                user,
                old,
                new,
            };
            let judged = judge(deed, &accounts);
            assert_eq!(judged.is_ok(), allowed, "{user}: {old:?} to {new:?}");
        }
    }

    #[test]
    fn the_label_is_free_elsewhere() {
        let accounts = Accounts::in_namespace("muster");
        let object = registry(json!({WORKLOAD_SCAN: "true"}));
        for (group, kind) in [(storage::GROUP, "Image"), ("", "Namespace")] {
            let deed = Deed {
                group,
                kind,
                user: "jane",
                old: None,
                new: Some(&object),
            };
            assert_eq!(judge(deed, &accounts), Ok(()), "{kind}");
        }
    }
}
