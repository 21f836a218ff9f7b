//! Functions in the place of the interpreter's own. Those can make much of little: a chain of thirty
//! doublings fills a machine before the clock is looked at. Ours count what they make, and what was
//! counted is never given back within an evaluation. Others differ from OPA's. What depends on anything
//! but the input, or cannot be bounded, is not there at all. Of the interpreter's own functions only those
//! are left that make little whatever they are given; a test keeps the list.
//!
//! An evaluation stays on its thread, so that is where the count is.

mod collection;
mod document;
mod format;
mod own;
mod pattern;
mod regular;
mod text;
mod weight;

pub(crate) use document::yaml;

use crate::error::AskError;
use crate::rewrite;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
use regorus::unstable::BUILTINS;
use regorus::{Engine, Extension, Value};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use text::encode;

/// What these functions may make in one evaluation, in bytes.
const MEMORY: usize = 32 * 1024 * 1024;
/// What a place in a list is counted as.
const PLACE: usize = 48;
/// The longest text that is a number, and the largest exponent in one.
const DIGITS: usize = 64;
const EXPONENT: u32 = 999;
/// The largest number that is calculated with, in bits: a chain of thirty squares has no end otherwise.
const BITS: u64 = 4096;

/// What is not there, and why.
const REFUSED: [(&str, &str); 10] = [
    ("graph.reachable_paths", "there may be too many paths"),
    ("http.send", "there is no network"),
    ("json.marshal_with_options", "use json.marshal"),
    ("net.cidr_expand", "there may be too many addresses"),
    ("opa.runtime", "nothing is told of the host"),
    ("rand.intn", SAME),
    ("time.now_ns", SAME),
    ("urlquery.encode_object", "use urlquery.encode"),
    ("uuid.rfc4122", SAME),
    ("yaml.marshal", "use json.marshal"),
];
const SAME: &str = "the same object must be judged the same again";

