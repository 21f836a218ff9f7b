//! One step of a path to a field, and whole paths, ordered and written as Kubernetes does.

use crate::printed::{self, Printed};
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt;

/// One step from a value to a part of it.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// The field of an object.
    Field(String),
    /// The item of a keyed array, by its key fields, sorted by name.
    Key(Vec<(String, Value)>),
    /// The item of a set, by its value.
    Value(Value),
    /// The item of an array, by its place.
    Index(i64),
}

/// A path from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl PathElement {
    /// The field of this name.
    pub fn field(name: impl Into<String>) -> Self {
        PathElement::Field(name.into())
    }

    /// The item with these key fields.
    pub fn key(mut fields: Vec<(String, Value)>) -> Self {
        fields.sort_by(|left, right| left.0.cmp(&right.0));
        PathElement::Key(fields)
    }

    /// The element as a key of `FieldsV1`: `f:spec`, `k:{"name":"a"}`, `v:"a"`, `i:0`.
    pub fn to_key(&self) -> String {
        match self {
            PathElement::Field(name) => format!("f:{name}"),
            PathElement::Key(fields) => {
                let mut text = String::from("k:{");
                for (position, (name, value)) in fields.iter().enumerate() {
                    if position > 0 {
                        text.push(',');
                    }
                    text.push_str(&printed::json(&Value::from(name.as_str())));
                    text.push(':');
                    text.push_str(&printed::json(value));
                }
                text.push('}');
                text
            }
            PathElement::Value(value) => format!("v:{}", printed::json(value)),
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    /// Reads a key of `FieldsV1`. `None` for a kind of element this version does not know,
    /// which readers skip.
    pub fn from_key(text: &str) -> Result<Option<Self>, String> {
        if text.len() < 2 {
            return Err(format!("key must be 2 characters long: {text}"));
        }
        if text.as_bytes()[1] != b':' {
            return Err(format!("missing colon: {text}"));
        }
        // Both bytes are whole characters: the second is ASCII, so the first is too.
        let Some((kind, rest)) = text.split_once(':') else {
            return Ok(None);
        };
        let element = match kind {
            "f" => PathElement::Field(rest.to_owned()),
            "v" => PathElement::Value(serde_json::from_str(rest).map_err(|e| e.to_string())?),
            "k" => {
                let fields: serde_json::Map<String, Value> =
                    serde_json::from_str(rest).map_err(|e| e.to_string())?;
                PathElement::Key(fields.into_iter().collect())
            }
            "i" => PathElement::Index(rest.parse().map_err(|_| format!("bad index: {rest}"))?),
            _ => return Ok(None),
        };
        Ok(Some(element))
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(fields) => {
                f.write_str("[")?;
                for (position, (name, value)) in fields.iter().enumerate() {
                    let comma = if position > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", Quoted(value))?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={}]", Quoted(value)),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A value inside a path: like other printed values, but strings are quoted.
struct Quoted<'a>(&'a Value);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("null"),
            Value::String(text) => write!(f, "{text:?}"),
            Value::Array(items) => {
                f.write_str("[")?;
                for (position, item) in items.iter().enumerate() {
                    let comma = if position > 0 { "," } else { "" };
                    write!(f, "{comma}{}", Quoted(item))?;
                }
                f.write_str("]")
            }
            Value::Object(fields) => fields
                .iter()
                .try_for_each(|(name, value)| write!(f, "{name}={}", Quoted(value))),
            scalar => write!(f, "{}", Printed(scalar)),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| write!(f, "{element}"))
    }
}

impl Path {
    /// The path of these field names.
    pub fn of_fields<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Path(names.into_iter().map(PathElement::field).collect())
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        use PathElement::{Field, Index, Key, Value};
        match (self, other) {
            (Field(left), Field(right)) => left.cmp(right),
            (Key(left), Key(right)) => compare_fields(left, right),
            (Value(left), Value(right)) => compare_values(left, right),
            (Index(left), Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}
impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for PathElement {}

impl PathElement {
    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

fn compare_fields(left: &[(String, Value)], right: &[(String, Value)]) -> Ordering {
    for (one, other) in left.iter().zip(right) {
        let order = one
            .0
            .cmp(&other.0)
            .then_with(|| compare_values(&one.1, &other.1));
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

/// The total order of values: numbers by magnitude, then strings, booleans, arrays, objects, and
/// null last. `1` and `1.0` are the same.
pub(crate) fn compare_values(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => left
            .iter()
            .zip(right)
            .map(|(left, right)| compare_values(left, right))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| left.len().cmp(&right.len())),
        (Value::Object(left), Value::Object(right)) => left
            .iter()
            .zip(right)
            .map(|(left, right)| {
                left.0
                    .cmp(right.0)
                    .then_with(|| compare_values(left.1, right.1))
            })
            .find(|order| order.is_ne())
            .unwrap_or_else(|| left.len().cmp(&right.len())),
        _ => kind_rank(left).cmp(&kind_rank(right)),
    }
}

fn kind_rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// By exact magnitude, so that the order stays total where floats cannot tell integers apart.
fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    let exact = |number: &Number| {
        number
            .as_i64()
            .map(i128::from)
            .or_else(|| number.as_u64().map(i128::from))
    };
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    let (left_exact, right_exact) = (exact(left), exact(right));
    if let (Some(left), Some(right)) = (left_exact, right_exact) {
        return left.cmp(&right);
    }
    let order = float(left)
        .partial_cmp(&float(right))
        .unwrap_or(Ordering::Equal);
    order.then_with(|| {
        let whole = |exact: Option<i128>, number| exact.unwrap_or_else(|| float(number) as i128);
        whole(left_exact, left).cmp(&whole(right_exact, right))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_read_back_what_they_write() {
        for key in [
            "f:spec",
            "f:a.b/c",
            r#"k:{"name":"a","port":80}"#,
            r#"v:"x""#,
            "v:1",
            "i:3",
        ] {
            let element = PathElement::from_key(key).unwrap().unwrap();
            assert_eq!(element.to_key(), key);
        }
    }

    #[test]
    fn unknown_elements_are_skipped_and_broken_ones_refused() {
        assert_eq!(PathElement::from_key("z:what").unwrap(), None);
        for broken in ["", "f", "spec", "k:[]", "v:{", "i:x", "é:"] {
            assert!(PathElement::from_key(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn paths_are_written_as_kubernetes_writes_them() {
        let path = Path(vec![
            PathElement::field("spec"),
            PathElement::key(vec![
                ("protocol".into(), json!("TCP")),
                ("port".into(), json!(80)),
            ]),
            PathElement::Value(json!(true)),
            PathElement::Index(2),
        ]);
        assert_eq!(
            path.to_string(),
            r#".spec[port=80,protocol="TCP"][=true][2]"#
        );
    }

    #[test]
    fn numbers_are_ordered_by_magnitude_whatever_their_form() {
        let order = |left, right| compare_values(&left, &right);
        assert_eq!(order(json!(1), json!(1.0)), Ordering::Equal);
        assert_eq!(order(json!(9), json!(10)), Ordering::Less);
        assert_eq!(
            order(json!(9007199254740993_i64), json!(9007199254740992.0)),
            Ordering::Greater
        );
        assert_eq!(order(json!("a"), json!(5)), Ordering::Greater);
    }
}
