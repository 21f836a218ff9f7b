//! Functions that make texts of texts.

use super::own::Original;
use super::{DIGITS, EXPONENT, MEMORY, Made, PLACE, TooMuch, take, text};
use regorus::Value;
use std::fmt::Write;

/// How often texts are compared to replace parts of one.
const MOST_LOOKS: usize = 64 * 1024 * 1024;

pub(super) fn encode(values: &[Value], growth: usize, to: fn(&str) -> String) -> Made {
    let Some(text) = values.first().and_then(text) else {
        return Ok(None);
    };
    take(text.len().saturating_mul(growth) + PLACE)?;
    Ok(Some(to(text).into()))
}

pub(super) fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "{byte:02x}");
        all
    })
}

pub(super) fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                all.push(char::from(byte));
            }
            b' ' => all.push('+'),
            byte => {
                let _ = write!(all, "%{byte:02X}");
            }
        }
        all
    })
}

pub(super) fn concat(values: &[Value]) -> Made {
    let [by, items] = values else {
        return Ok(None);
    };
    let Some(by) = text(by) else {
        return Ok(None);
    };
    let items: Vec<&Value> = match items {
        Value::Array(items) => items.iter().collect(),
        Value::Set(items) => items.iter().collect(),
        _ => return Ok(None),
    };
    let Some(parts) = items.into_iter().map(text).collect::<Option<Vec<&str>>>() else {
        return Ok(None);
    };
    let size: usize = parts.iter().map(|part| part.len() + by.len()).sum();
    take(size + PLACE)?;
    Ok(Some(parts.join(by).into()))
}

pub(super) fn format_int(values: &[Value]) -> Made {
    let [value, base] = values else {
        return Ok(None);
    };
    let value = match (value.as_i64(), value.as_f64()) {
        (Ok(value), _) => value,
        (_, Ok(value)) if value.abs() < 9e15 => value.trunc() as i64,
        _ => return Ok(None),
    };
    let sign = if value < 0 { "-" } else { "" };
    let digits = value.unsigned_abs();
    Ok(Some(match base.as_u64() {
        Ok(2) => format!("{sign}{digits:b}").into(),
        Ok(8) => format!("{sign}{digits:o}").into(),
        Ok(10) => format!("{sign}{digits}").into(),
        Ok(16) => format!("{sign}{digits:x}").into(),
        _ => return Ok(None),
    }))
}

pub(super) fn replace_all(values: &[Value]) -> Made {
    let [all, from, to] = values else {
        return Ok(None);
    };
    let (Some(all), Some(from), Some(to)) = (text(all), text(from), text(to)) else {
        return Ok(None);
    };
    replaced(all, from, to).map(|text| Some(text.into()))
}

fn replaced(text: &str, from: &str, to: &str) -> Result<String, TooMuch> {
    let count = text.matches(from).count();
    take(
        count
            .saturating_mul(to.len())
            .saturating_add(text.len() + PLACE),
    )?;
    Ok(text.replace(from, to))
}

pub(super) fn replace_each(values: &[Value]) -> Made {
    let [Value::Object(patterns), all] = values else {
        return Ok(None);
    };
    let pairs = patterns
        .iter()
        .map(|(from, to)| Some((text(from)?, text(to)?)));
    let (Some(pairs), Some(mut rest)) = (pairs.collect::<Option<Vec<_>>>(), text(all)) else {
        return Ok(None);
    };
    if rest.len().saturating_mul(pairs.len()) > MOST_LOOKS {
        take(MEMORY + 1)?;
    }
    // What was put in is not looked at again.
    let mut made = String::new();
    while let Some(letter) = rest.chars().next() {
        let found = pairs
            .iter()
            .find(|(from, _)| !from.is_empty() && rest.starts_with(*from));
        let (by, length) = match found {
            Some((from, to)) => (*to, from.len()),
            None => (
                rest.get(..letter.len_utf8()).unwrap_or_default(),
                letter.len_utf8(),
            ),
        };
        take(by.len())?;
        made.push_str(by);
        rest = rest.get(length..).unwrap_or_default();
    }
    take(PLACE)?;
    Ok(Some(made.into()))
}

/// Texts in another case, letter by letter: none becomes two.
pub(super) fn case(values: &[Value], is_upper: bool) -> Made {
    let Some(text) = values.first().and_then(text) else {
        return Ok(None);
    };
    take(text.len().saturating_mul(2) + PLACE)?;
    let turned = text.chars().map(|letter| {
        let (mut upper, mut lower) = (letter.to_uppercase(), letter.to_lowercase());
        match (is_upper, upper.len(), lower.len()) {
            (true, 1, _) => upper.next().unwrap_or(letter),
            (false, ..) => lower.next().unwrap_or(letter),
            _ => letter,
        }
    });
    Ok(Some(turned.collect::<String>().into()))
}

pub(super) fn split(values: &[Value]) -> Made {
    let [all, by] = values else {
        return Ok(None);
    };
    let (Some(all), Some(by)) = (text(all), text(by)) else {
        return Ok(None);
    };
    let parts: Vec<&str> = match by {
        "" => {
            take(all.len().saturating_mul(PLACE))?;
            all.split("").filter(|part| !part.is_empty()).collect()
        }
        by => {
            take(all.matches(by).count().saturating_mul(PLACE) + all.len() + PLACE)?;
            all.split(by).collect()
        }
    };
    let parts: Vec<Value> = parts.into_iter().map(Value::from).collect();
    Ok(Some(parts.into()))
}

/// How often a text is in another, without overlaps; nothing is before, between and after its letters.
pub(super) fn count(values: &[Value]) -> Made {
    let [all, part] = values else {
        return Ok(None);
    };
    let (Some(all), Some(part)) = (text(all), text(part)) else {
        return Ok(None);
    };
    let count = match part {
        "" => all.chars().count() + 1,
        part => all.matches(part).count(),
    };
    Ok(Some((count as u64).into()))
}

pub(super) fn to_number(values: &[Value]) -> Made {
    Ok(match values {
        [Value::Null] | [Value::Bool(false)] => Some(Value::from(0_i64)),
        [Value::Bool(true)] => Some(Value::from(1_i64)),
        [number @ Value::Number(_)] => Some(number.clone()),
        [Value::String(text)] if is_number(text) => Value::from_numeric_string(text).ok(),
        _ => None,
    })
}

pub(super) fn parse_unit(name: &'static str, values: &[Value]) -> Made {
    let is_short = values.first().and_then(text).is_some_and(is_number);
    match (is_short, Original::find(name)) {
        (true, Ok(original)) => Ok(Some(original.call(values))),
        _ => Ok(None),
    }
}

/// Whether a text may be a number that is not larger than a number should be.
fn is_number(text: &str) -> bool {
    let mut exponents = text.split(['e', 'E']).skip(1).map(|rest| {
        let digits = rest.trim_start_matches(['+', '-']);
        let end = digits.find(|c: char| !c.is_ascii_digit());
        digits
            .get(..end.unwrap_or(digits.len()))
            .unwrap_or_default()
    });
    let small = |digits: &str| digits.parse::<u32>().is_ok_and(|number| number <= EXPONENT);
    text.len() <= DIGITS && exponents.all(|digits| digits.is_empty() || small(digits))
}
