//! What a check is about and what came of it, in the words of a report.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How bad it is to fail a check.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// As bad as can be.
    Critical,
    /// Bad.
    High,
    /// Not good.
    Medium,
    /// Could be better.
    Low,
    /// Nobody says.
    #[default]
    Unknown,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Severity; 5] = [
        Severity::Critical,
        Severity::High,
        Severity::Medium,
        Severity::Low,
        Severity::Unknown,
    ];

    /// Reads a severity, however it is written.
    pub fn read(text: &str) -> Option<Severity> {
        let mut all = Severity::ALL.into_iter();
        all.find(|severity| severity.as_str().eq_ignore_ascii_case(text.trim()))
    }

    /// As reports write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Critical => "CRITICAL",
            Severity::High => "HIGH",
            Severity::Medium => "MEDIUM",
            Severity::Low => "LOW",
            Severity::Unknown => "UNKNOWN",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// What people are told of a check, whatever comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    /// Its identifier.
    #[serde(rename = "checkID")]
    pub id: String,
    /// The check in a line.
    pub title: String,
    /// What it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// How bad it is to fail it.
    pub severity: Severity,
    /// What sort of concern it is.
    pub category: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remediation: String,
}

/// The part of an object that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// `Container`, `ConfigMapKey` or `JSONPath`.
    #[serde(rename = "type")]
    pub sort: String,
    /// Which one.
    pub value: String,
}

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The object keeps it.
    Pass,
    /// It does not.
    Fail,
    /// It does not, and somebody answers for that.
    Exempt(Exemption),
    /// The policy failed: the result is unknown until the object or the policy changes.
    Error,
    /// The policy was not evaluated, for a reason that is not its own: that is no result, and the
    /// evaluation is retried.
    NotEvaluated,
}

impl Outcome {
    /// Whether it is unknown if the object passes.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Outcome::Error | Outcome::NotEvaluated)
    }
}

/// Why a check need not be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exemption {
    /// Why.
    pub reason: String,
    /// Until when, if not for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Who says so: `annotation` or `policy`.
    pub by: String,
}

/// What came of one check at one place of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: Description,
    /// Where.
    pub place: Option<Place>,
    /// What.
    pub outcome: Outcome,
    /// What exactly is wrong.
    pub messages: Vec<String>,
}

impl Finding {
    /// Whether the object fails the check.
    pub fn is_failure(&self) -> bool {
        self.outcome == Outcome::Fail
    }
}
