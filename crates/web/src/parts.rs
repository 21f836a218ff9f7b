//! What pages are put together from. Whatever is shown comes from strangers: text is escaped by the
//! templates, and an address that leads out is a link only if it is one of the web. A severity is always
//! a word or stands under one, never a colour alone.

use crate::address::{Filter, Route};
use crate::reader::LeftOut;
use crate::upgrade::Counts;
use jiff::Timestamp;
use maud::{Markup, html};
use muster_scan::vulnerability::Severity;

/// So many rows are shown at a time.
pub(crate) const ROWS: usize = 100;

/// Severities from the worst.
pub(crate) const WORST_FIRST: [Severity; 5] = [
    Severity::Critical,
    Severity::High,
    Severity::Medium,
    Severity::Low,
    Severity::Unknown,
];

/// What a severity is called, in styles and in words.
pub(crate) fn words(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Critical => ("critical", "Critical"),
        Severity::High => ("high", "High"),
        Severity::Medium => ("medium", "Medium"),
        Severity::Low => ("low", "Low"),
        Severity::Unknown => ("unknown", "Unknown"),
    }
}

/// A severity as a label.
pub(crate) fn severity(severity: Severity) -> Markup {
    let (class, word) = words(severity);
    html! { span class={ "severity " (class) } { (word) } }
}

/// The cells of a row for each severity.
pub(crate) fn count_cells(counts: &Counts) -> Markup {
    html! {
        @for (count, severity) in counts.each() {
            @let (class, _) = words(severity);
            td class={ "count " (if count > 0 { class } else { "none" }) } { (number(count)) }
        }
    }
}

/// The headings above them.
pub(crate) fn count_headings(route: &Route, filter: &Filter) -> Markup {
    html! {
        @for (severity, key) in WORST_FIRST.into_iter().zip(["critical", "high", "medium", "low", "unknown"]) {
            (heading(route, filter, words(severity).1, key, "count"))
        }
    }
}

/// The heading of a column that can be sorted by.
pub(crate) fn heading(
    route: &Route,
    filter: &Filter,
    title: &str,
    key: &str,
    class: &str,
) -> Markup {
    let is_sorted = filter.sort == key;
    let sorted = Filter {
        sort: if is_sorted { String::new() } else { key.into() },
        page: 0,
        ..filter.clone()
    };
    let address = format!("{}{}", route.path(), sorted.query());
    let order = if matches!(key, "name" | "namespace" | "kind") {
        "ascending"
    } else {
        "descending"
    };
    html! {
        th scope="col" class=(class) aria-sort=[is_sorted.then_some(order)] {
            a href=(address) { (title) }
        }
    }
}

/// A number that people can read.
pub(crate) fn number(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A number of things.
pub(crate) fn some(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// A link to another site, if it leads to one; else the text.
pub(crate) fn outward(address: &str) -> Markup {
    let is_web = ["https://", "http://"].iter().any(|scheme| {
        let start = address.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    html! {
        @if is_web {
            a href=(address) rel="noopener noreferrer nofollow external" { (address) }
        } @else {
            (address)
        }
    }
}

/// A vulnerability, as a link to its page.
pub(crate) fn vulnerability(id: &str) -> Markup {
    vulnerability_in(id, "")
}

/// The same, of what a query narrows the page to.
pub(crate) fn vulnerability_in(id: &str, narrow: &str) -> Markup {
    html! { a class="id" href={ (Route::Vulnerability(id.into()).path()) (narrow) } { (id) } }
}

/// How long ago something was.
pub(crate) fn ago(when: Option<&str>, now: Timestamp) -> Markup {
    let parsed = when.and_then(|when| when.parse::<Timestamp>().ok());
    let Some(then) = parsed else {
        return html! { (when.unwrap_or("–")) };
    };
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    let text = match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    };
    html! { time datetime=(when.unwrap_or_default()) { (text) } }
}

/// Says what is not shown.
pub(crate) fn left_out(left_out: LeftOut) -> Markup {
    html! {
        @if left_out.forbidden {
            p class="notice" {
                "You may not read everything: this page shows what you may. "
                "If you know a namespace that you may look into, choose it by "
                code { "?namespace=…" } " in the address."
            }
        }
        @if left_out.unread > 0 || left_out.broke_off {
            p class="notice" data-more {
                "There is more than could be read at once"
                @if left_out.unread > 0 { ": " (some(left_out.unread, "report is", "reports are")) " missing" }
                ". It is being read; look again in a moment."
            }
        }
    }
}

/// Which part of the rows is shown.
pub(crate) fn page_of<T>(rows: &[T], filter: &Filter) -> usize {
    let last = rows.len().saturating_sub(1) / ROWS;
    filter.page.min(last)
}

/// The rows of that part.
pub(crate) fn shown<'r, T>(rows: &'r [T], filter: &Filter) -> &'r [T] {
    let from = page_of(rows, filter) * ROWS;
    let to = (from + ROWS).min(rows.len());
    rows.get(from..to).unwrap_or_default()
}

/// The way to the other parts.
pub(crate) fn pager<T>(route: &Route, filter: &Filter, rows: &[T]) -> Markup {
    let page = page_of(rows, filter);
    let last = rows.len().saturating_sub(1) / ROWS;
    let to = |page: usize| {
        let filter = Filter {
            page,
            ..filter.clone()
        };
        format!("{}{}", route.path(), filter.query())
    };
    html! {
        @if last > 0 {
            nav class="pager" aria-label="Pages" {
                @if page > 0 { a href=(to(page - 1)) rel="prev" { "← Previous" } }
                span { "Page " (number(page + 1)) " of " (number(last + 1)) " · " (some(rows.len(), "row", "rows")) }
                @if page < last { a href=(to(page + 1)) rel="next" { "Next →" } }
            }
        }
    }
}

/// What a form of filters offers beside the text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Offers<'o> {
    pub(crate) namespaces: Option<&'o [String]>,
    pub(crate) severity: bool,
    pub(crate) fixable: bool,
}

