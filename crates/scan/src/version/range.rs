//! Ranges of versions as advisories write them: `>= 1.0, < 1.2.3 || = 2.0`, intervals such as
//! `[1.0,2.0)`, and the short forms of npm, Ruby and Python. A range is a list of alternatives,
//! each of them bounds that must all hold; releases that are only announced are in it like others.

use super::python;
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
    /// Python's: what only announces the bound is not below it, and what follows it not above.
    PythonLess,
    PythonMore,
    /// Python's: starts with these numbers, or does not.
    PythonStarts,
    PythonDiffers,
}

/// Who writes a range, for some signs mean another thing to each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Signs have their plain meaning, and missing numbers are zero.
    #[default]
    Plain,
    /// Missing numbers stand for all.
    Npm,
    /// PEP 440.
    Python,
    /// RubyGems.
    Ruby,
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
        Range::parse_as(text, Dialect::Plain)
    }

    /// Reads a range as one ecosystem writes them; nothing where it is none.
    pub fn parse_as(text: &str, dialect: Dialect) -> Option<Self> {
        let mut alternatives = Vec::new();
        for alternative in text.split("||") {
            let alternative = alternative.trim();
            if alternative.starts_with(['[', '(']) {
                intervals(alternative, &mut alternatives)?;
            } else {
                alternatives.push(bounds(alternative, dialect)?);
            }
        }
        Some(Range(alternatives))
    }

    /// Whether a version lies in the range. A version that is none lies nowhere.
    pub fn contains(&self, version: &str, compare: Compare) -> bool {
        self.decide(version, compare) == Some(true)
    }

    /// Whether a version lies in the range; nothing if that depends on a bound that cannot be
    /// compared with the version.
    pub fn decide(&self, version: &str, compare: Compare) -> Option<bool> {
        let within = |bounds: &Vec<Bound>| {
            let holds = bounds.iter().map(|bound| bound.holds(version, compare));
            all(holds)
        };
        any(self.0.iter().map(within))
    }

    /// The versions that a range ends before: those that are free of what the range has, as they
    /// are written.
    pub fn ends_in(text: &str) -> Vec<&str> {
        let mut ends = Vec::new();
        for part in text.split("||") {
            let mut rest = part;
            while let Some(place) = rest.find('<') {
                let after = &rest[place + 1..];
                rest = after;
                if after.starts_with('=') || part[..part.len() - after.len()].ends_with("=<") {
                    continue;
                }
                let after = after.trim_start();
                let end = after.find([',', ' ', '<', '>', '=', '!']);
                let end = &after[..end.unwrap_or(after.len())];
                if !end.is_empty() {
                    ends.push(end);
                }
            }
            // An interval that ends with a round bracket ends before its second version.
            if part.trim_start().starts_with(['[', '(']) {
                let closed = part.split(')').filter(|one| one.contains(','));
                let before = closed.take(part.matches(')').count());
                let versions = before.filter_map(|one| one.rsplit(',').next());
                ends.extend(versions.map(str::trim).filter(|one| !one.is_empty()));
            }
        }
        ends
    }
}

/// Whether one of some answers is yes; nothing if that depends on one that is not known.
pub(crate) fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut whole = Some(false);
    for answer in answers {
        match answer {
            Some(true) => return Some(true),
            Some(false) => {}
            None => whole = None,
        }
    }
    whole
}

/// Whether all of some answers are yes; nothing if that depends on one that is not known.
pub(crate) fn all(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    any(answers.map(|answer| answer.map(|is| !is))).map(|is| !is)
}

impl Bound {
    fn holds(&self, version: &str, compare: Compare) -> Option<bool> {
        let order = match self.relation {
            Relation::PythonLess => return Some(python::is_below(version, &self.version)),
            Relation::PythonMore => return Some(python::is_above(version, &self.version)),
            Relation::PythonStarts => return Some(python::starts(version, &self.version)),
            Relation::PythonDiffers => return Some(!python::starts(version, &self.version)),
            _ => compare(version, &self.version)?,
        };
        Some(match self.relation {
            Relation::Equal => order == Ordering::Equal,
            Relation::NotEqual => order != Ordering::Equal,
            Relation::Less => order == Ordering::Less,
            Relation::AtMost => order != Ordering::Greater,
            Relation::More => order == Ordering::Greater,
            _ => order != Ordering::Less,
        })
    }
}

fn bound(relation: Relation, version: impl Into<String>) -> Bound {
    Bound {
        relation,
        version: version.into(),
    }
}

