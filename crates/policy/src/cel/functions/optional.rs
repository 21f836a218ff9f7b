//! Functions on optional values.

use super::{Function, global, member, mismatch};
use crate::cel::meter::failed;
use crate::cel::value::Value;
use std::rc::Rc;

pub(super) static FUNCTIONS: [Function; 7] = [
    global("optional.of", 1, |meter, values| match values {
        [value] => {
            meter.take(64)?;
            Ok(Value::Optional(Some(Rc::new(value.clone()))))
        }
        _ => mismatch("optional.of", values),
    }),
    global("optional.none", 0, |_, _| Ok(Value::Optional(None))),
    global("optional.ofNonZeroValue", 1, |meter, values| match values {
        [value] => {
            meter.take(64)?;
            Ok(Value::Optional(
                (!is_zero(value)).then(|| Rc::new(value.clone())),
            ))
        }
        _ => mismatch("optional.ofNonZeroValue", values),
    }),
    member("hasValue", 0, 0, |_, values| match values {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => mismatch("hasValue", values),
    }),
    member("value", 0, 0, |_, values| match values {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => failed("the optional has no value"),
        _ => mismatch("value", values),
    }),
    member("or", 1, 1, |_, values| match values {
        [Value::Optional(None), other @ Value::Optional(_)] => Ok(other.clone()),
        [one @ Value::Optional(Some(_)), Value::Optional(_)] => Ok(one.clone()),
        _ => mismatch("or", values),
    }),
    member("orValue", 1, 1, |_, values| match values {
        [Value::Optional(None), other] => Ok(other.clone()),
        [Value::Optional(Some(value)), _] => Ok((**value).clone()),
        _ => mismatch("orValue", values),
    }),
];

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::Text(text) => text.as_str().is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        Value::Optional(value) => value.is_none(),
        _ => false,
    }
}
