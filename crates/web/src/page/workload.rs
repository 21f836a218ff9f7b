//! One workload: what must be fixed in it. First the upgrades with the most effect, then what breaks
//! policies and checks, then every finding.

use crate::address::{Filter, Route};
use crate::audit::{self, Audit, Failure};
use crate::carrier::Users;
use crate::chart;
use crate::history::{self, Step};
use crate::layout::Framed;
use crate::parts::{self, Offers, number, some};
use crate::read::{self, ReadError};
use crate::reader::{LeftOut, Reader};
use crate::upgrade::{Counts, Placed, Upgrade, Upgrades, rank, rated};
use crate::workload::{Container, Owner};
use jiff::Timestamp;
use maud::{Markup, html};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// So many upgrades are shown before a person asks for more.
const UPGRADES: usize = 12;
/// So many changes of the past are told.
const CHANGES: usize = 8;

/// A container and the reports of its image.
struct Ran {
    container: Container,
    image: String,
    /// Where the findings are: platform, namespace and name of each report.
    reports: Vec<(String, String, String)>,
    end_of_life: Option<String>,
}

/// A finding of a container; what two platforms share is told once.
struct Row {
    container: String,
    image: String,
    finding: crate::finding::Finding,
}

/// What the page shows.
pub(crate) struct View {
    namespace: String,
    report: String,
    owner: Owner,
    counts: Counts,
    suppressed: usize,
    containers: Vec<Ran>,
    upgrades: Upgrades,
    rows: Vec<Row>,
    all: usize,
    audits: Vec<Audit>,
    history: Vec<Step>,
    left_out: LeftOut,
}

