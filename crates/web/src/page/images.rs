//! The images: what is wrong with each.

use crate::address::{Filter, Route};
use crate::carrier::{self, Carrier, Users};
use crate::chart;
use crate::layout::Framed;
use crate::parts::{self, Offers, number, some};
use crate::read::{self, ReadError, Row};
use crate::reader::{LeftOut, Reader, Where};
use crate::upgrade::Counts;
use maud::html;
use std::collections::{BTreeMap, BTreeSet};

/// An image in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) platform: String,
    /// None if it is not scanned yet.
    pub(crate) counts: Option<Counts>,
}

impl Line {
    fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    pub(crate) fn route(&self) -> Route {
        Route::Image {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    pub(crate) fn of(row: &Row) -> Line {
        let image = match row.text("Reference") {
            "" => row.name.clone(),
            reference => reference.into(),
        };
        Line {
            namespace: row.namespace.clone(),
            name: row.name.clone(),
            image,
            platform: row.text("Platform").into(),
            counts: None,
        }
    }
}

/// The counts that a table of reports shows.
pub(crate) fn counts(row: &Row) -> Counts {
    let count = |column: &str| row.number(column).unwrap_or_default();
    Counts {
        critical: count("Critical"),
        high: count("High"),
        medium: count("Medium"),
        low: count("Low"),
        unknown: count("Unknown"),
    }
}

/// What the page shows.
pub(crate) struct View {
    lines: Vec<Line>,
    all: usize,
    namespaces: Vec<String>,
    left_out: LeftOut,
}

/// All images that may be read, scanned or not.
pub(crate) async fn lines(
    reader: &Reader,
) -> Result<(BTreeMap<(String, String), Line>, LeftOut), ReadError> {
    let (images, reports) = tokio::try_join!(
        reader.rows(read::IMAGES, Where::Anywhere),
        reader.rows(read::FINDINGS, Where::Anywhere),
    )?;
    let mut lines = BTreeMap::new();
    for row in &images.items {
        let line = Line::of(row);
        lines.insert(line.key(), line);
    }
    for row in &reports.items {
        let mut line = Line::of(row);
        line.counts = Some(counts(row));
        lines.insert(line.key(), line);
    }
    Ok((lines, images.left_out.and(reports.left_out)))
}

pub(crate) async fn load(reader: &Reader, filter: &Filter) -> Result<View, ReadError> {
    let (mut lines, mut left_out) = lines(reader).await?;
    let all = lines.len();
    if filter.namespace.is_some() || filter.fixable {
        let workloads = reader.workloads(Where::Chosen).await?;
        let carriers = carrier::all(reader, &workloads.items).await?;
        left_out = left_out.and(workloads.left_out).and(carriers.left_out);
        let users = Users::of(&workloads.items);
        let places = |is_meant: &dyn Fn(&Carrier) -> bool| -> BTreeSet<(String, String)> {
            let meant = carriers.items.iter().filter(|carrier| is_meant(carrier));
            meant
                .map(|carrier| (carrier.namespace.clone(), carrier.name.clone()))
                .collect()
        };
        if let Some(namespace) = &filter.namespace {
            let used = places(&|carrier| !users.at(&carrier.links).is_empty());
            lines.retain(|key, _| key.0 == *namespace || used.contains(key));
        }
        if filter.fixable {
            let fixable = places(&Carrier::is_fixable);
            lines.retain(|key, _| fixable.contains(key));
        }
    }
    let mut lines: Vec<Line> = lines.into_values().collect();
    lines.retain(|line| {
        filter.finds(&[&line.image, &line.platform, &line.namespace])
            && match (&line.counts, filter.severity) {
                (Some(counts), least) => parts::reaches(counts, least),
                (None, least) => least.is_none(),
            }
    });
    sort(&mut lines, &filter.sort);
    Ok(View {
        lines,
        all,
        namespaces: reader.namespaces().await?.to_vec(),
        left_out,
    })
}

fn sort(lines: &mut [Line], column: &str) {
    lines.sort_by(|a, b| {
        let (left, right) = (a.counts.unwrap_or_default(), b.counts.unwrap_or_default());
        let name = || (&a.image, &a.platform, &a.name).cmp(&(&b.image, &b.platform, &b.name));
        let order = match column {
            "name" => name(),
            "namespace" => a.namespace.cmp(&b.namespace),
            "high" => right.high.cmp(&left.high),
            "medium" => right.medium.cmp(&left.medium),
            "low" => right.low.cmp(&left.low),
            "unknown" => right.unknown.cmp(&left.unknown),
            "findings" => right.total().cmp(&left.total()),
            _ => std::cmp::Ordering::Equal,
        };
        order.then_with(|| right.cmp(&left)).then_with(name)
    });
}

pub(crate) fn draw(view: &View, filter: &Filter) -> Framed {
    let route = Route::Images;
    let totals = view.lines.iter().filter_map(|line| line.counts.as_ref());
    let longest = totals.map(Counts::total).max().unwrap_or_default();
    let main = html! {
        h1 { "Images" }
        p class="lead" { (some(view.lines.len(), "image", "images")) @if view.lines.len() != view.all { " of " (number(view.all)) } ", each platform by itself" }
        (parts::left_out(view.left_out))
        (parts::filters(&route, filter, Offers { namespaces: Some(&view.namespaces), severity: true, fixable: true }))
        @if view.lines.is_empty() {
            (parts::nothing(filter, "No image is known yet. A Registry says where to look, or a WorkloadScanConfiguration which workloads."))
        } @else {
            div class="scroll" {
                table {
                    caption class="hidden" { "Images and their findings by severity" }
                    thead { tr {
                        (parts::heading(&route, filter, "Image", "name", ""))
                        th scope="col" { "Platform" }
                        (parts::heading(&route, filter, "Kept in", "namespace", ""))
                        (parts::count_headings(&route, filter))
                        (parts::heading(&route, filter, "Findings", "findings", "wide"))
                    } }
                    tbody {
                        @for line in parts::shown(&view.lines, filter) {
                            tr {
                                th scope="row" class="image" { a href=(line.route().path()) { (line.image) } }
                                td { (line.platform) }
                                td { (line.namespace) }
                                @match &line.counts {
                                    Some(counts) => {
                                        (parts::count_cells(counts))
                                        td class="wide" { (chart::bar(counts, longest)) }
                                    }
                                    None => td colspan="6" { span class="state wait" { "not scanned yet" } },
                                }
                            }
                        }
                    }
                }
            }
            (parts::pager(&route, filter, &view.lines))
        }
    };
    Framed {
        title: "Images".into(),
        main,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_text_whether_it_is_scanned_or_not() {
        let strange = "<img src=x onerror=alert(1)>";
        let line = |counts| Line {
            namespace: "a".into(),
            name: "b".into(),
            image: strange.into(),
            platform: strange.into(),
            counts,
        };
        let view = View {
            lines: vec![line(None), line(Some(Counts::default()))],
            all: 2,
            namespaces: Vec::new(),
            left_out: LeftOut::default(),
        };
        let page = draw(&view, &Filter::default()).main.into_string();
        assert!(!page.contains("<img"), "{page}");
        assert!(page.contains("not scanned yet"), "{page}");
    }
}
