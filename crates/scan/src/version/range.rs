//! Ranges of versions as advisories write them: `>= 1.0, < 1.2.3 || = 2.0`, intervals such as
//! `[1.0,2.0)`, and the short forms of npm, Ruby and Python. A range is a list of alternatives,
//! each of them bounds that must all hold; releases that are only announced are in it like others.

use std::cmp::Ordering;

/// How two versions compare; nothing where one of them is none.
pub type Compare = fn(&str, &str) -> Option<Ordering>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    relation: Relation,
    version: String,
}

/// A range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range(Vec<Vec<Bound>>);

/// What may stand before a version, the longer first.
const OPERATORS: [&str; 14] = [
    "===", "==", "!=", "<=", ">=", "=<", "=>", "~>", "~=", "<", ">", "=", "^", "~",
];

impl Range {
    /// Reads a range; nothing where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut alternatives = Vec::new();
        for alternative in text.split("||") {
            let alternative = alternative.trim();
            if alternative.starts_with(['[', '(']) {
                intervals(alternative, &mut alternatives)?;
            } else {
                alternatives.push(bounds(alternative)?);
            }
        }
        Some(Range(alternatives))
    }

    /// Whether a version lies in the range. A version that is none lies nowhere.
    pub fn contains(&self, version: &str, compare: Compare) -> bool {
        self.0.iter().any(|bounds| {
            bounds.iter().all(|bound| {
                let order = compare(version, &bound.version);
                order.is_some_and(|order| match bound.relation {
                    Relation::Equal => order == Ordering::Equal,
                    Relation::NotEqual => order != Ordering::Equal,
                    Relation::Less => order == Ordering::Less,
                    Relation::AtMost => order != Ordering::Greater,
                    Relation::More => order == Ordering::Greater,
                    Relation::AtLeast => order != Ordering::Less,
                })
            })
        })
    }

    /// The versions that the range ends before: those that are free of what the range has.
    pub fn ends(&self) -> impl Iterator<Item = &str> {
        let bounds = self.0.iter().flatten();
        bounds
            .filter(|bound| bound.relation == Relation::Less)
            .map(|bound| bound.version.as_str())
    }
}

fn bound(relation: Relation, version: impl Into<String>) -> Bound {
    Bound {
        relation,
        version: version.into(),
    }
}

/// Bounds with commas or spaces between them, and spaces after the operators.
fn bounds(text: &str) -> Option<Vec<Bound>> {
    // npm's `1.0 - 2.0`.
    if let Some((low, high)) = text.split_once(" - ") {
        let low = bound(Relation::AtLeast, low.trim());
        return Some(vec![low, bound(Relation::AtMost, high.trim())]);
    }
    let mut bounds = Vec::new();
    let mut rest = text.trim_start_matches([',', ' ']);
    while !rest.is_empty() {
        let operator = OPERATORS
            .iter()
            .find(|operator| rest.starts_with(**operator));
        let operator = operator.copied().unwrap_or("");
        let after = rest[operator.len()..].trim_start();
        let end = after
            .find([',', ' ', '<', '>', '=', '!', '^'])
            .unwrap_or(after.len());
        let (version, next) = after.split_at(end);
        if version.is_empty() {
            return None;
        }
        expand(operator, version, &mut bounds)?;
        rest = next.trim_start_matches([',', ' ']);
    }
    Some(bounds)
}

fn expand(operator: &str, version: &str, bounds: &mut Vec<Bound>) -> Option<()> {
    let wild = version
        .split('.')
        .position(|part| matches!(part, "*" | "x" | "X"));
    if let Some(place) = wild {
        // All versions, or those that start like it.
        if place > 0 {
            let start: Vec<&str> = version.split('.').take(place).collect();
            let start = start.join(".");
            bounds.push(bound(Relation::Less, next(&start, place)?));
            bounds.push(bound(Relation::AtLeast, start));
        }
        return Some(());
    }
    let release = version.trim_start_matches('v').split(['-', '+']).next()?;
    let count = release.split('.').count();
    let relation = match operator {
        "" | "=" | "==" | "===" => Relation::Equal,
        "!=" => Relation::NotEqual,
        "<" => Relation::Less,
        "<=" | "=<" => Relation::AtMost,
        ">" => Relation::More,
        ">=" | "=>" => Relation::AtLeast,
        // Up to the next change of the first number that is not zero.
        "^" => {
            let numbers = release.split('.');
            let zeros = numbers
                .take_while(|part| part.trim_matches('0').is_empty())
                .count();
            bounds.push(bound(
                Relation::Less,
                next(release, (zeros + 1).min(count))?,
            ));
            Relation::AtLeast
        }
        "~" => {
            bounds.push(bound(Relation::Less, next(release, count.min(2))?));
            Relation::AtLeast
        }
        // Up to the next change of the number before the last.
        "~>" | "~=" => {
            bounds.push(bound(
                Relation::Less,
                next(release, count.saturating_sub(1).max(1))?,
            ));
            Relation::AtLeast
        }
        _ => return None,
    };
    bounds.push(bound(relation, version));
    Some(())
}

