//! Reading typed kinds: what a value of the wrong type, a bad time or bad base64 is answered
//! with. Kubernetes decodes its own kinds, and everybody's metadata, into Go structs; clients and
//! people know the errors of that.

use muster_kind::schema::{Schema, Type};
use serde_json::Value;

/// What cannot be read in a value; `holder` is the struct that `value` is.
pub(crate) fn fault(value: &Value, schema: &Schema, holder: &str) -> Option<String> {
    walk(value, schema, holder, "")
}

fn walk(value: &Value, schema: &Schema, holder: &str, path: &str) -> Option<String> {
    match (value, schema.of) {
        (Value::Null, _) | (_, Type::Any) => None,
        (Value::Object(map), Type::Object) => {
            let inside = schema.component.as_deref().map_or(holder, short);
            map.iter()
                .find_map(|(name, value)| match schema.properties.get(name) {
                    Some(property) => {
                        let below = if path.is_empty() {
                            name.clone()
                        } else {
                            format!("{path}.{name}")
                        };
                        walk(value, property, inside, &below)
                    }
                    // Keys of a map are no part of a field's name.
                    None => walk(value, schema.additional.as_ref()?, holder, path),
                })
        }
        (Value::Array(items), Type::Array) => {
            let schema = schema.items.as_ref()?;
            items
                .iter()
                .find_map(|item| walk(item, schema, holder, path))
        }
        (Value::String(text), Type::String) => match schema.format.as_deref() {
            Some("byte") => base64_fault(text),
            Some("date-time") => time_fault(text, is_micro(schema)),
            _ => None,
        },
        (Value::String(_) | Value::Number(_), Type::IntOrString) => None,
        (Value::Bool(_), Type::Boolean) | (Value::Number(_), Type::Number) => None,
        (Value::Number(number), Type::Integer) if number.is_i64() => None,
        (value, _) => {
            let found = match value {
                Value::Bool(_) => "bool".to_owned(),
                Value::Number(n) if schema.of == Type::Integer => format!("number {n}"),
                Value::Number(_) => "number".into(),
                Value::String(_) => "string".into(),
                Value::Array(_) => "array".into(),
                _ => "object".into(),
            };
            let wanted = go_type(schema);
            Some(if path.is_empty() {
                format!("json: cannot unmarshal {found} into Go value of type {wanted}")
            } else {
                format!(
                    "json: cannot unmarshal {found} into Go struct field {holder}.{path} of type {wanted}"
                )
            })
        }
    }
}

fn short(component: &str) -> &str {
    component.rsplit('.').next().unwrap_or(component)
}

fn is_micro(schema: &Schema) -> bool {
    schema
        .component
        .as_deref()
        .is_some_and(|name| name.ends_with("MicroTime"))
}

fn go_type(schema: &Schema) -> String {
    if let Some(component) = schema
        .component
        .as_deref()
        .filter(|_| schema.of == Type::Object)
    {
        return format!("v1.{}", short(component));
    }
    match schema.of {
        Type::String if schema.format.as_deref() == Some("byte") => "[]uint8".into(),
        Type::String => "string".into(),
        Type::Integer => schema.format.clone().unwrap_or_else(|| "int32".into()),
        Type::Number => "float64".into(),
        Type::Boolean => "bool".into(),
        Type::Array => format!("[]{}", schema.items.as_deref().map_or("".into(), go_type)),
        Type::Object => match schema.additional.as_deref() {
            Some(values) => format!("map[string]{}", go_type(values)),
            None => "struct".into(),
        },
        Type::IntOrString | Type::Any => "interface {}".into(),
    }
}

/// Where base64 stops being base64, counted as Go does.
fn base64_fault(text: &str) -> Option<String> {
    let fault = |at: usize| Some(format!("illegal base64 data at input byte {at}"));
    let bytes = text.as_bytes();
    let mut digits = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\r' | b'\n' => {}
            b'=' => {
                let padding = match digits % 4 {
                    2 => 2,
                    3 => 1,
                    _ => return fault(at),
                };
                let rest: Vec<(usize, u8)> = bytes
                    .iter()
                    .copied()
                    .enumerate()
                    .skip(at)
                    .filter(|(_, b)| !matches!(b, b'\r' | b'\n'))
                    .collect();
                for n in 0..padding {
                    match rest.get(n) {
                        Some((_, b'=')) => {}
                        Some((wrong, _)) => return fault(*wrong),
                        None => return fault(bytes.len()),
                    }
                }
                return rest.get(padding).and_then(|(wrong, _)| fault(*wrong));
            }
            b if b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/') => digits += 1,
            _ => return fault(at),
        }
        at += 1;
    }
    if digits % 4 == 0 {
        None
    } else {
        fault(bytes.len() - digits % 4)
    }
}