pub(crate) async fn load(
    reader: &Reader,
    namespace: &str,
    name: &str,
    filter: &Filter,
) -> Result<Option<View>, ReadError> {
    let Some(workload) = read::workload(&reader.client, namespace, name).await? else {
        return Ok(None);
    };
    let owner = workload.owner();
    let audits =
        audit::of_workload(reader, namespace, &owner.kind, &owner.name, &owner.uid).await?;
    let (history, unread) = history::of_workload(reader, namespace, name).await?;
    let (summary, containers) = (workload.summary(), workload.containers());
    let mut ran = Vec::new();
    let mut placed = Vec::new();
    let mut rows: BTreeMap<[String; 5], Row> = BTreeMap::new();
    let mut found = workload.findings().into_iter();
    for container in containers {
        let reports = found.next().unwrap_or_default();
        let mut one = Ran {
            image: container.image.clone(),
            reports: Vec::new(),
            end_of_life: None,
            container,
        };
        for report in reports {
            let (place, named) = report.place();
            one.reports
                .push((report.platform(), place.into(), named.into()));
            let image = report.image();
            if !image.is_empty() {
                one.image = image;
            }
            let end = report
                .report
                .as_ref()
                .and_then(|report| report.end_of_life.clone());
            one.end_of_life = one.end_of_life.or(end);
            for finding in report.findings() {
                // While a workload is rolled out, a container runs two images.
                let key = [
                    one.container.name.clone(),
                    one.image.clone(),
                    finding.cve.clone(),
                    finding.package_name.clone(),
                    finding.installed_version.clone(),
                ];
                placed.push(Placed {
                    container: one.container.name.clone(),
                    image: one.image.clone(),
                    finding: finding.clone(),
                });
                let row = Row {
                    container: one.container.name.clone(),
                    image: one.image.clone(),
                    finding,
                };
                match rows.entry(key) {
                    Entry::Vacant(place) => drop(place.insert(row)),
                    // What does harm on one platform does harm.
                    Entry::Occupied(mut known) if known.get().finding.suppressed => {
                        known.insert(row);
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        ran.push(one);
    }
    let all = rows.len();
    let mut rows: Vec<Row> = rows
        .into_values()
        .filter(|row| is_meant(row, filter))
        .collect();
    rows.sort_by(|a, b| {
        let key = |row: &Row| {
            let bad = std::cmp::Reverse((!row.finding.suppressed, rated(&row.finding.severity)));
            (
                bad,
                row.finding.cve.clone(),
                row.finding.package_name.clone(),
                row.container.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    Ok(Some(View {
        namespace: namespace.into(),
        report: name.into(),
        owner,
        counts: summary.counts(),
        suppressed: summary.suppressed,
        containers: ran,
        upgrades: rank(placed),
        rows,
        all,
        audits: audits.items,
        history,
        left_out: audits.left_out.and(unread),
    }))
}

fn is_meant(row: &Row, filter: &Filter) -> bool {
    let finding = &row.finding;
    let texts = [
        finding.cve.as_str(),
        &finding.package_name,
        &finding.title,
        &row.container,
        &row.image,
    ];
    filter.finds(&texts)
        && filter
            .severity
            .is_none_or(|least| rated(&finding.severity) >= least)
        && (!filter.fixable || (!finding.fixed_versions.is_empty() && !finding.suppressed))
}

pub(crate) fn draw(view: &View, filter: &Filter, now: Timestamp) -> Framed {
    let route = Route::Workload {
        namespace: view.namespace.clone(),
        name: view.report.clone(),
    };
    let failures: usize = view.audits.iter().map(|audit| audit.failures.len()).sum();
    let of_namespace = Filter {
        namespace: Some(view.namespace.clone()),
        ..Filter::default()
    };
    let main = html! {
        p class="crumbs" {
            a href=(Route::Workloads.path()) { "Workloads" } " / "
            a href={ (Route::Workloads.path()) (of_namespace.query()) } { (view.namespace) }
        }
        h1 { (view.owner.name) " " span class="quiet" { (view.owner.kind) } }
        (summary(view, failures))
        (parts::left_out(view.left_out))
        section aria-labelledby="fix" {
            h2 id="fix" { "What to fix first" }
            (upgrades(&view.upgrades))
        }
        section aria-labelledby="audit" {
            h2 id="audit" { "Policies and configuration" }
            (audits(view))
        }
        section aria-labelledby="containers" {
            h2 id="containers" { "Containers" }
            (containers(view))
        }
        section aria-labelledby="history" {
            h2 id="history" { "History" }
            (past(&view.history, now))
        }
        section aria-labelledby="findings" {
            h2 id="findings" { "Findings " span class="quiet" { (number(view.rows.len())) @if view.rows.len() != view.all { " of " (number(view.all)) } } }
            (parts::filters(&route, filter, Offers { severity: true, fixable: true, ..Offers::default() }))
            @if view.rows.is_empty() {
                (parts::nothing(filter, "Nothing was found in what this workload runs."))
            } @else {
                (findings(parts::shown(&view.rows, filter)))
                (parts::pager(&route, filter, &view.rows))
            }
        }
    };
    Framed {
        title: format!("{} in {}", view.owner.name, view.namespace),
        main,
    }
}

fn summary(view: &View, failures: usize) -> Markup {
    html! {
        div class="card summary" {
            (chart::ring(&view.counts))
            ul class="legend" {
                @for (count, severity) in view.counts.each() {
                    li { (parts::severity(severity)) " " b { (number(count)) } }
                }
                @if view.suppressed > 0 {
                    li { span class="severity suppressed" { "Suppressed" } " " b { (number(view.suppressed)) } }
                }
            }
            dl class="facts" {
                div { dt { "Upgrades that help" } dd { (number(view.upgrades.upgrades.len())) } }
                div { dt { "Findings without a fix" } dd { (number(view.upgrades.without_fix.total())) } }
                div { dt { "Policies and checks failed" } dd { (number(failures)) } }
                div { dt { "Containers" } dd { (number(view.containers.len())) } }
            }
        }
    }
}

fn upgrades(upgrades: &Upgrades) -> Markup {
    let (first, more) = upgrades
        .upgrades
        .split_at(upgrades.upgrades.len().min(UPGRADES));
    html! {
        @if first.is_empty() {
            p class="empty" { "No upgrade of a package would help." }
        } @else {
            (upgrade_table(first))
            @if !more.is_empty() {
                details id="more-upgrades" {
                    summary { (some(more.len(), "more upgrade", "more upgrades")) }
                    (upgrade_table(more.get(..parts::ROWS.min(more.len())).unwrap_or_default()))
                }
            }
        }
        @if upgrades.without_fix.total() > 0 {
            p class="quiet" { (some(upgrades.without_fix.total(), "finding has", "findings have")) " no fix yet." }
        }
    }
}

fn upgrade_table(upgrades: &[Upgrade]) -> Markup {
    let longest = upgrades.iter().map(|upgrade| upgrade.ends.total()).max();
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Packages to upgrade, most effect first" }
                thead { tr {
                    th scope="col" { "Upgrade" } th scope="col" { "From" } th scope="col" { "To" }
                    th scope="col" { "Container" } th scope="col" class="count" { "Ends" } th scope="col" class="wide" { "By severity" }
                } }
                tbody {
                    @for upgrade in upgrades {
                        tr {
                            th scope="row" { (upgrade.package) " " span class="quiet" { (upgrade.kind) } }
                            td class="version" { (upgrade.installed_version) }
                            td class="version good" { (upgrade.to.join(" or ")) }
                            td { (upgrade.container) }
                            td class="count" title=(upgrade.vulnerabilities.join(", ")) { (number(upgrade.ends.total())) }
                            td class="wide" { (chart::bar(&upgrade.ends, longest.unwrap_or_default())) }
                        }
                    }
                }
            }
        }
    }
}

fn audits(view: &View) -> Markup {
    let failures = view.audits.iter().flat_map(|audit| &audit.failures);
    let mut failures: Vec<&Failure> = failures.collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.severity));
    let passed: usize = view.audits.iter().map(|audit| audit.passed).sum();
    html! {
        @if view.audits.is_empty() {
            p class="empty" { "No policy and no check has been asked about this workload." }
        } @else if failures.is_empty() {
            p class="empty good" { "Everything that was asked is kept: " (some(passed, "policy or check", "policies and checks")) "." }
        } @else {
            (failure_table(&failures))
            @if passed > 0 { p class="quiet" { (some(passed, "other is", "others are")) " kept." } }
        }
    }
}

fn failure_table(failures: &[&Failure]) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Policies and checks that fail" }
                thead { tr {
                    th scope="col" { "Severity" } th scope="col" { "Policy or check" } th scope="col" { "What is wrong" }
                } }
                tbody {
                    @for failure in failures.iter().take(2 * parts::ROWS) {
                        @let route = Route::Policy { family: failure.family, id: failure.id.clone() };
                        tr {
                            td { (parts::severity(failure.severity)) @if failure.is_error { " " span class="state wait" { "not judged" } } }
                            th scope="row" {
                                a href=(route.path()) { (failure.id) }
                                @if !failure.title.is_empty() { div class="quiet" { (failure.title) } }
                            }
                            td {
                                (failure.message)
                                @if !failure.part.is_empty() { " " span class="quiet" { "(" (failure.part) ")" } }
                                @if !failure.remediation.is_empty() { div class="quiet" { (failure.remediation) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn containers(view: &View) -> Markup {
    html! {
        div class="scroll" {
            table {
                thead { tr { th scope="col" { "Container" } th scope="col" { "Image" } th scope="col" { "Platforms" } th scope="col" { "Scan" } } }
                tbody {
                    @for one in &view.containers {
                        tr {
                            th scope="row" { (one.container.name) }
                            td class="image" {
                                @match one.reports.first() {
                                    Some((_, namespace, name)) => {
                                        @let route = Route::Image { namespace: namespace.clone(), name: name.clone() };
                                        a href=(route.path()) { (one.image) }
                                    }
                                    None => (one.image),
                                }
                                @if let Some(day) = &one.end_of_life { " " span class="state bad" { "release without fixes since " (day) } }
                            }
                            td {
                                @for (platform, namespace, name) in &one.reports {
                                    @let route = Route::Image { namespace: namespace.clone(), name: name.clone() };
                                    a class="tag" href=(route.path()) { (if platform.is_empty() { "report" } else { platform }) } " "
                                }
                            }
                            td { (standing(&one.container)) }
                        }
                    }
                }
            }
        }
    }
}

fn past(steps: &[Step], now: Timestamp) -> Markup {
    html! {
        (chart::over_time(steps, now))
        @if !steps.is_empty() {
            div class="scroll" {
                table {
                    caption class="hidden" { "What came and what went, newest first" }
                    thead { tr { th scope="col" { "When" } th scope="col" { "What changed" } } }
                    tbody {
                        @for change in history::changes(steps, CHANGES) {
                            tr { td { (parts::ago(Some(&change.time), now)) } td { (change.told) } }
                        }
                    }
                }
            }
        }
    }
}

fn standing(container: &Container) -> Markup {
    let standing = &container.standing;
    let (class, text) = match standing.scan_status.as_str() {
        "ScanComplete" => ("good", "scanned"),
        "ScanInProgress" => ("wait", "being scanned"),
        "" => ("wait", "unknown"),
        _ => ("wait", "waits for its scan"),
    };
    html! {
        span class={ "state " (class) } { (text) }
        @if let Some(message) = &standing.message { div class="quiet" { (message) } }
    }
}

fn findings(rows: &[Row]) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Findings, worst first" }
                thead { tr {
                    th scope="col" { "Severity" } th scope="col" { "Vulnerability" } th scope="col" { "Package" }
                    th scope="col" { "Installed" } th scope="col" { "Fixed in" } th scope="col" { "Container" }
                } }
                tbody {
                    @for row in rows {
                        tr class=[row.finding.suppressed.then_some("suppressed")] {
                            td { (parts::severity(rated(&row.finding.severity))) (marks(&row.finding)) }
                            th scope="row" { (parts::vulnerability(&row.finding.cve)) div class="quiet title" { (row.finding.title) } }
                            td { (row.finding.package_name) }
                            td class="version" { (row.finding.installed_version) }
                            td class="version" { (fixed(&row.finding)) }
                            td { (row.container) }
                        }
                    }
                }
            }
        }
    }
}

/// What is special about a finding.
pub(crate) fn marks(finding: &crate::finding::Finding) -> Markup {
    html! {
        @if finding.suppressed { " " span class="state" { "suppressed" } }
        @if finding.known_exploited { " " span class="state bad" { "exploited" } }
    }
}

/// Where a finding is fixed.
pub(crate) fn fixed(finding: &crate::finding::Finding) -> Markup {
    html! {
        @if !finding.fixed_versions.is_empty() {
            (finding.fixed_versions.join(", "))
        } @else if !finding.status.is_empty() && finding.status != "fixed" {
            span class="quiet" { (finding.status.replace('_', " ")) }
        } @else {
            span class="quiet" { "no fix" }
        }
    }
}

/// The namespaces and names of workloads that run something, for other pages.
pub(crate) fn users(users: &Users, links: &[String]) -> Vec<super::workloads::Line> {
    let running = users.running(links);
    let lines: Vec<_> = running
        .into_iter()
        .map(super::workloads::Line::of)
        .collect();
    let mut seen = BTreeSet::new();
    let is_new =
        |line: &super::workloads::Line| seen.insert((line.namespace.clone(), line.report.clone()));
    let mut is_new = is_new;
    lines.into_iter().filter(|line| is_new(line)).collect()
}
