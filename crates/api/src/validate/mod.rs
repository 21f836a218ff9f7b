//! The rules a schema cannot state: what a text must mean, how fields depend on each other, and
//! what may not change. One module for each family of kinds. Every rule is told the object after
//! defaults and schema, so a value of the wrong type has been reported already and is passed over
//! here. The webhooks, the aggregated server and the embedded one all ask the same functions.

pub mod configuration;
pub mod group;
pub mod job;
pub mod policy;
pub mod registry;
pub mod report;
pub mod server;
pub mod storage;

mod address;
mod certificate;
mod repositories;
mod selector;

use muster_kind::{FieldError, FieldPath};
use serde_json::Value;

/// The text at a path, unless absent or empty: most texts mean nothing when empty.
fn text<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    FieldPath::parse(path)
        .get(object)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// The flag at a path.
fn flag(object: &Value, path: &str) -> Option<bool> {
    FieldPath::parse(path).get(object).and_then(Value::as_bool)
}

/// The items of the array at a path, each with its own path.
fn items<'a>(object: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    match FieldPath::parse(path).get(object) {
        Some(Value::Array(items)) => items
            .iter()
            .enumerate()
            .map(|(index, item)| (format!("{path}[{index}]"), item))
            .collect(),
        _ => Vec::new(),
    }
}

/// The value at a path where absent, null and empty mean the same.
fn present<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    FieldPath::parse(path)
        .get(object)
        .filter(|value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        })
}

/// A field that keeps the value it was created with.
fn unchanged(new: &Value, old: Option<&Value>, path: &str) -> Option<FieldError> {
    let old = old?;
    let value = present(new, path);
    (value != present(old, path))
        .then(|| FieldError::invalid(path, value.unwrap_or(&Value::Null), "field is immutable"))
}

#[cfg(test)]
mod check {
    //! What the tables of cases in this module are judged by.

    use muster_kind::FieldError;

    /// The fields complained about and why, one line each.
    pub(super) fn lines(errors: &[FieldError]) -> Vec<String> {
        errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message))
            .collect()
    }

    /// Asserts that the complaints are about exactly these fields.
    pub(super) fn fields(errors: &[FieldError], expected: &[&str], case: &str) {
        let found: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(found, expected, "{case}: {:?}", lines(errors));
    }
}
