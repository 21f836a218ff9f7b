//! The vulnerabilities: how bad each is, and how many have it.

use crate::address::{Filter, Route};
use crate::carrier::{self, Carrier, Users};
use crate::layout::Framed;
use crate::parts::{self, Offers, number, some};
use crate::read::ReadError;
use crate::reader::{LeftOut, Reader, Where};
use crate::workload::Workload;
use maud::{Markup, html};
use muster_scan::vulnerability::Severity;
use std::sync::Arc;

/// A vulnerability in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) id: Arc<str>,
    pub(crate) severity: Severity,
    pub(crate) fixable: bool,
    /// Everybody who has it declared it harmless.
    pub(crate) suppressed: bool,
    pub(crate) exploited: bool,
    /// How many images have it.
    pub(crate) images: usize,
    /// How many workloads have it.
    pub(crate) workloads: usize,
}

/// Counts who has what. Suppressed ones count only where nobody else has it.
pub(crate) fn count(
    texts: &[Arc<str>],
    carriers: &[Arc<Carrier>],
    workloads: &[Workload],
) -> Vec<Line> {
    #[derive(Clone, Default)]
    struct Tally {
        severity: Severity,
        fixable: bool,
        harmful: bool,
        exploited: bool,
        images: usize,
        workloads: usize,
        /// The last workload that was counted, so that each counts once.
        last: usize,
    }
    let mut tallies = vec![Tally::default(); texts.len()];
    let users = Users::of(workloads);
    let mut carried: Vec<Vec<&Carrier>> = vec![Vec::new(); workloads.len()];
    for carrier in carriers {
        for brief in &carrier.found {
            let Some(tally) = tallies.get_mut(brief.cve.0 as usize) else {
                continue;
            };
            tally.images += 1;
            tally.severity = tally.severity.max(brief.severity);
            tally.fixable |= brief.fixable;
            tally.harmful |= !brief.suppressed;
            tally.exploited |= brief.exploited;
        }
        for user in users.at(&carrier.links) {
            if let Some(carried) = carried.get_mut(user) {
                carried.push(carrier);
            }
        }
    }
    for (at, carried) in carried.into_iter().enumerate() {
        let briefs = carried.into_iter().flat_map(|carrier| &carrier.found);
        for brief in briefs.filter(|brief| !brief.suppressed) {
            let Some(tally) = tallies.get_mut(brief.cve.0 as usize) else {
                continue;
            };
            if tally.last != at + 1 {
                tally.last = at + 1;
                tally.workloads += 1;
            }
        }
    }
    let lines = tallies
        .into_iter()
        .zip(texts)
        .filter(|(tally, _)| tally.images > 0);
    let lines = lines.map(|(tally, id)| Line {
        id: id.clone(),
        severity: tally.severity,
        fixable: tally.fixable,
        suppressed: !tally.harmful,
        exploited: tally.exploited,
        images: tally.images,
        workloads: tally.workloads,
    });
    lines.collect()
}

/// What the page shows.
pub(crate) struct View {
    lines: Vec<Line>,
    all: usize,
    namespaces: Vec<String>,
    left_out: LeftOut,
}

pub(crate) async fn load(reader: &Reader, filter: &Filter) -> Result<View, ReadError> {
    let workloads = reader.workloads(Where::Chosen).await?;
    let carriers = carrier::carriers(reader, &workloads.items).await?;
    let mut lines = count(&reader.stock.texts(), &carriers.items, &workloads.items);
    let all = lines.len();
    lines.retain(|line| {
        filter.finds(&[&line.id])
            && filter.severity.is_none_or(|least| line.severity >= least)
            && (!filter.fixable || line.fixable)
    });
    sort(&mut lines, &filter.sort);
    Ok(View {
        lines,
        all,
        namespaces: reader.namespaces().await?.to_vec(),
        left_out: workloads.left_out.and(carriers.left_out),
    })
}

fn sort(lines: &mut [Line], column: &str) {
    let bad = |line: &Line| (!line.suppressed, line.severity, line.exploited);
    let spread = |line: &Line| (line.workloads, line.images);
    lines.sort_by(|a, b| {
        let order = match column {
            "name" => a.id.cmp(&b.id),
            "workloads" => spread(b).cmp(&spread(a)),
            "images" => b.images.cmp(&a.images),
            _ => std::cmp::Ordering::Equal,
        };
        order
            .then_with(|| bad(b).cmp(&bad(a)))
            .then_with(|| spread(b).cmp(&spread(a)))
            .then_with(|| b.id.cmp(&a.id))
    });
}

