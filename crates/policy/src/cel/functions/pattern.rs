//! Patterns. They are matched in time that is linear in the text, and what each letter may cost is
//! bounded by the size that a compiled pattern may have.

use super::{Function, either, member, mismatch};
use crate::cel::evaluate::Answer;
use crate::cel::meter::{Meter, Stop};
use crate::cel::value::{PLACE, Value};
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;

/// What a compiled pattern may take, in bytes.
const SIZE: usize = 128 * 1024;
/// What a pattern may remember while it matches, in bytes.
const CACHE: usize = 1024 * 1024;
/// A pattern's work for each byte of a text, in steps, at worst.
const EACH: usize = 20;
/// The work of compiling a pattern, in steps, and for each byte of it.
const COMPILE: usize = 5_000;

pub(super) static FUNCTIONS: [Function; 3] = [
    either("matches", 2, |meter, values| {
        with(meter, "matches", values, |_, pattern, text| {
            Ok(Value::Bool(pattern.is_match(text)))
        })
    }),
    member("find", 1, 1, |meter, values| {
        with(meter, "find", values, |meter, pattern, text| {
            let found = pattern.find(text).map(|found| found.as_str());
            Value::text(meter, found.unwrap_or_default())
        })
    }),
    member("findAll", 1, 2, |meter, values| {
        let limit = match values.get(2) {
            Some(Value::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
            Some(_) => return mismatch("findAll", values),
            None => usize::MAX,
        };
        let values = values.get(..2).unwrap_or(values);
        let (pattern, text) = both(meter, values)?;
        let (Some(pattern), Some(text)) = (pattern, text) else {
            return mismatch("findAll", values);
        };
        let mut found = Vec::new();
        for part in pattern.find_iter(text).take(limit) {
            meter.take(PLACE)?;
            found.push(Value::text(meter, part.as_str())?);
        }
        Value::list(meter, found)
    }),
];

/// A pattern, or why it is none.
pub(in crate::cel) fn pattern(text: &str) -> Result<Regex, String> {
    let build = |unicode: bool| {
        let mut builder = RegexBuilder::new(text);
        builder.size_limit(SIZE).dfa_size_limit(CACHE);
        builder.unicode(unicode).build()
    };
    // Without regard to case there are ASCII letters only; what else was wrong still is.
    let built = build(true).or_else(|error| build(false).map_err(|_| error));
    built.map_err(|error| {
        // The message shows the pattern on several lines; its last says what is wrong.
        let said = error.to_string();
        let said = said.lines().last().unwrap_or_default().trim();
        let said = said.strip_prefix("error: ").unwrap_or(said);
        format!("the pattern cannot be used: {said}")
    })
}

type Both<'v> = (Option<Cow<'v, Regex>>, Option<&'v str>);

fn both<'v>(meter: &Meter, values: &'v [Value]) -> Result<Both<'v>, Stop> {
    let [Value::Text(text), by] = values else {
        return Ok((None, None));
    };
    let text = text.as_str();
    meter.work(text.len().saturating_mul(EACH))?;
    let pattern = match by {
        Value::Pattern(pattern) => Some(Cow::Borrowed(*pattern)),
        Value::Text(by) => {
            meter.work(COMPILE.saturating_add(by.as_str().len().saturating_mul(EACH)))?;
            Some(Cow::Owned(pattern(by.as_str()).map_err(Stop::Failed)?))
        }
        _ => None,
    };
    Ok((pattern, Some(text)))
}

fn with<'a>(
    meter: &Meter,
    name: &str,
    values: &[Value<'a>],
    ask: for<'m> fn(&'m Meter, &Regex, &str) -> Answer<'a>,
) -> Answer<'a> {
    match both(meter, values)? {
        (Some(pattern), Some(text)) => ask(meter, &pattern, text),
        _ => mismatch(name, values),
    }
}
