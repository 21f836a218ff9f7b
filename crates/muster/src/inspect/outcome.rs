//! How a scan ends: its exit code, and what it says about packages that were not matched, targets
//! without packages, and findings that do not count for `--fail-on`.

use muster_scan::output::{Inspection, LeftOut, Selection};
use muster_scan::vulnerability::Severity;
use std::process::ExitCode;

/// Exit code: a finding at or above `--fail-on`.
const FOUND: u8 = 3;
/// Exit code: with `--fail-on`, packages that could have been matched were not.
const UNMATCHED: u8 = 4;

/// The outcome of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Every target was scanned, and nothing stands against it.
    Done,
    /// Some target could not be scanned.
    Failed,
    /// A finding is at or above `--fail-on`.
    Found,
    /// Packages that could have been matched were not, so `--fail-on` cannot be answered.
    Unmatched,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::Failed => ExitCode::FAILURE,
            Outcome::Found => ExitCode::from(FOUND),
            Outcome::Unmatched => ExitCode::from(UNMATCHED),
        }
    }
}

/// When a scan fails because of what was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    /// The least severity that fails.
    pub(super) least: Severity,
    /// Whether packages that were not matched are accepted.
    pub(super) allow_unmatched: bool,
}

/// The outcome of inspections from which nothing has been left out yet, and why.
pub(super) fn outcome(
    inspections: &[Inspection],
    threshold: Option<Threshold>,
    selection: &Selection,
    today: &str,
) -> (Outcome, Vec<String>) {
    let Some(Threshold {
        least,
        allow_unmatched,
    }) = threshold
    else {
        return (Outcome::Done, Vec::new());
    };
    // Which severities are shown does not matter.
    let accepted = Selection {
        severities: Default::default(),
        ..selection.clone()
    };
    let open = inspections.iter().map(|one| {
        let mut report = one.report.clone();
        accepted.apply(&mut report, today);
        report
    });
    let open: Vec<_> = open.collect();
    if open
        .iter()
        .any(|one| one.worst().is_some_and(|worst| worst >= least))
    {
        return (Outcome::Found, Vec::new());
    }
    let mut notes = Vec::new();
    let unknown: u64 = open.iter().map(|one| one.summary.unknown).sum();
    let is_all = open
        .iter()
        .all(|one| matches!(one.worst(), None | Some(Severity::Unknown)));
    if unknown > 0 && is_all {
        let level = least.name().to_lowercase();
        notes.push(format!(
            "warning: all {unknown} vulnerabilities are of unknown severity, which `--fail-on {level}` does not count; `--fail-on unknown` does"
        ));
    }
    let missing: Vec<String> = inspections.iter().filter_map(missing).collect();
    if missing.is_empty() || allow_unmatched {
        return (Outcome::Done, notes);
    }
    notes.extend(missing.iter().map(|why| format!("error: {why}")));
    notes.push("`--fail-on` does not pass what was not matched; `--allow-unmatched` does".into());
    (Outcome::Unmatched, notes)
}

/// Why an inspection does not answer whether there are vulnerabilities.
fn missing(inspection: &Inspection) -> Option<String> {
    let name = &inspection.name;
    match (inspection.packages, inspection.matchable_count()) {
        (0, _) => Some(format!("{name}: no packages found")),
        (_, 0) => None,
        (packages, count) => Some(format!(
            "{name}: {count} of {packages} packages were not matched"
        )),
    }
}

/// What a result for machines does not show at first sight, as warnings.
pub(super) fn warnings(inspections: &[Inspection]) -> Vec<String> {
    let warnings = inspections.iter().filter_map(|one| {
        let why = match (one.packages, one.unmatched_count()) {
            (0, _) => "no packages found".to_owned(),
            (_, 0) => return None,
            (packages, count) => format!("{count} of {packages} packages were not matched"),
        };
        Some(format!("warning: {}: {why}", one.name))
    });
    warnings.collect()
}

