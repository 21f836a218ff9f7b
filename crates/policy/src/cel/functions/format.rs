//! `format`: a text with values put in, as messages need it.

use super::{made, mismatch};
use crate::cel::evaluate::Answer;
use crate::cel::meter::{Meter, Stop, failed};
use crate::cel::value::{PLACE, Value};

/// The most digits behind the point.
const PRECISION: usize = 64;

pub(super) fn format<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let [Value::Text(pattern), Value::List(items)] = values else {
        return mismatch("format", values);
    };
    let pattern = pattern.as_str();
    meter.take(pattern.len() + PLACE)?;
    let mut text = String::with_capacity(pattern.len());
    let mut items = items.iter();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let mut precision = None;
        let mut sort = letters.next();
        if sort == Some('.') {
            let mut digits = 0_usize;
            sort = letters.next();
            while let Some(digit) = sort.and_then(|letter| letter.to_digit(10)) {
                digits = digits.saturating_mul(10).saturating_add(digit as usize);
                sort = letters.next();
            }
            precision = Some(digits.min(PRECISION));
        }
        if sort == Some('%') {
            text.push('%');
            continue;
        }
        let (Some(sort), Some(item)) = (sort, items.next()) else {
            return failed("`format` has fewer values than places");
        };
        put(meter, &mut text, sort, precision, &item)?;
    }
    meter.take(text.len())?;
    Ok(made(text))
}

fn put(
    meter: &Meter,
    text: &mut String,
    sort: char,
    precision: Option<usize>,
    item: &Value,
) -> Result<(), Stop> {
    let precision = precision.unwrap_or(6);
    let part = match (sort, item) {
        ('s', item) => return show(meter, text, item),
        ('d', Value::Int(value)) => value.to_string(),
        ('d', Value::Uint(value)) => value.to_string(),
        ('x', Value::Int(value)) => signed(*value, |value| format!("{value:x}")),
        ('X', Value::Int(value)) => signed(*value, |value| format!("{value:X}")),
        ('o', Value::Int(value)) => signed(*value, |value| format!("{value:o}")),
        ('b', Value::Int(value)) => signed(*value, |value| format!("{value:b}")),
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('f', Value::Double(value)) => format!("{value:.precision$}"),
        ('f', Value::Int(value)) => format!("{:.precision$}", *value as f64),
        ('e', Value::Double(value)) => format!("{value:.precision$e}"),
        (sort, item) => return failed(format!("`format` has no %{sort} for {}", item.kind())),
    };
    meter.take(part.len())?;
    text.push_str(&part);
    Ok(())
}

fn signed(value: i64, show: fn(u64) -> String) -> String {
    let sign = match value < 0 {
        true => "-",
        false => "",
    };
    format!("{sign}{}", show(value.unsigned_abs()))
}

/// Any value, for people.
fn show(meter: &Meter, text: &mut String, item: &Value) -> Result<(), Stop> {
    let part = match item {
        Value::Text(part) => {
            meter.take(part.as_str().len())?;
            text.push_str(part.as_str());
            return Ok(());
        }
        Value::List(list) => {
            text.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                show(meter, text, &item)?;
            }
            text.push(']');
            return meter.take(list.len() * 2 + 2);
        }
        Value::Map(map) => {
            meter.take(map.len() * 2 * PLACE)?;
            text.push('{');
            for (index, (key, value)) in map.entries().into_iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                show(meter, text, &key)?;
                text.push_str(": ");
                show(meter, text, &value)?;
            }
            text.push('}');
            return Ok(());
        }
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Type(name) => (*name).to_owned(),
        Value::Address(value) => value.to_string(),
        Value::Network(value) => value.to_string(),
        Value::Version(value) => value.to_string(),
        other => return failed(format!("`format` has no %s for {}", other.kind())),
    };
    meter.take(part.len() + 1)?;
    text.push_str(&part);
    Ok(())
}
