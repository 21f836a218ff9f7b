//! The overview: how bad it is, where it is worst, and what would help most.

use super::{images, policies, registries, vulnerabilities, workloads};
use crate::address::{Filter, Route};
use crate::audit;
use crate::carrier;
use crate::chart;
use crate::history::{self, Step};
use crate::layout::Framed;
use crate::parts::{self, number, some};
use crate::read::{self, ReadError};
use crate::reader::{LeftOut, Reader, Where};
use crate::upgrade::Counts;
use jiff::Timestamp;
use maud::{Markup, html};

/// So many of each sort are shown.
const MOST: usize = 8;

/// What the page shows.
#[derive(Default)]
pub(crate) struct View {
    /// Findings of what runs; of all images where nothing is known to run.
    counts: Counts,
    is_running: bool,
    workloads: Vec<workloads::Line>,
    workload_count: usize,
    affected: usize,
    image_count: usize,
    vulnerability_count: usize,
    fixable_count: usize,
    widespread: Vec<vulnerabilities::Line>,
    failing: Vec<policies::Line>,
    failing_count: usize,
    jobs: Vec<registries::Job>,
    history: Vec<Step>,
    namespaces: Vec<String>,
    left_out: LeftOut,
}

pub(crate) async fn load(reader: &Reader, _: &Filter) -> Result<View, ReadError> {
    let workloads = reader.workloads(Where::Chosen).await?;
    let (carriers, audits, (jobs, unread), reports, (history, untold)) = tokio::try_join!(
        carrier::carriers(reader, &workloads.items),
        audit::audits(reader),
        registries::jobs(reader),
        reader.rows(read::FINDINGS, Where::Chosen),
        history::of_namespaces(reader),
    )?;
    let left_out = workloads.left_out.and(carriers.left_out);
    let left_out = left_out.and(audits.left_out).and(unread).and(untold);
    let mut lines: Vec<_> = workloads.items.iter().map(workloads::Line::of).collect();
    workloads::sort(&mut lines, "");
    let is_running = !lines.is_empty();
    let mut counts = Counts::default();
    let mut add = |more: &Counts| {
        for (count, severity) in more.each() {
            counts.count(severity, count);
        }
    };
    match is_running {
        true => lines.iter().for_each(|line| add(&line.counts)),
        false => reports
            .items
            .iter()
            .for_each(|row| add(&images::counts(row))),
    }
    let affected = lines.iter().filter(|line| line.counts.total() > 0).count();
    let workload_count = lines.len();
    lines.truncate(MOST);
    lines.retain(|line| line.counts.total() > 0);
    let mut found =
        vulnerabilities::count(&reader.stock.texts(), &carriers.items, &workloads.items);
    found.retain(|line| !line.suppressed);
    let vulnerability_count = found.len();
    found.retain(|line| line.fixable);
    let fixable_count = found.len();
    found.sort_by(|a, b| {
        let key = |line: &vulnerabilities::Line| (line.workloads, line.severity, line.images);
        key(b).cmp(&key(a)).then_with(|| b.id.cmp(&a.id))
    });
    found.truncate(MOST);
    let mut failing = policies::count(&audits.items);
    let failing_count = failing.len();
    failing.truncate(MOST);
    let jobs = jobs.into_iter().filter(registries::Job::is_open);
    Ok(View {
        counts,
        is_running,
        workloads: lines,
        workload_count,
        affected,
        image_count: carriers.items.len(),
        vulnerability_count,
        fixable_count,
        widespread: found,
        failing,
        failing_count,
        jobs: jobs.take(MOST).collect(),
        history,
        namespaces: reader.namespaces().await?.to_vec(),
        left_out,
    })
}

pub(crate) fn draw(view: &View, filter: &Filter, now: Timestamp) -> Framed {
    let narrow = filter.namespace_only();
    let fixable = Filter {
        sort: "workloads".into(),
        fixable: true,
        ..narrow.clone()
    };
    let (narrow, fixable) = (narrow.query(), fixable.query());
    let main = html! {
        h1 { "Overview" @if let Some(namespace) = &filter.namespace { " " span class="quiet" { (namespace) } } }
        (parts::left_out(view.left_out))
        (choice(view, filter))
        div class="tiles" {
            (tile("Workloads", view.workload_count, &format!("{} with findings", number(view.affected)), &Route::Workloads, &narrow))
            (tile("Images", view.image_count, "scanned", &Route::Images, &narrow))
            (tile("Vulnerabilities", view.vulnerability_count, &format!("{} fixable", number(view.fixable_count)), &Route::Vulnerabilities, &narrow))
            (tile("Policies and checks", view.failing_count, "failing", &Route::Policies, &narrow))
        }
        div class="grid" {
            section class="card" aria-labelledby="severity" {
                h2 id="severity" { "Findings " span class="quiet" { (if view.is_running { "in what runs" } else { "in all images" }) } }
                div class="summary" {
                    (chart::ring(&view.counts))
                    ul class="legend" {
                        @for (count, severity) in view.counts.each() {
                            @let of_severity = Filter { severity: Some(severity), ..filter.namespace_only() };
                            li { a href={ (if view.is_running { Route::Workloads.path() } else { Route::Images.path() }) (of_severity.query()) } { (parts::severity(severity)) } " " b { (number(count)) } }
                        }
                    }
                }
            }
            section class="card" aria-labelledby="jobs" {
                h2 id="jobs" { "Scans under way" }
                @if view.jobs.is_empty() {
                    p class="empty" { "None. " a href=(Route::Registries.path()) { "Those that ended" } }
                } @else { (registries::job_table(&view.jobs, now)) }
            }
            section class="card broad" aria-labelledby="history" {
                h2 id="history" { "Findings over time " span class="quiet" { "in what runs" } }
                (chart::over_time(&view.history, now))
            }
            section class="card" aria-labelledby="worst" {
                h2 id="worst" { a href={ (Route::Workloads.path()) (narrow) } { "Worst workloads" } }
                @if view.workloads.is_empty() { p class="empty" { "No workload has findings." } } @else { (worst(&view.workloads)) }
            }
            section class="card" aria-labelledby="widespread" {
                h2 id="widespread" { a href={ (Route::Vulnerabilities.path()) (fixable) } { "Most widespread, and fixable" } }
                @if view.widespread.is_empty() { p class="empty" { "Nothing that was found can be fixed by an upgrade." } } @else { (widespread(&view.widespread, &narrow)) }
            }
            section class="card broad" aria-labelledby="failing" {
                h2 id="failing" { a href={ (Route::Policies.path()) (narrow) } { "Failing policies and checks" } }
                @if view.failing.is_empty() { p class="empty" { "Nothing fails." } } @else { (failing(&view.failing, &narrow)) }
            }
        }
    };
    Framed {
        title: "Overview".into(),
        main,
    }
}

