//! The workloads: what is wrong with each, worst first.

use crate::address::{Filter, Route};
use crate::carrier::{self, Users};
use crate::chart;
use crate::layout::Framed;
use crate::parts::{self, Offers, number, some};
use crate::read::ReadError;
use crate::reader::{LeftOut, Reader, Where};
use crate::upgrade::Counts;
use crate::workload::Workload;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// A workload in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) namespace: String,
    /// The name of its report.
    pub(crate) report: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) counts: Counts,
    pub(crate) images: Vec<String>,
    pub(crate) scanned: usize,
    pub(crate) containers: usize,
}

impl Line {
    pub(crate) fn of(workload: &Workload) -> Line {
        let (owner, containers) = (workload.owner(), workload.containers());
        let images: BTreeSet<String> = containers.iter().map(|one| one.image.clone()).collect();
        let is_scanned =
            |one: &&crate::workload::Container| one.standing.scan_status == "ScanComplete";
        Line {
            namespace: workload.namespace().into(),
            report: workload.name().into(),
            kind: owner.kind,
            name: owner.name,
            counts: workload.summary().counts(),
            images: images.into_iter().collect(),
            scanned: containers.iter().filter(is_scanned).count(),
            containers: containers.len(),
        }
    }

    pub(crate) fn route(&self) -> Route {
        Route::Workload {
            namespace: self.namespace.clone(),
            name: self.report.clone(),
        }
    }

    pub(crate) fn is_meant(&self, filter: &Filter) -> bool {
        let mut texts: Vec<&str> = vec![&self.name, &self.kind, &self.namespace];
        texts.extend(self.images.iter().map(String::as_str));
        filter.finds(&texts) && parts::reaches(&self.counts, filter.severity)
    }

    /// The workload, as a link to its page.
    pub(crate) fn link(&self) -> Markup {
        html! {
            a href=(self.route().path()) { (self.name) }
            " " span class="quiet" { (self.kind) }
        }
    }
}

/// What the page shows.
pub(crate) struct View {
    lines: Vec<Line>,
    all: usize,
    namespaces: Vec<String>,
    left_out: LeftOut,
}

pub(crate) async fn load(reader: &Reader, filter: &Filter) -> Result<View, ReadError> {
    let seen = reader.workloads(Where::Chosen).await?;
    let mut left_out = seen.left_out;
    let mut kept: Option<BTreeSet<usize>> = None;
    if filter.fixable {
        let carriers = carrier::carriers(reader, &seen.items).await?;
        left_out = left_out.and(carriers.left_out);
        let users = Users::of(&seen.items);
        let fixable = carriers.items.iter().filter(|carrier| carrier.is_fixable());
        kept = Some(
            fixable
                .flat_map(|carrier| users.at(&carrier.links))
                .collect(),
        );
    }
    let lines = seen.items.iter().enumerate();
    let lines = lines.filter(|(at, _)| kept.as_ref().is_none_or(|kept| kept.contains(at)));
    let lines = lines.map(|(_, workload)| Line::of(workload));
    let mut lines: Vec<Line> = lines.filter(|line| line.is_meant(filter)).collect();
    sort(&mut lines, &filter.sort);
    Ok(View {
        lines,
        all: seen.items.len(),
        namespaces: reader.namespaces().await?.to_vec(),
        left_out,
    })
}

/// Sorts by a column, and else by how bad it is.
pub(crate) fn sort(lines: &mut [Line], column: &str) {
    let place = |line: &Line| (line.namespace.clone(), line.name.clone(), line.kind.clone());
    lines.sort_by(|a, b| {
        let (left, right) = (&a.counts, &b.counts);
        let order = match column {
            "name" => (&a.name, &a.namespace).cmp(&(&b.name, &b.namespace)),
            "namespace" => place(a).cmp(&place(b)),
            "high" => right.high.cmp(&left.high),
            "medium" => right.medium.cmp(&left.medium),
            "low" => right.low.cmp(&left.low),
            "unknown" => right.unknown.cmp(&left.unknown),
            "findings" => right.total().cmp(&left.total()),
            _ => std::cmp::Ordering::Equal,
        };
        order
            .then_with(|| right.cmp(left))
            .then_with(|| place(a).cmp(&place(b)))
    });
}

