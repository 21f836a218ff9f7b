//! What is said of one object, a line each: policies and configuration checks alike, the worst first.

use super::super::configuration::{CheckResult, Said};
use super::super::judge::{Audited, Bench};
use super::patch;
use muster_policy::{Outcome, Verdict};
use muster_scan::output::layout::Paint;
use std::cmp::Reverse;

const SEVERITIES: [&str; 5] = ["info", "low", "medium", "high", "critical"];

/// One thing that is said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) result: Word,
    /// How bad it is, if somebody says so.
    pub(super) severity: Option<&'a str>,
    /// The policy or the check.
    pub(super) name: String,
    pub(super) why: String,
    pub(super) warnings: &'a [String],
}

/// What came of it, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    Fail,
    Error,
    Exempt,
    Change,
    Pass,
}

impl Word {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Word::Fail => "fail",
            Word::Error => "error",
            Word::Exempt => "exempt",
            Word::Change => "change",
            Word::Pass => "pass",
        }
    }

    pub(super) fn paint(self) -> Paint {
        match self {
            Word::Fail => Paint::Red,
            Word::Error => Paint::BrightRed,
            Word::Change => Paint::Yellow,
            Word::Exempt | Word::Pass => Paint::Dim,
        }
    }

    /// Whether it is wrong, or nobody knows.
    pub(super) fn is_refusal(self) -> bool {
        matches!(self, Word::Fail | Word::Error)
    }
}

/// All that is said of an object, other than that all is well.
pub(super) fn lines<'a>(audited: &'a Audited, bench: &'a Bench) -> Vec<Line<'a>> {
    let policies = audited.said.iter().map(|(place, verdict)| {
        let policy = bench.policies[*place].policy();
        let (result, why) = of_verdict(verdict);
        Line {
            result,
            severity: policy.severity(),
            name: policy.unique_name(),
            why,
            warnings: &verdict.warnings,
        }
    });
    let checks = audited.findings().iter().map(|said| {
        let (result, why) = of_check(said);
        Line {
            result,
            severity: said.severity(),
            name: said.check.id.clone(),
            why,
            warnings: &[],
        }
    });
    let mut lines: Vec<Line> = policies.chain(checks).collect();
    lines.sort_by_cached_key(|line| {
        let is_good = match line.result.is_refusal() {
            true => None,
            false => Some(line.result),
        };
        (is_good, Reverse(weight(line.severity)), line.name.clone())
    });
    lines
}

/// How bad a severity is; nothing where nobody says.
pub(super) fn weight(severity: Option<&str>) -> Option<usize> {
    SEVERITIES.iter().position(|one| Some(*one) == severity)
}

fn of_verdict(verdict: &Verdict) -> (Word, String) {
    match (verdict.outcome, &verdict.patch) {
        (Outcome::Fail, _) => (Word::Fail, causes(verdict)),
        (Outcome::Error, _) => (Word::Error, verdict.message.clone()),
        (Outcome::Pass, Some(patch)) => (Word::Change, patch::told(patch)),
        (Outcome::Pass, None) => (Word::Pass, String::new()),
    }
}

fn of_check(said: &Said) -> (Word, String) {
    match &said.result {
        CheckResult::Fail => (Word::Fail, said.why()),
        CheckResult::Error => (Word::Error, said.why()),
        CheckResult::Exempt(exemption) => {
            let until = exemption.until.as_ref();
            let until = until.map_or(String::new(), |until| format!(", until {until}"));
            let why = format!("{}{until} ({})", exemption.reason, said.why());
            (Word::Exempt, why)
        }
    }
}

/// Why, and what the members of a group had to say.
fn causes(verdict: &Verdict) -> String {
    let causes = verdict.causes.iter();
    let causes: Vec<String> = causes
        .map(|cause| format!("{}: {}", cause.policy, cause.message))
        .collect();
    match causes.as_slice() {
        [] => verdict.message.clone(),
        causes => format!("{} ({})", verdict.message, causes.join("; ")),
    }
}
