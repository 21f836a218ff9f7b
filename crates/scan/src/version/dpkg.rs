//! Debian's versions: `[epoch:]upstream[-revision]`.

use std::cmp::Ordering;

/// A version, taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    epoch: u32,
    upstream: &'a str,
    revision: &'a str,
}

impl<'a> Version<'a> {
    /// Takes a version apart; nothing where it is none.
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(|letter: char| letter.is_ascii_whitespace());
        let (epoch, rest) = match text.split_once(':') {
            Some((epoch, rest)) => (number(epoch)?, rest),
            None => (0, text),
        };
        if rest.is_empty() || rest.contains(|letter: char| letter.is_ascii_whitespace()) {
            return None;
        }
        let (upstream, revision) = match rest.rsplit_once('-') {
            // A dash announces a revision, which must be there.
            Some((upstream, revision)) if upstream.is_empty() || revision.is_empty() => {
                return None;
            }
            Some(parts) => parts,
            None => (rest, ""),
        };
        Some(Version {
            epoch,
            upstream,
            revision,
        })
    }
}

/// An epoch: digits alone, and no more than the tool itself takes.
fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text
        .parse()
        .ok()
        .filter(|number| *number <= i32::MAX as u32);
    number.filter(|_| digits)
}

impl Ord for Version<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.epoch
            .cmp(&other.epoch)
            .then_with(|| part(self.upstream, other.upstream))
            .then_with(|| part(self.revision, other.revision))
    }
}

impl PartialOrd for Version<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version<'_> {}

/// Compares two versions; nothing where one of them is none.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    Some(Version::parse(left)?.cmp(&Version::parse(right)?))
}

/// Text without digits and numbers take turns, text first.
fn part(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    while !left.is_empty() || !right.is_empty() {
        let (text, number);
        (text, left) = split(left, |byte| !byte.is_ascii_digit());
        (number, right) = split(right, |byte| !byte.is_ascii_digit());
        let order = words(text, number);
        if order != Ordering::Equal {
            return order;
        }
        let (first, second);
        (first, left) = split(left, u8::is_ascii_digit);
        (second, right) = split(right, u8::is_ascii_digit);
        let order = numbers(first, second);
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

fn split(bytes: &[u8], belongs: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !belongs(byte));
    bytes.split_at(end.unwrap_or(bytes.len()))
}

/// A tilde sorts before the end, the end before letters, letters before everything else.
fn words(left: &[u8], right: &[u8]) -> Ordering {
    let rank = |byte: Option<&u8>| match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    };
    (0..left.len().max(right.len()))
        .map(|index| rank(left.get(index)).cmp(&rank(right.get(index))))
        .find(|order| *order != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// Digits of any length, as numbers.
pub(crate) fn numbers(left: &[u8], right: &[u8]) -> Ordering {
    let (_, left) = split(left, |byte| *byte == b'0');
    let (_, right) = split(right, |byte| *byte == b'0');
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_debian_orders_them() {
        let ascending = [
            "0~",
            "0",
            "0.0",
            "1.0~beta1~svn1245",
            "1.0~beta1",
            "1.0",
            "1.0-1~bpo1",
            "1.0-1",
            "1.0-1+deb12u1",
            "1.0a",
            "1.0+dfsg",
            "1.0.1",
            "1.2.3",
            "1.10",
            "2012a-1",
            "99999999999999999999999",
            "1:0.5",
            "2:0~",
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
        for (left, right) in [("1.0", "1.00"), ("0:1", "1"), ("1-0", "1"), (" 1 ", "1")] {
            assert_eq!(
                compare(left, right),
                Some(Ordering::Equal),
                "{left} {right}"
            );
        }
        for wrong in [
            "",
            ":1",
            "a:1",
            "1:",
            "-1:1",
            "9999999999:1",
            "1 2",
            "1-",
            "-1",
        ] {
            assert_eq!(compare(wrong, "1"), None, "{wrong}");
        }
    }
}
