//! What a structural schema does to an object: fill in defaults, drop what it does not know, and
//! say what is wrong, in the words of kube-apiserver. All three are one walk each and are bounded
//! by the depth the parser already enforced.

use crate::kind::FieldError;
use crate::schema::{ListType, Schema, Type};
use serde_json::{Map, Value};

/// Fills in defaults. A `null` that the schema does not allow counts as absent where there is a
/// default.
pub fn set_defaults(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default {
                    let absent = match map.get(name) {
                        None => true,
                        Some(Value::Null) => !property.nullable,
                        Some(_) => false,
                    };
                    if absent {
                        map.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, value) in map.iter_mut() {
                if let Some(property) = schema.property(name) {
                    set_defaults(value, property);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| set_defaults(item, schema));
            }
        }
        _ => {}
    }
}

/// Writes whole numbers as such where the schema asks for them: `5.0` and `5e0` are 5.
pub fn whole_numbers(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                if let Some(property) = schema.property(name) {
                    whole_numbers(value, property);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items
                    .iter_mut()
                    .for_each(|item| whole_numbers(item, schema));
            }
        }
        Value::Number(number) if schema.of == Type::Integer && number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < 9.2e18 {
                *value = Value::from(float as i64);
            }
        }
        _ => {}
    }
}

/// Drops fields the schema does not know and returns their paths, in order.
pub fn prune(value: &mut Value, schema: &Schema) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_at(value, schema, &mut String::new(), &mut unknown);
    unknown
}

fn prune_at(value: &mut Value, schema: &Schema, path: &mut String, unknown: &mut Vec<String>) {
    let length = path.len();
    match value {
        Value::Object(map) => map.retain(|name, value| {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
            let known = match schema.property(name) {
                Some(property) => {
                    prune_at(value, property, path, unknown);
                    true
                }
                None if schema.keeps_unknown() => true,
                None if schema.embedded
                    && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") =>
                {
                    true
                }
                None => {
                    unknown.push(path.clone());
                    false
                }
            };
            path.truncate(length);
            known
        }),
        Value::Array(items) => {
            let Some(schema) = &schema.items else { return };
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                prune_at(item, schema, path, unknown);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Drops `null`s that the schema does not allow: they count as absent.
pub fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => map.retain(|name, value| match schema.property(name) {
            Some(property) => {
                drop_nulls(value, property);
                !value.is_null() || property.nullable || property.of == Type::Any
            }
            None => true,
        }),
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(item, schema));
            }
        }
        _ => {}
    }
}

/// Reads a value as a typed kind does: a `null` is absent, or empty where it stands for a map's
/// string; optional lists and maps that are empty are absent; `spec` and `status` are always there.
pub fn as_typed(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                if let Some(property) = schema.property(name) {
                    as_typed(value, property);
                    in_utc(value, property);
                    let free = !schema.properties.contains_key(name);
                    if value.is_null() && free && property.of == Type::String {
                        *value = Value::from("");
                    }
                }
            }
            map.retain(|name, value| match schema.properties.get(name) {
                Some(property) => !is_absent(value, property) || schema.required.contains(name),
                None => !value.is_null(),
            });
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| as_typed(item, schema));
            }
        }
        _ => {}
    }
}

/// A time with an offset is kept in UTC.
fn in_utc(value: &mut Value, schema: &Schema) {
    if schema.format.as_deref() != Some("date-time") {
        return;
    }
    let Some(text) = value.as_str().filter(|text| !text.ends_with('Z')) else {
        return;
    };
    let Ok(time) = text.parse::<jiff::Timestamp>() else {
        return;
    };
    let form = if text.contains('.') {
        "%Y-%m-%dT%H:%M:%S%.6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    *value = Value::from(time.strftime(form).to_string());
}

fn is_absent(value: &Value, schema: &Schema) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && schema.additional.is_some(),
        _ => false,
    }
}

/// Says what is wrong with a value; nothing if it is fine.
pub fn validate(value: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate_at(value, schema, &mut String::new(), &mut errors);
    errors
}

fn invalid(
    path: &str,
    value: impl std::fmt::Display,
    detail: impl std::fmt::Display,
) -> FieldError {
    FieldError {
        reason: "FieldValueInvalid",
        field: path.into(),
        message: format!("Invalid value: {value}: {path} in body {detail}"),
    }
}

