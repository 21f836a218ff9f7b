//! Taking fields out of a value.

use crate::MAX_DEPTH;
use crate::set::Set;
use crate::typed::{Shape, field_schema, item_element, item_schema};
use muster_kind::Schema;
use muster_kind::schema::ListType;
use serde_json::Value;

/// Takes the fields and items of a set out of a value. What is emptied by it goes too, and a
/// value that cannot be taken apart goes when any part of it would.
pub fn remove(value: &mut Value, set: &Set, schema: &Schema) {
    if !set.is_empty() {
        remains(value, set, schema, 0);
    }
}

/// Whether anything of the value remains.
fn remains(value: &mut Value, set: &Set, schema: &Schema, depth: usize) -> bool {
    match (Shape::of(schema, value), value) {
        _ if depth > MAX_DEPTH => true,
        (Shape::Scalar, _) => true,
        (Shape::Object, Value::Object(fields)) if !schema.atomic => {
            fields.retain(|name, field| match set.get_field(name) {
                None => true,
                Some(node) if node.member => false,
                Some(node) => remains(field, &node.children, field_schema(schema, name), depth + 1),
            });
            !fields.is_empty()
        }
        (Shape::Array, Value::Array(items)) if schema.list != ListType::Atomic => {
            items.retain_mut(|item| {
                let Ok(element) = item_element(schema, item) else {
                    return true;
                };
                match set.get(&element) {
                    None => true,
                    Some(node) if node.member => false,
                    Some(node) => remains(item, &node.children, item_schema(schema), depth + 1),
                }
            });
            !items.is_empty()
        }
        _ => false,
    }
}
