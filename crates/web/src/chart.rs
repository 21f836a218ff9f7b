//! Charts as SVG. Each says in words what it shows.

use crate::parts::{number, words};
use crate::upgrade::Counts;
use maud::{Markup, html};

/// What a chart of these counts says.
fn told(counts: &Counts) -> String {
    let counts = counts.each().into_iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = counts
        .map(|(count, severity)| format!("{count} {}", words(severity).0))
        .collect();
    match told.is_empty() {
        true => "none".into(),
        false => told.join(", "),
    }
}

/// A share of a hundred, rounded to a tenth.
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 / whole as f64 * 1000.0).round() / 10.0
}

/// A bar in parts by severity, as long as its share of the longest.
pub(crate) fn bar(counts: &Counts, longest: usize) -> Markup {
    let mut from = 0.0;
    let mut parts = Vec::new();
    for (count, severity) in counts.each() {
        let width = share(count, longest.max(1));
        if count > 0 {
            parts.push((from, width.max(0.4), words(severity).0));
        }
        from += width;
    }
    html! {
        svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=(told(counts)) {
            rect class="track" x="0" y="0" width="100" height="8" {}
            @for (from, width, class) in parts {
                rect class=(class) x=(from) y="0" width=(width) height="8" {}
            }
        }
    }
}

/// How far something has come.
pub(crate) fn progress(done: usize, failed: usize, all: usize) -> Markup {
    let told = format!("{done} of {all} done, {failed} failed");
    let (good, bad) = (share(done.saturating_sub(failed), all), share(failed, all));
    html! {
        svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label=(told) {
            rect class="track" x="0" y="0" width="100" height="8" {}
            rect class="good" x="0" y="0" width=(good) height="8" {}
            rect class="critical" x=(good) y="0" width=(bad) height="8" {}
        }
    }
}

/// A ring in parts by severity, with the sum in its middle.
pub(crate) fn ring(counts: &Counts) -> Markup {
    let whole = counts.total();
    let mut from = 0.0;
    let mut parts = Vec::new();
    for (count, severity) in counts.each() {
        let length = share(count, whole);
        if count > 0 {
            parts.push((-from, length, words(severity).0));
        }
        from += length;
    }
    html! {
        svg class="ring" viewBox="0 0 120 120" role="img" aria-label={ "Findings: " (told(counts)) } {
            circle class="track" cx="60" cy="60" r="48" {}
            g transform="rotate(-90 60 60)" {
                @for (offset, length, class) in parts {
                    circle class=(class) cx="60" cy="60" r="48" pathLength="100"
                        stroke-dasharray={ (length) " " (100.0 - length) } stroke-dashoffset=(offset) {}
                }
            }
            text class="sum" x="60" y="60" text-anchor="middle" { (number(whole)) }
            text class="unit" x="60" y="76" text-anchor="middle" { "findings" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_says_in_words_what_it_shows() {
        let counts = Counts {
            critical: 1,
            low: 3,
            ..Counts::default()
        };
        for chart in [bar(&counts, 8), ring(&counts)] {
            assert!(chart.into_string().contains("1 critical, 3 low"));
        }
        assert!(ring(&Counts::default()).into_string().contains("none"));
        let bar = bar(&counts, 8).into_string();
        assert!(
            bar.contains("width=\"12.5\"") && bar.contains("x=\"12.5\""),
            "{bar}"
        );
        assert!(progress(0, 0, 0).into_string().contains("width=\"0\""));
    }
}
