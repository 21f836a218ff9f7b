//! Semantic versions, as npm, Go, Cargo and others use them: numbers, then what announces a
//! release, then what does not count. Missing numbers are zero.

use super::numbers;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Compares two versions; nothing where one of them is none.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    Some(order(&Version::parse(left)?, &Version::parse(right)?))
}

/// Compares versions that need no dash before what announces a release: Go writes `1.22rc1`.
pub fn compare_loose(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (dashed(left), dashed(right));
    compare(&left, &right)
}

/// Compares versions of Go's modules and of Go itself.
pub fn compare_go(left: &str, right: &str) -> Option<Ordering> {
    compare_loose(left, right)
}

/// Compares versions of NuGet: up to four numbers, and words in whichever case.
pub fn compare_nuget(left: &str, right: &str) -> Option<Ordering> {
    compare(&left.to_lowercase(), &right.to_lowercase())
}

fn dashed(version: &str) -> Cow<'_, str> {
    let release = version.strip_prefix('v').unwrap_or(version);
    let is_release = |letter: char| letter.is_ascii_digit() || letter == '.';
    match release.find(|letter| !is_release(letter)) {
        Some(end)
            if end > 0 && release[end..].starts_with(|first: char| first.is_ascii_alphabetic()) =>
        {
            Cow::Owned(format!("{}-{}", &release[..end], &release[end..]))
        }
        _ => Cow::Borrowed(version),
    }
}

/// A version, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Version<'a> {
    pub numbers: Vec<&'a str>,
    before: Vec<&'a str>,
}

impl<'a> Version<'a> {
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim().trim_start_matches(['=', 'v', 'V', ' ']);
        let (text, _) = text.split_once('+').unwrap_or((text, ""));
        let (release, before) = match text.split_once('-') {
            Some((release, before)) => (release, before.split('.').collect()),
            None => (text, Vec::new()),
        };
        let numbers: Vec<&str> = release.split('.').collect();
        let is_number =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = |part: &&str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        (numbers.iter().all(is_number) && before.iter().all(is_word))
            .then_some(Version { numbers, before })
    }
}

fn order(left: &Version, right: &Version) -> Ordering {
    let longest = left.numbers.len().max(right.numbers.len());
    for place in 0..longest {
        let part = |version: &Version<'_>| version.numbers.get(place).map_or(0, |part| part.len());
        let text = |version: &Version<'_>, empty: &'static str| -> String {
            if part(version) == 0 {
                empty.into()
            } else {
                version.numbers[place].into()
            }
        };
        let order = numbers(text(left, "0").as_bytes(), text(right, "0").as_bytes());
        if order != Ordering::Equal {
            return order;
        }
    }
    match (left.before.is_empty(), right.before.is_empty()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => announcements(&left.before, &right.before),
    }
}

/// Numbers are below words; of two that agree as far as they go the shorter is lower.
fn announcements(left: &[&str], right: &[&str]) -> Ordering {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    for (one, other) in left.iter().zip(right) {
        let order = match (is_number(one), is_number(other)) {
            (true, true) => numbers(one.as_bytes(), other.as_bytes()),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
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
    fn versions_are_ordered_as_the_specification_orders_them() {
        let ascending = [
            "0.0.0-0",
            "0.0.0",
            "0.0.1-20200101000000-abcdefabcdef",
            "0.0.1",
            "1.0.0-1",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.2",
            "1.10.0",
            "2.0.0",
            "99999999999999999999.0.0",
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
        for (left, right) in [("v1.0.0", "1.0.0+build"), ("1", "1.0.0"), ("=1.2", "1.2.0")] {
            assert_eq!(compare(left, right), Some(Ordering::Equal));
        }
        for wrong in ["", "a", "1..2", "1.x", "1.0.0-", "1.0.0-ä"] {
            assert_eq!(compare(wrong, "1"), None, "{wrong}");
        }
        assert_eq!(
            compare_nuget("1.0.0-RC", "1.0.0.0-rc"),
            Some(Ordering::Equal)
        );
        assert_eq!(compare_nuget("1.0.0.1", "1.0.0"), Some(Ordering::Greater));
        assert_eq!(compare_loose("v1.22rc1", "1.22.0"), Some(Ordering::Less));
        assert_eq!(
            compare_loose("v2.0.0+incompatible", "v2.0.0"),
            Some(Ordering::Equal)
        );
        assert_eq!(
            compare_loose("v0.0.0-20200101000000-abcdefabcdef", "v0.0.1"),
            Some(Ordering::Less)
        );
    }
}
