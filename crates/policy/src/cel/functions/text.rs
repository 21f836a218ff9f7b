//! Functions on texts. Places in a text are counted in characters.

use super::format::format;
use super::{Function, global, made, member, mismatch};
use crate::cel::evaluate::Answer;
use crate::cel::meter::{Meter, Stop, failed};
use crate::cel::value::{List, PLACE, Value};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

pub(super) static FUNCTIONS: [Function; 18] = [
    member("contains", 1, 1, |meter, values| {
        compare(meter, "contains", values, |text, part| text.contains(part))
    }),
    member("startsWith", 1, 1, |meter, values| {
        compare(meter, "startsWith", values, |text, part| {
            text.starts_with(part)
        })
    }),
    member("endsWith", 1, 1, |meter, values| {
        compare(meter, "endsWith", values, |text, part| text.ends_with(part))
    }),
    member("lowerAscii", 0, 0, |meter, values| {
        change(meter, "lowerAscii", values, |text| {
            text.to_ascii_lowercase()
        })
    }),
    member("upperAscii", 0, 0, |meter, values| {
        change(meter, "upperAscii", values, |text| {
            text.to_ascii_uppercase()
        })
    }),
    member("trim", 0, 0, |meter, values| {
        change(meter, "trim", values, |text| text.trim().to_owned())
    }),
    member("charAt", 1, 1, char_at),
    member("substring", 1, 2, substring),
    member("indexOf", 1, 2, index_of),
    member("lastIndexOf", 1, 2, last_index_of),
    member("replace", 2, 3, replace),
    member("split", 1, 2, split),
    member("join", 0, 1, join),
    member("reverse", 0, 0, |meter, values| match values {
        [Value::List(list)] => {
            meter.work(list.len())?;
            Value::list(meter, list.iter().rev().collect())
        }
        _ => change(meter, "reverse", values, |text| {
            text.chars().rev().collect()
        }),
    }),
    member("format", 1, 1, format),
    global("strings.quote", 1, |meter, values| match values {
        [Value::Text(text)] => {
            meter.take(text.as_str().len().saturating_mul(6) + PLACE)?;
            Ok(made(format!("{:?}", text.as_str())))
        }
        _ => mismatch("strings.quote", values),
    }),
    global("base64.encode", 1, |meter, values| match values {
        [Value::Bytes(bytes)] => {
            meter.take(bytes.len().saturating_mul(2) + PLACE)?;
            Ok(made(STANDARD.encode(bytes)))
        }
        _ => mismatch("base64.encode", values),
    }),
    global("base64.decode", 1, |meter, values| match values {
        [Value::Text(text)] => {
            meter.take(text.as_str().len() + PLACE)?;
            let text = text.as_str().trim_end_matches('=');
            match STANDARD_NO_PAD.decode(text) {
                Ok(bytes) => Ok(Value::Bytes(bytes.into())),
                Err(_) => failed("the text is not in base64"),
            }
        }
        _ => mismatch("base64.decode", values),
    }),
];

fn compare<'a>(
    meter: &Meter,
    name: &str,
    values: &[Value<'a>],
    holds: fn(&str, &str) -> bool,
) -> Answer<'a> {
    match values {
        [Value::Text(text), Value::Text(part)] => {
            let (text, part) = (text.as_str(), part.as_str());
            meter.read(text.len() + part.len())?;
            Ok(Value::Bool(holds(text, part)))
        }
        _ => mismatch(name, values),
    }
}

fn change<'a>(
    meter: &Meter,
    name: &str,
    values: &[Value<'a>],
    to: fn(&str) -> String,
) -> Answer<'a> {
    match values {
        [Value::Text(text)] => {
            meter.take(text.as_str().len() + PLACE)?;
            Ok(made(to(text.as_str())))
        }
        _ => mismatch(name, values),
    }
}

/// Where a character begins, in bytes; the end of the text is a place too.
fn place(meter: &Meter, text: &str, index: i64) -> Result<usize, Stop> {
    let wrong = || Stop::Failed(format!("index out of bounds: {index}"));
    let index = usize::try_from(index).map_err(|_| wrong())?;
    meter.read(text.len().min(index))?;
    let mut places = text.char_indices().map(|(place, _)| place);
    match places.by_ref().nth(index) {
        Some(place) => Ok(place),
        None if text.chars().count() == index => Ok(text.len()),
        None => Err(wrong()),
    }
}

fn char_at<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let [Value::Text(text), Value::Int(index)] = values else {
        return mismatch("charAt", values);
    };
    let text = text.as_str();
    meter.read(text.len())?;
    let rest = text.get(place(meter, text, *index)?..).unwrap_or_default();
    let letter = rest.chars().next().map(String::from);
    Value::text(meter, &letter.unwrap_or_default())
}

fn substring<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let (text, start, end) = match values {
        [Value::Text(text), Value::Int(start)] => (text.as_str(), *start, None),
        [Value::Text(text), Value::Int(start), Value::Int(end)] => {
            (text.as_str(), *start, Some(*end))
        }
        _ => return mismatch("substring", values),
    };
    meter.read(text.len())?;
    let start = place(meter, text, start)?;
    let end = match end {
        Some(end) => place(meter, text, end)?,
        None => text.len(),
    };
    match text.get(start..end) {
        Some(part) => Value::text(meter, part),
        None => failed("a substring ends before it starts"),
    }
}

