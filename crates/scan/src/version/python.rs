//! Python's versions, as PEP 440 orders them: `[epoch!]release[pre][.post][.dev][+local]`, in many
//! spellings.

use super::numbers;
use std::cmp::Ordering;

/// A version, taken apart and spelt in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    epoch: String,
    release: Vec<String>,
    /// `a`, `b` or `rc`, and its number.
    pre: Option<(char, String)>,
    post: Option<String>,
    dev: Option<String>,
    local: Vec<String>,
}

/// Compares two versions; nothing where one of them is none.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    Some(Version::parse(left)?.order(&Version::parse(right)?))
}

/// Compares a version with a bound, which says nothing about local changes unless it has such.
pub fn compare_with_bound(version: &str, bound: &str) -> Option<Ordering> {
    let (version, bound) = (Version::parse(version)?, Version::parse(bound)?);
    Some(match bound.local.is_empty() {
        true => version.public().order(&bound),
        false => version.order(&bound),
    })
}

/// Whether a version is below a bound. What announces the bound is not, unless it does so itself.
pub(crate) fn is_below(version: &str, bound: &str) -> bool {
    let (Some(version), Some(bound)) = (Version::parse(version), Version::parse(bound)) else {
        return false;
    };
    let announces = version.is_announced() && !bound.is_announced();
    version.public().order(&bound) == Ordering::Less && !(announces && version.same_base(&bound))
}

/// Whether a version is above a bound. What follows up on the bound is not, unless it does so
/// itself.
pub(crate) fn is_above(version: &str, bound: &str) -> bool {
    let (Some(version), Some(bound)) = (Version::parse(version), Version::parse(bound)) else {
        return false;
    };
    let follows = version.post.is_some() && bound.post.is_none();
    version.public().order(&bound) == Ordering::Greater && !(follows && version.same_base(&bound))
}

/// Whether a version starts with the numbers of another.
pub(crate) fn starts(version: &str, start: &str) -> bool {
    let (Some(version), Some(start)) = (Version::parse(version), Version::parse(start)) else {
        return false;
    };
    let number = |left: &str, right: &str| numbers(left.as_bytes(), right.as_bytes()).is_eq();
    let place = |place: usize| version.release.get(place).map_or("0", String::as_str);
    let mut release = start.release.iter().enumerate();
    number(&version.epoch, &start.epoch)
        && release.all(|(at, part)| number(part, place(at)))
        && (start.pre.is_none() || start.pre == version.pre)
}

/// What compatible versions start with: all numbers but the last.
pub(crate) fn family(version: &str) -> Option<String> {
    let version = Version::parse(version)?;
    let (_, kept) = version.release.split_last()?;
    (!kept.is_empty()).then(|| format!("{}!{}", version.epoch, kept.join(".")))
}

struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn digits(&mut self) -> Option<String> {
        let end = self.0.find(|letter: char| !letter.is_ascii_digit());
        let (digits, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        (!digits.is_empty()).then(|| digits.to_owned())
    }

    /// A word after an optional separator, and a number after another one.
    fn labelled(&mut self, words: &[&'a str]) -> Option<(&'a str, String)> {
        let separators = ['.', '-', '_'];
        let start = self.0.strip_prefix(separators).unwrap_or(self.0);
        let word = words.iter().find(|word| start.starts_with(**word))?;
        self.0 = &start[word.len()..];
        let mut number = Rest(self.0.strip_prefix(separators).unwrap_or(self.0));
        match number.digits() {
            Some(digits) => {
                self.0 = number.0;
                Some((word, digits))
            }
            None => Some((word, "0".into())),
        }
    }
}

impl Version {
    /// Takes a version apart; nothing where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.trim().to_lowercase();
        let text = lower.strip_prefix('v').unwrap_or(&lower);
        let (text, local) = match text.split_once('+') {
            Some((text, local)) => (text, local.split(['.', '-', '_']).map(Into::into).collect()),
            None => (text, Vec::new()),
        };
        let is_word = |part: &String| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if !local.iter().all(is_word) {
            return None;
        }
        let mut rest = Rest(text);
        let mut first = rest.digits()?;
        let mut epoch = "0".to_owned();
        if let Some(after) = rest.0.strip_prefix('!') {
            rest.0 = after;
            epoch = std::mem::replace(&mut first, rest.digits()?);
        }
        let mut release = vec![first];
        while let Some(after) = rest.0.strip_prefix('.') {
            let mut next = Rest(after);
            let Some(digits) = next.digits() else {
                break;
            };
            release.push(digits);
            rest = next;
        }
        let pre = rest.labelled(&["alpha", "a", "beta", "b", "preview", "pre", "c", "rc"]);
        let pre = pre.map(|(word, number)| match word {
            "alpha" | "a" => ('a', number),
            "beta" | "b" => ('b', number),
            _ => ('r', number),
        });
        let mut post = None;
        if let Some(after) = rest.0.strip_prefix('-') {
            let mut implicit = Rest(after);
            post = implicit.digits();
            if post.is_some() {
                rest = implicit;
            }
        }
        if post.is_none() {
            post = rest
                .labelled(&["post", "rev", "r"])
                .map(|(_, number)| number);
        }
        let dev = rest.labelled(&["dev"]).map(|(_, number)| number);
        rest.0.is_empty().then_some(Version {
            epoch,
            release,
            pre,
            post,
            dev,
            local,
        })
    }

    /// Without what only one place knows.
    fn public(&self) -> Self {
        Version {
            local: Vec::new(),
            ..self.clone()
        }
    }

    fn is_announced(&self) -> bool {
        self.pre.is_some() || self.dev.is_some()
    }

    fn same_base(&self, other: &Self) -> bool {
        let base = |version: &Self| Version {
            pre: None,
            post: None,
            dev: None,
            local: Vec::new(),
            ..version.clone()
        };
        base(self).order(&base(other)) == Ordering::Equal
    }

    fn order(&self, other: &Self) -> Ordering {
        let number = |left: &str, right: &str| numbers(left.as_bytes(), right.as_bytes());
        let mut order = number(&self.epoch, &other.epoch);
        for place in 0..self.release.len().max(other.release.len()) {
            let part = |version: &Self| version.release.get(place).cloned().unwrap_or("0".into());
            order = order.then_with(|| number(&part(self), &part(other)));
        }
        let option = |left: &Option<String>, right: &Option<String>, missing: Ordering| match (
            left, right,
        ) {
            (Some(left), Some(right)) => number(left, right),
            (None, None) => Ordering::Equal,
            (None, Some(_)) => missing,
            (Some(_), None) => missing.reverse(),
        };
        order
            .then_with(|| self.stage().cmp(&other.stage()))
            .then_with(|| match (&self.pre, &other.pre) {
                (Some((_, left)), Some((_, right))) => number(left, right),
                _ => Ordering::Equal,
            })
            .then_with(|| option(&self.post, &other.post, Ordering::Less))
            .then_with(|| option(&self.dev, &other.dev, Ordering::Greater))
            .then_with(|| locals(&self.local, &other.local))
    }

    /// What is only in development comes before what announces a release, and that before it.
    fn stage(&self) -> u8 {
        match (&self.pre, &self.post, &self.dev) {
            (Some(('a', _)), ..) => 1,
            (Some(('b', _)), ..) => 2,
            (Some(_), ..) => 3,
            (None, None, Some(_)) => 0,
            _ => 4,
        }
    }
}

/// Words are below numbers, and of two that agree as far as they go the shorter is lower.
fn locals(left: &[String], right: &[String]) -> Ordering {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    for (one, other) in left.iter().zip(right) {
        let order = match (is_number(one), is_number(other)) {
            (true, true) => numbers(one.as_bytes(), other.as_bytes()),
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => one.cmp(other),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_version_are_equal() {
        for (left, right) in [
            ("1.0", "1"),
            ("v1.0-ALPHA_1", "1a1"),
            ("1.0.post1", "1-1"),
            ("1rev3", "1.post3"),
            ("1.0c1", "1.0-preview1"),
            ("0!1", "1"),
        ] {
            assert_eq!(
                compare(left, right),
                Some(Ordering::Equal),
                "{left} {right}"
            );
        }
        for wrong in ["", "a", "1.", "1.0.x", "1+", "1..2", "1-", "1 2"] {
            assert_eq!(compare(wrong, "1"), None, "{wrong}");
        }
    }
}
