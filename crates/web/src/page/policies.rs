//! Policies and checks: which there are, and how many resources fail each.

use crate::address::{Filter, Route};
use crate::audit::{self, Audit, Family};
use crate::layout::Framed;
use crate::parts::{self, Offers, number, some};
use crate::read::{ReadError, Resource};
use crate::reader::{LeftOut, Reader, Where};
use maud::{Markup, html};
use muster_api::policies;
use muster_scan::vulnerability::Severity;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kinds of policies, and where they are.
const KINDS: [(&str, &str, Where); 4] = [
    ("clusteradmissionpolicies", "Cluster policy", Where::Cluster),
    (
        "clusteradmissionpolicygroups",
        "Cluster group",
        Where::Cluster,
    ),
    ("admissionpolicies", "Policy", Where::Chosen),
    ("admissionpolicygroups", "Group", Where::Chosen),
];

/// Something that resources fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) family: Family,
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) severity: Severity,
    /// How many resources fail it.
    pub(crate) failing: usize,
    /// How many could not be judged.
    pub(crate) errors: usize,
}

/// Counts by what fails, the worst first.
pub(crate) fn count(audits: &[Arc<Audit>]) -> Vec<Line> {
    let mut lines: BTreeMap<(Family, &str), (Line, usize)> = BTreeMap::new();
    for (at, audit) in audits.iter().enumerate() {
        for failure in &audit.failures {
            let (line, last) = lines
                .entry((failure.family, &failure.id))
                .or_insert_with(|| {
                    let line = Line {
                        family: failure.family,
                        id: failure.id.clone(),
                        title: failure.title.clone(),
                        severity: failure.severity,
                        failing: 0,
                        errors: 0,
                    };
                    (line, 0)
                });
            line.severity = line.severity.max(failure.severity);
            // A resource counts once, however many of its parts fail.
            if *last != at + 1 {
                *last = at + 1;
                match failure.is_error {
                    true => line.errors += 1,
                    false => line.failing += 1,
                }
            }
        }
    }
    let mut lines: Vec<Line> = lines.into_values().map(|(line, _)| line).collect();
    lines.sort_by(|a, b| {
        let bad = |line: &Line| (line.severity, line.failing, line.errors);
        bad(b).cmp(&bad(a)).then_with(|| a.id.cmp(&b.id))
    });
    lines
}

/// A policy that is there.
struct Policy {
    kind: &'static str,
    namespace: String,
    name: String,
    mode: String,
    status: String,
    audit: String,
}

/// What the page shows.
pub(crate) struct View {
    lines: Vec<Line>,
    policies: Vec<Policy>,
    namespaces: Vec<String>,
    left_out: LeftOut,
}

pub(crate) async fn load(reader: &Reader, filter: &Filter) -> Result<View, ReadError> {
    let audits = audit::audits(reader).await?;
    let mut left_out = audits.left_out;
    let mut lines = count(&audits.items);
    lines.retain(|line| {
        filter.finds(&[&line.id, &line.title])
            && filter.severity.is_none_or(|least| line.severity >= least)
    });
    sort(&mut lines, &filter.sort);
    let mut policies = Vec::new();
    for (plural, kind, which) in KINDS {
        let resource = Resource {
            group: policies::GROUP,
            version: policies::VERSION,
            plural,
        };
        let rows = reader.rows(resource, which).await?;
        left_out = left_out.and(rows.left_out);
        let rows = rows.items.into_iter();
        let rows = rows.filter(|row| filter.finds(&[&row.name, &row.namespace]));
        policies.extend(rows.map(|row| Policy {
            kind,
            mode: row.text("Mode").into(),
            status: row.text("Status").into(),
            audit: row.text("Audit").into(),
            namespace: row.namespace,
            name: row.name,
        }));
    }
    Ok(View {
        lines,
        policies,
        namespaces: reader.namespaces().await?.to_vec(),
        left_out,
    })
}

fn sort(lines: &mut [Line], column: &str) {
    match column {
        "name" => lines.sort_by(|a, b| a.id.cmp(&b.id)),
        "failing" => lines.sort_by_key(|line| std::cmp::Reverse(line.failing)),
        _ => {}
    }
}