/// The choice of a namespace.
fn choice(view: &View, filter: &Filter) -> Markup {
    html! {
        @if !view.namespaces.is_empty() || filter.namespace.is_some() || view.left_out.forbidden {
            form class="filters" method="get" action=(Route::Overview.path()) aria-label="Namespace" {
                label { "Namespace "
                    @if view.namespaces.is_empty() {
                        input type="text" name="namespace" value=(filter.namespace.as_deref().unwrap_or_default()) placeholder="all";
                    } @else {
                        select name="namespace" {
                            option value="" { "All" }
                            @for name in &view.namespaces { option value=(name) selected[filter.namespace.as_deref() == Some(name)] { (name) } }
                        }
                    }
                }
                button type="submit" { "Show" }
            }
        }
    }
}

fn tile(title: &str, count: usize, told: &str, route: &Route, narrow: &str) -> Markup {
    html! {
        a class="tile" href={ (route.path()) (narrow) } {
            span class="name" { (title) }
            span class="value" { (number(count)) }
            span class="quiet" { (told) }
        }
    }
}

fn worst(lines: &[workloads::Line]) -> Markup {
    let longest = workloads::longest(lines);
    html! {
        table class="tight" {
            caption class="hidden" { "Workloads with the worst findings" }
            thead { tr { th scope="col" { "Workload" } th scope="col" class="count" { "Critical" } th scope="col" class="count" { "High" } th scope="col" class="wide" { "All" } } }
            tbody {
                @for line in lines {
                    tr {
                        th scope="row" { (line.link()) div class="quiet" { (line.namespace) } }
                        td class={ "count " (if line.counts.critical > 0 { "critical" } else { "none" }) } { (number(line.counts.critical)) }
                        td class={ "count " (if line.counts.high > 0 { "high" } else { "none" }) } { (number(line.counts.high)) }
                        td class="wide" { (chart::bar(&line.counts, longest)) }
                    }
                }
            }
        }
    }
}

fn widespread(lines: &[vulnerabilities::Line], narrow: &str) -> Markup {
    html! {
        table class="tight" {
            caption class="hidden" { "Vulnerabilities that most workloads have and that can be fixed" }
            thead { tr { th scope="col" { "Vulnerability" } th scope="col" { "Severity" } th scope="col" class="count" { "Workloads" } th scope="col" class="count" { "Images" } } }
            tbody {
                @for line in lines {
                    tr {
                        th scope="row" { (parts::vulnerability_in(&line.id, narrow)) }
                        td { (parts::severity(line.severity)) @if line.exploited { " " span class="state bad" { "exploited" } } }
                        td class="count" { (number(line.workloads)) }
                        td class="count" { (number(line.images)) }
                    }
                }
            }
        }
    }
}

fn failing(lines: &[policies::Line], narrow: &str) -> Markup {
    html! {
        table class="tight" {
            caption class="hidden" { "Policies and checks that fail" }
            thead { tr { th scope="col" { "Severity" } th scope="col" { "Policy or check" } th scope="col" class="count" { "Resources" } } }
            tbody {
                @for line in lines {
                    tr {
                        td { (parts::severity(line.severity)) }
                        th scope="row" {
                            a href={ (Route::Policy { family: line.family, id: line.id.clone() }.path()) (narrow) } { (line.id) }
                            @if line.title != line.id { " " span class="quiet" { (line.title) } }
                        }
                        td class="count" title=(some(line.errors, "could not be judged", "could not be judged")) { (number(line.failing + line.errors)) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_overview_is_calm() {
        let page = draw(&View::default(), &Filter::default(), Timestamp::UNIX_EPOCH);
        let page = page.main.into_string();
        for told in [
            "No workload has findings",
            "Nothing fails",
            "None. ",
            "Nothing has been noted yet",
        ] {
            assert!(page.contains(told), "{page}");
        }
    }
}
