//! Values seen through their schemas: what shape a value takes, what tells the items of an array
//! apart, the set of fields a value holds, and the merging of an applied value into a live one.
//! What a schema leaves open is deduced from the value: objects by their fields, arrays whole.

use crate::MAX_DEPTH;
use crate::element::PathElement;
use crate::set::{Node, Set};
use muster_kind::Schema;
use muster_kind::schema::{self, ListType, Type};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

static DEDUCED: LazyLock<Schema> = LazyLock::new(schema::any);

/// How a value is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Array,
    Scalar,
}

impl Shape {
    pub(crate) fn of(schema: &Schema, value: &Value) -> Shape {
        match (schema.of, value) {
            (Type::Object, _) => Shape::Object,
            (Type::Array, _) => Shape::Array,
            (Type::Any, Value::Object(_) | Value::Null) => Shape::Object,
            (Type::Any, Value::Array(_)) => Shape::Array,
            _ => Shape::Scalar,
        }
    }
}

/// The schema of a field, declared or not.
pub(crate) fn field_schema<'s>(schema: &'s Schema, name: &str) -> &'s Schema {
    schema.property(name).map_or(&DEDUCED, |field| field)
}

/// The schema of an array's items.
pub(crate) fn item_schema(schema: &Schema) -> &Schema {
    schema.items.as_deref().unwrap_or(&DEDUCED)
}

/// What tells this item of an array from the others, or why nothing does.
pub(crate) fn item_element(schema: &Schema, item: &Value) -> Result<PathElement, String> {
    match &schema.list {
        ListType::Atomic => Err("invalid indexing of non-associative list".into()),
        ListType::Map(keys) => keyed_element(schema, keys, item),
        ListType::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".into())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".into())
            }
            scalar => Ok(PathElement::Value(scalar.clone())),
        },
    }
}

fn keyed_element(schema: &Schema, keys: &[String], item: &Value) -> Result<PathElement, String> {
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => {
            return Err("associative list with keys may not have a null element".into());
        }
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let items = item_schema(schema);
    let default = |name: &str| {
        items
            .properties
            .get(name)
            .and_then(|key| key.default.as_ref())
    };
    // An absent key without a default is left out: an item without it is another item.
    let present: Vec<(String, Value)> = keys
        .iter()
        .filter_map(|name| {
            let value = fields.get(name).or_else(|| default(name))?;
            Some((name.clone(), value.clone()))
        })
        .collect();
    if present.is_empty() {
        let names: Vec<String> = keys.iter().map(|name| format!("{name:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] \
             (and doesn't have default values for any key fields)",
            names.join(" "),
        ));
    }
    Ok(PathElement::key(present))
}

/// The elements of all items, or `None` where the array is one value: by its schema, or because
/// an item cannot be told from the others.
pub(crate) fn item_elements(schema: &Schema, items: &[Value]) -> Option<Vec<PathElement>> {
    if schema.list == ListType::Atomic {
        return None;
    }
    items
        .iter()
        .map(|item| item_element(schema, item).ok())
        .collect()
}

/// The set of fields a value holds: what its writer owns after applying it.
pub fn to_set(value: &Value, schema: &Schema) -> Set {
    fields_of(value, schema, 0).1
}

/// Whether the value itself is owned, and what is owned below it.
fn fields_of(value: &Value, schema: &Schema, depth: usize) -> (bool, Set) {
    if depth > MAX_DEPTH {
        return (true, Set::default());
    }
    match (Shape::of(schema, value), value) {
        (Shape::Scalar, _) => (true, Set::default()),
        (Shape::Object, _) if schema.atomic => (true, Set::default()),
        (Shape::Object, Value::Object(fields)) => {
            let nodes = fields.iter().map(|(name, field)| {
                let (owned, children) = fields_of(field, field_schema(schema, name), depth + 1);
                let bare = match field {
                    Value::Null => true,
                    Value::Object(fields) => fields.is_empty(),
                    _ => false,
                };
                let member = owned || bare || !schema.properties.contains_key(name);
                Node {
                    element: PathElement::field(name.as_str()),
                    member,
                    children,
                }
            });
            (false, Set::from_nodes(nodes.collect()))
        }
        (Shape::Array, Value::Array(items)) => match item_elements(schema, items) {
            Some(elements) => (false, items_of(elements, items, schema, depth)),
            None => (true, Set::default()),
        },
        (Shape::Array, _) => (schema.list == ListType::Atomic, Set::default()),
        (Shape::Object, _) => (false, Set::default()),
    }
}

