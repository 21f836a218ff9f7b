//! Search: workloads, images, vulnerabilities and policies that have a word in their names.

use super::{images, policies, vulnerabilities, workloads};
use crate::address::{Filter, Route};
use crate::audit;
use crate::carrier;
use crate::layout::Framed;
use crate::parts::{self, number};
use crate::read::ReadError;
use crate::reader::{LeftOut, Reader, Where};
use maud::{Markup, html};

/// So many of each sort are shown.
const MOST: usize = 20;

/// What the page shows.
#[derive(Default)]
pub(crate) struct View {
    workloads: Vec<workloads::Line>,
    images: Vec<images::Line>,
    vulnerabilities: Vec<vulnerabilities::Line>,
    policies: Vec<policies::Line>,
    left_out: LeftOut,
}

pub(crate) async fn load(reader: &Reader, filter: &Filter) -> Result<View, ReadError> {
    if filter.text.is_empty() {
        return Ok(View::default());
    }
    let workloads = reader.workloads(Where::Chosen).await?;
    let (carriers, (images, unread), audits) = tokio::try_join!(
        carrier::carriers(reader, &workloads.items),
        images::lines(reader),
        audit::audits(reader),
    )?;
    let left_out = workloads.left_out.and(carriers.left_out);
    let left_out = left_out.and(unread).and(audits.left_out);
    let mut found =
        vulnerabilities::count(&reader.stock.texts(), &carriers.items, &workloads.items);
    let texts = reader.stock.texts();
    let meant = reader.stock.meant(&filter.text).into_iter();
    let meant: Vec<&str> = meant
        .filter_map(|name| texts.get(name.0 as usize).map(|text| &**text))
        .collect();
    found.retain(|line| filter.finds(&[&line.id]) || meant.contains(&&*line.id));
    found.sort_by(|a, b| (b.workloads, b.severity, &b.id).cmp(&(a.workloads, a.severity, &a.id)));
    let lines = workloads.items.iter().map(workloads::Line::of);
    let mut lines: Vec<_> = lines.filter(|line| line.is_meant(filter)).collect();
    workloads::sort(&mut lines, "");
    let images = images.into_values();
    let images = images.filter(|line| filter.finds(&[&line.image])).collect();
    let mut policies = policies::count(&audits.items);
    policies.retain(|line| filter.finds(&[&line.id, &line.title]));
    Ok(View {
        workloads: lines,
        images,
        vulnerabilities: found,
        policies,
        left_out,
    })
}

pub(crate) fn draw(view: &View, filter: &Filter) -> Framed {
    let is_empty = view.workloads.is_empty()
        && view.images.is_empty()
        && view.vulnerabilities.is_empty()
        && view.policies.is_empty();
    let main = html! {
        h1 { "Search" @if !filter.text.is_empty() { ": " (filter.text) } }
        (parts::left_out(view.left_out))
        @if filter.text.is_empty() {
            p class="empty" { "Say what to look for, above: a part of the name of a workload, an image, a vulnerability or a policy." }
        } @else if is_empty {
            p class="empty" { "Nothing that you may see is called so." }
        }
        (part("Workloads", view.workloads.len(), &Route::Workloads, filter, html! {
            @for line in view.workloads.iter().take(MOST) { li { (line.link()) " in " (line.namespace) } }
        }))
        (part("Images", view.images.len(), &Route::Images, filter, html! {
            @for line in view.images.iter().take(MOST) { li class="image" { a href=(line.route().path()) { (line.image) } " " span class="quiet" { (line.platform) } } }
        }))
        (part("Vulnerabilities", view.vulnerabilities.len(), &Route::Vulnerabilities, filter, html! {
            @for line in view.vulnerabilities.iter().take(MOST) { li { (parts::vulnerability(&line.id)) " " (parts::severity(line.severity)) " " (vulnerabilities::marks(line)) } }
        }))
        (part("Policies and checks", view.policies.len(), &Route::Policies, filter, html! {
            @for line in view.policies.iter().take(MOST) {
                li { a href=(Route::Policy { family: line.family, id: line.id.clone() }.path()) { (line.id) } " " (parts::severity(line.severity)) " " span class="quiet" { (line.title) } }
            }
        }))
    };
    Framed {
        title: "Search".into(),
        main,
    }
}

fn part(title: &str, count: usize, all: &Route, filter: &Filter, items: Markup) -> Markup {
    html! {
        @if count > 0 {
            section class="card" {
                h2 { (title) " " span class="quiet" { (number(count)) } }
                ul class="plain" { (items) }
                @if count > MOST { p { a href={ (all.path()) (filter.query()) } { "All of them" } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_searched_for_is_text_and_finding_nothing_is_said() {
        let filter = Filter::read("q=%3Cscript%3E");
        let page = draw(&View::default(), &filter).main.into_string();
        assert!(page.contains("Nothing that you may see"), "{page}");
        assert!(!page.contains("<script"), "{page}");
        let page = draw(&View::default(), &Filter::default())
            .main
            .into_string();
        assert!(page.contains("Say what to look for"), "{page}");
    }
}
