//! Tables, held against how they look.

use super::*;
use crate::layer::Incomplete;
use crate::matching::{Reason, Unmatched, UnmatchedPackage};
use crate::output::{Ignored, Selection};
use crate::report::VexStatus;
use unicode_width::UnicodeWidthStr;

fn finding(package: &str, cve: &str, severity: &str, fixed: &[&str]) -> ReportFinding {
    ReportFinding {
        cve: cve.into(),
        title: format!("{package}: a flaw with a rather long title"),
        package_name: package.into(),
        installed_version: "1.0-1".into(),
        fixed_versions: fixed.iter().map(|&version| version.into()).collect(),
        status: if fixed.is_empty() {
            "will_not_fix"
        } else {
            "fixed"
        }
        .into(),
        severity: severity.into(),
        ..ReportFinding::default()
    }
}

fn inspection(findings: Vec<ReportFinding>) -> Inspection {
    let mut report = Report {
        results: vec![ReportResult {
            target: "app (debian 12.7)".into(),
            class: "os-pkgs".into(),
            kind: "debian".into(),
            vulnerabilities: findings,
        }],
        ..Report::default()
    };
    report.count();
    report.rank();
    Inspection {
        name: "registry.example/app:1".into(),
        platform: Some("linux/amd64".into()),
        os: Some("debian 12.7".into()),
        packages: 88,
        report,
        ..Inspection::default()
    }
}

#[test]
fn packages_come_with_the_worst_first_and_their_findings_together() {
    let shown = inspection(vec![
        finding("zlib", "CVE-2", "MEDIUM", &[]),
        finding("openssl", "CVE-3", "LOW", &["1.2"]),
        finding("openssl", "CVE-1", "CRITICAL", &["1.1"]),
    ]);
    let expected = "\
registry.example/app:1 (debian 12.7, linux/amd64)
88 packages, 3 vulnerabilities: 1 critical, 1 medium, 1 low

debian packages
PACKAGE  INSTALLED  FIXED IN      SEVERITY  VULNERABILITY  TITLE
openssl  1.0-1      1.1           critical  CVE-1          openssl: a flaw with a rather long title
                    1.2           low       CVE-3          openssl: a flaw with a rather long title
zlib     1.0-1      will not fix  medium    CVE-2          zlib: a flaw with a rather long title
";
    assert_eq!(table(&shown, Style::default()), expected);
}

#[test]
fn what_is_exploited_comes_first_and_says_so() {
    let mut exploited = finding("zlib", "CVE-2", "LOW", &["2"]);
    exploited.known_exploited = true;
    exploited.epss_score = Some(0.9412);
    let mut likely = finding("curl", "CVE-4", "HIGH", &["2"]);
    likely.epss_score = Some(0.5);
    let unlikely = finding("bash", "CVE-5", "HIGH", &["2"]);
    let shown = table(
        &inspection(vec![unlikely, likely, exploited]),
        Style::default(),
    );
    let rows: Vec<&str> = shown
        .lines()
        .skip(5)
        .map(|row| row.split("  ").next().unwrap())
        .collect();
    assert_eq!(rows, ["zlib", "curl", "bash"]);
    assert!(
        shown.contains("CVE-2          exploited 94.1%  zlib"),
        "{shown}"
    );
    assert!(
        shown.contains("CVE-4          50.0%            curl"),
        "{shown}"
    );
}

#[test]
fn a_table_fits_the_terminal() {
    let shown = inspection(vec![finding(
        &"long".repeat(20),
        "CVE-2024-12345",
        "HIGH",
        &["1.1"],
    )]);
    for width in [40, 60, 80, 100, 120, 200] {
        let style = Style {
            width: Some(width),
            ..Style::default()
        };
        let drawn = table(&shown, style);
        let widest = drawn
            .lines()
            .skip(4)
            .map(UnicodeWidthStr::width)
            .max()
            .unwrap();
        // The columns that matter are never cut away; only the title gives way.
        assert!(widest <= width.max(90), "{width}: {widest}\n{drawn}");
        assert!(drawn.contains("CVE-2024-12345"));
    }
}

#[test]
fn suppressed_findings_are_counted_and_listed_if_asked_for() {
    let mut harmless = finding("zlib", "CVE-2", "HIGH", &[]);
    harmless.suppressed = true;
    harmless.vex_status = Some(VexStatus {
        status: "not_affected".into(),
        ..VexStatus::default()
    });
    let shown = inspection(vec![harmless]);
    let quiet = table(&shown, Style::default());
    assert!(
        quiet.contains("88 packages, no vulnerabilities (1 suppressed)"),
        "{quiet}"
    );
    assert!(!quiet.contains("CVE-2"));
    let style = Style {
        suppressed: true,
        ..Style::default()
    };
    assert!(table(&shown, style).contains("not affected  CVE-2"));
}

#[test]
fn nothing_that_a_terminal_obeys_gets_through() {
    let mut nasty = finding("zlib", "CVE-2", "HIGH", &["1"]);
    nasty.title = "a\u{1b}[2Jb\u{7}\nc\u{202e}d\u{9b}1m".into();
    let mut shown = inspection(vec![nasty]);
    shown.name = "image\u{1b}]0;owned\u{7}".into();
    shown.report.incomplete = vec![Incomplete {
        path: "a\u{1b}[1m".into(),
        reason: "b\r".into(),
    }];
    shown.report.unmatched = Some(vec![Unmatched {
        reason: Reason::InvalidVersion,
        kind: "c\u{1b}".into(),
        message: "d\u{9b}1m".into(),
        packages: vec![UnmatchedPackage {
            name: "e\u{202e}".into(),
            ..UnmatchedPackage::default()
        }],
        ..Unmatched::default()
    }]);
    let drawn = table(&shown, Style::default());
    let obeyed = |one: char| one != '\n' && (one.is_control() || one == '\u{202e}');
    assert!(!drawn.contains(obeyed), "{drawn:?}");
}

