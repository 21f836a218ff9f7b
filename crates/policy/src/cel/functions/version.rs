//! Versions, and the comparisons that they share with quantities. `semver(text)` takes a whole version
//! only; `semver(text, true)` puts `v1.2` right first.

use super::quantity::short;
use super::{Function, Run, global, member, mismatch};
use crate::cel::evaluate::Answer;
use crate::cel::meter::failed;
use crate::cel::value::Value;
use semver::Version;
use std::cmp::Ordering;
use std::rc::Rc;

/// The longest text that is a version.
const LENGTH: usize = 256;

pub(super) static FUNCTIONS: [Function; 10] = [
    global("semver", 1, READ),
    global("semver", 2, READ),
    global("isSemver", 1, ASK),
    global("isSemver", 2, ASK),
    member("major", 0, 0, |_, values| {
        number("major", values, |version| version.major)
    }),
    member("minor", 0, 0, |_, values| {
        number("minor", values, |version| version.minor)
    }),
    member("patch", 0, 0, |_, values| {
        number("patch", values, |version| version.patch)
    }),
    member("isLessThan", 1, 1, |_, values| {
        let order = order(values);
        order.map_or_else(
            || mismatch("isLessThan", values),
            |order| Ok(Value::Bool(order.is_lt())),
        )
    }),
    member("isGreaterThan", 1, 1, |_, values| {
        let order = order(values);
        order.map_or_else(
            || mismatch("isGreaterThan", values),
            |order| Ok(Value::Bool(order.is_gt())),
        )
    }),
    member("compareTo", 1, 1, |_, values| {
        let order = order(values);
        order.map_or_else(
            || mismatch("compareTo", values),
            |order| Ok(Value::Int(order as i64)),
        )
    }),
];

const READ: Run = |_, values| match (values, parse(values)) {
    (_, Some(version)) => Ok(Value::Version(Rc::new(version))),
    ([Value::Text(text)] | [Value::Text(text), Value::Bool(_)], None) => {
        failed(format!("{:?} is no version", short(text)))
    }
    _ => mismatch("semver", values),
};

const ASK: Run = |_, values| match values {
    [Value::Text(_)] | [Value::Text(_), Value::Bool(_)] => Ok(Value::Bool(parse(values).is_some())),
    _ => mismatch("isSemver", values),
};

fn parse(values: &[Value]) -> Option<Version> {
    let (text, normalize) = match values {
        [Value::Text(text)] => (text.as_str(), false),
        [Value::Text(text), Value::Bool(normalize)] => (text.as_str(), *normalize),
        _ => return None,
    };
    if text.len() > LENGTH {
        return None;
    }
    match normalize {
        true => Version::parse(&put_right(text)?).ok(),
        false => Version::parse(text).ok(),
    }
}

/// Takes a leading `v` and leading zeros away, and adds the numbers that a short version lacks. A
/// short version with more behind it could mean several things and is none.
fn put_right(text: &str) -> Option<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 && parts.last()?.contains(['+', '-']) {
        return None;
    }
    parts.resize(3, "0".into());
    Some(parts.join("."))
}

fn without_zeros(part: &str) -> String {
    let rest = part.trim_start_matches('0');
    match rest.starts_with(|c: char| c.is_ascii_digit()) || rest.len() == part.len() {
        true => rest.to_owned(),
        false => format!("0{rest}"),
    }
}

fn number<'a>(name: &str, values: &[Value<'a>], part: fn(&Version) -> u64) -> Answer<'a> {
    match values {
        [Value::Version(version)] => {
            let part = i64::try_from(part(version)).unwrap_or(i64::MAX);
            Ok(Value::Int(part))
        }
        _ => mismatch(name, values),
    }
}

fn order(values: &[Value]) -> Option<Ordering> {
    match values {
        [Value::Version(left), Value::Version(right)] => Some(left.cmp_precedence(right)),
        [Value::Quantity(left), Value::Quantity(right)] => Some(left.cmp(right)),
        _ => None,
    }
}
