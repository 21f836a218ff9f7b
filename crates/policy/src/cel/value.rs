//! What an expression computes with. Objects are not converted: their parts are borrowed from the
//! request as they are, and what an expression makes itself is shared, so that no step copies more
//! than it counts. Numbers compare across their types, as in Kubernetes' CEL; an integer of JSON is an
//! `int`.

use super::functions::{Network, Quantity, Url};
use super::meter::{Meter, Stop, failed};
use regex::Regex;
use semver::Version;
use serde_json::Value as Json;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

/// What a place in a list or a map is counted as, in bytes.
pub(super) const PLACE: usize = 64;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Rc<Value<'a>>>),
    Type(&'static str),
    /// A pattern that was compiled with the expression.
    Pattern(&'a Regex),
    Quantity(Quantity),
    Version(Rc<Version>),
    Address(IpAddr),
    Network(Network),
    Url(Rc<Url>),
}

/// A text, somebody else's or its own.
#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Owned(Rc<str>),
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Owned(text) => text,
        }
    }
}

/// A list, of an object or made by the expression.
#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Json(&'a [Json]),
    Owned(Rc<Vec<Value<'a>>>),
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            List::Json(items) => items.len(),
            List::Owned(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            List::Json(items) => items.get(index).map(Value::from),
            List::Owned(items) => items.get(index).cloned(),
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Value<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

/// What a map is asked by. Whole numbers are the same key whatever their type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Text(Rc<str>),
}

impl Key {
    pub(super) fn of(value: &Value) -> Option<Key> {
        Some(match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Uint(value) => i64::try_from(*value).map_or(Key::Uint(*value), Key::Int),
            Value::Double(value) => Key::Int(whole(*value)?),
            Value::Text(Text::Borrowed(text)) => Key::Text((*text).into()),
            Value::Text(Text::Owned(text)) => Key::Text(text.clone()),
            _ => return None,
        })
    }

    pub(super) fn value<'a>(&self) -> Value<'a> {
        match self {
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(value) => Value::Int(*value),
            Key::Uint(value) => Value::Uint(*value),
            Key::Text(text) => Value::Text(Text::Owned(text.clone())),
        }
    }
}

/// A floating-point number as an integer, if it is one.
pub(super) fn whole(value: f64) -> Option<i64> {
    // The bound is the first number that no longer fits.
    let fits = value.fract() == 0.0 && (-(2_f64.powi(63))..2_f64.powi(63)).contains(&value);
    fits.then_some(value as i64)
}

/// A map, of an object or made by the expression.
#[derive(Clone, Debug)]
pub(super) enum Map<'a> {
    Json(&'a serde_json::Map<String, Json>),
    Owned(Rc<BTreeMap<Key, Value<'a>>>),
}

impl<'a> Map<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Map::Json(map) => map.len(),
            Map::Owned(map) => map.len(),
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<Value<'a>> {
        match self {
            Map::Json(map) => map.get(name).map(Value::from),
            Map::Owned(map) => map.get(&Key::Text(name.into())).cloned(),
        }
    }

    pub(super) fn get(&self, key: &Value) -> Option<Value<'a>> {
        match (self, key) {
            (_, Value::Text(text)) => self.field(text.as_str()),
            (Map::Json(_), _) => None,
            (Map::Owned(map), key) => map.get(&Key::of(key)?).cloned(),
        }
    }

    /// All of it, in the order of the keys.
    pub(super) fn entries(&self) -> Vec<(Value<'a>, Value<'a>)> {
        match self {
            Map::Json(map) => map
                .iter()
                .map(|(key, value)| (Value::Text(Text::Borrowed(key)), value.into()))
                .collect(),
            Map::Owned(map) => map
                .iter()
                .map(|(key, value)| (key.value(), value.clone()))
                .collect(),
        }
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(value), _) => Value::Int(value),
                (None, value) => Value::Double(value.unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(Text::Borrowed(text)),
            Json::Array(items) => Value::List(List::Json(items)),
            Json::Object(map) => Value::Map(Map::Json(map)),
        }
    }
}

impl<'a> Value<'a> {
    /// A text of its own, which is paid for here.
    pub(super) fn text(meter: &Meter, text: &str) -> Result<Self, Stop> {
        meter.take(text.len() + PLACE)?;
        Ok(Value::Text(Text::Owned(text.into())))
    }

    /// A list of its own, which is paid for here.
    pub(super) fn list(meter: &Meter, items: Vec<Value<'a>>) -> Result<Self, Stop> {
        meter.take((items.len() + 1) * PLACE)?;
        Ok(Value::List(List::Owned(Rc::new(items))))
    }

