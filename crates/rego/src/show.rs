//! Values as texts, no longer than they may be.

use regorus::Value;

/// A value as OPA writes it, up to about `most` bytes of it. A text is itself.
pub fn show(value: &Value, most: usize) -> String {
    let mut text = String::new();
    append(value, false, most, &mut text);
    text
}

/// Appends a value to a text, up to about `most` bytes of it; whether all of it fitted. A text within
/// others is quoted.
pub(crate) fn append(value: &Value, quoted: bool, most: usize, text: &mut String) -> bool {
    if text.len() > most {
        return false;
    }
    match value {
        Value::Undefined => text.push_str("undefined"),
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(_) => text.push_str(&number(value)),
        Value::String(part) => {
            let mut end = part.len().min(most.saturating_add(1) - text.len());
            while !part.is_char_boundary(end) {
                end -= 1;
            }
            let part = part.get(..end).unwrap_or_default();
            match quoted {
                true => text.push_str(&quote(part)),
                false => text.push_str(part),
            }
        }
        Value::Array(items) => return all(items.iter(), "[]", most, text),
        Value::Set(items) if items.is_empty() => text.push_str("set()"),
        Value::Set(items) => return all(items.iter(), "{}", most, text),
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                append(key, true, most, text);
                text.push_str(": ");
                if !append(value, true, most, text) {
                    return false;
                }
            }
            text.push('}');
        }
    }
    text.len() <= most
}

fn all<'v>(
    items: impl Iterator<Item = &'v Value>,
    brackets: &str,
    most: usize,
    text: &mut String,
) -> bool {
    let (open, close) = brackets.split_at(1);
    text.push_str(open);
    for (index, item) in items.enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        if !append(item, true, most, text) {
            return false;
        }
    }
    text.push_str(close);
    text.len() <= most
}

/// A text in quotes, as Go has it.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            letter if letter.is_ascii_control() => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(letter)));
            }
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// A number. One that is very large is shown by its size only: its digits may take minutes to find.
pub(crate) fn number(value: &Value) -> String {
    match (value.as_i128(), value.as_f64()) {
        (Ok(number), _) => number.to_string(),
        (_, Ok(number)) if number.is_finite() => number.to_string(),
        _ => "a very large number".to_owned(),
    }
}
