//! Charts as SVG. Each says in words what it shows.

use crate::history::Step;
use crate::parts::{self, number, some, words};
use crate::upgrade::Counts;
use jiff::Timestamp;
use maud::{Markup, html};
use muster_scan::vulnerability::Severity;
use std::fmt::Write;

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

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// A chart over time ends with the quarter of an hour, so that it looks the same for a while.
const QUARTER: i64 = HOUR / 4;
/// It shows so much at most.
const LONGEST: i64 = 90 * DAY;
/// How far apart its ends are; steps that are closer than one are one.
const WIDE: i64 = 500;

/// Findings over time, one severity on top of the other, the worst at the bottom.
pub(crate) fn over_time(steps: &[Step], now: Timestamp) -> Markup {
    let Some(first) = steps.first() else {
        return html! {
            p class="empty" { "Nothing has been noted yet; that begins when what runs has been scanned." }
        };
    };
    let end = (now.as_second().div_euclid(QUARTER) + 1) * QUARTER;
    let start = first.time.max(end - LONGEST).min(end - HOUR);
    let drawn = drawn(steps, start, end);
    let most = drawn.iter().map(|(_, counts)| counts.total()).max();
    let most = most.unwrap_or_default();
    // What never changed is a band with air above it, and no wall.
    let top = most + most.div_ceil(4);
    let shown = |step: Option<&(i64, Counts)>| step.map_or_else(String::new, |step| told(&step.1));
    let label = format!(
        "Findings since {}: at first {}; at most {}; now {}",
        day(start, LONGEST),
        shown(drawn.first()),
        number(most),
        shown(drawn.last())
    );
    let severities = Counts::default().each().into_iter().enumerate();
    let areas: Vec<(String, Severity)> = severities
        .filter(|(place, _)| drawn.iter().any(|(_, counts)| at(counts, *place) > 0))
        .map(|(place, (_, severity))| (area(&drawn, place, top), severity))
        .collect();
    let span = end - start;
    html! {
        figure class="timeline" {
            figcaption {
                @for (_, severity) in &areas { (parts::severity(*severity)) " " }
                span class="quiet" { (some(most, "finding", "findings")) " at most" }
            }
            svg class="steps" viewBox={ "0 0 " (WIDE) " 100" } preserveAspectRatio="none" role="img" aria-label=(label) {
                rect class="track" x="0" y="0" width=(WIDE) height="100" {}
                // What is drawn later hides all but the top of what was drawn before.
                @for (path, severity) in areas.iter().rev() {
                    path class=(words(*severity).0) d=(path) {}
                }
            }
            div class="axis quiet" aria-hidden="true" {
                span { (day(start, span)) } span { (day(start + span / 2, span)) } span { "now" }
            }
        }
    }
}

/// Where steps begin in the chart, and what each shows; of those in one place the last.
fn drawn(steps: &[Step], start: i64, end: i64) -> Vec<(i64, Counts)> {
    let mut drawn: Vec<(i64, Counts)> = Vec::new();
    for step in steps {
        let x = (step.time.clamp(start, end) - start) * WIDE / (end - start);
        match drawn.last_mut().filter(|last| last.0 == x) {
            Some(last) => last.1 = step.counts,
            None => drawn.push((x, step.counts)),
        }
    }
    drawn
}

/// How many findings have a severity, by its place from the worst on.
fn at(counts: &Counts, severity: usize) -> usize {
    counts.each().get(severity).map_or(0, |(count, _)| *count)
}

/// The area below all findings that are at least so bad.
fn area(drawn: &[(i64, Counts)], severity: usize, top: usize) -> String {
    let mut path = String::new();
    for (place, (x, counts)) in drawn.iter().enumerate() {
        let height: usize = (0..=severity).map(|one| at(counts, one)).sum();
        let y = 100.0 - share(height, top);
        // Writing to a text does not fail.
        let _ = match place {
            0 => write!(path, "M{x} 100V{y:.1}"),
            _ => write!(path, "H{x}V{y:.1}"),
        };
    }
    path + &format!("H{WIDE}V100Z")
}

/// A time, to the minute if not much is shown.
fn day(time: i64, span: i64) -> String {
    let time = Timestamp::from_second(time).unwrap_or_default();
    let form = match span > 2 * DAY {
        true => "%-d %B %Y",
        false => "%-d %B, %H:%M UTC",
    };
    time.strftime(form).to_string()
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

    #[test]
    fn a_chart_over_time_says_how_it_began_how_bad_it_was_and_how_it_is() {
        let step = |time: i64, critical: usize, low: usize| Step {
            time,
            counts: Counts {
                critical,
                low,
                ..Counts::default()
            },
            suppressed: 0,
        };
        let now = Timestamp::from_second(100 * DAY - 1).unwrap();
        let steps = [
            step(90 * DAY, 1, 1),
            step(95 * DAY, 1, 3),
            step(97 * DAY, 1, 0),
        ];
        let chart = over_time(&steps, now).into_string();
        for told in [
            "Findings since 1 April 1970: at first 1 critical, 1 low; at most 4; now 1 critical",
            "M0 100V80.0H250V80.0H350V80.0H500V100Z",
            "M0 100V60.0H250V20.0H350V80.0H500V100Z",
            "<span>6 April 1970</span>",
        ] {
            assert!(chart.contains(told), "no {told} in {chart}");
        }
        assert!(!chart.contains("style="), "{chart}");
        assert!(!chart.contains("Medium"), "{chart}");
        let (critical, low) = (
            chart.find("path class=\"critical"),
            chart.find("path class=\"low"),
        );
        assert!(low < critical, "the worst is drawn last");

        // What is older than the chart holds from its beginning on; what is to come, at its end.
        let wide = [step(0, 9, 0), step(5 * DAY, 2, 0), step(200 * DAY, 3, 0)];
        let chart = over_time(&wide, now).into_string();
        assert!(chart.contains("M0 100V50.0H500V25.0H500V100Z"), "{chart}");
        assert!(
            over_time(&[], now)
                .into_string()
                .contains("Nothing has been noted yet")
        );
        let none = over_time(&[step(0, 0, 0)], now).into_string();
        assert!(none.contains("now none") && !none.contains("NaN"), "{none}");
    }
}
