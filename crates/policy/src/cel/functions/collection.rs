//! Functions on lists, sets and numbers.

use super::{Function, Run, either, global, member, mismatch};
use crate::cel::evaluate::Answer;
use crate::cel::meter::{Meter, Stop, failed};
use crate::cel::value::{List, PLACE, Value};
use std::cmp::Ordering;

/// How deep `flatten` looks.
const FLATTEN: i64 = 32;

pub(super) static FUNCTIONS: [Function; 21] = [
    either("isSorted", 1, is_sorted),
    either("sum", 1, sum),
    either("min", 1, |meter, values| {
        extreme(meter, "min", values, Ordering::Less)
    }),
    either("max", 1, |meter, values| {
        extreme(meter, "max", values, Ordering::Greater)
    }),
    member("slice", 2, 2, slice),
    member("distinct", 0, 0, distinct),
    member("sort", 0, 0, sort),
    member("flatten", 0, 1, flatten),
    global("lists.range", 1, |meter, values| match values {
        [Value::Int(count)] => {
            let count = usize::try_from(*count).unwrap_or_default();
            meter.take(count.saturating_mul(PLACE))?;
            Value::list(meter, (0..count as i64).map(Value::Int).collect())
        }
        _ => mismatch("lists.range", values),
    }),
    global("sets.contains", 2, |meter, values| match values {
        [Value::List(set), Value::List(items)] => Ok(Value::Bool(contains(meter, set, items)?)),
        _ => mismatch("sets.contains", values),
    }),
    global("sets.equivalent", 2, |meter, values| match values {
        [Value::List(left), Value::List(right)] => Ok(Value::Bool(
            contains(meter, left, right)? && contains(meter, right, left)?,
        )),
        _ => mismatch("sets.equivalent", values),
    }),
    global("sets.intersects", 2, |meter, values| match values {
        [Value::List(left), Value::List(right)] => {
            for item in left.iter() {
                if holds(meter, right, &item)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        _ => mismatch("sets.intersects", values),
    }),
    greatest(1, GREATEST),
    greatest(2, GREATEST),
    greatest(3, GREATEST),
    global("math.least", 1, LEAST),
    global("math.least", 2, LEAST),
    global("math.least", 3, LEAST),
    global("math.abs", 1, |_, values| match values {
        [Value::Int(value)] => match value.checked_abs() {
            Some(value) => Ok(Value::Int(value)),
            None => failed("a number is too large"),
        },
        [Value::Double(value)] => Ok(Value::Double(value.abs())),
        [Value::Uint(value)] => Ok(Value::Uint(*value)),
        _ => mismatch("math.abs", values),
    }),
    global("math.ceil", 1, |_, values| match values {
        [Value::Double(value)] => Ok(Value::Double(value.ceil())),
        _ => mismatch("math.ceil", values),
    }),
    global("math.floor", 1, |_, values| match values {
        [Value::Double(value)] => Ok(Value::Double(value.floor())),
        _ => mismatch("math.floor", values),
    }),
];

const fn greatest(count: usize, run: Run) -> Function {
    global("math.greatest", count, run)
}

const GREATEST: Run = |meter, values| among(meter, "math.greatest", values, Ordering::Greater);
const LEAST: Run = |meter, values| among(meter, "math.least", values, Ordering::Less);

/// How two items compare; an error if they do not.
fn order(meter: &Meter, left: &Value, right: &Value) -> Result<Ordering, Stop> {
    meter.work(1)?;
    let order = left.order(right, meter)?;
    order.ok_or_else(|| Stop::Failed("what is no number compares with nothing".into()))
}

fn is_sorted<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let [Value::List(list)] = values else {
        return mismatch("isSorted", values);
    };
    for (left, right) in list.iter().zip(list.iter().skip(1)) {
        if order(meter, &left, &right)? == Ordering::Greater {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let [Value::List(list)] = values else {
        return mismatch("sum", values);
    };
    let mut sum: Option<Value> = None;
    for item in list.iter() {
        meter.work(1)?;
        let next = match (sum, &item) {
            (None, Value::Int(_) | Value::Uint(_) | Value::Double(_)) => Some(item.clone()),
            (Some(Value::Int(sum)), Value::Int(item)) => sum.checked_add(*item).map(Value::Int),
            (Some(Value::Uint(sum)), Value::Uint(item)) => sum.checked_add(*item).map(Value::Uint),
            (Some(Value::Double(sum)), Value::Double(item)) => Some(Value::Double(sum + item)),
            _ => return failed("only numbers of one type have a sum"),
        };
        sum = match next {
            None => return failed("a number is too large"),
            next => next,
        };
    }
    Ok(sum.unwrap_or(Value::Int(0)))
}

fn extreme<'a>(meter: &Meter, name: &str, values: &[Value<'a>], wanted: Ordering) -> Answer<'a> {
    let [Value::List(list)] = values else {
        return mismatch(name, values);
    };
    let mut found: Option<Value> = None;
    for item in list.iter() {
        let better = match &found {
            Some(found) => order(meter, &item, found)? == wanted,
            None => true,
        };
        if better {
            found = Some(item);
        }
    }
    match found {
        Some(found) => Ok(found),
        None => failed(format!("there is no `{name}` of an empty list")),
    }
}

