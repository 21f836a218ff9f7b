//! For people: what is wrong, object by object, the worst first. What is fine is only counted.

use super::super::judge::{Audited, Bench};
use super::Found;
use super::line::{Line, Word, lines, weight};
use muster_policy::report::Subject;
use muster_scan::output::Style;
use muster_scan::output::layout::{Paint, Row, cut, draw, painted, plain};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Wider names are cut, so that messages have room.
const WIDEST_NAME: usize = 48;

/// An object, and what is said of it.
struct Told<'a> {
    audited: &'a Audited,
    lines: Vec<Line<'a>>,
}

/// All that there is to say.
pub(super) fn table(found: Found<'_>, style: Style) -> String {
    let told = found.audited.iter().filter(|one| !one.is_silent());
    let mut told: Vec<Told> = told
        .map(|audited| Told {
            audited,
            lines: lines(audited, found.bench),
        })
        .collect();
    told.sort_by_cached_key(|one| {
        let Subject {
            namespace,
            kind,
            name,
            ..
        } = &one.audited.subject;
        (
            Reverse(rank(&one.lines)),
            namespace.clone(),
            kind.clone(),
            name.clone(),
        )
    });
    let (shown, fine): (Vec<_>, Vec<_>) = told.iter().partition(|one| !one.lines.is_empty());
    let mut text = String::new();
    let mut drawn = rows(&shown, style).into_iter();
    for one in &shown {
        let _ = writeln!(text, "{}", heading(one.audited, style));
        for line in drawn.by_ref().take(row_count(one)) {
            let _ = writeln!(text, "  {line}");
        }
        if let Some(rest) = rest(one.audited) {
            let _ = writeln!(text, "  {}", painted(&rest, Some(Paint::Dim), style));
        }
        text.push('\n');
    }
    let what = kept(found.bench);
    match (fine.len(), shown.is_empty()) {
        (0, _) => {}
        (1, true) => {
            let _ = writeln!(text, "The resource keeps its {what}.");
        }
        (count, true) => {
            let _ = writeln!(text, "All {count} resources keep their {what}.");
        }
        (1, false) => {
            let _ = writeln!(text, "1 other resource keeps its {what}.");
        }
        (count, false) => {
            let _ = writeln!(text, "{count} other resources keep their {what}.");
        }
    }
    text.push_str(&sum(found, &told));
    text
}

/// How bad it is, to put the worst first: refused, and by a policy or check of which severity.
fn rank(lines: &[Line]) -> (bool, Option<usize>, usize) {
    let refusals = lines.iter().filter(|line| line.result.is_refusal());
    let worst: Vec<_> = refusals.map(|line| weight(line.severity)).collect();
    let most = worst.iter().max().copied().flatten();
    (!worst.is_empty(), most, worst.len())
}

fn heading(audited: &Audited, style: Style) -> String {
    let Subject {
        kind,
        name,
        namespace,
        ..
    } = &audited.subject;
    let mut text = format!("{}/{name}", kind.to_lowercase());
    if let Some(namespace) = namespace {
        let _ = write!(text, " in namespace {namespace}");
    }
    let origin = audited.origin.as_ref();
    let origin = origin.map_or(String::new(), |origin| plain(&format!(" ({origin})")));
    let origin = painted(&origin, Some(Paint::Dim), style);
    format!(
        "{}{origin}",
        painted(&plain(&text), Some(Paint::Bold), style)
    )
}

/// The lines of all objects, laid out together so that columns are the same for all.
fn rows(shown: &[&Told], style: Style) -> Vec<String> {
    // What the columns are is seen without titles.
    let mut rows: Vec<Row> = vec![vec![(String::new(), None); 4]];
    for line in shown.iter().flat_map(|one| &one.lines) {
        let severity = line.severity.unwrap_or("-");
        let paint = match severity {
            "critical" => Paint::BrightRed,
            "high" => Paint::Red,
            "medium" => Paint::Yellow,
            "low" => Paint::Blue,
            _ => Paint::Dim,
        };
        let result = line.result;
        rows.push(vec![
            (result.as_str().to_owned(), Some(result.paint())),
            (severity.to_owned(), Some(paint)),
            (cut(&plain(&line.name), WIDEST_NAME), None),
            (plain(&line.why), None),
        ]);
        rows.extend(line.warnings.iter().map(|warning| {
            let empty = || (String::new(), None);
            let label = ("warn".to_owned(), Some(Paint::Dim));
            vec![label, empty(), empty(), (plain(warning), None)]
        }));
    }
    let mut text = String::new();
    let width = style.width.map(|width| width.saturating_sub(2));
    draw(&mut text, rows, Style { width, ..style });
    text.lines().skip(1).map(str::to_owned).collect()
}

fn row_count(told: &Told) -> usize {
    let lines = told.lines.iter();
    lines.map(|line| 1 + line.warnings.len()).sum()
}

/// What else there is to say of an object.
fn rest(audited: &Audited) -> Option<String> {
    let counts = [(audited.kept(), "pass"), (audited.skipped, "skipped")];
    let counts = amounts(counts);
    (!counts.is_empty()).then_some(counts)
}

/// What is kept where all is well.
fn kept(bench: &Bench) -> &'static str {
    match (bench.policies.is_empty(), bench.configuration.count()) {
        (true, 1..) => "checks",
        (false, 1..) => "policies and checks",
        (_, 0) => "policies",
    }
}

/// Everything, counted.
fn sum(found: Found<'_>, told: &[Told]) -> String {
    let bench = found.bench;
    let checks = bench.configuration.count();
    let mut judges = Vec::new();
    if !bench.policies.is_empty() || checks == 0 {
        judges.push(counted(bench.policies.len(), "policy", "policies"));
    }
    if checks > 0 {
        judges.push(counted(checks, "check", "checks"));
    }
    let skip: usize = found.audited.iter().map(|one| one.skipped).sum();
    if told.is_empty() {
        let skipped = if skip > 0 {
            format!("; {skip} skipped")
        } else {
            String::new()
        };
        let looked = counted(found.audited.len(), "resource", "resources");
        return format!(
            "None of {looked} is judged by {}{skipped}.\n",
            judges.join(" and ")
        );
    }
    let mut said: BTreeMap<Word, usize> = BTreeMap::new();
    for line in told.iter().flat_map(|one| &one.lines) {
        *said.entry(line.result).or_default() += 1;
    }
    let kept: usize = told.iter().map(|one| one.audited.kept()).sum();
    *said.entry(Word::Pass).or_default() += kept;
    let said = said.into_iter().map(|(word, count)| (count, word.as_str()));
    let judged = counted(told.len(), "resource", "resources");
    format!(
        "{judged}, {}: {}.\n",
        judges.join(", "),
        amounts(said.chain([(skip, "skipped")]))
    )
}

/// What there is any of, with how much.
fn amounts<'a>(counts: impl IntoIterator<Item = (usize, &'a str)>) -> String {
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    counts.join(", ")
}

fn counted(count: usize, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}
