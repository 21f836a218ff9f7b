//! Functions of regular expressions.

use super::pattern::{self, Pattern};
use super::{Made, PLACE, TooMuch, take, text};
use regorus::Value;
use std::sync::Arc;

/// A pattern and the text that it is to be held against, if both are there.
fn both<'v>(pattern: &Value, value: &'v Value) -> Result<Option<(Arc<Pattern>, &'v str)>, TooMuch> {
    let (Some(pattern), Some(value)) = (text(pattern), text(value)) else {
        return Ok(None);
    };
    let Some(pattern) = pattern::compile(pattern)? else {
        return Ok(None);
    };
    pattern.accepts(value)?;
    Ok(Some((pattern, value)))
}

pub(super) fn is_match(values: &[Value]) -> Made {
    let [pattern, value] = values else {
        return Ok(None);
    };
    let found = both(pattern, value)?;
    Ok(found.map(|(pattern, value)| pattern.regex.is_match(value).into()))
}

pub(super) fn is_valid(values: &[Value]) -> Made {
    let Some(pattern) = values.first().and_then(text) else {
        return Ok(Some(false.into()));
    };
    Ok(Some(pattern::compile(pattern)?.is_some().into()))
}

/// How many are asked for; all, if the number is below zero.
fn most(number: &Value) -> Option<usize> {
    let number = number.as_i64().ok()?;
    Some(usize::try_from(number).unwrap_or(usize::MAX))
}

pub(super) fn find(values: &[Value]) -> Made {
    let [pattern, value, number] = values else {
        return Ok(None);
    };
    let (Some((pattern, value)), Some(most)) = (both(pattern, value)?, most(number)) else {
        return Ok(None);
    };
    let mut all: Vec<Value> = Vec::new();
    for found in pattern.regex.find_iter(value).take(most) {
        take(PLACE + found.len())?;
        all.push(found.as_str().into());
    }
    Ok(Some(all.into()))
}

pub(super) fn find_groups(values: &[Value]) -> Made {
    let [pattern, value, number] = values else {
        return Ok(None);
    };
    let (Some((pattern, value)), Some(most)) = (both(pattern, value)?, most(number)) else {
        return Ok(None);
    };
    let mut all: Vec<Value> = Vec::new();
    for found in pattern.regex.captures_iter(value).take(most) {
        let mut groups: Vec<Value> = Vec::new();
        for group in found.iter() {
            let group = group.map_or("", |group| group.as_str());
            take(PLACE + group.len())?;
            groups.push(group.into());
        }
        all.push(groups.into());
    }
    Ok(Some(all.into()))
}

pub(super) fn replace(values: &[Value]) -> Made {
    let [all, pattern, by] = values else {
        return Ok(None);
    };
    let (Some((pattern, all)), Some(by)) = (both(pattern, all)?, text(by)) else {
        return Ok(None);
    };
    let mut text = String::new();
    let mut end = 0;
    for found in pattern.regex.captures_iter(all) {
        let Some(place) = found.get(0) else { continue };
        let before = all.get(end..place.start()).unwrap_or_default();
        let mut part = String::new();
        take(before.len() + by.len().saturating_mul(place.len() + 1))?;
        found.expand(by, &mut part);
        text.push_str(before);
        text.push_str(&part);
        end = place.end();
    }
    let rest = all.get(end..).unwrap_or_default();
    take(rest.len() + PLACE)?;
    text.push_str(rest);
    Ok(Some(text.into()))
}

pub(super) fn split(values: &[Value]) -> Made {
    let [pattern, value] = values else {
        return Ok(None);
    };
    let Some((pattern, value)) = both(pattern, value)? else {
        return Ok(None);
    };
    let mut parts: Vec<Value> = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for found in pattern.regex.find_iter(value) {
        if value.is_empty() {
            break;
        }
        end = found.start();
        // Go leaves out what is before an empty match at the very beginning.
        if found.end() != 0 {
            let part = value.get(begin..end).unwrap_or_default();
            take(PLACE + part.len())?;
            parts.push(part.into());
        }
        begin = found.end();
    }
    if end != value.len() || value.is_empty() {
        let part = value.get(begin..).unwrap_or_default();
        take(PLACE + part.len())?;
        parts.push(part.into());
    }
    Ok(Some(parts.into()))
}

/// A text against one with patterns between delimiters.
pub(super) fn template(values: &[Value]) -> Made {
    let [template, value, open, close] = values else {
        return Ok(None);
    };
    let one = |value: &Value| {
        let mut letters = text(value)?.chars();
        letters.next().filter(|_| letters.next().is_none())
    };
    let (Some(template), Some(open), Some(close)) = (text(template), one(open), one(close)) else {
        return Ok(None);
    };
    take(template.len().saturating_mul(4) + PLACE)?;
    let (mut pattern, mut part, mut depth) = (String::from("^"), String::new(), 0usize);
    for letter in template.chars() {
        if letter == open {
            depth += 1;
            if depth == 1 {
                pattern.push_str(&regex::escape(&std::mem::take(&mut part)));
                continue;
            }
        } else if letter == close {
            let Some(less) = depth.checked_sub(1) else {
                return Ok(None);
            };
            depth = less;
            if depth == 0 {
                pattern.push_str(&format!("({})", std::mem::take(&mut part)));
                continue;
            }
        }
        part.push(letter);
    }
    if depth > 0 {
        return Ok(None);
    }
    pattern.push_str(&regex::escape(&part));
    pattern.push('$');
    is_match(&[pattern.into(), value.clone()])
}