#[test]
fn what_was_not_understood_is_named() {
    let mut shown = inspection(vec![]);
    let incomplete = |number: usize| Incomplete {
        path: format!("app/{number}.jar"),
        reason: "it is cut short".into(),
    };
    shown.report.incomplete = (0..12).map(incomplete).collect();
    shown.report.end_of_life = Some("2024-06-30".into());
    let drawn = table(&shown, Style::default());
    assert!(drawn.contains("no fixes since 2024-06-30"));
    assert!(drawn.contains("  app/0.jar: it is cut short\n"));
    assert!(drawn.contains("  and 2 more\n"));
}

#[test]
fn colours_follow_severities() {
    let style = Style {
        colour: true,
        ..Style::default()
    };
    let drawn = table(
        &inspection(vec![finding("a", "CVE-1", "CRITICAL", &["1"])]),
        style,
    );
    assert!(drawn.contains("\u{1b}[1;31mcritical\u{1b}[0m"), "{drawn:?}");
}

fn unmatched(
    reason: Reason,
    kind: &str,
    count: u64,
    message: &str,
    named: &[(&str, &str)],
) -> Unmatched {
    let package = |(name, version): &(&str, &str)| UnmatchedPackage {
        name: (*name).into(),
        version: (*version).into(),
        ..UnmatchedPackage::default()
    };
    Unmatched {
        reason,
        kind: kind.into(),
        count,
        matchable: true,
        message: message.into(),
        packages: named.iter().map(package).collect(),
    }
}

/// The lines below the name of the target.
fn summary_of(shown: &Inspection) -> String {
    let drawn = table(shown, Style::default());
    let lines: Vec<&str> = drawn
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    lines.join("\n")
}

#[test]
fn packages_that_were_not_matched_are_never_clean() {
    let no_data = unmatched(
        Reason::NoData,
        "deb",
        88,
        "the vulnerability data has nothing for debian 12.1",
        &[("libssl3", "3.0")],
    );
    let broken = unmatched(
        Reason::InvalidVersion,
        "npm",
        5,
        "the installed version cannot be parsed",
        &[("a", "latest"), ("b", ""), ("c", "x"), ("d", "y")],
    );
    let mut shown = inspection(vec![]);
    shown.report.unmatched = Some(vec![no_data]);
    assert_eq!(
        summary_of(&shown),
        "88 packages, none of them matched\n\
         88 deb packages were not matched: the vulnerability data has nothing for debian 12.1; run `muster db update`"
    );
    shown.report.unmatched = Some(vec![broken.clone()]);
    assert_eq!(
        summary_of(&shown),
        "88 packages (5 not matched), no known vulnerabilities in the rest\n\
         5 npm packages were not matched: the installed version cannot be parsed (a latest, b, c x and 2 more)"
    );
    let mut shown = inspection(vec![finding("zlib", "CVE-2", "HIGH", &[])]);
    shown.report.unmatched = Some(vec![broken; 12]);
    let drawn = table(&shown, Style::default());
    assert!(
        drawn.contains("88 packages (60 not matched), 1 vulnerability: 1 high\n"),
        "{drawn}"
    );
    assert!(drawn.contains("\nand 2 more reasons\n"), "{drawn}");
    let mut shown = inspection(vec![]);
    shown.report.unmatched = Some(Vec::new());
    assert_eq!(summary_of(&shown), "88 packages, no vulnerabilities");
    shown.packages = 0;
    assert_eq!(summary_of(&shown), "no packages found");
}

#[test]
fn findings_that_are_left_out_are_counted_in_the_summary() {
    let found = || {
        inspection(vec![
            finding("a", "CVE-1", "LOW", &["2"]),
            finding("b", "CVE-2", "MEDIUM", &[]),
            finding("c", "CVE-3", "LOW", &["2"]),
        ])
    };
    let severities = |list: &[Severity]| list.iter().copied().collect();
    let ignored = |text: &str| Ignored::read("ignore", text.as_bytes()).unwrap();
    for (selection, expected) in [
        (
            Selection {
                severities: severities(&[Severity::Critical, Severity::High]),
                ..Selection::default()
            },
            "88 packages, 3 vulnerabilities, none high or critical",
        ),
        (
            Selection {
                severities: severities(&[Severity::Critical]),
                ..Selection::default()
            },
            "88 packages, 3 vulnerabilities, none critical",
        ),
        (
            Selection {
                severities: severities(&[Severity::Medium]),
                ..Selection::default()
            },
            "88 packages, 1 vulnerability: 1 medium (2 not shown)",
        ),
        (
            Selection {
                ignored: ignored("CVE-1\nCVE-2\nCVE-3\n"),
                ..Selection::default()
            },
            "88 packages, 3 vulnerabilities, all ignored",
        ),
        (
            Selection {
                severities: severities(&[Severity::High]),
                fixable: true,
                ignored: ignored("CVE-1\n"),
            },
            "88 packages, 3 vulnerabilities, none shown (1 of other severities, 1 without a fix, 1 ignored)",
        ),
    ] {
        let mut shown = found();
        shown.select(&selection, "2026-01-01");
        assert_eq!(summary_of(&shown), expected);
    }
}
