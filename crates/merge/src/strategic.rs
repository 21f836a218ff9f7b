//! Strategic merge patch: a merge patch that knows from the schema which arrays are merged item
//! by item, and that may carry directives (`$patch`, `$retainKeys`, `$setElementOrder/…`,
//! `$deleteFromPrimitiveList/…`).

use crate::MAX_DEPTH;
use crate::printed::{Printed, type_name};
use muster_kind::Schema;
use muster_kind::schema;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::LazyLock;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER_PREFIX: &str = "$setElementOrder/";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList/";

const BAD_PRIMITIVE_LIST: &str = "invalid patch format of primitive list";
const BAD_RETAIN_KEYS: &str = "invalid patch format of retainKeys";

static UNDESCRIBED: LazyLock<Schema> = LazyLock::new(schema::any);

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategicError {
    /// The patch is malformed (400).
    Malformed(String),
    /// The patch asks for what is not supported (422).
    Unsupported(String),
    /// The patch does not fit the object (kube-apiserver answers 500).
    Inapplicable(String),
}

impl fmt::Display for StrategicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrategicError::Malformed(message)
            | StrategicError::Unsupported(message)
            | StrategicError::Inapplicable(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for StrategicError {}

fn malformed(message: &str) -> StrategicError {
    StrategicError::Malformed(message.into())
}

fn inapplicable(message: String) -> StrategicError {
    StrategicError::Inapplicable(message)
}

type Fields = Map<String, Value>;

/// Applies a patch. An object whose patch fails is left somewhere on the way.
pub fn apply(target: &mut Value, patch: &Value, schema: &Schema) -> Result<(), StrategicError> {
    let Value::Object(patch) = patch else {
        return Err(malformed("invalid JSON document"));
    };
    let Value::Object(fields) = target else {
        return Err(malformed("invalid JSON document"));
    };
    merge_fields(fields, patch, schema, 0)
}

fn merge_fields(
    target: &mut Fields,
    patch: &Fields,
    schema: &Schema,
    depth: usize,
) -> Result<(), StrategicError> {
    if depth > MAX_DEPTH {
        let message = format!("the patch nests values more than {MAX_DEPTH} levels deep");
        return Err(StrategicError::Unsupported(message));
    }
    if let Some(directive) = patch.get(DIRECTIVE) {
        *target = match directive.as_str() {
            Some("delete") => Fields::new(),
            Some("replace") => fresh_fields(patch),
            _ => return Err(unknown_directive(directive, patch)),
        };
        return Ok(());
    }
    retain_keys(target, patch)?;
    let ordered = merge_ordered_lists(target, patch, schema, depth)?;
    for (name, value) in patch {
        if name == RETAIN_KEYS || name.starts_with(ORDER_PREFIX) || ordered.contains(name.as_str())
        {
            continue;
        }
        if let Some(name) = name.strip_prefix(DELETE_PREFIX) {
            delete_scalars(target.get_mut(name), value)?;
            continue;
        }
        match (target.get_mut(name), value) {
            (_, Value::Null) => {
                target.remove(name);
            }
            (Some(Value::Object(fields)), Value::Object(patch)) => {
                merge_fields(fields, patch, field_schema(schema, name), depth + 1)?;
            }
            (Some(Value::Array(items)), Value::Array(patch)) => {
                let list = field_schema(schema, name);
                let merged = merge_list(std::mem::take(items), patch, name, list, depth)?;
                *items = merged;
            }
            (_, value) => match fresh(value) {
                Some(value) => {
                    target.insert(name.clone(), value);
                }
                None => {
                    target.remove(name);
                }
            },
        }
    }
    Ok(())
}

fn field_schema<'s>(schema: &'s Schema, name: &str) -> &'s Schema {
    schema.property(name).map_or(&UNDESCRIBED, |field| field)
}

/// A patch's value where there is nothing to merge it with: without nulls, which would remove
/// nothing, and without directives; `None` if it is a directive itself.
fn fresh(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => Some(Value::Object(fresh_fields(fields))),
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(fresh).collect())),
        scalar => Some(scalar.clone()),
    }
}

fn fresh_fields(fields: &Fields) -> Fields {
    fields
        .iter()
        .filter(|(name, value)| !value.is_null() && !is_directive(name))
        .filter_map(|(name, value)| Some((name.clone(), fresh(value)?)))
        .collect()
}

fn is_directive(name: &str) -> bool {
    name == DIRECTIVE
        || name == RETAIN_KEYS
        || name.starts_with(ORDER_PREFIX)
        || name.starts_with(DELETE_PREFIX)
}