pub(crate) fn draw(view: &View, filter: &Filter) -> Framed {
    let route = Route::Policies;
    let main = html! {
        h1 { "Policies and checks" }
        p class="lead" { (some(view.lines.len(), "policy or check fails", "policies and checks fail")) " for some resource" }
        (parts::left_out(view.left_out))
        (parts::filters(&route, filter, Offers { namespaces: Some(&view.namespaces), severity: true, fixable: false }))
        section aria-labelledby="failing" {
            h2 id="failing" { "Failing" }
            @if view.lines.is_empty() { (parts::nothing(filter, "Nothing fails.")) } @else {
                (table(&route, filter, parts::shown(&view.lines, filter)))
                (parts::pager(&route, filter, &view.lines))
            }
        }
        section aria-labelledby="policies" {
            h2 id="policies" { "Policies " span class="quiet" { (number(view.policies.len())) } }
            (policies_table(&view.policies, filter))
        }
    };
    Framed {
        title: "Policies and checks".into(),
        main,
    }
}

fn table(route: &Route, filter: &Filter, lines: &[Line]) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Policies and checks that fail" }
                thead { tr {
                    (parts::heading(route, filter, "Severity", "severity", ""))
                    (parts::heading(route, filter, "Policy or check", "name", ""))
                    th scope="col" { "Sort" }
                    (parts::heading(route, filter, "Resources that fail", "failing", "count"))
                    th scope="col" class="count" { "Not judged" }
                } }
                tbody {
                    @for line in lines {
                        tr {
                            td { (parts::severity(line.severity)) }
                            th scope="row" {
                                a href={ (Route::Policy { family: line.family, id: line.id.clone() }.path()) (filter.namespace_only().query()) } { (line.id) }
                                @if line.title != line.id { div class="quiet" { (line.title) } }
                            }
                            td { (line.family.word()) }
                            td class="count" { (number(line.failing)) }
                            td class="count" { (number(line.errors)) }
                        }
                    }
                }
            }
        }
    }
}

fn policies_table(policies: &[Policy], filter: &Filter) -> Markup {
    html! {
        @if policies.is_empty() { (parts::nothing(filter, "There is no policy. Checks of configuration need none.")) } @else {
            div class="scroll" {
                table {
                    caption class="hidden" { "Policies" }
                    thead { tr { th scope="col" { "Policy" } th scope="col" { "Sort" } th scope="col" { "Namespace" } th scope="col" { "Mode" } th scope="col" { "Status" } th scope="col" { "Judges what is there" } } }
                    tbody {
                        @for policy in policies.iter().take(5 * parts::ROWS) {
                            tr {
                                th scope="row" { (policy.name) }
                                td { (policy.kind) }
                                td { (policy.namespace) }
                                td { (policy.mode) }
                                td { (policy.status) }
                                td { (judges(&policy.audit)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn judges(audit: &str) -> Markup {
    html! {
        @match audit {
            "True" => span class="state good" { "yes" },
            "False" => span class="state bad" { "no" },
            "" => span class="quiet" { "not known yet" },
            other => (other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Failure;

    fn failure(id: &str, severity: Severity, is_error: bool) -> Failure {
        Failure {
            family: Family::Check,
            id: id.into(),
            title: "<b>".into(),
            severity,
            is_error,
            message: String::new(),
            remediation: String::new(),
            part: String::new(),
        }
    }

    #[test]
    fn a_resource_counts_once_for_what_it_fails() {
        let audit = |failures: Vec<Failure>| {
            Arc::new(Audit {
                failures,
                ..Audit::default()
            })
        };
        let lines = count(&[
            audit(vec![
                failure("a", Severity::Low, false),
                failure("a", Severity::Low, false),
                failure("b", Severity::High, false),
            ]),
            audit(vec![failure("a", Severity::Low, true)]),
        ]);
        let told: Vec<_> = lines
            .iter()
            .map(|line| (line.id.as_str(), line.failing, line.errors))
            .collect();
        assert_eq!(told, [("b", 1, 0), ("a", 1, 1)]);
        let view = View {
            lines,
            policies: Vec::new(),
            namespaces: Vec::new(),
            left_out: LeftOut::default(),
        };
        let page = draw(&view, &Filter::default()).main.into_string();
        assert!(
            page.contains("&lt;b&gt;") && !page.contains("<b>"),
            "{page}"
        );
    }
}
