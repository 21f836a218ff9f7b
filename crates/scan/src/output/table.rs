//! The table for people: what was scanned, how bad it is, and package by package what to update to.
//! It fits the width it is given. Everything in it comes from images and databases that nobody
//! vouches for, so nothing of it reaches the terminal but plain characters.

use super::Inspection;
use crate::report::{Report, ReportFinding, ReportResult};
use crate::vulnerability::Severity;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a table is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Columns of the terminal; as many as needed where it is none.
    pub width: Option<usize>,
    /// Whether severities have colours.
    pub colour: bool,
    /// Whether suppressed findings are listed, or only counted.
    pub suppressed: bool,
}

/// Wider cells are cut, so that the others have room.
const WIDEST_NAME: usize = 36;
const WIDEST_VERSION: usize = 28;
/// A title that gets fewer columns is left out.
const NARROWEST_TITLE: usize = 16;
const GAP: usize = 2;
/// So many files that were not understood are named.
const SHOWN_INCOMPLETE: usize = 10;

type Row = Vec<(String, Option<Paint>)>;

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
        1 => "1 package, ".to_owned(),
        packages => format!("{packages} packages, "),
    };
    match open {
        0 => line.push_str("no vulnerabilities"),
        1 => line.push_str("1 vulnerability: "),
        open => {
            let _ = write!(line, "{open} vulnerabilities: ");
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

/// Lays rows out in columns; columns that hold nothing but their title are left out.
fn draw(text: &mut String, mut rows: Vec<Row>, style: Style) {
    let columns = rows.first().map_or(0, Vec::len);
    let used: Vec<bool> = (0..columns)
        .map(|column| rows.iter().skip(1).any(|row| !row[column].0.is_empty()))
        .collect();
    for row in &mut rows {
        let mut column = 0;
        row.retain(|_| {
            column += 1;
            used[column - 1]
        });
    }
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .map(|row| row[column].0.width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let has_title = used.last() == Some(&true);
    let fixed: usize = match has_title {
        true => widths[..columns - 1].iter().map(|width| width + GAP).sum(),
        false => 0,
    };
    let room = style.width.map(|width| width.saturating_sub(fixed));
    for row in rows {
        let mut line = String::new();
        for (column, (cell, paint)) in row.iter().enumerate() {
            let cell = match room {
                Some(room) if has_title && column == columns - 1 => match room {
                    0..NARROWEST_TITLE => continue,
                    room => cut(cell, room),
                },
                _ => cell.clone(),
            };
            let _ = write!(line, "{}", painted(&cell, *paint, style));
            if column + 1 < columns {
                let fill = widths[column].saturating_sub(cell.width()) + GAP;
                line.extend(std::iter::repeat_n(' ', fill));
            }
        }
        let _ = writeln!(text, "{}", line.trim_end());
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
    if !report.notes.is_empty() {
        text.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(text, "Note: {}", plain(note));
    }
}

/// Without anything that a terminal would obey.
fn plain(text: &str) -> String {
    let line = text.split(['\n', '\r', '\t']).collect::<Vec<_>>().join(" ");
    line.chars()
        .map(|one| match one {
            // Marks that turn the direction of writing may make text look like another.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                '\u{fffd}'
            }
            one if one.is_control() => '\u{fffd}',
            one => one,
        })
        .collect()
}

/// At most so many columns wide.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut taken = 1;
    for one in text.chars() {
        taken += one.width().unwrap_or(0);
        if taken > width {
            break;
        }
        kept.push(one);
    }
    kept.push('…');
    kept
}

#[derive(Clone, Copy)]
enum Paint {
    Bold,
    Dim,
    Red,
    BrightRed,
    Yellow,
    Blue,
}

impl Paint {
    fn of(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Paint::BrightRed,
            Severity::High => Paint::Red,
            Severity::Medium => Paint::Yellow,
            Severity::Low => Paint::Blue,
            Severity::Unknown => Paint::Dim,
        }
    }
}

fn painted(text: &str, paint: Option<Paint>, style: Style) -> String {
    let code = match paint {
        Some(paint) if style.colour && !text.is_empty() => match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Red => "31",
            Paint::BrightRed => "1;31",
            Paint::Yellow => "33",
            Paint::Blue => "34",
        },
        _ => return text.to_owned(),
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