/// What is special about a vulnerability.
pub(crate) fn marks(line: &Line) -> Markup {
    html! {
        @if line.exploited { span class="state bad" { "exploited" } " " }
        @if line.suppressed { span class="state" { "suppressed" } }
        @else if line.fixable { span class="state good" { "fixable" } }
        @else { span class="quiet" { "no fix" } }
    }
}

pub(crate) fn draw(view: &View, filter: &Filter) -> Framed {
    let route = Route::Vulnerabilities;
    let narrow = filter.namespace_only().query();
    let main = html! {
        h1 { "Vulnerabilities" }
        p class="lead" { (some(view.lines.len(), "vulnerability", "vulnerabilities")) @if view.lines.len() != view.all { " of " (number(view.all)) } " in the images that are known" }
        (parts::left_out(view.left_out))
        (parts::filters(&route, filter, Offers { namespaces: Some(&view.namespaces), severity: true, fixable: true }))
        @if view.lines.is_empty() {
            (parts::nothing(filter, "Nothing has been found."))
        } @else {
            div class="scroll" {
                table {
                    caption class="hidden" { "Vulnerabilities and who has them" }
                    thead { tr {
                        (parts::heading(&route, filter, "Vulnerability", "name", ""))
                        (parts::heading(&route, filter, "Severity", "severity", ""))
                        th scope="col" { "State" }
                        (parts::heading(&route, filter, "Workloads", "workloads", "count"))
                        (parts::heading(&route, filter, "Images", "images", "count"))
                    } }
                    tbody {
                        @for line in parts::shown(&view.lines, filter) {
                            tr {
                                th scope="row" { (parts::vulnerability_in(&line.id, &narrow)) }
                                td { (parts::severity(line.severity)) }
                                td { (marks(line)) }
                                td class="count" { (number(line.workloads)) }
                                td class="count" { (number(line.images)) }
                            }
                        }
                    }
                }
            }
            (parts::pager(&route, filter, &view.lines))
        }
    };
    Framed {
        title: "Vulnerabilities".into(),
        main,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Brief;
    use crate::stock::Name;
    use serde_json::json;

    fn workload(tags: &[&str]) -> Workload {
        let containers = tags.iter().map(|tag| {
            json!({"name": tag, "imageRef": {
                "registry": "hub", "namespace": "art", "repository": "app", "tag": tag,
            }})
        });
        let containers = serde_json::Value::from_iter(containers);
        let report = json!({"metadata": {"name": "w"}, "spec": {"containers": containers}});
        serde_json::from_value(report).unwrap()
    }

    fn carrier(tag: &str, found: &[(u32, bool)]) -> Arc<Carrier> {
        let found = found.iter().map(|(cve, suppressed)| Brief {
            cve: Name(*cve),
            severity: Severity::High,
            fixable: !suppressed,
            suppressed: *suppressed,
            exploited: false,
        });
        Arc::new(Carrier {
            namespace: "art".into(),
            name: tag.into(),
            image: tag.into(),
            platform: String::new(),
            links: vec![format!("art/hub/app:{tag}")],
            found: found.collect(),
        })
    }

    #[test]
    fn a_workload_counts_once_and_not_at_all_where_it_is_suppressed() {
        let texts: Vec<Arc<str>> = vec!["CVE-1".into(), "CVE-2".into(), "CVE-3".into()];
        let carriers = [
            carrier("1", &[(0, false), (1, true)]),
            carrier("2", &[(0, false)]),
            carrier("unused", &[(0, false)]),
        ];
        let workloads = [workload(&["1", "2"]), workload(&["1"])];
        let lines = count(&texts, &carriers, &workloads);
        let told: Vec<_> = lines
            .iter()
            .map(|line| (&*line.id, line.workloads, line.images, line.suppressed))
            .collect();
        assert_eq!(told, [("CVE-1", 2, 3, false), ("CVE-2", 0, 1, true)]);
    }
}