/// Drops what a `$retainKeys` list does not name.
fn retain_keys(target: &mut Fields, patch: &Fields) -> Result<(), StrategicError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys = keys.as_array().ok_or_else(|| malformed(BAD_RETAIN_KEYS))?;
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let stray = patch.iter().any(|(name, value)| {
        !value.is_null() && !is_directive(name) && !keys.contains(name.as_str())
    });
    if stray {
        return Err(malformed(BAD_RETAIN_KEYS));
    }
    target.retain(|name, _| keys.contains(name.as_str()));
    Ok(())
}

/// Merges the arrays for which the patch gives an order, and puts them in it. Returns their names.
fn merge_ordered_lists<'p>(
    target: &mut Fields,
    patch: &'p Fields,
    schema: &Schema,
    depth: usize,
) -> Result<HashSet<&'p str>, StrategicError> {
    let mut names = HashSet::new();
    for (directive, order) in patch {
        let Some(name) = directive.strip_prefix(ORDER_PREFIX) else {
            continue;
        };
        let order = expect_list(order)?;
        let live = target
            .get(name)
            .map(expect_list)
            .transpose()?
            .map(<[Value]>::to_vec);
        let changes = patch.get(name).map(expect_list).transpose()?;
        let list = field_schema(schema, name);
        let merge_key = list.strategic.merge_key.as_deref();
        check_order(changes.unwrap_or_default(), order, merge_key)?;
        let ranks = Ranks::of(live.as_deref().unwrap_or_default(), merge_key)?;
        let merged = match (live, changes) {
            (Some(live), None) => live,
            (None, Some(changes)) => changes.iter().filter_map(fresh).collect(),
            (Some(live), Some(changes)) => merge_list(live, changes, name, list, depth)?,
            (None, None) => continue,
        };
        let merged = in_order(merged, &Ranks::of(order, merge_key)?, &ranks, merge_key)?;
        target.insert(name.into(), Value::Array(merged));
        names.insert(name);
    }
    Ok(names)
}

fn expect_list(value: &Value) -> Result<&[Value], StrategicError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| {
        let kind = type_name(value);
        inapplicable(format!(
            "expected a []interface {{}}, but received a {kind}"
        ))
    })
}

/// The items of the patch must come in the order that it names, and all be named there.
fn check_order(
    patch: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), StrategicError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        let identity = identity(item, merge_key)?;
        let found = rest.try_fold((), |(), named| match self::identity(named, merge_key) {
            Ok(named) if named == identity => Err(None),
            Ok(_) => Ok(()),
            Err(problem) => Err(Some(problem)),
        });
        match found {
            Err(None) => {}
            Err(Some(problem)) => return Err(problem),
            Ok(()) => {
                let (patch, order) = (Value::from(patch), Value::from(order));
                return Err(inapplicable(format!(
                    "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
                    Printed(&patch),
                    Printed(&order),
                )));
            }
        }
    }
    Ok(())
}

/// What tells an item from the others: its merge key, or the scalar itself.
fn identity(item: &Value, merge_key: Option<&str>) -> Result<String, StrategicError> {
    let Some(key) = merge_key else {
        return Ok(item.to_string());
    };
    match item {
        Value::Object(fields) => match fields.get(key) {
            Some(value) => Ok(value.to_string()),
            None => Err(inapplicable(format!(
                "map: {} does not contain declared merge key: {key}",
                Printed(item),
            ))),
        },
        other => Err(inapplicable(format!(
            "expected a map[string]interface {{}}, but received a {}",
            type_name(other),
        ))),
    }
}

/// The places of the items of an array by what tells them apart.
struct Ranks(HashMap<String, usize>);

impl Ranks {
    fn of(items: &[Value], merge_key: Option<&str>) -> Result<Self, StrategicError> {
        let mut ranks = HashMap::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            ranks.entry(identity(item, merge_key)?).or_insert(place);
        }
        Ok(Ranks(ranks))
    }
}

/// Items the patch names come in its order; those only the live array has keep theirs, and stand
/// before the first named item that followed them.
fn in_order(
    items: Vec<Value>,
    patch_order: &Ranks,
    live_order: &Ranks,
    merge_key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let identity = identity(&item, merge_key)?;
        let live = live_order.0.get(&identity).copied();
        match patch_order.0.get(&identity) {
            Some(rank) => named.push((*rank, live, item)),
            None => others.push((live, item)),
        }
    }
    named.sort_by_key(|(rank, _, _)| *rank);
    others.sort_by_key(|(live, _)| *live);
    let mut merged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, place, item) in named {
        let before = |other: &(Option<usize>, Value)| {
            other
                .0
                .zip(place)
                .is_some_and(|(other, place)| other < place)
        };
        while let Some((_, other)) = others.next_if(before) {
            merged.push(other);
        }
        merged.push(item);
    }
    merged.extend(others.map(|(_, other)| other));
    Ok(merged)
}