fn items_of(elements: Vec<PathElement>, items: &[Value], schema: &Schema, depth: usize) -> Set {
    let mut counts: BTreeMap<&PathElement, usize> = BTreeMap::new();
    for element in &elements {
        *counts.entry(element).or_default() += 1;
    }
    let nodes = elements.iter().zip(items).map(|(element, item)| {
        // Items that share an element are owned together, not field by field.
        let alone = counts.get(element) == Some(&1);
        let children = if alone {
            fields_of(item, item_schema(schema), depth + 1).1
        } else {
            Set::default()
        };
        Node {
            element: element.clone(),
            member: true,
            children,
        }
    });
    Set::from_nodes(nodes.collect())
}

/// Merges an applied configuration into a live value. The applied value wins; items of keyed
/// arrays and sets keep the order of the applied one among themselves, and live items stay
/// where they were beside them. The applied value must be [valid](crate::validate()).
pub fn merge(live: &Value, applied: &Value, schema: &Schema) -> Value {
    let mut merged = live.clone();
    merge_into(&mut merged, applied, schema, 0);
    merged
}

fn merge_into(live: &mut Value, applied: &Value, schema: &Schema, depth: usize) {
    let shape = Shape::of(schema, applied);
    match (shape, &mut *live, applied) {
        _ if depth > MAX_DEPTH => {}
        (Shape::Object, Value::Object(fields), Value::Object(applied)) if !schema.atomic => {
            return merge_fields(fields, applied, schema, depth);
        }
        (Shape::Array, Value::Array(items), Value::Array(applied)) => {
            if let Some(merged) = merge_items(items, applied, schema, depth) {
                *items = merged;
                return;
            }
        }
        // An applied null does not empty what is there in parts.
        (Shape::Object, Value::Object(fields), Value::Null)
            if !schema.atomic && !fields.is_empty() =>
        {
            return;
        }
        (Shape::Array, Value::Array(items), Value::Null)
            if schema.list != ListType::Atomic && !items.is_empty() =>
        {
            return;
        }
        _ => {}
    }
    *live = applied.clone();
}

fn merge_fields(
    live: &mut Map<String, Value>,
    applied: &Map<String, Value>,
    schema: &Schema,
    depth: usize,
) {
    for (name, value) in applied {
        match live.get_mut(name) {
            Some(field) => merge_into(field, value, field_schema(schema, name), depth + 1),
            None => {
                live.insert(name.clone(), value.clone());
            }
        }
    }
}

/// `None` where one of the arrays is one value.
fn merge_items(
    live: &mut [Value],
    applied: &[Value],
    schema: &Schema,
    depth: usize,
) -> Option<Vec<Value>> {
    let live_elements = item_elements(schema, live)?;
    let applied_elements = item_elements(schema, applied)?;
    let mut places: BTreeMap<&PathElement, Option<usize>> = BTreeMap::new();
    for (place, element) in live_elements.iter().enumerate() {
        // Of items that share an element none is merged with: the applied one replaces them.
        places
            .entry(element)
            .and_modify(|place| *place = None)
            .or_insert(Some(place));
    }
    let wanted: BTreeSet<&PathElement> = applied_elements.iter().collect();
    let mut shared = applied_elements
        .iter()
        .filter(|element| places.contains_key(element))
        .peekable();

    let mut merged = Vec::with_capacity(live.len().max(applied.len()));
    let take = |element: &PathElement, item: &Value, live: &mut [Value]| {
        let mut target = match places.get(element) {
            Some(Some(place)) => live[*place].take(),
            _ => Value::Null,
        };
        merge_into(&mut target, item, item_schema(schema), depth + 1);
        target
    };
    let (mut left, mut right) = (0, 0);
    while left < live_elements.len() || right < applied_elements.len() {
        if let Some(element) = live_elements.get(left) {
            if !wanted.contains(element) {
                merged.push(live[left].take());
                left += 1;
                continue;
            }
            // Its turn comes where the applied order puts it, or has come already.
            match shared.peek() {
                Some(next) if **next != *element => {
                    left += 1;
                    continue;
                }
                Some(_) => {}
                None => left += 1,
            }
        }
        let Some(element) = applied_elements.get(right) else {
            continue;
        };
        merged.push(take(element, &applied[right], live));
        if live_elements.get(left) == Some(element) {
            left += 1;
        }
        if shared.peek().is_some_and(|next| **next == *element) {
            shared.next();
        }
        right += 1;
    }
    Some(merged)
}
