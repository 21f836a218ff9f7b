//! The versions of rpm: `[epoch:]version[-release]`. Runs of digits and of letters are compared in
//! turn; a tilde sorts before the end, a caret after it.

use super::numbers;
use std::cmp::Ordering;

/// Compares two versions; nothing where one of them is none.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (parse(left)?, parse(right)?);
    let epoch = numbers(left.0.as_bytes(), right.0.as_bytes());
    let version = || part(left.1, right.1);
    Some(epoch.then_with(version).then_with(|| part(left.2, right.2)))
}

fn parse(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim();
    let (epoch, rest) = match text.split_once(':') {
        Some((epoch, rest)) => (epoch, rest),
        None => ("0", text),
    };
    let is_number = epoch.bytes().all(|byte| byte.is_ascii_digit());
    let (version, release) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (is_number && !version.is_empty()).then_some((epoch, version, release))
}

/// Compares a version or a release by itself.
pub(crate) fn part(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    let counts = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'~' | b'^');
    loop {
        left = skip(left, |byte| !counts(byte));
        right = skip(right, |byte| !counts(byte));
        match (left.first(), right.first()) {
            (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => {
                (left, right) = (&left[1..], &right[1..]);
                continue;
            }
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            // After the end, but before anything else that goes on.
            (Some(b'^'), None) => return Ordering::Greater,
            (None, Some(b'^')) => return Ordering::Less,
            (Some(b'^'), Some(_)) => return Ordering::Less,
            (Some(_), Some(b'^')) => return Ordering::Greater,
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(one), Some(other)) => match (one.is_ascii_digit(), other.is_ascii_digit()) {
                // A number is newer than a word.
                (true, false) => return Ordering::Greater,
                (false, true) => return Ordering::Less,
                (is_number, _) => {
                    let belongs = |byte: &u8| match is_number {
                        true => byte.is_ascii_digit(),
                        false => byte.is_ascii_alphabetic(),
                    };
                    let (after_left, after_right) = (skip(left, belongs), skip(right, belongs));
                    let one = &left[..left.len() - after_left.len()];
                    let other = &right[..right.len() - after_right.len()];
                    let order = if is_number {
                        numbers(one, other)
                    } else {
                        one.cmp(other)
                    };
                    if order != Ordering::Equal {
                        return order;
                    }
                    (left, right) = (after_left, after_right);
                }
            },
        }
    }
}

fn skip(bytes: &[u8], skipped: impl Fn(&u8) -> bool) -> &[u8] {
    let end = bytes.iter().position(|byte| !skipped(byte));
    &bytes[end.unwrap_or(bytes.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_rpm_orders_them() {
        let ascending = [
            "0.5.0~rc1",
            "0.5.0",
            "0.5.0^",
            "0.5.0^git1",
            "0.5.0a",
            "0.5.0.1",
            "1.0a",
            "1.0b",
            "1.0.1",
            "1.2",
            "1.10",
            "2.0",
            "20101121",
            "99999999999999999999",
            "1:0.1",
            "2:0",
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
        for (left, right) in [
            ("1.0", "1_0"),
            ("1.0", "1.00"),
            ("0:1", "1"),
            ("1.0.", "1.0"),
        ] {
            assert_eq!(
                compare(left, right),
                Some(Ordering::Equal),
                "{left} {right}"
            );
        }
        for (left, right) in [
            ("1.0", "1.0-1.el9"),
            ("1.0-1.el8", "1.0-2.el8"),
            ("1.0-1.el8_1", "1.0-1.el8_10"),
            ("1.0-27.el9", "1.0-27.el9_4.1"),
            ("5.5p1", "5.5p10"),
            ("xyz.4", "8"),
            ("a", "ab"),
            ("1.0^20160101", "1.0^20160102"),
        ] {
            assert_eq!(compare(left, right), Some(Ordering::Less), "{left} {right}");
        }
        for wrong in ["", "x:1", "-1"] {
            assert_eq!(compare(wrong, "1"), None, "{wrong}");
        }
    }
}