/// The same, of what may be a list or the arguments themselves.
fn among<'a>(meter: &Meter, name: &str, values: &[Value<'a>], wanted: Ordering) -> Answer<'a> {
    match values {
        [Value::List(_)] => extreme(meter, name, values, wanted),
        values => {
            let list = Value::list(meter, values.to_vec())?;
            extreme(meter, name, &[list], wanted)
        }
    }
}

fn slice<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = values else {
        return mismatch("slice", values);
    };
    let bounds = (usize::try_from(*start), usize::try_from(*end));
    match bounds {
        (Ok(start), Ok(end)) if start <= end && end <= list.len() => {
            meter.work(end - start)?;
            let items = (start..end).filter_map(|index| list.get(index));
            Value::list(meter, items.collect())
        }
        _ => failed(format!("index out of bounds: {start}, {end}")),
    }
}

fn holds(meter: &Meter, list: &List, item: &Value) -> Result<bool, Stop> {
    for other in list.iter() {
        if other.equals(item, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains(meter: &Meter, set: &List, items: &List) -> Result<bool, Stop> {
    for item in items.iter() {
        if !holds(meter, set, &item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn distinct<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let [Value::List(list)] = values else {
        return mismatch("distinct", values);
    };
    let mut kept: Vec<Value> = Vec::new();
    'items: for item in list.iter() {
        for other in &kept {
            if other.equals(&item, meter)? {
                continue 'items;
            }
        }
        meter.take(PLACE)?;
        kept.push(item);
    }
    Value::list(meter, kept)
}

fn sort<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let [Value::List(list)] = values else {
        return mismatch("sort", values);
    };
    meter.take(list.len() * PLACE)?;
    let mut items: Vec<Value> = list.iter().collect();
    let mut failure = None;
    items.sort_by(|left, right| match order(meter, left, right) {
        // Whatever the order is then, it is thrown away.
        _ if failure.is_some() => Ordering::Equal,
        Ok(order) => order,
        Err(stop) => {
            failure = Some(stop);
            Ordering::Equal
        }
    });
    match failure {
        Some(stop) => Err(stop),
        None => Value::list(meter, items),
    }
}

fn flatten<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let (list, depth) = match values {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, (*depth).clamp(0, FLATTEN)),
        _ => return mismatch("flatten", values),
    };
    let mut items = Vec::new();
    level(meter, list, depth, &mut items)?;
    Value::list(meter, items)
}

fn level<'a>(
    meter: &Meter,
    list: &List<'a>,
    depth: i64,
    items: &mut Vec<Value<'a>>,
) -> Result<(), Stop> {
    for item in list.iter() {
        match item {
            Value::List(list) if depth > 0 => {
                meter.work(1)?;
                level(meter, &list, depth - 1, items)?;
            }
            item => {
                meter.take(PLACE)?;
                items.push(item);
            }
        }
    }
    Ok(())
}
