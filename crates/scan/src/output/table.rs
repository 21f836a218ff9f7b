//! The table for people: what was scanned, how bad it is, and package by package what to update to.
//! It fits the width it is given.

use super::Inspection;
use super::layout::{Paint, Row, Style, cut, draw, painted, plain};
use super::words;
use crate::report::{Report, ReportFinding, ReportResult};
use crate::vulnerability::Severity;
use std::fmt::Write;

/// Wider cells are cut, so that the others have room.
const WIDEST_NAME: usize = 36;
const WIDEST_VERSION: usize = 28;
/// So many files that were not understood are named.
const SHOWN_INCOMPLETE: usize = 10;
/// The most groups of packages that were not matched, a line each.
const SHOWN_UNMATCHED: usize = 10;

/// Draws an inspection.
pub fn table(inspection: &Inspection, style: Style) -> String {
    let mut text = String::new();
    let report = &inspection.report;
    heading(&mut text, inspection, style);
    for result in &report.results {
        part(&mut text, result, style);
    }
    remarks(&mut text, report, style);
    text
}

fn heading(text: &mut String, inspection: &Inspection, style: Style) {
    let about: Vec<&str> = [inspection.os.as_deref(), inspection.platform.as_deref()]
        .into_iter()
        .flatten()
        .collect();
    let mut line = plain(&inspection.name);
    if !about.is_empty() {
        let _ = write!(line, " ({})", plain(&about.join(", ")));
    }
    let _ = writeln!(text, "{}", painted(&line, Some(Paint::Bold), style));
    let _ = writeln!(text, "{}", summary(inspection, style));
    let unmatched = inspection.report.unmatched();
    for one in unmatched.iter().take(SHOWN_UNMATCHED) {
        let line = plain(&words::unmatched(one));
        let _ = writeln!(text, "{}", painted(&line, Some(Paint::Bold), style));
    }
    if let more @ 1.. = unmatched.len().saturating_sub(SHOWN_UNMATCHED) {
        let _ = writeln!(text, "and {more} more reasons");
    }
}

/// The counts in a line.
fn summary(inspection: &Inspection, style: Style) -> String {
    let counts = inspection.report.summary;
    let by_severity = [
        (counts.critical, Severity::Critical),
        (counts.high, Severity::High),
        (counts.medium, Severity::Medium),
        (counts.low, Severity::Low),
        (counts.unknown, Severity::Unknown),
    ];
    let open: u64 = by_severity.iter().map(|(count, _)| count).sum();
    let mut line = match inspection.packages {
        0 => "no packages found".to_owned(),
        1 => "1 package".to_owned(),
        packages => format!("{packages} packages"),
    };
    let unmatched = inspection.unmatched_count();
    let is_none_matched = unmatched >= inspection.packages as u64;
    match unmatched {
        0 => {}
        _ if is_none_matched && open == 0 => line.push_str(", none of them matched"),
        count => {
            let _ = write!(line, " ({count} not matched)");
        }
    }
    let left_out = inspection.left_out.total();
    match open {
        0 if left_out > 0 => {
            let _ = write!(line, ", {}", words::all_left_out(inspection));
        }
        0 if is_none_matched => {}
        0 if unmatched > 0 => line.push_str(", no known vulnerabilities in the rest"),
        0 => line.push_str(", no vulnerabilities"),
        1 => line.push_str(", 1 vulnerability: "),
        open => {
            let _ = write!(line, ", {open} vulnerabilities: ");
        }
    }
    let parts: Vec<String> = by_severity
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, severity)| {
            let name = severity.name().to_lowercase();
            painted(&format!("{count} {name}"), Some(Paint::of(severity)), style)
        })
        .collect();
    line.push_str(&parts.join(", "));
    if open > 0 && left_out > 0 {
        let _ = write!(line, " ({left_out} not shown)");
    }
    if counts.suppressed > 0 {
        let _ = write!(line, " ({} suppressed)", counts.suppressed);
    }
    line
}