/// Why a time cannot be read, in the words of Go's `time.Parse`.
fn time_fault(text: &str, micro: bool) -> Option<String> {
    let layout = if micro {
        "2006-01-02T15:04:05.000000Z07:00"
    } else {
        "2006-01-02T15:04:05Z07:00"
    };
    let stuck = |at: usize, element: &str| {
        let rest = text.get(at..).unwrap_or_default();
        Some(format!(
            "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}"
        ))
    };
    let mut at = 0;
    for (element, length) in [
        ("2006", 4),
        ("-", 1),
        ("01", 2),
        ("-", 1),
        ("02", 2),
        ("T", 1),
        ("15", 2),
        (":", 1),
        ("04", 2),
        (":", 1),
        ("05", 2),
    ] {
        let part = text.get(at..at + length);
        let fine = part.is_some_and(|part| {
            if length == 1 {
                part == element
            } else {
                part.bytes().all(|b| b.is_ascii_digit())
            }
        });
        if !fine {
            return stuck(at, element);
        }
        at += length;
    }
    let fraction = text[at..]
        .strip_prefix('.')
        .map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count())
        .unwrap_or_default();
    if micro && fraction != 6 {
        return stuck(at, ".000000");
    }
    if fraction > 0 {
        at += fraction + 1;
    }
    match text[at..].parse_zone() {
        true => text
            .parse::<jiff::Timestamp>()
            .err()
            .map(|_| format!("parsing time {text:?}: day out of range")),
        false => stuck(at, "Z07:00"),
    }
}

trait Zone {
    fn parse_zone(&self) -> bool;
}

impl Zone for str {
    /// `Z` or `+07:00`.
    fn parse_zone(&self) -> bool {
        let bytes = self.as_bytes();
        self == "Z"
            || (bytes.len() == 6
                && matches!(bytes[0], b'+' | b'-')
                && bytes[3] == b':'
                && [1, 2, 4, 5].iter().all(|i| bytes[*i].is_ascii_digit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_kind::schema::{int32, map, object, string, timestamp};
    use serde_json::json;

    #[test]
    fn faults_are_told_in_the_words_of_go() {
        let spec = object()
            .named("io.k8s.api.core.v1.ThingSpec")
            .field("count", int32())
            .field("bytes", string().format("byte"))
            .field("time", timestamp())
            .field("micro", timestamp().named("x.MicroTime"));
        let schema = object().field("data", map(string())).field("spec", spec);
        for (value, fault_) in [
            (json!({"data": {"k": "v"}}), None),
            (
                json!({"data": {"k": 5}}),
                Some(
                    "json: cannot unmarshal number into Go struct field Thing.data of type string",
                ),
            ),
            (
                json!({"data": "x"}),
                Some(
                    "json: cannot unmarshal string into Go struct field Thing.data of type map[string]string",
                ),
            ),
            (
                json!({"spec": 1}),
                Some(
                    "json: cannot unmarshal number into Go struct field Thing.spec of type v1.ThingSpec",
                ),
            ),
            (
                json!({"spec": {"count": "x"}}),
                Some(
                    "json: cannot unmarshal string into Go struct field ThingSpec.spec.count of type int32",
                ),
            ),
            (
                json!({"spec": {"bytes": "abc!"}}),
                Some("illegal base64 data at input byte 3"),
            ),
            (json!({"spec": {"bytes": "YQ=="}}), None),
            (
                json!({"spec": {"bytes": "YQ"}}),
                Some("illegal base64 data at input byte 0"),
            ),
            (
                json!({"spec": {"time": "yesterday"}}),
                Some(
                    "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\"",
                ),
            ),
            (json!({"spec": {"time": "2026-01-01T00:00:00Z"}}), None),
            (
                json!({"spec": {"micro": "2026-01-01T00:00:00Z"}}),
                Some(
                    "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"",
                ),
            ),
            (
                json!({"spec": {"micro": "2026-01-01T00:00:00.000001Z"}}),
                None,
            ),
        ] {
            assert_eq!(
                fault(&value, &schema, "Thing").as_deref(),
                fault_,
                "{value}"
            );
        }
    }
}