    /// The name of its type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::Text(_) | Value::Pattern(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Optional(_) => "optional_type",
            Value::Type(_) => "type",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Version(_) => "kubernetes.Semver",
            Value::Address(_) => "net.IP",
            Value::Network(_) => "net.CIDR",
            Value::Url(_) => "kubernetes.URL",
        }
    }

    /// Whether two values are the same. Values of different types are not, but for numbers.
    pub(super) fn equals(&self, other: &Value, meter: &Meter) -> Result<bool, Stop> {
        meter.work(1)?;
        Ok(match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Text(left), Value::Text(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                if left.len() == right.len() {
                    meter.read(left.len())?;
                }
                left == right
            }
            (Value::Bytes(left), Value::Bytes(right)) => {
                meter.read(left.len().min(right.len()))?;
                left == right
            }
            (Value::List(left), Value::List(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.iter().zip(right.iter()) {
                    if !left.equals(&right, meter)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Map(left), Value::Map(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                meter.take(left.len() * PLACE)?;
                for (key, value) in left.entries() {
                    let same = match right.get(&key) {
                        Some(other) => value.equals(&other, meter)?,
                        None => false,
                    };
                    if !same {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Optional(left), Value::Optional(right)) => match (left, right) {
                (Some(left), Some(right)) => left.equals(right, meter)?,
                (left, right) => left.is_none() && right.is_none(),
            },
            (Value::Type(left), Value::Type(right)) => left == right,
            (Value::Quantity(left), Value::Quantity(right)) => left == right,
            (Value::Version(left), Value::Version(right)) => left.cmp_precedence(right).is_eq(),
            (Value::Address(left), Value::Address(right)) => left == right,
            (Value::Network(left), Value::Network(right)) => left == right,
            (Value::Url(left), Value::Url(right)) => left == right,
            (left, right) => left.number(right) == Some(Ordering::Equal),
        })
    }

    /// How two numbers compare.
    fn number(&self, other: &Value) -> Option<Ordering> {
        use Value::{Double, Int, Uint};
        let integer = |value: &Value| match value {
            Int(value) => Some(i128::from(*value)),
            Uint(value) => Some(i128::from(*value)),
            _ => None,
        };
        match (self, other) {
            (Double(left), Double(right)) => left.partial_cmp(right),
            (Double(left), right) => beside(*left, integer(right)?),
            (left, Double(right)) => beside(*right, integer(left)?).map(Ordering::reverse),
            (left, right) => Some(integer(left)?.cmp(&integer(right)?)),
        }
    }

    /// How two values compare, for `<` and its kin.
    pub(super) fn order(&self, other: &Value, meter: &Meter) -> Result<Option<Ordering>, Stop> {
        Ok(match (self, other) {
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            (Value::Text(left), Value::Text(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                meter.read(left.len().min(right.len()))?;
                Some(left.cmp(right))
            }
            (Value::Bytes(left), Value::Bytes(right)) => {
                meter.read(left.len().min(right.len()))?;
                Some(left.cmp(right))
            }
            (left, right) => match left.number(right) {
                Some(order) => Some(order),
                // Not a number: comparable, but with nothing.
                None if left.is_number() && right.is_number() => None,
                None => {
                    let (left, right) = (left.kind(), right.kind());
                    return failed(format!("{left} and {right} cannot be compared"));
                }
            },
        })
    }

    fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::Uint(_) | Value::Double(_))
    }
}

/// Compares exactly: a large integer must not lose its last digits on the way.
fn beside(double: f64, integer: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    let below = double.floor();
    Some(match (below as i128).cmp(&integer) {
        Ordering::Equal if double > below => Ordering::Greater,
        order => order,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_exactly_across_their_types() {
        use Value::{Double, Int, Uint};
        for (left, right, expected) in [
            (Int(1), Double(1.0), Some(Ordering::Equal)),
            (Int(1), Double(1.5), Some(Ordering::Less)),
            (Int(-1), Double(-1.5), Some(Ordering::Greater)),
            (Int(-1), Uint(u64::MAX), Some(Ordering::Less)),
            (Int(1), Double(f64::NAN), None),
            (Int(1), Double(f64::INFINITY), Some(Ordering::Less)),
            (Int(i64::MAX), Double(2_f64.powi(63)), Some(Ordering::Less)),
        ] {
            assert_eq!(left.number(&right), expected, "{left:?} {right:?}");
        }
    }
}