/// Where an item is in a list; -1 if it is not.
fn item<'a>(
    meter: &Meter,
    list: &List<'a>,
    item: &Value<'a>,
    backwards: bool,
) -> Result<i64, Stop> {
    let found = |meter: &Meter, index: usize| match list.get(index) {
        Some(other) => other.equals(item, meter),
        None => Ok(false),
    };
    for step in 0..list.len() {
        let index = match backwards {
            true => list.len() - 1 - step,
            false => step,
        };
        if found(meter, index)? {
            return Ok(index as i64);
        }
    }
    Ok(-1)
}

/// A place in bytes as one in characters.
fn characters<'a>(text: &str, place: Option<usize>) -> Answer<'a> {
    let before = place.map(|place| text.get(..place).unwrap_or_default());
    Ok(Value::Int(
        before.map_or(-1, |before| before.chars().count() as i64),
    ))
}

fn index_of<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let (text, part, from) = match values {
        [Value::List(list), value] => return item(meter, list, value, false).map(Value::Int),
        [Value::Text(text), Value::Text(part)] => (text.as_str(), part.as_str(), 0),
        [Value::Text(text), Value::Text(part), Value::Int(from)] => {
            (text.as_str(), part.as_str(), *from)
        }
        _ => return mismatch("indexOf", values),
    };
    meter.read((text.len() + part.len()) * 2)?;
    let from = place(meter, text, from)?;
    let found = text.get(from..).unwrap_or_default().find(part);
    characters(text, found.map(|found| found + from))
}

fn last_index_of<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let (text, part, last) = match values {
        [Value::List(list), value] => return item(meter, list, value, true).map(Value::Int),
        [Value::Text(text), Value::Text(part)] => (text.as_str(), part.as_str(), None),
        [Value::Text(text), Value::Text(part), Value::Int(last)] => {
            (text.as_str(), part.as_str(), Some(*last))
        }
        _ => return mismatch("lastIndexOf", values),
    };
    meter.read((text.len() + part.len()) * 2)?;
    let end = match last {
        Some(last) => (place(meter, text, last)? + part.len()).min(text.len()),
        None => text.len(),
    };
    // The end may be amid a character, and then nothing that ends there was looked for.
    let end = (0..=end).rev().find(|end| text.is_char_boundary(*end));
    let found = text.get(..end.unwrap_or_default()).unwrap_or_default();
    characters(text, found.rfind(part))
}

/// A limit as it is written: a negative one is none.
fn limit(values: &[Value], at: usize) -> Option<usize> {
    match values.get(at) {
        Some(Value::Int(limit)) => Some(usize::try_from(*limit).unwrap_or(usize::MAX)),
        Some(_) => None,
        None => Some(usize::MAX),
    }
}

fn replace<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let ([Value::Text(text), Value::Text(from), Value::Text(to), ..], Some(limit)) =
        (values, limit(values, 3))
    else {
        return mismatch("replace", values);
    };
    let (text, from, to) = (text.as_str(), from.as_str(), to.as_str());
    meter.read((text.len() + from.len()) * 2)?;
    let count = text.matches(from).take(limit).count();
    meter.take(
        count
            .saturating_mul(to.len())
            .saturating_add(text.len() + PLACE),
    )?;
    Ok(made(text.replacen(from, to, count)))
}

fn split<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let ([Value::Text(text), Value::Text(by), ..], Some(limit)) = (values, limit(values, 2)) else {
        return mismatch("split", values);
    };
    let (text, by) = (text.as_str(), by.as_str());
    meter.read((text.len() + by.len()) * 2)?;
    if limit == 0 {
        return Value::list(meter, Vec::new());
    }
    let count = match by {
        "" => text.chars().count().min(limit),
        by => text.matches(by).count().saturating_add(1).min(limit),
    };
    meter.take(count * PLACE + text.len())?;
    let parts: Vec<Value> = match by {
        "" => {
            let mut letters = text.chars();
            let mut parts: Vec<Value> = letters
                .by_ref()
                .take(count.saturating_sub(1))
                .map(|letter| made(letter.into()))
                .collect();
            parts.extend((!letters.as_str().is_empty()).then(|| made(letters.as_str().into())));
            parts
        }
        by => text
            .splitn(limit, by)
            .map(|part| made(part.into()))
            .collect(),
    };
    Value::list(meter, parts)
}

fn join<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let (list, by) = match values {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::Text(by)] => (list, by.as_str()),
        _ => return mismatch("join", values),
    };
    let mut text = String::new();
    for (index, item) in list.iter().enumerate() {
        let Value::Text(item) = item else {
            return failed(format!("only texts can be joined, not {}", item.kind()));
        };
        let by = match index {
            0 => "",
            _ => by,
        };
        meter.take(by.len() + item.as_str().len())?;
        text.push_str(by);
        text.push_str(item.as_str());
    }
    meter.take(text.len() + PLACE)?;
    Ok(made(text))
}
