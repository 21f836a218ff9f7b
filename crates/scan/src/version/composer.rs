//! The versions of Composer: up to four numbers, then a word that says how stable the release is,
//! `dev`, `alpha`, `beta`, `RC` or, above the release itself, `patch`, and a number behind it.

use super::numbers;
use std::cmp::Ordering;

/// Compares two versions; nothing where one of them is none.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    Some(Version::parse(left)?.order(&Version::parse(right)?))
}

/// How stable a release is, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Development,
    Alpha,
    Beta,
    Candidate,
    Stable,
    Patch,
}

#[derive(Debug)]
struct Version<'a> {
    numbers: Vec<&'a str>,
    stability: Stability,
    /// Numbers behind the word; none where there are none.
    revision: Vec<&'a str>,
    /// A development version of that.
    development: bool,
}

impl<'a> Version<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let text = text.split('+').next()?;
        let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let is_release = |letter: char| letter.is_ascii_digit() || letter == '.';
        let end = text
            .find(|letter| !is_release(letter))
            .unwrap_or(text.len());
        let (release, rest) = text.split_at(end);
        // The separator before the word may be a dot, too.
        let numbers: Vec<&str> = release.trim_end_matches('.').split('.').collect();
        let is_number = |part: &&str| !part.is_empty();
        if !numbers.iter().all(is_number) || numbers.len() > 4 || release.ends_with("..") {
            return None;
        }
        let (rest, development) = match strip(rest, "dev") {
            Some("") => ("", true),
            _ => (rest, false),
        };
        let (rest, development) = match rest.to_ascii_lowercase().rfind("-dev") {
            Some(place) if place + 4 == rest.len() => (&rest[..place], true),
            _ => (rest, development),
        };
        let (stability, revision) = match rest {
            "" if release.ends_with('.') && !development => return None,
            "" => (Stability::Stable, Vec::new()),
            // There is one separator at most.
            rest if release.ends_with('.') && rest.starts_with(['-', '_']) => return None,
            rest => stage(rest)?,
        };
        // What calls itself stable is the release, whatever follows.
        if stability == Stability::Stable && !rest.is_empty() {
            return Some(Version {
                numbers,
                stability,
                revision: Vec::new(),
                development: false,
            });
        }
        Some(Version {
            numbers,
            stability,
            revision,
            development,
        })
    }

    fn order(&self, other: &Self) -> Ordering {
        let mut order = Ordering::Equal;
        for place in 0..4 {
            let part = |version: &Self| version.numbers.get(place).copied().unwrap_or("0");
            let (one, two) = (part(self), part(other));
            order = order.then_with(|| numbers(one.as_bytes(), two.as_bytes()));
        }
        let stage = |version: &Self| match (version.stability, version.development) {
            (Stability::Stable, true) => Stability::Development,
            (stability, _) => stability,
        };
        order = order.then_with(|| stage(self).cmp(&stage(other)));
        for place in 0..self.revision.len().max(other.revision.len()) {
            let part = |version: &Self| version.revision.get(place).copied();
            order = order.then_with(|| match (part(self), part(other)) {
                (Some(one), Some(two)) => numbers(one.as_bytes(), two.as_bytes()),
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Less,
                (Some(_), None) => Ordering::Greater,
            });
        }
        // Of a version that announces a release there may be development versions before it.
        order.then_with(|| other.development.cmp(&self.development))
    }
}

/// What follows a word, in whichever case and after a separator or none.
fn strip<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.strip_prefix(['-', '_', '.']).unwrap_or(text);
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

fn stage(text: &str) -> Option<(Stability, Vec<&str>)> {
    let words = [
        ("stable", Stability::Stable),
        ("beta", Stability::Beta),
        ("b", Stability::Beta),
        ("rc", Stability::Candidate),
        ("alpha", Stability::Alpha),
        ("a", Stability::Alpha),
        ("patch", Stability::Patch),
        ("pl", Stability::Patch),
        ("p", Stability::Patch),
    ];
    let found = words
        .iter()
        .find_map(|(word, stability)| Some((*stability, strip(text, word)?)));
    let (stability, rest) = found?;
    if rest.is_empty() {
        return Some((stability, Vec::new()));
    }
    let rest = rest.strip_prefix(['.', '-']).unwrap_or(rest);
    let revision: Vec<&str> = rest.split(['.', '-']).collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
    revision
        .iter()
        .all(is_number)
        .then_some((stability, revision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_composer_orders_them() {
        let ascending = [
            "0.9",
            "1.0-dev",
            "1.0-alpha1",
            "1.0.0-alpha.2",
            "1.0beta1",
            "1.0-beta2",
            "1.0-RC1",
            "1.0.0-rc2",
            "1.0",
            "1.0-p1",
            "1.0-patch2",
            "1.0.1",
            "1.2",
            "1.10",
            "2.0",
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
        for (left, right) in [("1", "1.0.0.0"), ("v1.0", "1.0-stable"), ("1.0+abc", "1.0")] {
            assert_eq!(compare(left, right), Some(Ordering::Equal));
        }
        for wrong in ["", "dev-master", "1..2", "1.0-x", "1.", "1.2.3.4.5", "a"] {
            assert_eq!(compare(wrong, "1"), None, "{wrong}");
        }
    }
}