/// Bounds with commas or spaces between them, and spaces after the operators.
fn bounds(text: &str, dialect: Dialect) -> Option<Vec<Bound>> {
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
        expand(operator, version, dialect, &mut bounds)?;
        rest = next.trim_start_matches([',', ' ']);
    }
    Some(bounds)
}

fn expand(operator: &str, version: &str, dialect: Dialect, bounds: &mut Vec<Bound>) -> Option<()> {
    match dialect {
        Dialect::Npm if is_partial(version) => return npm(operator, version, bounds),
        Dialect::Python => return pep440(operator, version, bounds),
        Dialect::Ruby if operator == "~>" => return pessimistic(version, bounds),
        _ => {}
    }
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
        // Up to the next change of the second number, or of the one before the last.
        "~" => {
            let kept = if count > 2 { count - 1 } else { count };
            bounds.push(bound(Relation::Less, next(release, kept)?));
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

/// Whether numbers are missing or left open.
fn is_partial(version: &str) -> bool {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    let open = |part: &str| matches!(part, "*" | "x" | "X");
    release.split('.').count() < 3 || release.split('.').any(open)
}

/// npm: numbers that are missing stand for all there are, announced releases among them.
fn npm(operator: &str, version: &str, bounds: &mut Vec<Bound>) -> Option<()> {
    let release = version.trim_start_matches(['v', '=']);
    let is_given = |part: &&str| !matches!(*part, "*" | "x" | "X" | "");
    let release = release.split(['-', '+']).next()?;
    let given: Vec<&str> = release.split('.').take_while(is_given).collect();
    if given.is_empty() {
        return Some(());
    }
    let (count, text) = (given.len(), given.join("."));
    let zeros = given
        .iter()
        .take_while(|part| part.trim_matches('0').is_empty())
        .count();
    let whole = |text: String| {
        let missing = 3usize.saturating_sub(text.split('.').count());
        text + &".0".repeat(missing)
    };
    let first = |text: String| whole(text) + "-0";
    match operator {
        "" | "=" | "==" => {
            bounds.push(bound(Relation::AtLeast, first(text.clone())));
            bounds.push(bound(Relation::Less, first(next(&text, count)?)));
        }
        "<" => bounds.push(bound(Relation::Less, first(text))),
        "<=" | "=<" => bounds.push(bound(Relation::Less, first(next(&text, count)?))),
        ">" => bounds.push(bound(Relation::AtLeast, first(next(&text, count)?))),
        ">=" | "=>" => bounds.push(bound(Relation::AtLeast, first(text))),
        "~" => {
            bounds.push(bound(Relation::AtLeast, first(text.clone())));
            bounds.push(bound(Relation::Less, whole(next(&text, count.min(2))?)));
        }
        "^" => {
            let kept = (zeros + 1).min(count);
            bounds.push(bound(Relation::AtLeast, first(text.clone())));
            bounds.push(bound(Relation::Less, whole(next(&text, kept)?)));
        }
        _ => return None,
    }
    Some(())
}

fn pep440(operator: &str, version: &str, bounds: &mut Vec<Bound>) -> Option<()> {
    if version == "*" && operator.is_empty() {
        return Some(());
    }
    if let Some(start) = version.strip_suffix(".*") {
        let relation = match operator {
            "" | "=" | "==" => Relation::PythonStarts,
            "!=" => Relation::PythonDiffers,
            _ => return None,
        };
        python::Version::parse(start)?;
        bounds.push(bound(relation, start));
        return Some(());
    }
    let relation = match operator {
        "" | "=" | "==" | "===" => Relation::Equal,
        "!=" => Relation::NotEqual,
        "<" => Relation::PythonLess,
        "<=" => Relation::AtMost,
        ">" => Relation::PythonMore,
        ">=" => Relation::AtLeast,
        "~=" => {
            bounds.push(bound(Relation::PythonStarts, python::family(version)?));
            Relation::AtLeast
        }
        _ => return None,
    };
    python::Version::parse(version)?;
    bounds.push(bound(relation, version));
    Some(())
}

/// RubyGems: up to the next change of the number before the last, which what only announces that
/// change is no part of.
fn pessimistic(version: &str, bounds: &mut Vec<Bound>) -> Option<()> {
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let numbers: Vec<&str> = version.split('.').take_while(is_number).collect();
    let kept = numbers.len().saturating_sub(1).max(1);
    let end = next(&numbers.join("."), kept)?;
    bounds.push(bound(Relation::AtLeast, version));
    // The lowest word there is.
    bounds.push(bound(Relation::Less, end + ".A"));
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
mod tests;
