//! What a policy says of an object. That it could not be asked is a verdict too, so that one broken
//! policy is a line in a report and never the end of an audit.

use serde_json::Value;

/// The longest message that is kept, in bytes: it ends up in a report, beside those of all others.
pub const LONGEST_MESSAGE: usize = 4096;
/// The most causes and warnings that are kept.
const MOST: usize = 64;

/// The code with which a policy, or a policy server, says that it could not evaluate an object.
pub(crate) const INTERNAL_ERROR: i64 = 500;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The object keeps the policy.
    Pass,
    /// It does not.
    Fail,
    /// Nobody knows: the policy could not be asked, or gave no answer.
    Error,
}

impl Outcome {
    /// As reports call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Error => "error",
        }
    }
}

/// What one member of a group had to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The member.
    pub policy: String,
    /// Its message.
    pub message: String,
}

/// What a policy says of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// How it ended.
    pub outcome: Outcome,
    /// Why, if the policy says so; always there for an error.
    pub message: String,
    /// Whether this is an error that another evaluation of the same object may not have.
    pub is_transient: bool,
    /// Whether the policy ran. If not, this says nothing about the object, and an earlier result holds.
    pub was_evaluated: bool,
    /// What the policy would change: a JSON patch (RFC 6902), never empty.
    pub patch: Option<Vec<Value>>,
    /// What it warns of.
    pub warnings: Vec<String>,
    /// Which members of a group decided.
    pub causes: Vec<Cause>,
}

impl Verdict {
    fn new(outcome: Outcome, message: &str) -> Self {
        Verdict {
            outcome,
            message: clip(message),
            is_transient: false,
            was_evaluated: true,
            patch: None,
            warnings: Vec::new(),
            causes: Vec::new(),
        }
    }

    /// The object keeps the policy.
    pub fn pass() -> Self {
        Verdict::new(Outcome::Pass, "")
    }

    /// It does not, and why.
    pub fn fail(message: impl AsRef<str>) -> Self {
        Verdict::new(Outcome::Fail, message.as_ref())
    }

    /// The policy could not be asked, or gave no answer, and why.
    pub fn error(message: impl AsRef<str>) -> Self {
        Verdict::new(Outcome::Error, message.as_ref())
    }

    /// The policy could not be evaluated now, and may be later.
    pub fn transient_error(message: impl AsRef<str>) -> Self {
        Verdict {
            is_transient: true,
            was_evaluated: false,
            ..Verdict::error(message)
        }
    }

    /// The policy was evaluated and could not read what it needs, such as from an API server that does
    /// not answer. Later it may.
    pub fn unavailable(message: impl AsRef<str>) -> Self {
        Verdict {
            is_transient: true,
            ..Verdict::error(message)
        }
    }

    /// With what the policy would change.
    pub fn with_patch(mut self, patch: Vec<Value>) -> Self {
        self.patch = (!patch.is_empty()).then_some(patch);
        self
    }

    /// With what it warns of.
    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings = warnings.into_iter().take(MOST).map(|w| clip(&w)).collect();
        self
    }

    /// With what the members of a group said.
    pub fn with_causes(mut self, causes: impl IntoIterator<Item = Cause>) -> Self {
        self.causes = causes.into_iter().take(MOST).collect();
        self
    }

    /// Whether the policy accepts the object, but not as it is.
    pub fn is_mutation(&self) -> bool {
        self.outcome == Outcome::Pass && self.patch.is_some()
    }
}

/// A message that fits into a report, whatever a policy wrote: no longer than it may be, and without
/// characters that a terminal would obey.
pub fn clip(message: &str) -> String {
    let mut clean: String = message
        .trim()
        .chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => ' ',
            c => c,
        })
        .collect();
    if clean.len() > LONGEST_MESSAGE {
        let mut end = LONGEST_MESSAGE;
        while !clean.is_char_boundary(end) {
            end -= 1;
        }
        clean.truncate(end);
        clean.push('…');
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_fits_into_a_report_whatever_it_was() {
        for (message, expected) in [
            ("  no\n", "no"),
            ("a\u{1b}[31mb", "a [31mb"),
            ("a\0b\nc", "a b\nc"),
            ("\u{e4}", "\u{e4}"),
        ] {
            assert_eq!(clip(message), expected, "{message:?}");
        }
        let long = clip(&"\u{e4}".repeat(LONGEST_MESSAGE));
        assert!(long.len() <= LONGEST_MESSAGE + 3 && long.ends_with('…'));
    }
}
