//! VEX documents: reading and applying them ends.

use muster_scan::report::{Report, ReportFinding, ReportResult};
use muster_scan::vex::{Document, Statements};

pub(crate) fn run(bytes: &[u8]) {
    let _ = Document::attached(bytes);
    let Ok(document) = Document::parse(bytes) else {
        return;
    };
    let mut statements = Statements::new("fuzz");
    statements.add(&document, "fuzz");
    let finding = ReportFinding {
        cve: "CVE-1".into(),
        purl: "pkg:npm/a@1".into(),
        ..ReportFinding::default()
    };
    let mut report = Report {
        results: vec![ReportResult {
            vulnerabilities: vec![finding],
            ..ReportResult::default()
        }],
        ..Report::default()
    };
    statements.apply(&mut report, None);
    assert_eq!(report.summary.suppressed + report.summary.unknown, 1);
}
