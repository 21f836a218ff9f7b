//! What a review comes to, from the review alone. An object that was there before a rule may stay
//! as it is: only what an update makes wrong is refused, so that nobody, the operator least of all,
//! is kept from the rest of it; and what is on its way out is not judged at all.

use super::review::Review;
use muster_api::guard::{self, Accounts, Deed};
use muster_kind::object::metadata;
use muster_kind::status::About;
use muster_kind::{FieldError, Kind, Status, structural};
use serde_json::{Value, json};

/// What must be done to an object so that it has its defaults: operations of a JSON patch.
pub(super) fn defaulted(review: &Review, kind: &Kind) -> Vec<Value> {
    let mut operations = Vec::new();
    if let Some(object) = review.object.as_ref().filter(|_| is_whole(review)) {
        let mut whole = object.clone();
        structural::set_defaults(&mut whole, &kind.schema);
        added(object, &whole, &mut String::new(), &mut operations);
    }
    operations
}

/// Whether the write may happen.
pub(super) fn judged(review: &Review, kind: &Kind, accounts: &Accounts) -> Result<(), Status> {
    let deed = Deed {
        group: &review.group,
        kind: &review.kind,
        user: &review.user,
        old: review.old.as_ref(),
        new: review.object.as_ref(),
    };
    guard::judge(deed, accounts).map_err(|why| {
        let about = About {
            group: &kind.group,
            resource: &kind.plural,
        };
        Status::forbidden(about, &review.name, &why)
    })?;
    let Some(object) = review.object.as_ref().filter(|_| is_whole(review)) else {
        return Ok(());
    };
    let wrong = errors(object, review.old.as_ref(), kind);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(
            &kind.group,
            &kind.kind,
            &review.name,
            wrong,
        )),
    }
}

/// Whether the object is written as such, and to stay.
fn is_whole(review: &Review) -> bool {
    let leaving = review.object.as_ref().and_then(metadata);
    let leaving = leaving.is_some_and(|metadata| metadata.contains_key("deletionTimestamp"));
    review.subresource.is_empty() && !leaving
}

/// What is wrong with an object that was not wrong with the one it replaces.
fn errors(object: &Value, old: Option<&Value>, kind: &Kind) -> Vec<FieldError> {
    let shape = |object: &Value| structural::validate(object, &kind.schema);
    let mut wrong = shape(object);
    if let Some(old) = old.filter(|_| !wrong.is_empty()) {
        let before = shape(old);
        wrong.retain(|error| !before.contains(error));
    }
    // The kind's own rules may take the schema's for granted, as far as it is kept.
    let Some(validator) = kind.validator.filter(|_| wrong.is_empty()) else {
        return wrong;
    };
    let mut wrong = validator(object, old);
    if let Some(old) = old.filter(|_| !wrong.is_empty()) {
        let before = validator(old, None);
        wrong.retain(|error| !before.contains(error));
    }
    wrong
}

/// The operations that make of a value what it became; all that becomes of it is more.
fn added(old: &Value, new: &Value, path: &mut String, operations: &mut Vec<Value>) {
    let length = path.len();
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, new) in new {
                path.push('/');
                path.push_str(&key.replace('~', "~0").replace('/', "~1"));
                match old.get(key) {
                    Some(old) => added(old, new, path, operations),
                    None => operations.push(json!({"op": "add", "path": path, "value": new})),
                }
                path.truncate(length);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                path.push_str(&format!("/{index}"));
                added(old, new, path, operations);
                path.truncate(length);
            }
        }
        _ if old == new => {}
        _ => operations.push(json!({"op": "replace", "path": path, "value": new})),
    }
}

#[cfg(test)]
mod tests;
