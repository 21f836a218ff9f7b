//! `sprintf`, as Go has it: OPA gives whole numbers, other numbers and texts to Go as such, and the
//! texts of everything else. A verb that does not fit says so in the text.

use super::{DIGITS, LEFT, MEMORY, Made, PLACE, take, text};
use crate::show::quote;
use regorus::Value;

/// One directive, without its verb.
#[derive(Clone, Copy, Debug, Default)]
struct Directive {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

/// What is formatted.
enum Item {
    Integer(i128),
    Float(f64),
    Text(String),
}

pub(super) fn sprintf(values: &[Value]) -> Made {
    let [pattern, Value::Array(items)] = values else {
        return Ok(None);
    };
    let Some(pattern) = text(pattern) else {
        return Ok(None);
    };
    let left = LEFT.get().unwrap_or_default();
    let mut out = String::new();
    let (mut next, mut reordered) = (0, false);
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let mut letters = after.chars().peekable();
        let mut directive = Directive::default();
        while let Some(flag) = letters.next_if(|c| matches!(c, '-' | '+' | '#' | ' ' | '0')) {
            match flag {
                '-' => directive.minus = true,
                '+' => directive.plus = true,
                '#' => directive.sharp = true,
                ' ' => directive.space = true,
                _ => directive.zero = true,
            }
        }
        let number = |letters: &mut std::iter::Peekable<std::str::Chars<'_>>| {
            let mut digits = String::new();
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits
                .parse::<usize>()
                .ok()
                .map(|number| number.min(DIGITS))
        };
        directive.width = number(&mut letters);
        if letters.next_if_eq(&'.').is_some() {
            directive.precision = Some(number(&mut letters).unwrap_or_default());
        }
        // `%[2]d` names the argument.
        if letters.next_if_eq(&'[').is_some() {
            let index = number(&mut letters);
            if let (Some(index), true) = (index, letters.next_if_eq(&']').is_some()) {
                next = index.saturating_sub(1);
                reordered = true;
            }
        }
        let verb = letters.next();
        let rest_length: usize = letters.map(char::len_utf8).sum();
        rest = after.get(after.len() - rest_length..).unwrap_or_default();
        match (verb, items.get(next)) {
            (None, _) => out.push_str("%!(NOVERB)"),
            (Some('%'), _) => out.push('%'),
            (Some(verb), None) => out.push_str(&format!("%!{verb}(MISSING)")),
            (Some(verb), Some(item)) => {
                next += 1;
                let Some(item) = read(item, left) else {
                    return take(MEMORY + 1).map(|()| None);
                };
                put(verb, directive, &item, &mut out);
            }
        }
        if out.len() > left {
            take(MEMORY + 1)?;
        }
    }
    out.push_str(rest);
    if !reordered && next < items.len() {
        out.push_str("%!(EXTRA ");
        for (index, item) in items.iter().skip(next).enumerate() {
            let Some(item) = read(item, left) else {
                return take(MEMORY + 1).map(|()| None);
            };
            let comma = if index > 0 { ", " } else { "" };
            out.push_str(&format!("{comma}{}=", kind(&item)));
            put('v', Directive::default(), &item, &mut out);
            if out.len() > left {
                take(MEMORY + 1)?;
            }
        }
        out.push(')');
    }
    take(out.len().saturating_mul(2) + PLACE)?;
    Ok(Some(out.into()))
}

/// What Go would get, unless its text is too long.
fn read(value: &Value, most: usize) -> Option<Item> {
    Some(match (value, value.as_i128(), value.as_f64()) {
        (Value::Number(_), Ok(number), _) => Item::Integer(number),
        (Value::Number(_), _, Ok(number)) => Item::Float(number),
        (value, ..) => {
            let mut text = String::new();
            if !crate::show::append(value, false, most, &mut text) {
                return None;
            }
            Item::Text(text)
        }
    })
}

fn kind(item: &Item) -> &'static str {
    match item {
        Item::Integer(number) if i64::try_from(*number).is_err() => "*big.Int",
        Item::Integer(_) => "int",
        Item::Float(_) => "float64",
        Item::Text(_) => "string",
    }
}