/// Why there is no such function.
#[derive(Debug)]
pub(crate) enum Absence {
    /// There never was.
    Unknown,
    /// There might be, but for this.
    Refused(&'static str),
}

/// Whether a function is missing.
pub(crate) fn absence(name: &str) -> Option<Absence> {
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Some(Absence::Refused(why));
    }
    let ours = FUNCTIONS.iter().any(|(known, ..)| *known == name);
    match ours || BUILTINS.contains_key(name) {
        true => None,
        false => Some(Absence::Unknown),
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("needs more than {} MiB", MEMORY >> 20)]
struct TooMuch;

thread_local! {
    static LEFT: Cell<Option<usize>> = const { Cell::new(Some(MEMORY)) };
}

/// Begins an evaluation.
pub(crate) fn begin() {
    LEFT.set(Some(MEMORY));
}

/// Whether the evaluation kept within what it may take.
pub(crate) fn end() -> Result<(), AskError> {
    let left = LEFT.get().map(|_| ());
    left.ok_or(AskError::Memory(MEMORY >> 20))
}

/// Counts what is about to be made.
fn take(bytes: usize) -> Result<(), TooMuch> {
    let left = LEFT.get().and_then(|left| left.checked_sub(bytes));
    LEFT.set(left);
    left.map(|_| ()).ok_or(TooMuch)
}

/// What a function yields: nothing, if its arguments make no sense to it.
type Made = Result<Option<Value>, TooMuch>;
/// A function: its name, how many arguments it takes, and what it does.
type Function = (&'static str, u8, fn(&[Value]) -> Made);

const FUNCTIONS: &[Function] = &[
    ("array.concat", 2, array_concat),
    ("base64.encode", 1, |values| {
        encode(values, 2, |text| STANDARD.encode(text))
    }),
    ("base64url.encode", 1, |values| {
        encode(values, 2, |text| URL_SAFE.encode(text))
    }),
    ("base64url.encode_no_pad", 1, |values| {
        encode(values, 2, |text| URL_SAFE_NO_PAD.encode(text))
    }),
    ("bits.lsh", 2, shift),
    ("concat", 2, text::concat),
    ("format_int", 2, text::format_int),
    ("hex.encode", 1, |values| encode(values, 2, text::hex)),
    ("isManaged", 1, |_| Ok(Some(true.into()))),
    ("json.is_valid", 1, document::json_is_valid),
    ("json.marshal", 1, document::marshal),
    ("json.patch", 2, collection::patch),
    ("json.unmarshal", 1, document::json_unmarshal),
    ("lower", 1, |values| text::case(values, false)),
    ("numbers.range", 2, |values| match values {
        [from, to] => range(from, to, 1),
        _ => Ok(None),
    }),
    ("numbers.range_step", 3, |values| match values {
        [from, to, step] => match step.as_i64() {
            Ok(step) if step > 0 => range(from, to, step),
            _ => Ok(None),
        },
        _ => Ok(None),
    }),
    ("object.subset", 2, collection::subset),
    ("object.union", 2, collection::union),
    ("object.union_n", 1, collection::union_of_all),
    ("product", 1, collection::product),
    ("re_match", 2, regular::is_match),
    ("regex.find_all_string_submatch_n", 3, regular::find_groups),
    ("regex.find_n", 3, regular::find),
    ("regex.is_valid", 1, regular::is_valid),
    ("regex.match", 2, regular::is_match),
    ("regex.replace", 3, regular::replace),
    ("regex.split", 2, regular::split),
    ("regex.template_match", 4, regular::template),
    ("replace", 3, text::replace_all),
    ("result.new", 2, result),
    ("split", 2, text::split),
    ("sprintf", 2, format::sprintf),
    ("strings.count", 2, text::count),
    ("strings.replace_n", 2, text::replace_each),
    ("to_number", 1, text::to_number),
    ("units.parse", 1, |values| {
        text::parse_unit("units.parse", values)
    }),
    ("units.parse_bytes", 1, |values| {
        text::parse_unit("units.parse_bytes", values)
    }),
    ("upper", 1, |values| text::case(values, true)),
    ("urlquery.encode", 1, |values| {
        encode(values, 3, text::escape)
    }),
    ("walk", 1, collection::walk),
    ("yaml.is_valid", 1, document::yaml_is_valid),
    ("yaml.unmarshal", 1, document::yaml_unmarshal),
];

/// Whether a value passes.
type Passes = fn(&Value) -> Result<bool, TooMuch>;

/// Functions of our own, which rewritten modules call: what they do not know is undefined.
const PASSES: [(&str, Passes); 6] = [
    (rewrite::EACH, |value| {
        let each = matches!(value, Value::Array(_) | Value::Set(_) | Value::Object(_));
        Ok(each)
    }),
    (rewrite::INTEGER, |value| Ok(value.as_i128().is_ok())),
    (rewrite::LIGHT, |value| weight::check(value).map(|()| true)),
    (rewrite::NUMBER, |value| Ok(is_modest(value))),
    (rewrite::SET, is_counted_set),
    (rewrite::TERM, |value| {
        Ok(is_modest(value) || is_counted_set(value)?)
    }),
];

/// Whether a value is a number that can be calculated with.
fn is_modest(value: &Value) -> bool {
    let Value::Number(number) = value else {
        return false;
    };
    let small = number.as_i64().is_some() || !number.is_integer();
    small || number.as_big().is_none_or(|big| big.bits() <= BITS)
}

/// Whether a value is a set. Operators copy what they are given.
fn is_counted_set(value: &Value) -> Result<bool, TooMuch> {
    match value {
        Value::Set(items) => take(items.len() * PLACE).map(|()| true),
        _ => Ok(false),
    }
}

/// Whether a function is one of our own, by what follows the prefix.
pub(crate) fn is_own(name: &str) -> bool {
    PASSES.iter().any(|(known, _)| *known == name)
}

/// Puts these functions in their places: those that modules call, or all of them. The names of our own
/// begin with the prefix.
pub(crate) fn replace(
    engine: &mut Engine,
    prefix: &str,
    called: Option<&BTreeSet<&str>>,
) -> Result<(), String> {
    let is_called = |name: &str| called.is_none_or(|called| called.contains(name));
    let mut all: Vec<(String, u8, Box<dyn Extension>)> = Vec::new();
    for (name, count, run) in FUNCTIONS.iter().filter(|(name, ..)| is_called(name)) {
        all.push((name.to_string(), *count, counted(*run)));
    }
    for (name, cost) in own::COUNTED.iter().filter(|(name, _)| is_called(name)) {
        let (original, cost) = (Arc::new(own::Original::find(name)?), *cost);
        let count = original.count();
        let run = move |values: Vec<Value>| {
            take(cost(&values)?.saturating_add(PLACE))?;
            Ok(original.call(&values))
        };
        all.push((name.to_string(), count, boxed(run)));
    }
    for (name, passes) in PASSES {
        let name = format!("{prefix}{name}");
        let pass = move |values: Vec<Value>| {
            Ok(match values.into_iter().next() {
                Some(value) if passes(&value)? => value,
                _ => Value::Undefined,
            })
        };
        if is_called(&name) {
            all.push((name, 1, boxed(pass)));
        }
    }
    for (name, count, run) in all {
        let added = engine.add_extension(name, count, run);
        added.map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn counted(run: fn(&[Value]) -> Made) -> Box<dyn Extension> {
    boxed(move |values: Vec<Value>| Ok(run(&values)?.unwrap_or(Value::Undefined)))
}

fn boxed(run: impl Extension + 'static) -> Box<dyn Extension> {
    Box::new(run)
}

fn text(value: &Value) -> Option<&str> {
    value.as_string().ok().map(AsRef::as_ref)
}

fn array_concat(values: &[Value]) -> Made {
    let [Value::Array(left), Value::Array(right)] = values else {
        return Ok(None);
    };
    take((left.len() + right.len()) * PLACE)?;
    let all: Vec<Value> = left.iter().chain(right.iter()).cloned().collect();
    Ok(Some(all.into()))
}

fn shift(values: &[Value]) -> Made {
    let [value, by] = values else {
        return Ok(None);
    };
    let (Ok(value), Ok(by)) = (value.as_i64(), by.as_u32()) else {
        return Ok(None);
    };
    let shifted = i128::from(value).checked_mul(1_i128.checked_shl(by).unwrap_or(0));
    let shifted = shifted.filter(|_| by < 63);
    Ok(shifted
        .and_then(|shifted| i64::try_from(shifted).ok())
        .map(Value::from))
}

fn range(from: &Value, to: &Value, step: i64) -> Made {
    let (Ok(from), Ok(to)) = (from.as_i64(), to.as_i64()) else {
        return Ok(None);
    };
    let count = from.abs_diff(to) / step.unsigned_abs();
    let size = usize::try_from(count).unwrap_or(usize::MAX);
    take(size.saturating_add(1).saturating_mul(PLACE))?;
    let step = i128::from(if from > to { -step } else { step });
    // It ends where the next would be beyond the end, so each is between two that are there.
    let each = (0..=i128::from(count)).map(|index| i128::from(from) + index * step);
    let all: Vec<Value> = each
        .filter_map(|number| i64::try_from(number).ok())
        .map(Value::from)
        .collect();
    Ok(Some(all.into()))
}

/// What Trivy's checks answer with: the message, and what of the cause is there to be told.
fn result(values: &[Value]) -> Made {
    let [message, cause] = values else {
        return Ok(None);
    };
    take(4 * PLACE)?;
    let mut told = Value::new_object();
    for name in ["name", "image"] {
        if let (Value::Object(fields), Ok(told)) = (cause, told.as_object_mut())
            && let Some(value @ Value::String(_)) = fields.get(&Value::from(name))
        {
            told.insert(name.into(), value.clone());
        }
    }
    let mut result = Value::new_object();
    if let Ok(fields) = result.as_object_mut() {
        fields.insert("msg".into(), message.clone());
        if told.as_object().is_ok_and(|told| !told.is_empty()) {
            fields.insert("cause".into(), told);
        }
    }
    Ok(Some(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_interpreter_is_counted_refused_or_small() {
        let ours = FUNCTIONS.iter().map(|(name, ..)| *name);
        let refused = REFUSED.iter().map(|(name, _)| *name);
        let counted = own::COUNTED.iter().map(|(name, _)| *name);
        let small = own::SMALL.iter().copied();
        let known: BTreeSet<&str> = ours.chain(refused).chain(counted).chain(small).collect();
        let all: BTreeSet<&str> = BUILTINS.keys().copied().collect();
        let unknown: Vec<&&str> = all.difference(&known).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let gone = own::COUNTED.iter().map(|(name, _)| *name);
        let gone = gone.chain(own::SMALL.iter().copied());
        let gone: Vec<&str> = gone.filter(|name| !all.contains(name)).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }
}
