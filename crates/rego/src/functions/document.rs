//! JSON and YAML. A short text may stand for a large value, so what is read is counted by the text, and
//! what a text of YAML may stand for is limited; what is written is counted while it is made.

use super::{LEFT, MEMORY, Made, PLACE, take, text};
use crate::show::number;
use regorus::Value;
use serde::Deserialize;

/// The longest text that is read, and the most values in it.
const LONGEST: usize = 1024 * 1024;
const MOST_VALUES: usize = 100_000;
const DEEPEST: usize = 64;

/// A text of YAML as a value, or what is wrong with it and on which line.
pub(crate) fn yaml(text: &str) -> Result<serde_json::Value, (Option<u32>, String)> {
    if text.len() > LONGEST {
        return Err((None, format!("it is longer than {LONGEST} bytes")));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 1,
            max_depth: DEEPEST,
            max_nodes: MOST_VALUES,
        },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error
            .location()
            .and_then(|place| u32::try_from(place.line()).ok());
        let told = error.to_string();
        (line, told.lines().next().unwrap_or_default().to_owned())
    })
}

pub(super) fn yaml_unmarshal(values: &[Value]) -> Made {
    let Some(text) = values.first().and_then(text) else {
        return Ok(None);
    };
    // Aliases may make more of it than there is text, but no more than it may have values.
    take((text.len() * (PLACE / 2)).min(MOST_VALUES * PLACE) + PLACE)?;
    let read = yaml(text).ok();
    Ok(read.and_then(|read| Value::deserialize(read).ok()))
}

pub(super) fn yaml_is_valid(values: &[Value]) -> Made {
    let is_valid = values
        .first()
        .and_then(text)
        .is_some_and(|text| yaml(text).is_ok());
    Ok(Some(is_valid.into()))
}

pub(super) fn json_unmarshal(values: &[Value]) -> Made {
    let Some(text) = values.first().and_then(text) else {
        return Ok(None);
    };
    take(text.len().saturating_mul(PLACE / 2) + PLACE)?;
    Ok(Value::from_json_str(text).ok())
}

pub(super) fn json_is_valid(values: &[Value]) -> Made {
    let read = json_unmarshal(values)?;
    Ok(Some(read.is_some().into()))
}

pub(super) fn marshal(values: &[Value]) -> Made {
    let Some(value) = values.first() else {
        return Ok(None);
    };
    // How long it gets is seen while it is made, so what is left is the bound.
    let left = LEFT.get().unwrap_or_default() / 2;
    let mut text = String::new();
    let whole = json(value, left, &mut text);
    take(text.len().saturating_mul(2) + PLACE)?;
    match whole {
        Some(()) => Ok(Some(text.into())),
        None => take(MEMORY).map(|()| None),
    }
}

/// A value as JSON, if it is no longer than that.
fn json(value: &Value, most: usize, text: &mut String) -> Option<()> {
    if text.len() > most {
        return None;
    }
    let list = |items: Vec<&Value>, text: &mut String| {
        text.push('[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            json(item, most, text)?;
        }
        text.push(']');
        Some(())
    };
    match value {
        Value::Array(items) => return list(items.iter().collect(), text),
        Value::Set(items) => return list(items.iter().collect(), text),
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                match key {
                    Value::String(_) => json(key, most, text)?,
                    key => {
                        let mut name = String::new();
                        json(key, most, &mut name)?;
                        text.push_str(&serde_json::Value::from(name).to_string());
                    }
                }
                text.push(':');
                json(value, most, text)?;
            }
            text.push('}');
        }
        Value::String(part) if part.len() > most - text.len() => return None,
        Value::String(part) => {
            // Go keeps JSON apart from HTML.
            for letter in serde_json::Value::from(part.as_ref()).to_string().chars() {
                match letter {
                    '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                        text.push_str(&format!("\\u{:04x}", u32::from(letter)));
                    }
                    letter => text.push(letter),
                }
            }
        }
        Value::Number(_) => text.push_str(&number(value)),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Null | Value::Undefined => text.push_str("null"),
    }
    Some(())
}
