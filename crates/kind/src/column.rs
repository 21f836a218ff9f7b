//! Printer columns: what `kubectl get` shows of an object. A cell is a path into the object or,
//! where Kubernetes itself computes what it shows (a pod's READY), a function of it.

use serde_json::Value;

/// Where a cell's value comes from.
#[derive(Clone)]
pub enum Cell {
    /// A JSONPath of the kind CRD columns use: `.spec.uri`,
    /// `.status.conditions[?(@.status=="True")].type`.
    Path(String),
    /// A computed value.
    Computed(fn(&Value) -> Value),
}

/// One printer column.
#[derive(Clone)]
pub struct Column {
    /// The heading, in upper case when shown.
    pub name: String,
    /// The OpenAPI type: `string`, `integer`, `number`, `boolean`, `date`.
    pub of: String,
    /// A format such as `name`, `int32`.
    pub format: String,
    /// What the column shows.
    pub description: String,
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
    /// Where the value comes from.
    pub cell: Cell,
}

impl Column {
    fn new(name: &str, of: &str, cell: Cell) -> Self {
        Column {
            name: name.into(),
            of: of.into(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            cell,
        }
    }
    /// A column of type `of` that shows the value at a path.
    pub fn at(name: &str, of: &str, path: &str) -> Self {
        Column::new(name, of, Cell::Path(path.into()))
    }
    /// A string column.
    pub fn string(name: &str, path: &str) -> Self {
        Column::at(name, "string", path)
    }
    /// A whole number column.
    pub fn integer(name: &str, path: &str) -> Self {
        Column::at(name, "integer", path)
    }
    /// A column that shows how long ago a time was.
    pub fn date(name: &str, path: &str) -> Self {
        Column::at(name, "date", path)
    }
    /// The usual last column.
    pub fn age() -> Self {
        Column::date("Age", ".metadata.creationTimestamp")
    }
    /// A column of type `of` whose value is computed.
    pub fn computed(name: &str, of: &str, cell: fn(&Value) -> Value) -> Self {
        Column::new(name, of, Cell::Computed(cell))
    }
    /// Shows the column only with `-o wide`.
    pub fn wide(mut self) -> Self {
        self.priority = 1;
        self
    }
    /// Says what the column shows.
    pub fn describe(mut self, text: &str) -> Self {
        self.description = text.into();
        self
    }
}

impl Column {
    /// The cell of an object, as JSON for a Table row.
    pub fn value(&self, object: &Value) -> Value {
        match &self.cell {
            Cell::Computed(compute) => compute(object),
            Cell::Path(path) => show(&find(object, path), &self.of),
        }
    }
}

/// What a custom resource's column shows: the first match, by the column's type.
fn show(found: &[&Value], of: &str) -> Value {
    let Some(first) = found.first() else {
        return Value::Null;
    };
    match of {
        "integer" | "number" | "boolean" => (*first).clone(),
        "date" => first
            .as_str()
            .and_then(|then| crate::time::ago(then, jiff::Timestamp::now()))
            .map_or(Value::from("<unknown>"), Value::from),
        _ => match first {
            Value::String(_) => (*first).clone(),
            Value::Null => Value::Null,
            other => Value::from(other.to_string()),
        },
    }
}

/// Evaluates the JSONPath of a column: names, quoted names, indexes, `[*]`, and filters that
/// compare a field of each item with a string (`[?(@.type=="Ready")]`).
pub fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![object];
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}');
    while !rest.is_empty() && !found.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let Some(end) = closing(after) else {
                return Vec::new();
            };
            found = found
                .into_iter()
                .flat_map(|v| select(v, &after[..end]))
                .collect();
            rest = &after[end + 1..];
        } else {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            let end = name_end(rest);
            if end == 0 {
                continue;
            }
            let name = rest[..end].replace("\\.", ".");
            found = found.into_iter().filter_map(|v| v.get(&name)).collect();
            rest = &rest[end..];
        }
    }
    found
}

fn name_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    (0..bytes.len())
        .find(|&i| matches!(bytes[i], b'.' | b'[') && (i == 0 || bytes[i - 1] != b'\\'))
        .unwrap_or(bytes.len())
}

/// The end of a bracket, past any quoted text.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (None, ']') => return Some(i),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

fn select<'a>(value: &'a Value, inside: &str) -> Vec<&'a Value> {
    let unquote = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    if let Some(filter) = inside.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        let Some((path, wanted)) = filter.split_once("==") else {
            return Vec::new();
        };
        let path = path.trim().trim_start_matches('@');
        let wanted = unquote(wanted);
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        return items
            .iter()
            .filter(|item| find(item, path).first().is_some_and(|v| text(v) == wanted))
            .collect();
    }
    if inside.starts_with(['"', '\'']) {
        return value.get(unquote(inside)).into_iter().collect();
    }
    match (inside, value) {
        ("*", Value::Array(items)) => items.iter().collect(),
        ("*", Value::Object(map)) => map.values().collect(),
        (index, Value::Array(items)) => {
            let at = index
                .parse::<i64>()
                .ok()
                .map(|i| if i < 0 { i + items.len() as i64 } else { i });
            at.and_then(|i| items.get(usize::try_from(i).ok()?))
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_show_what_their_path_names() {
        let object = json!({
            "spec": {"uri": "ghcr.io", "count": 3, "on": true, "list": ["a", "b"]},
            "metadata": {"annotations": {"a.b/c": "x"}},
            "status": {"conditions": [
                {"type": "Scheduled", "status": "False"},
                {"type": "Complete", "status": "True", "reason": "AllImagesScanned"},
            ]},
        });
        for (path, of, cell) in [
            (".spec.uri", "string", json!("ghcr.io")),
            (".spec.count", "integer", json!(3)),
            (".spec.count", "string", json!("3")),
            (".spec.on", "boolean", json!(true)),
            (".spec.list[1]", "string", json!("b")),
            (".spec.list[-1]", "string", json!("b")),
            (".spec.list", "string", json!("[\"a\",\"b\"]")),
            (".spec.none", "string", json!(null)),
            (".metadata.annotations['a.b/c']", "string", json!("x")),
            (".metadata.annotations.a\\.b/c", "string", json!("x")),
            (
                ".status.conditions[?(@.status==\"True\")].type",
                "string",
                json!("Complete"),
            ),
            (
                ".status.conditions[?(@.type=='Complete')].reason",
                "string",
                json!("AllImagesScanned"),
            ),
            (
                ".status.conditions[?(@.type==\"None\")].reason",
                "string",
                json!(null),
            ),
        ] {
            assert_eq!(Column::at("X", of, path).value(&object), cell, "{path}");
        }
    }
}
