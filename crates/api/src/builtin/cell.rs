//! What the cells of Kubernetes' own tables are made of: values at a path, ages, labels and
//! selectors, in the words kubectl's users know.

use jiff::Timestamp;
use muster_kind::{Column, time};
use serde_json::{Map, Value};

/// A string column with a computed cell.
pub(super) fn text_column(name: &str, cell: fn(&Value) -> Value) -> Column {
    Column::computed(name, "string", cell)
}

/// A whole number column with a computed cell.
pub(super) fn integer_column(name: &str, cell: fn(&Value) -> Value) -> Column {
    Column::computed(name, "integer", cell)
}

/// The usual last column, which in Kubernetes' own tables is text.
pub(super) fn age_column() -> Column {
    text_column("Age", |object| {
        since(object.pointer("/metadata/creationTimestamp")).into()
    })
    .describe("How long the object exists.")
}

/// The only column of kinds for which Kubernetes has no table of their own.
pub(super) fn created_column() -> Column {
    Column::computed("Created At", "date", |object| {
        text(object, "/metadata/creationTimestamp").into()
    })
    .describe("When the object was created.")
}

/// The text at a pointer; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The text at a pointer, or another where that is empty.
pub(super) fn text_or(object: &Value, pointer: &str, other: &str) -> Value {
    match text(object, pointer) {
        "" => other.into(),
        text => text.into(),
    }
}

/// The number at a pointer; zero if there is none.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

/// The items at a pointer.
pub(super) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The entries at a pointer.
pub(super) fn entries<'a>(object: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

/// How long ago a time was.
pub(super) fn since(then: Option<&Value>) -> String {
    let ago = then
        .and_then(Value::as_str)
        .and_then(|then| time::ago(then, Timestamp::now()));
    ago.unwrap_or_else(|| "<unknown>".into())
}

/// Whether a condition of this type is true; the first of its type counts.
pub(super) fn condition(object: &Value, of: &str) -> bool {
    items(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == of)
        .is_some_and(|condition| text(condition, "/status") == "True")
}

/// A field of every item, joined.
pub(super) fn joined(items: &[Value], pointer: &str) -> String {
    items
        .iter()
        .map(|item| text(item, pointer))
        .collect::<Vec<_>>()
        .join(",")
}

/// `a=b,c=d`, or `<none>`.
pub(super) fn labels(labels: Option<&Map<String, Value>>) -> Value {
    let mut pairs: Vec<_> = labels.into_iter().flatten().collect();
    pairs.sort_by_key(|(key, _)| *key);
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() {
        "<none>".into()
    } else {
        pairs.join(",").into()
    }
}

/// A label selector as one line, requirements sorted by key; empty if it selects everything.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else {
        return String::new();
    };
    let mut lines: Vec<(&str, String)> = entries(selector, "/matchLabels")
        .into_iter()
        .flatten()
        .map(|(key, value)| {
            (
                key.as_str(),
                format!("{key}={}", value.as_str().unwrap_or_default()),
            )
        })
        .collect();
    for requirement in items(selector, "/matchExpressions") {
        let key = text(requirement, "/key");
        let mut values: Vec<&str> = items(requirement, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        lines.push((
            key,
            match text(requirement, "/operator") {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            },
        ));
    }
    lines.sort_by_key(|(key, _)| *key);
    lines
        .into_iter()
        .map(|(_, line)| line)
        .collect::<Vec<_>>()
        .join(",")
}

/// The same, with `<none>` for a selector that selects everything.
pub(super) fn selector_or_none(object: &Value, pointer: &str) -> Value {
    match selector(object.pointer(pointer)).as_str() {
        "" => "<none>".into(),
        line => line.into(),
    }
}

/// A quantity as it was written, be it text or a number.
pub(super) fn quantity(map: Option<&Value>, name: &str, absent: &str) -> String {
    match map.and_then(|map| map.get(name)) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => absent.into(),
    }
}
