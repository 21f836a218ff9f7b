//! Sentences about what a scan does not show: packages that were not matched, findings that were left
//! out. Every form of the output uses the same.

use super::Inspection;
use crate::matching::{Reason, Unmatched};
use crate::vulnerability::Severity;

/// The most packages that a sentence names.
const MAX_NAMED: usize = 3;

/// Why packages were not matched, which they are, and what to do about it.
pub(super) fn unmatched(one: &Unmatched) -> String {
    let mut text = one.sentence();
    match one.reason {
        Reason::NoData => text.push_str("; run `muster db update`"),
        _ => text.push_str(&named(one)),
    }
    text
}

/// The first of the packages, and how many more there are.
fn named(one: &Unmatched) -> String {
    let shown = one.packages.iter().take(MAX_NAMED).map(|package| {
        let words = [&package.name, &package.version, &package.advisory];
        let words = words.into_iter().filter(|word| !word.is_empty());
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        return String::new();
    }
    match one.count.saturating_sub(shown.len() as u64) {
        0 => format!(" ({})", shown.join(", ")),
        more => format!(" ({} and {more} more)", shown.join(", ")),
    }
}

/// The findings that were left out of a report in which nothing is left.
pub(super) fn all_left_out(inspection: &Inspection) -> String {
    let left_out = inspection.left_out;
    let total = match left_out.total() {
        1 => "1 vulnerability".to_owned(),
        total => format!("{total} vulnerabilities"),
    };
    let only = |count: usize| count == left_out.total();
    let why = match left_out {
        left_out if only(left_out.by_severity) => {
            format!("none {}", listed(&inspection.severities))
        }
        left_out if only(left_out.unfixed) => "none with a fix".into(),
        left_out if only(left_out.ignored) => "all ignored".into(),
        _ => {
            let parts = [
                (left_out.by_severity, "of other severities"),
                (left_out.unfixed, "without a fix"),
                (left_out.ignored, "ignored"),
            ];
            let parts = parts.into_iter().filter(|(count, _)| *count > 0);
            let parts: Vec<String> = parts.map(|(count, why)| format!("{count} {why}")).collect();
            format!("none shown ({})", parts.join(", "))
        }
    };
    format!("{total}, {why}")
}

/// `critical`, `high or critical`, `medium, high or critical`.
fn listed(severities: &[Severity]) -> String {
    let mut names: Vec<String> = severities
        .iter()
        .map(|one| one.name().to_lowercase())
        .collect();
    match (names.pop(), names.is_empty()) {
        (Some(last), true) => last,
        (Some(last), false) => format!("{} or {last}", names.join(", ")),
        (None, _) => "shown".into(),
    }
}
