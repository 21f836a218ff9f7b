//! How values stand in Kubernetes' messages and identifiers: the way Go prints them.

use serde_json::{Number, Value};
use std::fmt;

/// A value as Go's `%v` prints it: `map[a:1 b:x]`, `[1 2]`, `<nil>`.
pub(crate) struct Printed<'a>(pub(crate) &'a Value);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("<nil>"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(number) => f.write_str(&digits(number)),
            Value::String(text) => f.write_str(text),
            Value::Array(items) => {
                f.write_str("[")?;
                for (position, item) in items.iter().enumerate() {
                    let space = if position > 0 { " " } else { "" };
                    write!(f, "{space}{}", Printed(item))?;
                }
                f.write_str("]")
            }
            Value::Object(fields) => {
                f.write_str("map[")?;
                for (position, (name, value)) in fields.iter().enumerate() {
                    let space = if position > 0 { " " } else { "" };
                    write!(f, "{space}{name}:{}", Printed(value))?;
                }
                f.write_str("]")
            }
        }
    }
}

/// A value as Go's `%#v` prints it: `map[string]interface {}{"a":1}`.
pub(crate) struct Syntax<'a>(pub(crate) &'a Value);

impl fmt::Display for Syntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("interface {}(nil)"),
            Value::String(text) => write!(f, "{text:?}"),
            Value::Array(items) => {
                write!(f, "{}{{", type_name(self.0))?;
                for (position, item) in items.iter().enumerate() {
                    let comma = if position > 0 { ", " } else { "" };
                    write!(f, "{comma}{}", Syntax(item))?;
                }
                f.write_str("}")
            }
            Value::Object(fields) => {
                write!(f, "{}{{", type_name(self.0))?;
                for (position, (name, value)) in fields.iter().enumerate() {
                    let comma = if position > 0 { ", " } else { "" };
                    write!(f, "{comma}{name:?}:{}", Syntax(value))?;
                }
                f.write_str("}")
            }
            scalar => write!(f, "{}", Printed(scalar)),
        }
    }
}

/// The Go type a decoded value has, as `%T` prints it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// The JSON type as Go's decoder names it in its complaints.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Compact JSON with the characters escaped that Go escapes for the sake of HTML.
pub(crate) fn json(value: &Value) -> String {
    let text = match value {
        Value::Number(number) => digits(number),
        other => other.to_string(),
    };
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Go writes a float without a fraction as a whole number.
fn digits(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
            format!("{}", float as i64)
        }
        _ => number.to_string(),
    }
}
