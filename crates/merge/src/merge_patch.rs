//! JSON merge patch (RFC 7386) as kube-apiserver does it: it also drops the null fields of
//! objects inside the arrays of a patch.

use crate::MAX_DEPTH;
use crate::json_patch::PatchError;
use serde_json::{Map, Value};

/// Reads a patch, which must be an object or an array.
pub fn parse(bytes: &[u8]) -> Result<Value, PatchError> {
    match serde_json::from_slice(bytes) {
        Ok(patch @ (Value::Object(_) | Value::Array(_))) => Ok(patch),
        _ => Err(PatchError::Undecodable("Invalid JSON Patch".into())),
    }
}

/// Applies a patch: null removes a field, objects merge, all else replaces.
pub fn apply(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    merge(target, patch, 0)
}

fn merge(target: &mut Value, patch: &Value, depth: usize) -> Result<(), PatchError> {
    if depth > MAX_DEPTH {
        let message = format!("The patch nests values more than {MAX_DEPTH} levels deep");
        return Err(PatchError::TooLarge(message));
    }
    match patch {
        Value::Object(fields) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            let Value::Object(target) = target else {
                return Ok(());
            };
            for (name, value) in fields {
                if value.is_null() {
                    target.remove(name);
                } else {
                    let field = target.entry(name.as_str()).or_insert(Value::Null);
                    merge(field, value, depth + 1)?;
                }
            }
        }
        // An array in place of an object is taken as it is.
        Value::Array(items) if !target.is_object() => {
            let mut fresh = Vec::with_capacity(items.len());
            for item in items {
                let mut value = Value::Null;
                merge(&mut value, item, depth + 1)?;
                fresh.push(value);
            }
            *target = Value::Array(fresh);
        }
        other => *target = other.clone(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_examples_of_the_standard_hold() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [{"b": "c"}]}),
                json!({"a": [1]}),
                json!({"a": [1]}),
            ),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!([1, 2]),
                json!({"a": "b", "c": null}),
                json!({"a": "b"}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ] {
            let mut merged = target.clone();
            apply(&mut merged, &patch).unwrap();
            assert_eq!(merged, result, "{target} patched with {patch}");
        }
    }

    #[test]
    fn nulls_inside_the_objects_of_arrays_go_and_those_of_arrays_stay() {
        let mut target = json!({});
        apply(&mut target, &json!({"a": [{"b": null, "c": 1}, null]})).unwrap();
        assert_eq!(target, json!({"a": [{"c": 1}, null]}));
    }

    #[test]
    fn a_patch_is_an_object_or_an_array_and_not_too_deep() {
        for bytes in ["", "{", "null", "1", "\"a\""] {
            let problem = parse(bytes.as_bytes()).unwrap_err();
            assert_eq!(problem.to_string(), "Invalid JSON Patch");
        }
        let deep = (0..150).fold(json!(1), |inner, _| json!({"a": inner}));
        assert!(apply(&mut json!({}), &deep).is_err());
    }
}
