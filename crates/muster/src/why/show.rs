//! Answers as text. Tables fit the terminal; what machines get has everything.

use super::Form;
use super::plan::Plan;
use super::who::{Answer, Having};
use anyhow::{Context, Result};
use muster_scan::output::Style;
use muster_scan::output::layout::{Paint, Row, cut, draw, painted, plain};
use muster_web::upgrade::{Counts, rated};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

/// Wider cells are cut, so that the others have room.
const WIDEST_NAME: usize = 40;
const WIDEST_VERSION: usize = 28;
/// So many images and containers are named in a line.
const NAMED: usize = 3;

/// Prints an answer in the form that was asked for.
pub(super) fn print<T: Serialize>(
    form: Form,
    answer: &T,
    table: fn(&T, Style) -> String,
) -> Result<()> {
    let mut text = match form {
        Form::Table => table(answer, style()),
        Form::Json => serde_json::to_string_pretty(answer)?,
        Form::Yaml => serde_saphyr::to_string(answer).context("printing the answer")?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("writing to standard output")
}

fn style() -> Style {
    let watched = std::io::stdout().is_terminal();
    Style {
        width: watched.then(|| usize::from(console::Term::stdout().size().1)),
        colour: watched && std::env::var_os("NO_COLOR").is_none(),
        suppressed: true,
    }
}

/// Who has a vulnerability.
pub(super) fn who(answer: &Answer, style: Style) -> String {
    let mut text = String::new();
    let ids = answer.vulnerabilities.join(", ");
    let whole = match &answer.namespace {
        Some(namespace) => format!(" in namespace {}", plain(namespace)),
        None => String::new(),
    };
    if answer.workloads.is_empty() {
        let told = match (answer.workload_count, answer.image_count) {
            (0, 0) => format!(
                "Nothing is scanned{whole}: no workload and no image has a report. Is the workload scan configured, and is the namespace right?"
            ),
            (0, _) => format!("No workload has a report{whole}. Is the workload scan configured?"),
            _ => format!("No workload{whole} has {ids}, as far as is known."),
        };
        let _ = writeln!(text, "{told}");
    } else {
        let several = answer.vulnerabilities.len() > 1;
        let titles = [
            "NAMESPACE",
            "WORKLOAD",
            "CONTAINER",
            "VULNERABILITY",
            "PACKAGE",
            "INSTALLED",
            "FIXED IN",
            "SEVERITY",
            "IMAGE",
        ];
        let mut rows = vec![titled(&titles)];
        rows.extend(answer.workloads.iter().map(|having| row(having, several)));
        draw(&mut text, rows, style);
        text.push('\n');
    }
    let unused: Vec<&str> = answer.unused_images.iter().map(String::as_str).collect();
    if !unused.is_empty() {
        let (is, them) = match unused.len() {
            1 => ("1 image has it and no workload".to_owned(), "runs it"),
            count => (
                format!("{count} images have it and no workload"),
                "runs them",
            ),
        };
        let _ = writeln!(text, "{is}{whole} {them}: {}.", few(&unused));
    }
    if answer.not_scanned > 0 {
        let (count, all) = (answer.not_scanned, answer.container_count);
        let are = if count == 1 { "is" } else { "are" };
        let _ = writeln!(
            text,
            "{count} of {all} containers{whole} {are} not scanned completely yet."
        );
    }
    text
}

fn row(having: &Having, several: bool) -> Row {
    let Having {
        namespace,
        kind,
        name,
        container,
        image,
        finding,
    } = having;
    let cell = |text: &str, width: usize| (cut(&plain(text), width), None);
    let (severity, paint) = match finding.suppressed {
        true => ("suppressed".to_owned(), None),
        false => {
            let paint = Paint::of(rated(&finding.severity));
            (plain(&finding.severity.to_lowercase()), Some(paint))
        }
    };
    let fixed = match finding.fixed_versions.is_empty() {
        true => "-".to_owned(),
        false => finding.fixed_versions.join(", "),
    };
    vec![
        cell(namespace, WIDEST_NAME),
        cell(&format!("{}/{name}", kind.to_lowercase()), WIDEST_NAME),
        cell(container, WIDEST_NAME),
        // One that was asked for by itself need not be repeated.
        cell(if several { &finding.cve } else { "" }, WIDEST_NAME),
        cell(&finding.package_name, WIDEST_NAME),
        cell(&finding.installed_version, WIDEST_VERSION),
        cell(&fixed, WIDEST_VERSION),
        (severity, paint),
        (plain(image), None),
    ]
}

fn titled(titles: &[&str]) -> Row {
    let title = |title: &&str| ((*title).to_owned(), Some(Paint::Dim));
    titles.iter().map(title).collect()
}

/// What a workload has to upgrade.
pub(super) fn plan(plan: &Plan, style: Style) -> String {
    let mut text = String::new();
    let heading = format!(
        "{}/{} in namespace {}",
        plan.kind.to_lowercase(),
        plan.name,
        plan.namespace
    );
    let _ = writeln!(
        text,
        "{}",
        painted(&plain(&heading), Some(Paint::Bold), style)
    );
    let upgrades = &plan.upgrades;
    let scanned = plan.containers.iter();
    let (scanned, missing): (Vec<_>, Vec<_>) =
        scanned.partition(|container| container.scan_status == "ScanComplete");
    if upgrades.upgrades.is_empty() {
        let told = match (scanned.is_empty(), upgrades.without_fix.total()) {
            (true, 0) => "Nothing is known of its images yet.",
            (_, 0) => "Nothing was found in its images.",
            _ => "No upgrade helps: nothing that was found has a fix.",
        };
        let _ = writeln!(text, "{told}");
    } else {
        let titles = [
            "CONTAINER",
            "PACKAGE",
            "INSTALLED",
            "UPGRADE TO",
            "ENDS",
            "IMAGE",
        ];
        let mut rows = vec![titled(&titles)];
        for upgrade in &upgrades.upgrades {
            let cell = |text: &str, width: usize| (cut(&plain(text), width), None);
            let worst = upgrade
                .ends
                .each()
                .into_iter()
                .find(|(count, _)| *count > 0);
            let paint = worst.map(|(_, severity)| Paint::of(severity));
            rows.push(vec![
                cell(&upgrade.container, WIDEST_NAME),
                cell(&upgrade.package, WIDEST_NAME),
                cell(&upgrade.installed_version, WIDEST_VERSION),
                cell(&upgrade.to.join(", "), WIDEST_VERSION),
                (counted(&upgrade.ends), paint),
                (plain(&upgrade.image), None),
            ]);
        }
        draw(&mut text, rows, style);
        text.push('\n');
    }
    match upgrades.without_fix.total() {
        0 => {}
        1 => {
            let _ = writeln!(
                text,
                "1 finding has no fix: {}.",
                counted(&upgrades.without_fix)
            );
        }
        count => {
            let _ = writeln!(
                text,
                "{count} findings have no fix: {}.",
                counted(&upgrades.without_fix)
            );
        }
    }
    match upgrades.suppressed {
        0 => {}
        1 => text.push_str("1 finding is suppressed.\n"),
        count => {
            let _ = writeln!(text, "{count} findings are suppressed.");
        }
    }
    for container in missing {
        let why = match container.scan_status.as_str() {
            "ScanInProgress" => "is being scanned",
            _ => "waits to be scanned",
        };
        let message = container.message.as_ref();
        let message = message
            .map(|message| format!(" ({message})"))
            .unwrap_or_default();
        let told = format!(
            "Container {} {why}: {}{message}",
            container.name, container.image
        );
        let _ = writeln!(text, "{}", plain(&told));
    }
    text
}

fn counted(counts: &Counts) -> String {
    let counts = counts.each().into_iter().filter(|(count, _)| *count > 0);
    let counts =
        counts.map(|(count, severity)| format!("{count} {}", severity.name().to_lowercase()));
    counts.collect::<Vec<_>>().join(", ")
}

/// The first of some names, and how many more there are.
fn few(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).map(|name| plain(name)).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