fn validate_at(value: &Value, schema: &Schema, path: &mut String, errors: &mut Vec<FieldError>) {
    if value.is_null() && (schema.nullable || schema.of == Type::Any) {
        return;
    }
    if !has_type(value, schema.of) {
        wrong_type(value, schema, path, errors);
        return;
    }
    if !schema.one_of.is_empty() && !schema.one_of.contains(value) {
        let supported: Vec<String> = schema.one_of.iter().map(Value::to_string).collect();
        errors.push(FieldError {
            reason: "FieldValueNotSupported",
            field: path.clone(),
            message: format!(
                "Unsupported value: {value}: supported values: {}",
                supported.join(", ")
            ),
        });
    }
    match value {
        Value::Object(map) => validate_object(map, schema, path, errors),
        Value::Array(items) => validate_array(items, schema, path, errors),
        Value::String(text) => validate_string(text, schema, path, errors),
        Value::Number(number) => {
            let shown = number.as_f64().unwrap_or_default();
            if schema.minimum.is_some_and(|least| shown < least) {
                let least = schema.minimum.unwrap_or_default();
                errors.push(invalid(
                    path,
                    number,
                    format!("should be greater than or equal to {least}"),
                ));
            }
            if schema.maximum.is_some_and(|most| shown > most) {
                let most = schema.maximum.unwrap_or_default();
                errors.push(invalid(
                    path,
                    number,
                    format!("should be less than or equal to {most}"),
                ));
            }
            if !fits(number, schema) {
                let format = schema.format.as_deref().unwrap_or_default();
                errors.push(FieldError {
                    reason: "FieldValueInvalid",
                    field: "<nil>".into(),
                    message: format!(
                        "Invalid value: \"\": Checked value must be of type integer with format {format} in {path}"
                    ),
                });
            }
        }
        _ => {}
    }
}

/// A number with a fraction where a whole one belongs is told twice, as Kubernetes does.
fn wrong_type(value: &Value, schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    let (mut found, mut wanted) = (type_name(value), expected(schema.of));
    if let (Value::Number(_), Type::Integer, Some(format)) = (value, schema.of, &schema.format) {
        (found, wanted) = ("float64", format);
        errors.push(FieldError {
            reason: "FieldValueInvalid",
            field: "<nil>".into(),
            message: format!(
                "Invalid value: \"\": Checked value must be of type integer with format {format} in {path}"
            ),
        });
    }
    errors.push(FieldError {
        reason: "FieldValueTypeInvalid",
        field: path.into(),
        message: format!(
            "Invalid value: {found:?}: {path} in body must be of type {wanted}: {found:?}"
        ),
    });
}

fn fits(number: &serde_json::Number, schema: &Schema) -> bool {
    match schema.format.as_deref() {
        Some("int32") => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
        Some("int64") => number.is_i64(),
        _ => true,
    }
}

fn validate_object(
    map: &Map<String, Value>,
    schema: &Schema,
    path: &mut String,
    errors: &mut Vec<FieldError>,
) {
    let length = path.len();
    let at = |path: &mut String, name: &str| {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    };
    for name in &schema.required {
        if !map.contains_key(name) {
            at(path, name);
            errors.push(FieldError::required(path, ""));
            path.truncate(length);
        }
    }
    if let Some(most) = schema.max_properties.filter(|most| map.len() > *most) {
        errors.push(invalid(
            path,
            map.len(),
            format!("should have at most {most} properties"),
        ));
    }
    for (name, value) in map {
        if let Some(property) = schema.property(name) {
            at(path, name);
            validate_at(value, property, path, errors);
            path.truncate(length);
        }
    }
}

fn validate_array(
    items: &[Value],
    schema: &Schema,
    path: &mut String,
    errors: &mut Vec<FieldError>,
) {
    let length = path.len();
    if let Some(most) = schema.max_items.filter(|most| items.len() > *most) {
        errors.push(FieldError::too_many(path, items.len(), most));
    }
    if let Some(least) = schema.min_items.filter(|least| items.len() < *least) {
        errors.push(invalid(
            path,
            items.len(),
            format!("should have at least {least} items"),
        ));
    }
    if let Some(item_schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            path.push_str(&format!("[{index}]"));
            validate_at(item, item_schema, path, errors);
            path.truncate(length);
        }
    }
    duplicates(items, schema, path, errors);
}

/// Items of sets and keyed lists may stand once.
fn duplicates(items: &[Value], schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = std::collections::HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let key = match &schema.list {
            ListType::Atomic => return,
            ListType::Set => item.clone(),
            ListType::Map(keys) => {
                let Some(map) = item.as_object() else {
                    errors.push(FieldError::invalid(
                        &format!("{path}[{index}]"),
                        item,
                        "must be an object for an array of list-type map",
                    ));
                    continue;
                };
                Value::Object(
                    keys.iter()
                        .filter_map(|key| Some((key.clone(), map.get(key)?.clone())))
                        .collect(),
                )
            }
        };
        if !seen.insert(key.to_string()) {
            errors.push(FieldError::duplicate(&format!("{path}[{index}]"), &key));
        }
    }
}