fn merge_list(
    live: Vec<Value>,
    patch: &[Value],
    name: &str,
    list: &Schema,
    depth: usize,
) -> Result<Vec<Value>, StrategicError> {
    if !list.strategic.merge {
        return Ok(patch.iter().filter_map(fresh).collect());
    }
    if live.is_empty() && patch.is_empty() {
        return Ok(live);
    }
    if !are_objects(&live, patch)? {
        let ranks = Ranks::of(&live, None)?;
        let mut seen = HashSet::new();
        let mut both = live;
        both.extend_from_slice(patch);
        both.retain(|item| seen.insert(item.to_string()));
        return in_order(both, &Ranks::of(patch, None)?, &ranks, None);
    }
    let Some(key) = list.strategic.merge_key.as_deref() else {
        return Err(inapplicable(format!(
            "cannot merge lists without merge key for {name}"
        )));
    };
    merge_objects(live, patch, key, list, depth)
}

/// Whether the items are objects rather than scalars; they must all be of one kind.
fn are_objects(live: &[Value], patch: &[Value]) -> Result<bool, StrategicError> {
    let mut items = live.iter().chain(patch);
    let Some(first) = items.next() else {
        return Ok(false);
    };
    if first.is_array() {
        let message = "lists of lists are not supported";
        return Err(StrategicError::Unsupported(message.into()));
    }
    let kind = std::mem::discriminant(first);
    if first.is_null() || items.any(|item| std::mem::discriminant(item) != kind) {
        let lists = Value::from(vec![Value::from(live), Value::from(patch)]);
        let lists = Printed(&lists).to_string();
        return Err(inapplicable(format!(
            "list element types are not identical: {lists}"
        )));
    }
    Ok(first.is_object())
}

fn merge_objects(
    mut live: Vec<Value>,
    patch: &[Value],
    key: &str,
    list: &Schema,
    depth: usize,
) -> Result<Vec<Value>, StrategicError> {
    let mut replace = false;
    let mut deleted = HashSet::new();
    let mut changes: Vec<&Value> = Vec::with_capacity(patch.len());
    for item in patch {
        let Value::Object(fields) = item else {
            continue;
        };
        let Some(directive) = fields.get(DIRECTIVE) else {
            changes.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                deleted.insert(identity(item, Some(key))?);
            }
            Some("replace") => replace = true,
            Some("merge") => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(inapplicable(message.into()));
            }
            _ => return Err(unknown_directive(directive, fields)),
        }
    }
    if replace {
        for item in &changes {
            identity(item, Some(key))?;
        }
        return Ok(changes.into_iter().filter_map(fresh).collect());
    }
    live.retain(|item| identity(item, Some(key)).map_or(true, |id| !deleted.contains(&id)));

    let live_order = Ranks::of(&live, Some(key))?;
    let mut places = Ranks(live_order.0.clone());
    let mut patch_order = HashMap::with_capacity(changes.len());
    for (rank, change) in changes.into_iter().enumerate() {
        let identity = identity(change, Some(key))?;
        patch_order.entry(identity.clone()).or_insert(rank);
        let place = *places.0.entry(identity).or_insert(live.len());
        match (live.get_mut(place), change) {
            (Some(Value::Object(fields)), Value::Object(change)) => {
                let items = list.items.as_deref().unwrap_or(&UNDESCRIBED);
                merge_fields(fields, change, items, depth + 1)?;
            }
            _ => live.extend(fresh(change)),
        }
    }
    in_order(live, &Ranks(patch_order), &live_order, Some(key))
}

/// Takes scalars out of an array.
fn delete_scalars(target: Option<&mut Value>, gone: &Value) -> Result<(), StrategicError> {
    let Value::Array(gone) = gone else {
        return Err(malformed(BAD_PRIMITIVE_LIST));
    };
    let Some(Value::Array(items)) = target else {
        return Ok(());
    };
    let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
    items.retain(|item| !gone.contains(&item.to_string()));
    Ok(())
}

fn unknown_directive(directive: &Value, patch: &Fields) -> StrategicError {
    let patch = Value::Object(patch.clone());
    inapplicable(format!(
        "unknown patch type: {} in map: {}",
        Printed(directive),
        Printed(&patch)
    ))
}