/// The form that narrows a list.
pub(crate) fn filters(route: &Route, filter: &Filter, offers: Offers) -> Markup {
    html! {
        form class="filters" method="get" action=(route.path()) role="search" aria-label="Filter" {
            @if let Some(namespaces) = offers.namespaces {
                label { "Namespace "
                    @if namespaces.is_empty() {
                        input type="text" name="namespace" value=(filter.namespace.as_deref().unwrap_or_default()) placeholder="all";
                    } @else {
                        select name="namespace" {
                            option value="" { "All" }
                            @for name in namespaces {
                                option value=(name) selected[filter.namespace.as_deref() == Some(name)] { (name) }
                            }
                            @if let Some(chosen) = &filter.namespace {
                                @if !namespaces.contains(chosen) { option value=(chosen) selected { (chosen) } }
                            }
                        }
                    }
                }
            }
            @if offers.severity {
                label { "Severity "
                    select name="severity" {
                        option value="" { "Any" }
                        @for severity in WORST_FIRST {
                            @let (value, word) = words(severity);
                            option value=(value) selected[filter.severity == Some(severity)] {
                                (word) @if severity != Severity::Critical { " or worse" }
                            }
                        }
                    }
                }
            }
            label { "Text " input type="search" name="q" value=(filter.text) autocomplete="off"; }
            @if offers.fixable {
                label class="check" { input type="checkbox" name="fixable" value="yes" checked[filter.fixable]; " Fixable" }
            }
            @if !filter.sort.is_empty() { input type="hidden" name="sort" value=(filter.sort); }
            @if !filter.show.is_empty() { input type="hidden" name="show" value=(filter.show); }
            button type="submit" { "Apply" }
            @if filter.is_narrow() {
                @let all = Filter { sort: filter.sort.clone(), show: filter.show.clone(), ..Filter::default() };
                a class="clear" href={ (route.path()) (all.query()) } { "Clear" }
            }
        }
    }
}

/// A page or part without anything to show.
pub(crate) fn nothing(filter: &Filter, otherwise: &str) -> Markup {
    html! {
        p class="empty" {
            @if filter.is_narrow() { "Nothing here matches the filter." } @else { (otherwise) }
        }
    }
}

/// Whether counts have something so bad.
pub(crate) fn reaches(counts: &Counts, least: Option<Severity>) -> bool {
    let Some(least) = least else {
        return true;
    };
    let mut counts = counts.each().into_iter();
    counts.any(|(count, severity)| count > 0 && severity >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_of_the_web_is_a_link() {
        for (address, is_link) in [
            ("https://example.org/a?b=\"c", true),
            ("HTTP://example.org", true),
            ("javascript:alert(1)", false),
            ("data:text/html,<script>", false),
            ("//example.org", false),
            ("", false),
            ("httpsé", false),
        ] {
            let shown = outward(address).into_string();
            assert_eq!(shown.starts_with("<a "), is_link, "{shown}");
            assert!(!shown.contains("<script"), "{shown}");
        }
    }

    #[test]
    fn numbers_and_times_are_readable() {
        assert_eq!(number(0), "0");
        assert_eq!(number(1234), "1\u{202f}234");
        assert_eq!(number(1_234_567), "1\u{202f}234\u{202f}567");
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        for (when, told) in [
            ("2026-01-01T23:59:30Z", "just now"),
            ("2026-01-01T23:00:01Z", "59 min ago"),
            ("2025-12-31T23:00:00Z", "1 d ago"),
            ("2027-01-01T00:00:00Z", "just now"),
            ("<b>", "&lt;b&gt;"),
        ] {
            let text = ago(Some(when), now).into_string();
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn a_page_beyond_the_last_is_the_last() {
        let rows: Vec<usize> = (0..250).collect();
        let at = |page| Filter {
            page,
            ..Filter::default()
        };
        assert_eq!(shown(&rows, &at(0)).len(), 100);
        assert_eq!(shown(&rows, &at(2)), &rows[200..]);
        assert_eq!(shown(&rows, &at(9)), &rows[200..]);
        assert_eq!(shown(&rows[..0], &at(3)), &rows[..0]);
    }
}