fn validate_string(text: &str, schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    let quoted = Value::from(text);
    if let Some(most) = schema
        .max_length
        .filter(|most| text.chars().count() > *most)
    {
        errors.push(FieldError {
            reason: "FieldValueTooLong",
            field: path.into(),
            message: format!("Too long: may not be more than {most} bytes"),
        });
    }
    if let Some(least) = schema
        .min_length
        .filter(|least| text.chars().count() < *least)
    {
        errors.push(invalid(
            path,
            &quoted,
            format!("should be at least {least} chars long"),
        ));
    }
    if let Some(pattern) = &schema.pattern
        && !regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
    {
        errors.push(invalid(path, &quoted, format!("should match '{pattern}'")));
    }
    let fits = match schema.format.as_deref() {
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        _ => true,
    };
    if !fits {
        let format = schema.format.as_deref().unwrap_or_default();
        let mut error = invalid(path, &quoted, format!("must be of type {format}: {quoted}"));
        error.reason = "FieldValueTypeInvalid";
        errors.push(error);
    }
}

fn has_type(value: &Value, of: Type) -> bool {
    match of {
        Type::Any => true,
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Integer => is_whole(value),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::IntOrString => value.is_string() || is_whole(value),
    }
}

fn is_whole(value: &Value) -> bool {
    let whole = |number: f64| number.fract() == 0.0 && number.abs() < 9.2e18;
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(whole)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_whole(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn expected(of: Type) -> &'static str {
    match of {
        Type::Any => "any",
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer | Type::IntOrString => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{boolean, int32, list, map, object, string};
    use serde_json::json;

    fn sample() -> Schema {
        object().required(
            "spec",
            object()
                .required("uri", string().length(1, 10))
                .field("mode", string().one_of(["A", "B"]).default("A"))
                .field("count", int32().range(1.0, 5.0))
                .field("free", map(string()))
                .field(
                    "items",
                    list(
                        object()
                            .required("name", string())
                            .field("on", boolean().default(true)),
                    )
                    .keyed_by(["name"]),
                ),
        )
    }

    #[test]
    fn defaults_fill_absent_fields_at_every_depth() {
        let mut value =
            json!({"spec": {"items": [{"name": "a"}, {"name": "b", "on": false}], "mode": null}});
        set_defaults(&mut value, &sample());
        assert_eq!(
            value,
            json!({"spec": {"mode": "A", "items": [{"name": "a", "on": true}, {"name": "b", "on": false}]}})
        );
    }

    #[test]
    fn pruning_drops_and_names_what_the_schema_does_not_know() {
        let mut value = json!({"spec": {"uri": "x", "bogus": 1, "free": {"k": "v"}, "items": [{"name": "a", "z": 1}]}, "top": {}});
        let unknown = prune(&mut value, &sample());
        assert_eq!(unknown, ["spec.bogus", "spec.items[0].z", "top"]);
        assert_eq!(
            value,
            json!({"spec": {"uri": "x", "free": {"k": "v"}, "items": [{"name": "a"}]}})
        );
    }

    #[test]
    fn wrong_values_are_named_in_the_words_of_kubernetes() {
        for (value, message) in [
            (json!({}), "spec: Required value"),
            (json!({"spec": {}}), "spec.uri: Required value"),
            (
                json!({"spec": {"uri": 1}}),
                "spec.uri: Invalid value: \"integer\": spec.uri in body must be of type string: \"integer\"",
            ),
            (
                json!({"spec": {"uri": ""}}),
                "spec.uri: Invalid value: \"\": spec.uri in body should be at least 1 chars long",
            ),
            (
                json!({"spec": {"uri": "x", "mode": "C"}}),
                "spec.mode: Unsupported value: \"C\": supported values: \"A\", \"B\"",
            ),
            (
                json!({"spec": {"uri": "x", "count": 9}}),
                "spec.count: Invalid value: 9: spec.count in body should be less than or equal to 5",
            ),
            (
                json!({"spec": {"uri": "x", "items": [{"name": "a"}, {"name": "a"}]}}),
                "spec.items[1]: Duplicate value: {\"name\":\"a\"}",
            ),
        ] {
            let errors = validate(&value, &sample());
            let lines: Vec<String> = errors
                .iter()
                .map(|e| format!("{}: {}", e.field, e.message))
                .collect();
            assert_eq!(lines, [message]);
        }
    }
}
