//! The way over from kubectl's client-side apply, which kept the last configuration in an
//! annotation: what that annotation still says truly of the live object, kubectl owns, whoever
//! is on record for it; and the annotation is kept fresh for older clients.

use crate::apply::ApplyRequest;
use crate::compare::compare;
use crate::conflict::Conflicts;
use crate::set::Set;
use crate::typed::to_set;
use crate::validate::validate;
use serde_json::{Map, Value};

/// The only manager for whom all this is done.
pub(crate) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What all annotations of an object may take together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

/// The conflicts that the annotation does not settle; `None` if it settles all.
pub(crate) fn remaining(request: &ApplyRequest<'_>, conflicts: Conflicts) -> Option<Conflicts> {
    let Some(allowed) = owned_by_annotation(request) else {
        return Some(conflicts);
    };
    let Conflicts(mut conflicts) = conflicts;
    conflicts.retain(|conflict| !allowed.contains(&conflict.path));
    (!conflicts.is_empty()).then_some(Conflicts(conflicts))
}

fn owned_by_annotation(request: &ApplyRequest<'_>) -> Option<Set> {
    let live = request.live?;
    let text = live["metadata"]["annotations"].get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last["apiVersion"].as_str() != Some(request.api_version) {
        return None;
    }
    let schema = request.schema;
    validate(&last, schema).ok()?;
    validate(live, schema).ok()?;
    let comparison = compare(&last, live, schema);
    Some(
        to_set(&last, schema)
            .difference(&comparison.modified)
            .difference(&comparison.added)
            .difference(&comparison.removed),
    )
}

/// Writes the applied configuration into the annotation, where the object has it.
pub(crate) fn refresh(object: &mut Value, applied: &Value) {
    let Some(annotations) = annotations_of(object) else {
        return;
    };
    if annotations
        .get(ANNOTATION)
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return;
    }
    let mut last = applied.clone();
    if let Some(annotations) = annotations_of(&mut last) {
        annotations.remove(ANNOTATION);
    }
    annotations.insert(ANNOTATION.into(), format!("{last}\n").into());
    let size: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > ANNOTATIONS_LIMIT {
        annotations.remove(ANNOTATION);
    }
}

fn annotations_of(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object
        .get_mut("metadata")?
        .get_mut("annotations")?
        .as_object_mut()
}
