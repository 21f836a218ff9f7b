//! Durations as Kubernetes objects hold them: Go's text form, `24h0m0s`, `1.5h`, `300ms`. There is
//! no day or week, because neither has a fixed length.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// A span of time in nanoseconds, parsed and printed exactly as Go does it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

impl GoDuration {
    /// One minute.
    pub const MINUTE: GoDuration = GoDuration(60 * SECOND as i64);

    /// A span of so many nanoseconds.
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        GoDuration(nanoseconds)
    }

    /// The span in nanoseconds.
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// The span for waiting; `None` when it is negative.
    pub fn to_duration(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }
}

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError(String);

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DurationError {}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let invalid = || DurationError(format!("time: invalid duration {text:?}"));
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(GoDuration(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (whole, after) = digits(rest);
            let (fraction, after) = match after.strip_prefix('.') {
                Some(after) => digits(after),
                None => ("", after),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(invalid());
            }
            let end = after
                .find(|c: char| c == '.' || c.is_ascii_digit())
                .unwrap_or(after.len());
            let (unit, after) = after.split_at(end);
            if unit.is_empty() {
                return Err(DurationError(format!(
                    "time: missing unit in duration {text:?}"
                )));
            }
            let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                let message = format!("time: unknown unit {unit:?} in duration {text:?}");
                return Err(DurationError(message));
            };
            let whole: u64 = if whole.is_empty() {
                0
            } else {
                whole.parse().map_err(|_| invalid())?
            };
            total = whole
                .checked_mul(*size)
                .and_then(|span| span.checked_add(part_of(fraction, *size)))
                .and_then(|span| total.checked_add(span))
                .filter(|total| *total <= 1 << 63)
                .ok_or_else(invalid)?;
            rest = after;
        }
        let signed = if negative {
            -i128::from(total)
        } else {
            i128::from(total)
        };
        i64::try_from(signed).map(GoDuration).map_err(|_| invalid())
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

/// The whole nanoseconds in a decimal fraction of a unit. An hour has 13 digits of nanoseconds, so
/// digits past the eighteenth never count.
fn part_of(fraction: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u128, 1u128);
    for digit in fraction.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    u64::try_from(value * u128::from(unit) / scale).unwrap_or(unit)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        if span == 0 {
            return f.write_str("0s");
        }
        if span < SECOND {
            let (unit, size) = match span {
                0..1_000 => ("ns", 1),
                1_000..1_000_000 => ("\u{b5}s", 1_000),
                _ => ("ms", 1_000_000),
            };
            return write!(f, "{}{unit}", decimal(span, size));
        }
        let minutes = span / (60 * SECOND);
        if minutes >= 60 {
            write!(f, "{}h", minutes / 60)?;
        }
        if minutes > 0 {
            write!(f, "{}m", minutes % 60)?;
        }
        write!(f, "{}s", decimal(span % (60 * SECOND), SECOND))
    }
}

fn decimal(span: u64, unit: u64) -> String {
    if span.is_multiple_of(unit) {
        return (span / unit).to_string();
    }
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", span / unit, span % unit);
    text.trim_end_matches('0').to_owned()
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_printed_as_go_prints_them() {
        for (text, printed) in [
            ("24h", "24h0m0s"),
            ("1.5h", "1h30m0s"),
            ("90s", "1m30s"),
            ("60m", "1h0m0s"),
            ("0", "0s"),
            ("-0", "0s"),
            ("+5s", "5s"),
            ("-1m", "-1m0s"),
            ("300ms", "300ms"),
            ("1500ms", "1.5s"),
            ("1500us", "1.5ms"),
            ("1\u{3bc}s", "1\u{b5}s"),
            ("1\u{b5}s", "1\u{b5}s"),
            ("999ns", "999ns"),
            (".5s", "500ms"),
            ("1.s", "1s"),
            ("1h1ns", "1h0m0.000000001s"),
            ("0.1000000000000000000000000h", "6m0s"),
            ("0.999999999999999999999s", "999.999999ms"),
            ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
            ("9223372036854775807ns", "2562047h47m16.854775807s"),
        ] {
            let parsed: GoDuration = text.parse().unwrap();
            assert_eq!(parsed.to_string(), printed, "{text}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused_with_its_words() {
        for (text, message) in [
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("3", "time: missing unit in duration \"3\""),
            ("1d", "time: unknown unit \"d\" in duration \"1d\""),
            ("2w", "time: unknown unit \"w\" in duration \"2w\""),
            ("1h 5m", "time: unknown unit \"h \" in duration \"1h 5m\""),
            (".", "time: invalid duration \".\""),
            ("s", "time: invalid duration \"s\""),
            ("--1s", "time: invalid duration \"--1s\""),
            (
                "9223372036854775808ns",
                "time: invalid duration \"9223372036854775808ns\"",
            ),
            ("3000000h", "time: invalid duration \"3000000h\""),
        ] {
            assert_eq!(text.parse::<GoDuration>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_negative_duration_cannot_be_waited_for() {
        assert_eq!("-1s".parse::<GoDuration>().unwrap().to_duration(), None);
        let day = "24h".parse::<GoDuration>().unwrap().to_duration();
        assert_eq!(day, Some(Duration::from_secs(86_400)));
    }

    #[test]
    fn durations_are_strings_in_json() {
        let day: GoDuration = serde_json::from_str("\"24h\"").unwrap();
        assert_eq!(serde_json::to_string(&day).unwrap(), "\"24h0m0s\"");
        assert!(serde_json::from_str::<GoDuration>("\"1d\"").is_err());
    }
}