/// How many findings were left out, and why.
pub(super) fn left_out(inspections: &[Inspection]) -> Vec<String> {
    let mut sum = LeftOut::default();
    for one in inspections {
        sum.add(one.left_out);
    }
    let told = [
        (sum.ignored, "ignored by the ignore file"),
        (sum.unfixed, "not shown, without a fix"),
        (sum.by_severity, "not shown, of other severities"),
    ];
    let told = told.into_iter().filter_map(|(count, why)| match count {
        0 => None,
        1 => Some(format!("1 finding is {why}")),
        count => Some(format!("{count} findings are {why}")),
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_scan::matching::{Reason, Unmatched};
    use muster_scan::report::{Report, ReportFinding, ReportResult};

    fn inspection(packages: usize, severities: &[&str], unmatched: &[(u64, bool)]) -> Inspection {
        let finding = |severity: &&str| ReportFinding {
            cve: "CVE-1".into(),
            severity: (*severity).into(),
            ..ReportFinding::default()
        };
        let group = |(count, matchable): &(u64, bool)| Unmatched {
            reason: Reason::NoData,
            kind: "deb".into(),
            count: *count,
            matchable: *matchable,
            ..Unmatched::default()
        };
        let mut report = Report {
            results: vec![ReportResult {
                vulnerabilities: severities.iter().map(finding).collect(),
                ..ReportResult::default()
            }],
            unmatched: Some(unmatched.iter().map(group).collect()),
            ..Report::default()
        };
        report.count();
        Inspection {
            name: "app".into(),
            packages,
            report,
            ..Inspection::default()
        }
    }

    #[test]
    fn a_scan_only_passes_what_it_matched() {
        let high = Some((Severity::High, false));
        let lenient = Some((Severity::High, true));
        let unknown = Some((Severity::Unknown, false));
        for (inspection, threshold, expected, notes) in [
            (inspection(9, &[], &[]), high, Outcome::Done, 0),
            (inspection(9, &["HIGH"], &[]), high, Outcome::Found, 0),
            (inspection(9, &["HIGH"], &[]), None, Outcome::Done, 0),
            (
                inspection(9, &[], &[(9, true)]),
                high,
                Outcome::Unmatched,
                2,
            ),
            (
                inspection(9, &[], &[(1, true)]),
                high,
                Outcome::Unmatched,
                2,
            ),
            (inspection(9, &[], &[(9, true)]), lenient, Outcome::Done, 0),
            (inspection(9, &[], &[(9, true)]), None, Outcome::Done, 0),
            // No data source exists for them.
            (inspection(9, &[], &[(9, false)]), high, Outcome::Done, 0),
            // A finding is worse than a package that was not matched.
            (
                inspection(9, &["HIGH"], &[(1, true)]),
                high,
                Outcome::Found,
                0,
            ),
            (inspection(0, &[], &[]), high, Outcome::Unmatched, 2),
            (inspection(0, &[], &[]), lenient, Outcome::Done, 0),
            // Nothing is known to be harmless here.
            (
                inspection(9, &["UNKNOWN", "UNKNOWN"], &[]),
                high,
                Outcome::Done,
                1,
            ),
            (
                inspection(9, &["UNKNOWN", "LOW"], &[]),
                high,
                Outcome::Done,
                0,
            ),
            (inspection(9, &["UNKNOWN"], &[]), unknown, Outcome::Found, 0),
        ] {
            let threshold = threshold.map(|(least, allow_unmatched)| Threshold {
                least,
                allow_unmatched,
            });
            let one = std::slice::from_ref(&inspection);
            let (found, told) = outcome(one, threshold, &Selection::default(), "2026-01-01");
            assert_eq!(
                (found, told.len()),
                (expected, notes),
                "{inspection:?}: {told:?}"
            );
        }
    }

    #[test]
    fn exit_codes_are_those_of_the_documents() {
        for (outcome, code) in [
            (Outcome::Done, 0),
            (Outcome::Failed, 1),
            (Outcome::Found, 3),
            (Outcome::Unmatched, 4),
        ] {
            assert_eq!(ExitCode::from(outcome), ExitCode::from(code));
        }
    }

    #[test]
    fn machines_are_warned_of_what_was_not_matched() {
        let told = warnings(&[
            inspection(0, &[], &[]),
            inspection(9, &[], &[(1, true), (2, false)]),
            inspection(9, &[], &[]),
        ]);
        assert_eq!(
            told,
            [
                "warning: app: no packages found",
                "warning: app: 3 of 9 packages were not matched",
            ]
        );
    }
}