fn part(text: &mut String, result: &ReportResult, style: Style) {
    let mut shown: Vec<&ReportFinding> = result
        .vulnerabilities
        .iter()
        .filter(|finding| style.suppressed || !finding.suppressed)
        .collect();
    if shown.is_empty() {
        return;
    }
    by_package(&mut shown);
    let place = match result.class.as_str() {
        "os-pkgs" => format!("{} packages", result.kind),
        _ => format!("{} ({})", result.target, result.kind),
    };
    let _ = writeln!(
        text,
        "\n{}",
        painted(&plain(&place), Some(Paint::Bold), style)
    );
    let mut rows = vec![titles()];
    let mut last = None;
    for finding in shown {
        let package = (&finding.package_name, &finding.installed_version);
        rows.push(row(finding, last == Some(package)));
        last = Some(package);
    }
    draw(text, rows, style);
}

/// Findings of one package stand together, the package with the worst of them first: people update
/// packages, not findings.
fn by_package(findings: &mut [&ReportFinding]) {
    let mut order: Vec<(&str, &str)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for finding in findings.iter() {
        let package = (
            finding.package_name.as_str(),
            finding.installed_version.as_str(),
        );
        places.entry(package).or_insert_with(|| {
            order.push(package);
            order.len()
        });
    }
    findings.sort_by_key(|finding| {
        places.get(&(
            finding.package_name.as_str(),
            finding.installed_version.as_str(),
        ))
    });
}

fn titles() -> Row {
    [
        "PACKAGE",
        "INSTALLED",
        "FIXED IN",
        "SEVERITY",
        "VULNERABILITY",
        "RISK",
        "TITLE",
    ]
    .into_iter()
    .map(|title| (title.to_owned(), Some(Paint::Dim)))
    .collect()
}

fn row(finding: &ReportFinding, is_same_package: bool) -> Row {
    let once = |text: &str| match is_same_package {
        true => String::new(),
        false => plain(text),
    };
    let fixed = match finding.fixed_versions.is_empty() {
        true if finding.status == "affected" => "-".into(),
        true => finding.status.replace('_', " "),
        false => finding.fixed_versions.join(", "),
    };
    let severity = match finding.suppressed {
        true => finding
            .vex_status
            .as_ref()
            .map_or("suppressed".into(), |vex| vex.status.replace('_', " ")),
        false => finding.severity.to_lowercase(),
    };
    let paint = (!finding.suppressed).then(|| Paint::of(finding.rated()));
    vec![
        (cut(&once(&finding.package_name), WIDEST_NAME), None),
        (cut(&once(&finding.installed_version), WIDEST_VERSION), None),
        (cut(&plain(&fixed), WIDEST_VERSION), None),
        (plain(&severity), paint),
        (plain(&finding.cve), None),
        (
            risk(finding),
            finding.known_exploited.then_some(Paint::Bold),
        ),
        (plain(&finding.title), None),
    ]
}

fn risk(finding: &ReportFinding) -> String {
    let likely = finding
        .epss_score
        .map(|score| format!("{:.1}%", score * 100.0));
    match (finding.known_exploited, likely) {
        (true, Some(likely)) => format!("exploited {likely}"),
        (true, None) => "exploited".into(),
        (false, likely) => likely.unwrap_or_default(),
    }
}

fn remarks(text: &mut String, report: &Report, style: Style) {
    if !report.incomplete.is_empty() {
        let warning = "This is incomplete: some files could not be understood.";
        let _ = writeln!(text, "\n{}", painted(warning, Some(Paint::Bold), style));
        for one in report.incomplete.iter().take(SHOWN_INCOMPLETE) {
            let _ = writeln!(text, "  {}: {}", plain(&one.path), plain(&one.reason));
        }
        if let more @ 1.. = report.incomplete.len().saturating_sub(SHOWN_INCOMPLETE) {
            let _ = writeln!(text, "  and {more} more");
        }
    }
    if let Some(day) = &report.end_of_life {
        let warning = format!(
            "This release has had no fixes since {}: what is not found may be there all the same.",
            plain(day)
        );
        let _ = writeln!(text, "\n{}", painted(&warning, Some(Paint::Bold), style));
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
