//! Alpine's versions: `1.2.3b_rc1_p2-r4`. Parts are compared one by one; where one version ends
//! earlier, it is the lesser, unless the other goes on with a suffix that announces a release.

use super::numbers;
use std::cmp::Ordering;

/// What a part is. The order is the one in which versions of unlike parts compare: whatever comes
/// later here makes the lesser version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A number after a dot that starts with a zero and so compares like a fraction.
    Fraction,
    Number,
    Letter,
    Suffix,
    SuffixNumber,
    Revision,
    End,
}

#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    kind: Kind,
    text: &'a str,
}

/// Suffixes before a release, then those after it.
const BEFORE: [&str; 4] = ["alpha", "beta", "pre", "rc"];
const AFTER: [&str; 5] = ["cvs", "svn", "git", "hg", "p"];

/// Compares two versions; nothing where one of them is none.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (parts(left)?, parts(right)?);
    let end = Part {
        kind: Kind::End,
        text: "",
    };
    for place in 0..left.len().max(right.len()) {
        let one = left.get(place).copied().unwrap_or(end);
        let other = right.get(place).copied().unwrap_or(end);
        let order = if is_number(one.kind) && is_number(other.kind) {
            number(one, other)
        } else if one.kind == other.kind {
            match one.kind {
                Kind::Letter => one.text.cmp(other.text),
                Kind::Suffix => rank(one.text).cmp(&rank(other.text)),
                _ => numbers(one.text.as_bytes(), other.text.as_bytes()),
            }
        } else if announces(one) {
            Ordering::Less
        } else if announces(other) {
            Ordering::Greater
        } else {
            other.kind.cmp(&one.kind)
        };
        if order != Ordering::Equal {
            return Some(order);
        }
    }
    Some(Ordering::Equal)
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Fraction | Kind::Number)
}

/// Numbers compare as numbers; one that starts with zeros is below all that do not, and the more
/// zeros the lower.
fn number(one: Part, other: Part) -> Ordering {
    let zeros = |part: Part| match part.kind {
        Kind::Fraction => part.text.len() - part.text.trim_start_matches('0').len(),
        _ => 0,
    };
    zeros(other)
        .cmp(&zeros(one))
        .then_with(|| numbers(one.text.as_bytes(), other.text.as_bytes()))
}

fn announces(part: Part) -> bool {
    part.kind == Kind::Suffix && rank(part.text).is_some_and(|rank| rank < 0)
}

fn rank(suffix: &str) -> Option<i32> {
    let place = |list: &[&str]| list.iter().position(|one| *one == suffix);
    let before = place(&BEFORE).map(|place| place as i32 - BEFORE.len() as i32);
    before.or_else(|| place(&AFTER).map(|place| place as i32))
}

/// Takes a version apart; nothing where it is none.
fn parts(version: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let (mut text, mut rest) = digits(version);
    if text.is_empty() {
        return None;
    }
    parts.push(Part {
        kind: Kind::Number,
        text,
    });
    while let Some(after) = rest.strip_prefix('.') {
        (text, rest) = digits(after);
        if text.is_empty() {
            return None;
        }
        let kind = if text.starts_with('0') {
            Kind::Fraction
        } else {
            Kind::Number
        };
        parts.push(Part { kind, text });
    }
    if rest.starts_with(|first: char| first.is_ascii_lowercase()) {
        (text, rest) = rest.split_at(1);
        parts.push(Part {
            kind: Kind::Letter,
            text,
        });
    }
    while let Some(after) = rest.strip_prefix('_') {
        let end = after.find(|letter: char| !letter.is_ascii_lowercase());
        (text, rest) = after.split_at(end.unwrap_or(after.len()));
        rank(text)?;
        parts.push(Part {
            kind: Kind::Suffix,
            text,
        });
        (text, rest) = digits(rest);
        if !text.is_empty() {
            parts.push(Part {
                kind: Kind::SuffixNumber,
                text,
            });
        }
    }
    // A commit, which says nothing about the order.
    if let Some(after) = rest.strip_prefix('~') {
        let end = after.find(|letter: char| !letter.is_ascii_hexdigit());
        rest = &after[end.unwrap_or(after.len())..];
    }
    if let Some(after) = rest.strip_prefix("-r") {
        (text, rest) = digits(after);
        if text.is_empty() {
            return None;
        }
        parts.push(Part {
            kind: Kind::Revision,
            text,
        });
    }
    rest.is_empty().then_some(parts)
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_alpine_orders_them() {
        let ascending = [
            "0.1_alpha",
            "0.1_alpha1",
            "0.1_alpha2",
            "0.1_beta",
            "0.1_pre1",
            "0.1_rc1",
            "0.1",
            "0.1-r1",
            "0.1_git20240101",
            "0.1_p1",
            "0.1_p1-r3",
            "0.1_p2",
            "0.1a",
            "0.1b-r2",
            "0.1.0",
            "0.1.1",
            "0.2",
            "1.0",
            "1.0.002",
            "1.0.01",
            "1.0.1",
            "1.0.10",
            "1.1.1w-r0",
            "1.1.1w-r1",
            "1.2.4",
            "2.0.0_rc3",
            "2.0.0",
            "10",
            "20240101",
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
        assert_eq!(compare("1.0~abc-r0", "1.0-r0"), Some(Ordering::Equal));
        for wrong in ["", "a", "1.", "1.0_x", "1.0-r", "1.0-1", "1 0", "1.0A"] {
            assert_eq!(compare(wrong, "1"), None, "{wrong}");
        }
    }
}
