//! `FieldsV1`: a set of field paths as nested JSON objects. A key is a path element; an empty
//! object makes the path a member, and so does a `.` beside further keys.

use crate::MAX_DEPTH;
use crate::element::PathElement;
use crate::set::{Node, Set};
use serde_json::{Map, Value};

/// Writes a set as `FieldsV1`.
pub fn encode(set: &Set) -> Value {
    encode_level(set, false)
}

fn encode_level(set: &Set, member: bool) -> Value {
    let mut fields = Map::new();
    if member && !set.is_empty() {
        fields.insert(".".into(), Value::Object(Map::new()));
    }
    for node in set.nodes() {
        fields.insert(
            node.element.to_key(),
            encode_level(&node.children, node.member),
        );
    }
    Value::Object(fields)
}

/// Writes a set as the bytes of `FieldsV1`, keys in the order Kubernetes puts them: by path
/// element, where numbers in keys count by magnitude.
pub fn to_json(set: &Set) -> String {
    let mut text = String::new();
    write_level(set, false, &mut text);
    text
}

fn write_level(set: &Set, member: bool, text: &mut String) {
    text.push('{');
    let mut comma = false;
    if member && !set.is_empty() {
        text.push_str("\".\":{}");
        comma = true;
    }
    for node in set.nodes() {
        if std::mem::replace(&mut comma, true) {
            text.push(',');
        }
        text.push_str(&crate::printed::json(&Value::from(node.element.to_key())));
        text.push(':');
        write_level(&node.children, node.member, text);
    }
    text.push('}');
}

/// Reads a set from `FieldsV1`.
pub fn decode(fields: &Value) -> Result<Set, String> {
    decode_level(fields, 0).map(|(children, _)| children)
}

/// The members below, and whether this level itself is one.
fn decode_level(fields: &Value, depth: usize) -> Result<(Set, bool), String> {
    if depth > MAX_DEPTH {
        return Err(format!("nested more than {MAX_DEPTH} levels deep"));
    }
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null => return Ok((Set::default(), true)),
        _ => return Err("expected an object".into()),
    };
    let mut member = false;
    let mut nodes = Vec::with_capacity(fields.len());
    for (key, below) in fields {
        if key == "." {
            member = true;
            continue;
        }
        let element = PathElement::from_key(key)
            .map_err(|problem| format!("parsing key as path element: {problem}"))?;
        // A later version may know elements that this one does not; they are dropped.
        let Some(element) = element else { continue };
        let (children, child_member) = decode_level(below, depth + 1)?;
        nodes.push(Node {
            element,
            member: child_member,
            children,
        });
    }
    let children = Set::from_nodes(nodes);
    member |= children.is_empty();
    Ok((children, member))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_set_reads_back_as_it_was_written() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
            "f:finalizers": {"v:\"a\"": {}}, "f:args": {"i:0": {}},
        }});
        let set = decode(&fields).unwrap();
        assert_eq!(encode(&set), fields);
        assert_eq!(
            set.to_string(),
            ".metadata.labels\n.metadata.labels.app\n.spec.args[0]\n.spec.finalizers[=\"a\"]\n\
             .spec.ports[port=80,protocol=\"TCP\"]\n.spec.ports[port=80,protocol=\"TCP\"].port",
        );
    }

    #[test]
    fn bytes_are_ordered_by_element_rather_than_by_text() {
        let set = decode(&json!({"k:{\"port\":443}": {}, "k:{\"port\":80}": {}})).unwrap();
        assert_eq!(
            to_json(&set),
            r#"{"k:{\"port\":80}":{},"k:{\"port\":443}":{}}"#
        );
    }

    #[test]
    fn the_same_element_written_twice_is_one() {
        let set = decode(&json!({"v:1": {"f:a": {}}, "v:1.0": {"f:b": {}}})).unwrap();
        assert_eq!(set.to_string(), "[=1].a\n[=1].b");
    }

    #[test]
    fn broken_fields_are_refused() {
        for fields in [
            json!([]),
            json!({"f:a": 1}),
            json!({"a": {}}),
            json!({"k:x": {}}),
        ] {
            assert!(decode(&fields).is_err(), "{fields}");
        }
        let deep = (0..200).fold(json!({}), |inner, _| json!({"f:a": inner}));
        assert!(decode(&deep).is_err());
    }
}
