//! One policy or check: which resources fail it, and why.

use crate::address::{Filter, Route};
use crate::audit::{self, Audit, Failure, Family};
use crate::layout::Framed;
use crate::parts::{self, Offers, some};
use crate::read::ReadError;
use crate::reader::{LeftOut, Reader};
use maud::html;
use std::sync::Arc;

/// What the page shows.
pub(crate) struct View {
    family: Family,
    id: String,
    /// Each resource with what it fails.
    rows: Vec<(Arc<Audit>, Failure)>,
    namespaces: Vec<String>,
    left_out: LeftOut,
}

pub(crate) async fn load(
    reader: &Reader,
    family: Family,
    id: &str,
    filter: &Filter,
) -> Result<View, ReadError> {
    let audits = audit::audits(reader).await?;
    let mut rows = Vec::new();
    for audit in audits.items {
        if !filter.finds(&[&audit.name, &audit.kind, &audit.namespace]) {
            continue;
        }
        let failures = audit.failures.iter();
        let failures = failures.filter(|failure| failure.family == family && failure.id == id);
        let failures: Vec<Failure> = failures.cloned().collect();
        rows.extend(failures.into_iter().map(|failure| (audit.clone(), failure)));
    }
    rows.sort_by(|(a, left), (b, right)| {
        (&a.namespace, &a.kind, &a.name, &left.part).cmp(&(
            &b.namespace,
            &b.kind,
            &b.name,
            &right.part,
        ))
    });
    Ok(View {
        family,
        id: id.into(),
        rows,
        namespaces: reader.namespaces().await?.to_vec(),
        left_out: audits.left_out,
    })
}

pub(crate) fn draw(view: &View, filter: &Filter) -> Framed {
    let route = Route::Policy {
        family: view.family,
        id: view.id.clone(),
    };
    let first = view.rows.first().map(|(_, failure)| failure);
    let main = html! {
        p class="crumbs" { a href=(Route::Policies.path()) { "Policies and checks" } }
        h1 { (view.id) @if let Some(first) = first { " " (parts::severity(first.severity)) } }
        @if let Some(first) = first {
            @if first.title != view.id { p class="headline" { (first.title) } }
            @if !first.remediation.is_empty() { p class="prose" { (first.remediation) } }
        }
        (parts::left_out(view.left_out))
        (parts::filters(&route, filter, Offers { namespaces: Some(&view.namespaces), ..Offers::default() }))
        @if view.rows.is_empty() { (parts::nothing(filter, "No resource that you may see fails it.")) } @else {
            p class="lead" { (some(view.rows.len(), "place fails it", "places fail it")) }
            div class="scroll" {
                table {
                    caption class="hidden" { "Resources that fail it" }
                    thead { tr { th scope="col" { "Resource" } th scope="col" { "Namespace" } th scope="col" { "What is wrong" } } }
                    tbody {
                        @for (audit, failure) in parts::shown(&view.rows, filter) {
                            tr {
                                th scope="row" { (audit.name) " " span class="quiet" { (audit.kind) } }
                                td { (audit.namespace) }
                                td {
                                    @if failure.is_error { span class="state wait" { "not judged" } " " }
                                    (failure.message)
                                    @if !failure.part.is_empty() { " " span class="quiet" { "(" (failure.part) ")" } }
                                }
                            }
                        }
                    }
                }
            }
            (parts::pager(&route, filter, &view.rows))
        }
    };
    Framed {
        title: view.id.clone(),
        main,
    }
}