/// The first version whose leading numbers, `count` of them, are higher.
fn next(version: &str, count: usize) -> Option<String> {
    let mut numbers: Vec<u64> = version
        .split('.')
        .take(count)
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let last = numbers.last_mut()?;
    *last = last.checked_add(1)?;
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    Some(numbers.join("."))
}

/// `[1.0,2.0),[3.0,)` and `[1.0]`.
fn intervals(text: &str, alternatives: &mut Vec<Vec<Bound>>) -> Option<()> {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([')', ']'])?;
        let (low_mark, high_mark) = (rest.get(..1)?, rest.get(end..=end)?);
        let inner = rest.get(1..end)?;
        if !matches!(low_mark, "[" | "(") {
            return None;
        }
        let mut alternative = Vec::new();
        match inner.split_once(',') {
            Some((low, high)) => {
                let (low, high) = (low.trim(), high.trim());
                if !low.is_empty() {
                    let relation = if low_mark == "[" {
                        Relation::AtLeast
                    } else {
                        Relation::More
                    };
                    alternative.push(bound(relation, low));
                }
                if !high.is_empty() {
                    let relation = if high_mark == "]" {
                        Relation::AtMost
                    } else {
                        Relation::Less
                    };
                    alternative.push(bound(relation, high));
                }
            }
            None => alternative.push(bound(Relation::Equal, inner.trim())),
        }
        alternatives.push(alternative);
        rest = rest[end + 1..].trim_start_matches([',', ' ']);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::semantic::compare;

    #[test]
    fn versions_lie_in_ranges_of_every_spelling() {
        for (range, inside, outside) in [
            (
                ">= 1.0.0, < 1.2.3",
                vec!["1.0.0", "1.2.2", "1.2.3-rc.1"],
                vec!["0.9", "1.2.3"],
            ),
            (
                "<1.2.3||>=2.0.0 <2.1.0",
                vec!["1.0", "2.0.5"],
                vec!["1.2.3", "2.1.0"],
            ),
            ("= 1.2.3", vec!["1.2.3", "v1.2.3"], vec!["1.2.4"]),
            ("1.2.3", vec!["1.2.3"], vec!["1.2.4"]),
            (
                "[1.0,2.0),[3.0,)",
                vec!["1.0", "1.9", "4"],
                vec!["2.0", "0.9"],
            ),
            ("(,1.5]", vec!["0.1", "1.5"], vec!["1.6"]),
            ("[1.5]", vec!["1.5.0"], vec!["1.6"]),
            ("^1.2.3", vec!["1.2.3", "1.9"], vec!["2.0.0", "1.2.2"]),
            ("^0.2.3", vec!["0.2.3", "0.2.9"], vec!["0.3.0"]),
            ("~1.2.3", vec!["1.2.9"], vec!["1.3.0"]),
            ("~> 1.2.3", vec!["1.2.9"], vec!["1.3.0"]),
            ("~> 1.2", vec!["1.9"], vec!["2.0"]),
            ("1.2.x", vec!["1.2.0", "1.2.9"], vec!["1.3.0", "1.1"]),
            ("*", vec!["0", "9"], vec![]),
            ("1.0 - 2.0", vec!["1.0", "2.0"], vec!["2.0.1"]),
            ("!= 1.0, < 2", vec!["1.1"], vec!["1.0", "2"]),
        ] {
            let range = Range::parse(range).unwrap();
            for version in inside {
                assert!(range.contains(version, compare), "{version} {range:?}");
            }
            for version in outside {
                assert!(!range.contains(version, compare), "{version} {range:?}");
            }
        }
        for wrong in ["<", ">= ,", "[1,2", "[", "^a"] {
            assert_eq!(Range::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_range_tells_where_it_ends() {
        let range = Range::parse(">= 1.0, < 1.2.3 || >= 2, <2.1 || <= 3").unwrap();
        assert_eq!(range.ends().collect::<Vec<_>>(), ["1.2.3", "2.1"]);
    }
}
