//! The versions of RubyGems: numbers and words, parted by dots or by a change between them. A word
//! announces a release and so is below every number.

use super::numbers;
use std::cmp::Ordering;

/// Compares two versions; nothing where one of them is none.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (segments(left)?, segments(right)?);
    for place in 0..left.len().max(right.len()) {
        let segment = |list: &[String]| list.get(place).cloned().unwrap_or("0".into());
        let (one, other) = (segment(&left), segment(&right));
        let order = match (is_number(&one), is_number(&other)) {
            (true, true) => numbers(one.as_bytes(), other.as_bytes()),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => one.cmp(&other),
        };
        if order != Ordering::Equal {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

fn is_number(segment: &str) -> bool {
    segment.starts_with(|first: char| first.is_ascii_digit())
}

fn segments(text: &str) -> Option<Vec<String>> {
    // A dash announces a release, too.
    let text = text.trim().replace('-', ".pre.");
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
    let first = text.split('.').next().unwrap_or_default();
    let starts = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    if !starts || !text.chars().all(is_known) || text.split('.').any(str::is_empty) {
        return None;
    }
    let mut segments: Vec<String> = Vec::new();
    for part in text.split('.') {
        let mut segment = String::new();
        for letter in part.chars() {
            if !segment.is_empty() && is_number(&segment) != letter.is_ascii_digit() {
                segments.push(std::mem::take(&mut segment));
            }
            segment.push(letter);
        }
        segments.push(segment);
    }
    // Zeros at the end of the numbers say nothing, nor do those at the end of the rest.
    let words = segments.iter().position(|segment| !is_number(segment));
    let mut rest = segments.split_off(words.unwrap_or(segments.len()));
    for part in [&mut segments, &mut rest] {
        while part
            .last()
            .is_some_and(|last| last.trim_matches('0').is_empty())
        {
            part.pop();
        }
    }
    segments.append(&mut rest);
    Some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_rubygems_orders_them() {
        let ascending = [
            "0.9", "1.0.a", "1.0.a.2", "1.0.a10", "1.0.b1", "1.0.pre", "1.0.rc1", "1.0", "1.0.1",
            "1.2", "1.10", "2.0",
        ];
        for (place, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(
                    compare(left, right),
                    Some(place.cmp(&other)),
                    "{left} {right}"
                );
            }
        }
        for (left, right) in [("1", "1.0.0"), ("1.0-1", "1.0.pre.1"), ("1.a1", "1.a.1")] {
            assert_eq!(
                compare(left, right),
                Some(Ordering::Equal),
                "{left} {right}"
            );
        }
        for wrong in ["", "a", "1..2", "1.", "1 2", "1_0"] {
            assert_eq!(compare(wrong, "1"), None, "{wrong}");
        }
    }
}
