//! Whether a configuration can be applied at all: its values have the shapes its schema names,
//! its fields are declared, its arrays' items can be told apart. Wider questions, such as ranges
//! and patterns, are asked of the merged object elsewhere.

use crate::MAX_DEPTH;
use crate::element::PathElement;
use crate::printed::{Printed, Syntax, type_name};
use crate::typed::{Shape, field_schema, item_element, item_schema};
use muster_kind::Schema;
use muster_kind::schema::{ListType, Type};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// One thing wrong with an applied configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field, `.spec.ports[port=80]`.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

/// Everything wrong with an applied configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(f, "{only}");
        }
        f.write_str("errors:")?;
        self.0
            .iter()
            .try_for_each(|violation| write!(f, "\n  {violation}"))
    }
}

impl std::error::Error for Violations {}

/// Judges a configuration before it is applied.
pub fn validate(value: &Value, schema: &Schema) -> Result<(), Violations> {
    let mut walk = Walk {
        found: Violations::default(),
        path: Vec::new(),
    };
    walk.value(value, schema, false);
    if walk.found.0.is_empty() {
        Ok(())
    } else {
        Err(walk.found)
    }
}

struct Walk {
    found: Violations,
    path: Vec<PathElement>,
}

impl Walk {
    fn complain(&mut self, message: String) {
        let path = self.path.iter().map(ToString::to_string).collect();
        self.found.0.push(Violation { path, message });
    }

    fn below(&mut self, element: PathElement, visit: impl FnOnce(&mut Self)) {
        self.path.push(element);
        visit(self);
        self.path.pop();
    }

    /// `open` says that a schema above allows undeclared fields.
    fn value(&mut self, value: &Value, schema: &Schema, open: bool) {
        if self.path.len() > MAX_DEPTH {
            return self.complain(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        let open = open || schema.preserve_unknown || schema.embedded;
        match (Shape::of(schema, value), value) {
            (_, Value::Null) => {}
            (Shape::Object, Value::Object(fields)) => {
                for (name, field) in fields {
                    let declared = schema.property(name).is_some();
                    let closed = schema.of == Type::Object && !schema.properties.is_empty();
                    let known = declared || open || !closed;
                    self.below(PathElement::field(name.as_str()), |walk| match known {
                        true => walk.value(field, field_schema(schema, name), open),
                        false => walk.complain("field not declared in schema".into()),
                    });
                }
            }
            (Shape::Array, Value::Array(items)) => self.items(items, schema, open),
            (Shape::Object, other) => {
                self.complain(format!("expected map, got &{{{}}}", Printed(other)))
            }
            (Shape::Array, other) => {
                self.complain(format!("expected list, got &{{{}}}", Printed(other)))
            }
            (Shape::Scalar, scalar) => {
                if let Some(problem) = scalar_problem(scalar, schema) {
                    self.complain(problem);
                }
            }
        }
    }

    fn items(&mut self, items: &[Value], schema: &Schema, open: bool) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = if schema.list == ListType::Atomic {
                PathElement::Index(index as i64)
            } else {
                match item_element(schema, item) {
                    Ok(element) => element,
                    Err(problem) => return self.complain(format!("element {index}: {problem}")),
                }
            };
            if schema.list != ListType::Atomic && !seen.insert(element.clone()) {
                self.complain(format!("duplicate entries for key {element}"));
            }
            self.below(element, |walk| walk.value(item, item_schema(schema), open));
        }
    }
}

fn scalar_problem(value: &Value, schema: &Schema) -> Option<String> {
    let formatted = matches!(schema.format.as_deref(), None | Some("" | "byte"));
    match (schema.of, value) {
        (Type::Integer | Type::Number, Value::Number(_)) => None,
        (Type::Integer | Type::Number, other) => Some(format!(
            "expected numeric (int or float), got {}",
            type_name(other)
        )),
        (Type::String, Value::String(_)) => None,
        (Type::String, other) if formatted => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            Syntax(other)
        )),
        (Type::Boolean, Value::Bool(_)) => None,
        (Type::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", Printed(other))),
        (_, Value::Array(_) | Value::Object(_)) => {
            Some(format!("expected any scalar, got &{{{}}}", Printed(value)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_kind::schema::{any, boolean, int32, list, map, object, string};
    use serde_json::json;

    #[test]
    fn violations_read_as_kubernetes_words_them() {
        let item = object().field("name", string()).field("value", string());
        let schema = object()
            .field(
                "spec",
                object().field("list", list(item).keyed_by(["name"])),
            )
            .field("set", list(string()).set())
            .field("number", int32())
            .field("flag", boolean())
            .field("data", map(string()))
            .field("free", any());
        for (value, expected) in [
            (
                json!({"free": {"a": [{"b": null}, {}]}, "number": 1.5, "set": null}),
                "",
            ),
            (
                json!({"spec": {"list": [{"name": "a"}, {"name": "a"}]}}),
                r#".spec.list: duplicate entries for key [name="a"]"#,
            ),
            (
                json!({"set": ["a", "a"]}),
                r#".set: duplicate entries for key [="a"]"#,
            ),
            (
                json!({"spec": {"what": 1}}),
                ".spec.what: field not declared in schema",
            ),
            (
                json!({"number": "1"}),
                ".number: expected numeric (int or float), got string",
            ),
            (
                json!({"flag": "yes"}),
                ".flag: expected boolean, got &{yes}",
            ),
            (
                json!({"data": {"a": 1}}),
                ".data.a: expected string, got &value.valueUnstructured{Value:1}",
            ),
            (json!({"spec": []}), ".spec: expected map, got &{[]}"),
            (
                json!({"set": {"a": 1}}),
                ".set: expected list, got &{map[a:1]}",
            ),
            (
                json!({"spec": {"list": [{"value": "a"}]}}),
                ".spec.list: element 0: associative list with keys has an element that omits \
                 all key fields [\"name\"] (and doesn't have default values for any key fields)",
            ),
            (
                json!({"number": "1", "flag": 2}),
                "errors:\n  .flag: expected boolean, got &{2}\n  \
                 .number: expected numeric (int or float), got string",
            ),
        ] {
            let found = validate(&value, &schema)
                .err()
                .map_or(String::new(), |e| e.to_string());
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn a_configuration_nested_too_deep_is_refused() {
        let deep = (0..150).fold(json!(1), |inner, _| json!({"a": inner}));
        assert!(validate(&deep, &any()).is_err());
    }
}
