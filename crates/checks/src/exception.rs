//! Exceptions: whoever owns an object may say on it that a check need not be kept, why, and until when.
//! `exception.audit.kubewarden.io/MST-B001: "until 2027-01-31: the driver needs it"`. One without a reason, or
//! whose time has passed, is none, and the report says so.

use crate::check::{Exemption, Finding, Outcome};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is before the identifier of a check in the name of an annotation.
pub const PREFIX: &str = "exception.audit.kubewarden.io/";
/// The longest reason that is shown, in bytes.
const LONGEST: usize = 500;
/// The longest date that is shown, in bytes; none that is one is longer.
const LONGEST_DATE: usize = 60;

/// The exceptions of an object, by the checks they are from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exceptions(BTreeMap<String, Exception>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Exception {
    reason: String,
    until: Option<(String, Timestamp)>,
    flaw: Option<String>,
}

impl Exceptions {
    /// Reads the annotations of an object.
    pub fn read(object: &Value) -> Exceptions {
        let annotations = object.pointer("/metadata/annotations");
        let annotations = annotations.and_then(Value::as_object).into_iter().flatten();
        let exceptions = annotations.filter_map(|(key, value)| {
            let check = key.strip_prefix(PREFIX)?;
            Some((check.to_ascii_uppercase(), Exception::read(value.as_str()?)))
        });
        Exceptions(exceptions.collect())
    }

    /// Those whose time has passed: with them the same object is judged differently.
    pub fn passed(&self, now: Timestamp) -> impl Iterator<Item = &str> {
        let all = self.0.iter();
        all.filter(move |(_, one)| one.is_over(now))
            .map(|(check, _)| check.as_str())
    }

    /// When the next one ends.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let ends = self
            .0
            .values()
            .filter_map(|one| Some(one.until.as_ref()?.1));
        ends.filter(|end| *end > now).min()
    }

    /// Lets pass what is excepted.
    pub fn apply(&self, finding: &mut Finding, now: Timestamp) {
        if !finding.is_failure() {
            return;
        }
        let Some(exception) = self.0.get(&finding.check.id.to_ascii_uppercase()) else {
            return;
        };
        if let Some(flaw) = &exception.flaw {
            finding
                .messages
                .push(format!("the exception does not count: {flaw}"));
        } else if exception.is_over(now) {
            let until = exception.until.as_ref().map(|(text, _)| text.as_str());
            let until = until.unwrap_or_default();
            finding
                .messages
                .push(format!("the exception ended on {until}"));
        } else {
            finding.outcome = Outcome::Exempt(Exemption {
                reason: exception.reason.clone(),
                until: exception.until.as_ref().map(|(text, _)| text.clone()),
                by: "annotation".into(),
            });
        }
    }
}

impl Exception {
    fn read(text: &str) -> Exception {
        let text = text.trim();
        let dated = text
            .strip_prefix("until ")
            .and_then(|rest| rest.split_once(": "));
        let bare = text.strip_prefix("until ").is_some() && dated.is_none();
        let (until, reason) = match dated {
            Some((until, reason)) => (Some(until.trim()), reason.trim()),
            None => (None, text),
        };
        let end = until.map(|until| (until, end_of(until)));
        let flaw = match end {
            _ if bare => Some("write `until 2027-01-31: reason`".to_owned()),
            Some((until, None)) => Some(format!(
                "{:?} is no date; write `until 2027-01-31: reason`",
                clip(until, LONGEST_DATE)
            )),
            _ if reason.is_empty() => Some("it gives no reason".to_owned()),
            _ => None,
        };
        Exception {
            reason: clip(reason, LONGEST).into(),
            until: end.and_then(|(until, end)| Some((clip(until, LONGEST_DATE).into(), end?))),
            flaw,
        }
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.until.as_ref().is_some_and(|(_, end)| *end <= now)
    }
}

/// The end of a day, or a moment.
fn end_of(text: &str) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let next = text.parse::<Date>().ok()?.tomorrow().ok()?;
    next.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp())
}

/// The beginning of a text that is no longer than that.
pub(crate) fn clip(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Description;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-06-15T12:00:00Z".parse().unwrap()
    }

    fn judged(annotation: &str) -> Finding {
        let object = json!({"metadata": {"annotations": {format!("{PREFIX}A-1"): annotation}}});
        let mut finding = Finding {
            check: Description {
                id: "a-1".into(),
                ..Description::default()
            },
            place: None,
            outcome: Outcome::Fail,
            messages: vec!["wrong".into()],
        };
        Exceptions::read(&object).apply(&mut finding, now());
        finding
    }

    #[test]
    fn an_exception_has_a_reason_and_may_end() {
        for (written, reason, until) in [
            ("the driver needs it", "the driver needs it", None),
            (
                "until 2026-06-15: soon gone",
                "soon gone",
                Some("2026-06-15"),
            ),
            (
                "until 2026-06-15T12:00:01Z: now",
                "now",
                Some("2026-06-15T12:00:01Z"),
            ),
        ] {
            let Outcome::Exempt(exemption) = judged(written).outcome else {
                panic!("{written}");
            };
            assert_eq!(exemption.reason, reason, "{written}");
            assert_eq!(exemption.until.as_deref(), until, "{written}");
        }
    }

    #[test]
    fn what_is_no_exception_is_said() {
        for (written, said) in [
            ("", "the exception does not count: it gives no reason"),
            (
                "until 2026-06-20: ",
                "the exception does not count: write `until 2027-01-31: reason`",
            ),
            (
                "until 2026-06-20",
                "the exception does not count: write `until 2027-01-31: reason`",
            ),
            (
                "until friday: x",
                "the exception does not count: \"friday\" is no date; write `until 2027-01-31: reason`",
            ),
            ("until 2026-06-14: x", "the exception ended on 2026-06-14"),
        ] {
            let finding = judged(written);
            assert!(finding.is_failure(), "{written}");
            assert_eq!(finding.messages, ["wrong", said], "{written}");
        }
    }

    #[test]
    fn nothing_of_an_exception_is_told_at_any_length() {
        let odd = "\u{1}".repeat(200_000);
        for written in [
            format!("until {odd}: x"),
            format!("until 2026-06-14T00:00:00.{}Z: x", "0".repeat(200_000)),
            format!("until 2026-06-14: {odd}"),
            odd.clone(),
        ] {
            let said = format!("{:?}", judged(&written));
            assert!(said.len() < 5_000, "{} bytes", said.len());
        }
    }

    #[test]
    fn it_is_known_when_the_next_one_ends() {
        let object = json!({"metadata": {"annotations": {
            format!("{PREFIX}a"): "until 2026-06-14: x",
            format!("{PREFIX}b"): "until 2026-06-16: x",
            format!("{PREFIX}c"): "until 2026-06-20: x",
        }}});
        let exceptions = Exceptions::read(&object);
        let end: Timestamp = "2026-06-17T00:00:00Z".parse().unwrap();
        assert_eq!(exceptions.next_end(now()), Some(end));
        assert_eq!(exceptions.passed(now()).collect::<Vec<_>>(), ["A"]);
    }
}
