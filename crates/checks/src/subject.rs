//! Whether an object is judged at all. What another object makes is judged there, once: a pod of a
//! ReplicaSet has nothing that its template has not. What runs nothing any longer is not judged either.

use crate::kinds::Kind;
use crate::sheet::Sheet;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Why an object is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Whoever made it is judged in its place.
    Owned,
    /// It runs nothing.
    Inactive,
    /// It has a label that says so.
    Labelled,
}

/// Whether an object is left alone. `sheet` is what would judge it, `sheet_of` what judges another kind.
pub fn is_left(
    object: &Value,
    kind: &Kind,
    sheet: &Sheet,
    labels: &BTreeSet<String>,
    sheet_of: impl Fn(&Kind) -> Option<Arc<Sheet>>,
) -> Option<Left> {
    let own = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object);
    if own.is_some_and(|own| labels.iter().any(|label| own.contains_key(label))) {
        return Some(Left::Labelled);
    }
    if kind.kind == "ReplicaSet" && kind.group == "apps" && !is_active(object) {
        return Some(Left::Inactive);
    }
    let owner = controller(object)?;
    let judged = kind.is_workload() && owner.is_workload();
    let owner = sheet_of(&owner).filter(|_| judged)?;
    // A policy about pods alone has to see pods.
    owner.covers(sheet).then_some(Left::Owned)
}

/// Whether a ReplicaSet has pods, or wants some.
fn is_active(set: &Value) -> bool {
    let count = |at: &str| set.pointer(at).and_then(Value::as_i64);
    count("/spec/replicas").unwrap_or(1) > 0 || count("/status/replicas").unwrap_or(0) > 0
}

fn controller(object: &Value) -> Option<Kind> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(Kind::parse(
        owner["apiVersion"].as_str()?,
        owner["kind"].as_str()?,
    ))
}