fn put(verb: char, directive: Directive, item: &Item, out: &mut String) {
    let Directive { precision, .. } = directive;
    if verb == 'T' {
        return pad(directive, kind(item), false, out);
    }
    match (item, verb) {
        (Item::Text(text), 'v' | 's') => pad(directive, &cut(text, precision), false, out),
        (Item::Text(text), 'q') => pad(directive, &quote(&cut(text, precision)), false, out),
        (Item::Text(text), 'x') => {
            let bytes = text.bytes().take(precision.unwrap_or(usize::MAX));
            pad(
                directive,
                &bytes.map(|byte| format!("{byte:02x}")).collect::<String>(),
                false,
                out,
            );
        }
        (Item::Text(text), 'X') => {
            let bytes = text.bytes().take(precision.unwrap_or(usize::MAX));
            pad(
                directive,
                &bytes.map(|byte| format!("{byte:02X}")).collect::<String>(),
                false,
                out,
            );
        }
        (Item::Integer(number), 'v' | 'd' | 'b' | 'o' | 'O' | 'x' | 'X') => {
            let size = number.unsigned_abs();
            let prefix = if directive.sharp { verb } else { 'd' };
            let (prefix, digits) = match (verb, prefix) {
                ('b', 'b') => ("0b", format!("{size:b}")),
                ('b', _) => ("", format!("{size:b}")),
                ('O', _) => ("0o", format!("{size:o}")),
                ('o', 'o') => ("0", format!("{size:o}")),
                ('o', _) => ("", format!("{size:o}")),
                ('x', 'x') => ("0x", format!("{size:x}")),
                ('x', _) => ("", format!("{size:x}")),
                ('X', 'X') => ("0X", format!("{size:X}")),
                ('X', _) => ("", format!("{size:X}")),
                _ => ("", size.to_string()),
            };
            let zeros = precision.unwrap_or_default().saturating_sub(digits.len());
            let digits = format!("{prefix}{}{digits}", "0".repeat(zeros));
            signed(directive, *number < 0, &digits, precision.is_none(), out);
        }
        (Item::Integer(number), 'c' | 'q' | 'U') => {
            let code = u32::try_from(*number).unwrap_or(0xFFFD);
            let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            let shown = match verb {
                'c' => letter.to_string(),
                'q' => {
                    let quoted = quote(&letter.to_string());
                    let inner = quoted.trim_start_matches('"');
                    match letter {
                        '\'' => "'\\''".to_owned(),
                        '"' => "'\"'".to_owned(),
                        _ => format!("'{}'", inner.strip_suffix('"').unwrap_or(inner)),
                    }
                }
                _ => format!("U+{code:04X}"),
            };
            pad(directive, &shown, false, out);
        }
        (Item::Float(number), 'v' | 'g' | 'G' | 'e' | 'E' | 'f' | 'F') => {
            let digits = float(verb, precision, number.abs());
            let digits = match verb {
                'G' | 'E' => digits.to_uppercase(),
                _ => digits,
            };
            signed(directive, number.is_sign_negative(), &digits, true, out);
        }
        (item, verb) => {
            out.push_str(&format!("%!{verb}({}=", kind(item)));
            put('v', directive, item, out);
            out.push(')');
        }
    }
}

/// A number that is not below zero.
fn float(verb: char, precision: Option<usize>, number: f64) -> String {
    match verb {
        'f' | 'F' => format!("{number:.*}", precision.unwrap_or(6)),
        'e' | 'E' => exponent(&format!("{number:.*e}", precision.unwrap_or(6))),
        _ => {
            // The shortest that is read back the same, unless there is a precision.
            let (shown, most) = match precision {
                None => (format!("{number:e}"), 21),
                Some(digits) => (format!("{number:.*e}", digits.max(1) - 1), digits.max(1)),
            };
            let most = if verb == 'v' || precision.is_some() {
                most
            } else {
                21
            };
            let (digits, power) = shown.split_once('e').unwrap_or((&shown, "0"));
            let power: i64 = power.parse().unwrap_or_default();
            let digits = match digits.contains('.') {
                true => digits.trim_end_matches('0').trim_end_matches('.'),
                false => digits,
            };
            if power < -4 || power >= i64::try_from(most).unwrap_or(21) {
                return exponent(&format!("{digits}e{power}"));
            }
            let places = digits.len().saturating_sub(2) as i64 - power;
            let places = if digits.contains('.') { places } else { -power };
            format!("{number:.*}", usize::try_from(places).unwrap_or_default())
        }
    }
}

/// Go writes a sign and at least two digits.
fn exponent(shown: &str) -> String {
    let (digits, power) = shown.split_once('e').unwrap_or((shown, "0"));
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', power),
    };
    format!("{digits}e{sign}{power:0>2}")
}

fn cut(text: &str, precision: Option<usize>) -> String {
    match precision {
        Some(most) => text.chars().take(most).collect(),
        None => text.to_owned(),
    }
}

fn signed(directive: Directive, is_negative: bool, digits: &str, zeros: bool, out: &mut String) {
    let sign = match (is_negative, directive.plus, directive.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    let width = directive.width.unwrap_or_default();
    let missing = width.saturating_sub(digits.len() + sign.len());
    match directive.zero && zeros && !directive.minus {
        true => out.push_str(&format!("{sign}{}{digits}", "0".repeat(missing))),
        false => pad(directive, &format!("{sign}{digits}"), true, out),
    }
}

fn pad(directive: Directive, shown: &str, is_number: bool, out: &mut String) {
    let width = directive.width.unwrap_or_default();
    let missing = width.saturating_sub(shown.chars().count());
    let zero = directive.zero && !is_number && !directive.minus;
    let filling = if zero { "0" } else { " " }.repeat(missing);
    match directive.minus {
        true => out.push_str(&format!("{shown}{filling}")),
        false => out.push_str(&format!("{filling}{shown}")),
    }
}
