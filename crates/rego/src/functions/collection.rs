//! Functions that put objects together or take them apart, and numbers in collections.

use super::own::Original;
use super::{Made, PLACE, is_modest, take, weight};
use regorus::Value;

pub(super) fn union(values: &[Value]) -> Made {
    let [one @ Value::Object(_), other @ Value::Object(_)] = values else {
        return Ok(None);
    };
    take(weight::all(values)?)?;
    Ok(Some(united(one.clone(), other)))
}

pub(super) fn union_of_all(values: &[Value]) -> Made {
    let [Value::Array(objects)] = values else {
        return Ok(None);
    };
    if !objects.iter().all(|one| matches!(one, Value::Object(_))) {
        return Ok(None);
    }
    take(weight::all(values)?)?;
    Ok(Some(objects.iter().fold(Value::new_object(), united)))
}

/// What both have; of what is in both and no object, the second.
fn united(mut one: Value, other: &Value) -> Value {
    let (Value::Object(_), Value::Object(others)) = (&one, other) else {
        return other.clone();
    };
    if let Ok(fields) = one.as_object_mut() {
        for (key, value) in others.iter() {
            let value = match fields.get(key) {
                Some(known) => united(known.clone(), value),
                None => value.clone(),
            };
            fields.insert(key.clone(), value);
        }
    }
    one
}

pub(super) fn subset(values: &[Value]) -> Made {
    let [whole, part] = values else {
        return Ok(None);
    };
    Ok(Some(is_subset(whole, part).into()))
}

fn is_subset(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().all(|(key, part)| {
            let whole = whole.get(key);
            whole.is_some_and(|whole| is_subset(whole, part))
        }),
        (Value::Set(whole), Value::Set(part)) => part.is_subset(whole),
        (Value::Array(whole), Value::Array(part)) => {
            let part = part.as_slice();
            let mut windows = whole.as_slice().windows(part.len().max(1));
            part.is_empty() || windows.any(|window| window == part)
        }
        (Value::Array(whole), Value::Set(part)) => part.iter().all(|item| whole.contains(item)),
        (whole, part) => whole == part,
    }
}

/// All paths of a value, each with what is there.
pub(super) fn walk(values: &[Value]) -> Made {
    let Some(value) = values.first() else {
        return Ok(None);
    };
    weight::check(value)?;
    let mut found = Vec::new();
    visit(value, &mut Vec::new(), &mut found)?;
    Ok(Some(found.into()))
}

fn visit(
    value: &Value,
    path: &mut Vec<Value>,
    found: &mut Vec<Value>,
) -> Result<(), super::TooMuch> {
    take((path.len() + 4) * PLACE)?;
    found.push(vec![path.clone().into(), value.clone()].into());
    let mut inner = |key: Value, value: &Value| {
        path.push(key);
        let visited = visit(value, path, found);
        path.pop();
        visited
    };
    match value {
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| inner((index as u64).into(), item))
        }
        Value::Set(items) => items.iter().try_for_each(|item| inner(item.clone(), item)),
        Value::Object(fields) => {
            let mut fields = fields.iter_sorted();
            fields.try_for_each(|(key, value)| inner(key.clone(), value))
        }
        _ => Ok(()),
    }
}

/// Changes a document, one operation at a time: a few that copy all of it to somewhere in it would make
/// it larger, and deeper, than anything can be.
pub(super) fn patch(values: &[Value]) -> Made {
    let [document, Value::Array(operations)] = values else {
        return Ok(None);
    };
    let Ok(original) = Original::find("json.patch") else {
        return Ok(None);
    };
    take(weight::all(values)?)?;
    let mut document = document.clone();
    for operation in operations.iter() {
        let one = Value::from(vec![operation.clone()]);
        document = original.call(&[document, one]);
        take(weight::bytes(&document)?)?;
    }
    Ok(Some(document))
}

/// A product, as far as it is a number that can be calculated with.
pub(super) fn product(values: &[Value]) -> Made {
    let items: Vec<&Value> = match values {
        [Value::Array(items)] => items.iter().collect(),
        [Value::Set(items)] => items.iter().collect(),
        _ => return Ok(None),
    };
    let mut product = Value::from(1_u64);
    for item in items {
        let (Ok(one), Ok(other), true) = (product.as_number(), item.as_number(), is_modest(item))
        else {
            return Ok(None);
        };
        let Ok(next) = one.mul(other) else {
            return Ok(None);
        };
        product = next.into();
        if !is_modest(&product) {
            return Ok(None);
        }
    }
    Ok(Some(product))
}
