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
        let is_named = needs_names(answer);
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
        rows.extend(answer.workloads.iter().map(|having| row(having, is_named)));
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

/// Whether rows have to name their vulnerability: if several were asked for, or if a finding has another
/// identifier than the one that was asked for.
fn needs_names(answer: &Answer) -> bool {
    let is_other = |having: &Having| {
        let mut asked = answer.vulnerabilities.iter();
        !asked.any(|id| id.eq_ignore_ascii_case(&having.finding.cve))
    };
    answer.vulnerabilities.len() > 1 || answer.workloads.iter().any(is_other)
}

fn row(having: &Having, is_named: bool) -> Row {
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
        cell(if is_named { &finding.cve } else { "" }, WIDEST_NAME),
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
    let not_scanned = (scanned.len(), missing.len());
    let told = match (not_scanned, upgrades.without_fix.total()) {
        _ if !upgrades.upgrades.is_empty() => None,
        ((0, _), 0) => Some("Its images are not scanned.".to_owned()),
        ((_, 0), 0) => Some("No vulnerabilities are known in its images.".to_owned()),
        ((scanned, missing), 0) => Some(format!(
            "No vulnerabilities are known in {scanned} of {} containers; the others are not scanned.",
            scanned + missing
        )),
        _ => Some("No vulnerability that was found has a fix.".to_owned()),
    };
    if let Some(told) = told {
        let _ = writeln!(text, "{told}");
    }
    if !upgrades.upgrades.is_empty() || !missing.is_empty() {
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
        for container in &missing {
            let dash = || ("-".to_owned(), None);
            let name = (cut(&plain(&container.name), WIDEST_NAME), None);
            let image = (plain(&container.image), None);
            rows.push(vec![name, dash(), dash(), dash(), dash(), image]);
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

#[cfg(test)]
mod tests {
    use super::super::plan::Standing;
    use super::super::read::Finding;
    use super::*;
    use muster_web::upgrade::{Upgrade, Upgrades};

    fn container(name: &str, status: &str) -> Standing {
        Standing {
            name: name.into(),
            image: format!("registry.example/{name}:1"),
            scan_status: status.into(),
            message: None,
        }
    }

    fn drawn(containers: Vec<Standing>, upgrades: Upgrades) -> String {
        let answer = Plan {
            namespace: "shop".into(),
            kind: "Deployment".into(),
            name: "web".into(),
            containers,
            upgrades,
        };
        plan(&answer, Style::default())
    }

    #[test]
    fn rows_name_the_vulnerability_unless_it_is_the_only_one_asked_for() {
        let having = |cve: &str| Having {
            namespace: "shop".into(),
            kind: "Deployment".into(),
            name: "web".into(),
            container: "app".into(),
            image: "registry.example/app:1".into(),
            finding: Finding {
                cve: cve.into(),
                package_name: "mysql-server".into(),
                ..Finding::default()
            },
        };
        for (asked, found, expected) in [
            (
                &["CVE-2024-1"][..],
                &["CVE-2024-1", "cve-2024-1"][..],
                false,
            ),
            (&["CVE-2024-1", "CVE-2024-2"], &["CVE-2024-1"], true),
            (&["ALSA-2025:1673"], &["CVE-2024-1"], true),
        ] {
            let answer = Answer {
                vulnerabilities: asked.iter().map(|id| (*id).to_owned()).collect(),
                workloads: found.iter().map(|cve| having(cve)).collect(),
                ..Answer::default()
            };
            let text = who(&answer, Style::default());
            assert_eq!(text.contains("VULNERABILITY"), expected, "{text}");
            assert_eq!(text.contains("CVE-2024-1"), expected, "{text}");
        }
    }

    #[test]
    fn a_container_that_is_not_scanned_has_a_dash() {
        let (done, waiting) = ("ScanComplete", "WaitingForScan");
        let all = drawn(vec![container("app", done)], Upgrades::default());
        assert!(
            all.contains("No vulnerabilities are known in its images."),
            "{all}"
        );
        let some = vec![container("app", done), container("side", waiting)];
        let some = drawn(some, Upgrades::default());
        let expected = "\
deployment/web in namespace shop
No vulnerabilities are known in 1 of 2 containers; the others are not scanned.
CONTAINER  PACKAGE  INSTALLED  UPGRADE TO  ENDS  IMAGE
side       -        -          -           -     registry.example/side:1

Container side waits to be scanned: registry.example/side:1
";
        assert_eq!(some, expected);
        let none = drawn(vec![container("side", waiting)], Upgrades::default());
        assert!(none.contains("Its images are not scanned."), "{none}");
        assert!(!none.contains("No vulnerabilities"), "{none}");
        let upgrade = Upgrade {
            container: "app".into(),
            image: "registry.example/app:1".into(),
            package: "openssl".into(),
            kind: "deb".into(),
            installed_version: "1".into(),
            to: vec!["2".into()],
            ends: Counts {
                high: 1,
                ..Counts::default()
            },
            vulnerabilities: vec!["CVE-1".into()],
        };
        let upgrades = Upgrades {
            upgrades: vec![upgrade],
            ..Upgrades::default()
        };
        let both = drawn(
            vec![container("app", done), container("side", waiting)],
            upgrades,
        );
        assert!(
            both.contains("app        openssl  1          2           1 high"),
            "{both}"
        );
        assert!(
            both.contains("side       -        -          -           -"),
            "{both}"
        );
    }
}
