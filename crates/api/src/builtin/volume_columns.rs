//! The columns of volumes and of claims to them.

use super::cell::{age_column, items, quantity, text, text_column, text_or};
use muster_kind::Column;
use serde_json::Value;

fn phase(object: &Value, fresh: &str) -> Value {
    match object.pointer("/metadata/deletionTimestamp") {
        Some(_) => "Terminating".into(),
        None => text_or(object, "/status/phase", fresh),
    }
}

fn access_modes(modes: &[Value]) -> Value {
    let short: Vec<&str> = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .into_iter()
    .filter(|(mode, _)| modes.iter().any(|m| m == mode))
    .map(|(_, short)| short)
    .collect();
    short.join(",").into()
}

fn storage_class(object: &Value) -> Value {
    let annotation = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    match object.pointer(annotation).and_then(Value::as_str) {
        Some(class) => class.into(),
        None => text(object, "/spec/storageClassName").into(),
    }
}

fn volume_mode() -> Column {
    text_column("VolumeMode", |o| {
        text_or(o, "/spec/volumeMode", "Filesystem")
    })
    .wide()
    .describe("A file system or a raw device.")
}

fn attributes_class() -> Column {
    text_column("VolumeAttributesClass", |o| {
        text_or(o, "/spec/volumeAttributesClassName", "<unset>")
    })
    .describe("The class of its attributes.")
}

pub(super) fn persistent_volume() -> Vec<Column> {
    vec![
        text_column("Capacity", |o| {
            quantity(o.pointer("/spec/capacity"), "storage", "0").into()
        })
        .describe("How much it holds."),
        text_column("Access Modes", |o| {
            access_modes(items(o, "/spec/accessModes"))
        })
        .describe("How it can be mounted."),
        text_column("Reclaim Policy", |o| {
            text_or(o, "/spec/persistentVolumeReclaimPolicy", "Retain")
        })
        .describe("What happens when its claim goes."),
        text_column("Status", |o| phase(o, "Pending")).describe("Whether it is claimed."),
        text_column("Claim", |o| match o.pointer("/spec/claimRef") {
            Some(claim) => format!("{}/{}", text(claim, "/namespace"), text(claim, "/name")).into(),
            None => "".into(),
        })
        .describe("The claim that has it."),
        text_column("StorageClass", storage_class).describe("Its storage class."),
        attributes_class(),
        text_column("Reason", |o| text(o, "/status/reason").into()).describe("What went wrong."),
        age_column(),
        volume_mode(),
    ]
}

pub(super) fn persistent_volume_claim() -> Vec<Column> {
    fn bound(claim: &Value, shown: impl Fn(&Value) -> Value) -> Value {
        if text(claim, "/spec/volumeName").is_empty() {
            "".into()
        } else {
            shown(claim)
        }
    }
    vec![
        text_column("Status", |o| phase(o, "Pending")).describe("Whether it has a volume."),
        text_column("Volume", |o| text(o, "/spec/volumeName").into()).describe("Its volume."),
        text_column("Capacity", |o| {
            bound(o, |o| {
                quantity(o.pointer("/status/capacity"), "storage", "0").into()
            })
        })
        .describe("How much the volume holds."),
        text_column("Access Modes", |o| {
            bound(o, |o| access_modes(items(o, "/status/accessModes")))
        })
        .describe("How the volume is mounted."),
        text_column("StorageClass", storage_class).describe("The storage class it asks for."),
        attributes_class(),
        age_column(),
        volume_mode(),
    ]
}