pub(crate) fn draw(view: &View, filter: &Filter) -> Framed {
    let route = Route::Workloads;
    let main = html! {
        h1 { "Workloads" }
        p class="lead" { (some(view.lines.len(), "workload", "workloads")) @if view.lines.len() != view.all { " of " (number(view.all)) } ", those with the worst findings first" }
        (parts::left_out(view.left_out))
        (parts::filters(&route, filter, Offers { namespaces: Some(&view.namespaces), severity: true, fixable: true }))
        @if view.lines.is_empty() {
            (parts::nothing(filter, "No workload has a report yet. Workloads are reported once a WorkloadScanConfiguration selects their namespaces."))
        } @else {
            (table(&route, filter, parts::shown(&view.lines, filter), longest(&view.lines)))
            (parts::pager(&route, filter, &view.lines))
        }
    };
    Framed {
        title: "Workloads".into(),
        main,
    }
}

/// The most findings that a workload has.
pub(crate) fn longest(lines: &[Line]) -> usize {
    let totals = lines.iter().map(|line| line.counts.total());
    totals.max().unwrap_or_default()
}

fn table(route: &Route, filter: &Filter, lines: &[Line], longest: usize) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Workloads and their findings by severity" }
                thead {
                    tr {
                        (parts::heading(route, filter, "Workload", "name", ""))
                        (parts::heading(route, filter, "Namespace", "namespace", ""))
                        th scope="col" { "Images" }
                        (parts::count_headings(route, filter))
                        (parts::heading(route, filter, "Findings", "findings", "wide"))
                    }
                }
                tbody {
                    @for line in lines {
                        tr {
                            th scope="row" { (line.link()) }
                            td { (line.namespace) }
                            td class="images" {
                                @for image in line.images.iter().take(3) { span class="image" { (image) } }
                                @if line.images.len() > 3 { span class="quiet" { "+" (line.images.len() - 3) } }
                                @if line.scanned < line.containers {
                                    span class="state wait" { (line.scanned) " of " (some(line.containers, "container", "containers")) " scanned" }
                                }
                            }
                            (parts::count_cells(&line.counts))
                            td class="wide" { (chart::bar(&line.counts, longest)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, critical: usize, low: usize) -> Line {
        Line {
            namespace: "shop".into(),
            report: format!("deployment-{}", name.len()),
            kind: "Deployment".into(),
            name: name.into(),
            counts: Counts {
                critical,
                low,
                ..Counts::default()
            },
            images: vec!["app:1".into()],
            scanned: 1,
            containers: 2,
        }
    }

    #[test]
    fn the_worst_come_first_and_any_column_can() {
        let mut lines = [line("b", 0, 9), line("c", 2, 0), line("a", 2, 1)];
        for (column, expected) in [("", "acb"), ("name", "abc"), ("low", "bac"), ("odd", "acb")] {
            sort(&mut lines, column);
            let names: String = lines.iter().map(|line| line.name.as_str()).collect();
            assert_eq!(names, expected, "{column}");
        }
    }

    #[test]
    fn strange_names_are_text_and_nothing_else() {
        let strange = "<script>alert('x')</script>\"&";
        let mut hostile = line(strange, 1, 0);
        hostile.images = vec![strange.into(); 5];
        let view = View {
            lines: vec![hostile],
            all: 2,
            namespaces: vec![strange.into()],
            left_out: LeftOut {
                forbidden: true,
                unread: 3,
                broke_off: false,
            },
        };
        let filter = Filter {
            text: strange.into(),
            namespace: Some(strange.into()),
            ..Filter::default()
        };
        let page = draw(&view, &filter).main.into_string();
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("&lt;script&gt;"));
        assert!(page.contains("You may not read everything"));
        assert!(page.contains("3 reports are"));
    }

    #[test]
    fn an_empty_list_says_why() {
        let view = View {
            lines: Vec::new(),
            all: 0,
            namespaces: Vec::new(),
            left_out: LeftOut::default(),
        };
        let page = draw(&view, &Filter::default()).main.into_string();
        assert!(page.contains("WorkloadScanConfiguration"), "{page}");
        let narrow = Filter::read("severity=high");
        let page = draw(&view, &narrow).main.into_string();
        assert!(page.contains("matches the filter"), "{page}");
    }
}
