//! What of a report is shown. Choosing never changes what was found: it is done last, and says how
//! much it left out.

use super::Ignored;
use crate::report::Report;
use crate::vulnerability::Severity;
use serde::Serialize;
use std::collections::BTreeSet;

/// What is wanted of a report.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The severities that are wanted; all where none is named.
    pub severities: BTreeSet<Severity>,
    /// Only what can be fixed by an update.
    pub fixable: bool,
    /// What somebody has decided to live with.
    pub ignored: Ignored,
}

/// How many findings were left out, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Of a severity that is not wanted.
    pub by_severity: usize,
    /// Without a fix.
    pub unfixed: usize,
    /// Ignored on purpose.
    pub ignored: usize,
}

impl LeftOut {
    /// Number of findings that were left out.
    pub fn total(&self) -> usize {
        self.by_severity + self.unfixed + self.ignored
    }

    /// Adds what was left out of another report.
    pub fn add(&mut self, other: LeftOut) {
        self.by_severity += other.by_severity;
        self.unfixed += other.unfixed;
        self.ignored += other.ignored;
    }
}

impl Selection {
    /// Takes out of a report what is not wanted, and counts anew. `today` is a date such as
    /// `2026-01-31`, after which decisions may have lapsed.
    pub fn apply(&self, report: &mut Report, today: &str) -> LeftOut {
        let mut left_out = LeftOut::default();
        for result in &mut report.results {
            result.vulnerabilities.retain(|finding| {
                let count = if self.ignored.covers(finding, today) {
                    &mut left_out.ignored
                } else if self.fixable && finding.status != "fixed" {
                    &mut left_out.unfixed
                } else if !self.severities.is_empty() && !self.severities.contains(&finding.rated())
                {
                    &mut left_out.by_severity
                } else {
                    return true;
                };
                *count += 1;
                false
            });
        }
        report
            .results
            .retain(|result| !result.vulnerabilities.is_empty());
        report.count();
        left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReportFinding, ReportResult};

    fn report() -> Report {
        let finding = |cve: &str, severity: &str, status: &str| ReportFinding {
            cve: cve.into(),
            severity: severity.into(),
            status: status.into(),
            ..ReportFinding::default()
        };
        let result = |vulnerabilities| ReportResult {
            vulnerabilities,
            ..ReportResult::default()
        };
        Report {
            results: vec![
                result(vec![
                    finding("CVE-1", "HIGH", "fixed"),
                    finding("CVE-2", "LOW", "affected"),
                ]),
                result(vec![finding("CVE-3", "CRITICAL", "will_not_fix")]),
            ],
            ..Report::default()
        }
    }

    #[test]
    fn what_is_not_wanted_is_left_out_and_counted() {
        let severities = |list: &[Severity]| list.iter().copied().collect();
        let ignored = Ignored::read("ignore", b"CVE-1\n").unwrap();
        let everything = Selection::default();
        let worst = Selection {
            severities: severities(&[Severity::Critical, Severity::High]),
            ..Selection::default()
        };
        let fixable = Selection {
            fixable: true,
            ..Selection::default()
        };
        let all = Selection {
            severities: severities(&[Severity::Low]),
            fixable: true,
            ignored,
        };
        let left = |by_severity, unfixed, ignored| LeftOut {
            by_severity,
            unfixed,
            ignored,
        };
        for (selection, expected, left_out) in [
            (everything, vec!["CVE-1", "CVE-2", "CVE-3"], left(0, 0, 0)),
            (worst, vec!["CVE-1", "CVE-3"], left(1, 0, 0)),
            (fixable, vec!["CVE-1"], left(0, 2, 0)),
            (all, vec![], left(0, 2, 1)),
        ] {
            let mut report = report();
            assert_eq!(selection.apply(&mut report, "2026-01-01"), left_out);
            let shown: Vec<&str> = report.findings().map(|one| one.cve.as_str()).collect();
            assert_eq!(shown, expected);
            let counted = report.summary;
            let sum = counted.critical + counted.high + counted.low;
            assert_eq!(sum as usize, expected.len());
            assert!(
                report
                    .results
                    .iter()
                    .all(|one| !one.vulnerabilities.is_empty())
            );
        }
    }
}
