//! How findings came and went. A history is told in steps, each of which holds until the next; the
//! histories of several namespaces are added up as they are drawn, side by side in time.

use crate::parts::words;
use crate::read::{self, ReadError};
use crate::reader::{LeftOut, Reader, Seen, Where};
use crate::upgrade::Counts;
use crate::workload::Summary;
use jiff::Timestamp;
use muster_api::history::{LABEL, OF_NAMESPACE};
use serde::Deserialize;

/// A FindingHistory.
#[derive(Debug, Deserialize)]
struct History {
    #[serde(default)]
    points: Vec<Point>,
}

#[derive(Debug, Deserialize)]
struct Point {
    time: String,
    #[serde(default)]
    summary: Summary,
}

/// What there was from a time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// In seconds since 1970.
    pub(crate) time: i64,
    pub(crate) counts: Counts,
    pub(crate) suppressed: usize,
}

/// What came and what went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) time: String,
    pub(crate) told: String,
}

/// The history of what runs in the namespaces that are looked at, as far as it may be read.
pub(crate) async fn of_namespaces(reader: &Reader) -> Result<(Vec<Step>, LeftOut), ReadError> {
    let labels = format!("{LABEL}={OF_NAMESPACE}");
    let seen = reader.selected(read::HISTORIES, Where::Chosen, &labels);
    let seen: Seen<History> = seen.await?;
    let histories: Vec<Vec<Step>> = seen.items.iter().map(steps).collect();
    Ok((sum(&histories), seen.left_out))
}

/// The history of a workload; empty if there is none, or if it may not be read, which is told.
pub(crate) async fn of_workload(
    reader: &Reader,
    namespace: &str,
    report: &str,
) -> Result<(Vec<Step>, LeftOut), ReadError> {
    let found = read::get(&reader.client, read::HISTORIES, Some(namespace), report).await;
    match found {
        Ok(history) => {
            let steps = history.as_ref().map(steps).unwrap_or_default();
            Ok((steps, LeftOut::default()))
        }
        Err(error) if error.code() == Some(403) => {
            let forbidden = LeftOut {
                forbidden: true,
                ..LeftOut::default()
            };
            Ok((Vec::new(), forbidden))
        }
        Err(error) => Err(error),
    }
}

fn steps(history: &History) -> Vec<Step> {
    let steps = history.points.iter().filter_map(|point| {
        let time: Timestamp = point.time.parse().ok()?;
        Some(Step {
            time: time.as_second(),
            counts: point.summary.counts(),
            suppressed: point.summary.suppressed,
        })
    });
    steps.collect()
}

/// What some histories come to together. Before its first step a history has nothing.
fn sum(histories: &[Vec<Step>]) -> Vec<Step> {
    let mut before = vec![Step::default(); histories.len()];
    let all = histories.iter().enumerate();
    let mut all: Vec<(usize, &Step)> = all
        .flat_map(|(of, steps)| steps.iter().map(move |step| (of, step)))
        .collect();
    all.sort_by_key(|(_, step)| step.time);
    let mut sums: Vec<Step> = Vec::new();
    let mut now = Step::default();
    for (of, step) in all {
        let Some(before) = before.get_mut(of) else {
            continue;
        };
        now = Step {
            time: step.time,
            counts: replaced(&now.counts, &before.counts, &step.counts),
            suppressed: (now.suppressed + step.suppressed).saturating_sub(before.suppressed),
        };
        *before = *step;
        match sums.last_mut().filter(|last| last.time == now.time) {
            Some(last) => *last = now,
            None => sums.push(now),
        }
    }
    sums
}

/// A sum of which one part is another now.
fn replaced(sum: &Counts, before: &Counts, after: &Counts) -> Counts {
    let mut replaced = Counts::default();
    let parts = before.each().into_iter().zip(after.each());
    for ((sum, severity), ((before, _), (after, _))) in sum.each().into_iter().zip(parts) {
        replaced.count(severity, (sum + after).saturating_sub(before));
    }
    replaced
}

/// The last changes of a history, newest first.
pub(crate) fn changes(steps: &[Step], most: usize) -> Vec<Change> {
    let nothing = [Step::default()];
    let before = nothing.iter().chain(steps);
    let mut changes: Vec<Change> = before
        .zip(steps)
        .map(|(before, after)| Change {
            time: Timestamp::from_second(after.time)
                .unwrap_or_default()
                .to_string(),
            told: difference(before, after),
        })
        .collect();
    changes.reverse();
    changes.truncate(most);
    changes
}

/// What came and what went between two steps, in words.
fn difference(before: &Step, after: &Step) -> String {
    let counts = before.counts.each().into_iter().zip(after.counts.each());
    let counts = counts.map(|((before, severity), (after, _))| (before, after, words(severity).0));
    let suppressed = (before.suppressed, after.suppressed, "suppressed");
    let told = counts
        .chain([suppressed])
        .filter_map(|(before, after, word)| match after.checked_sub(before) {
            Some(0) => None,
            Some(more) => Some(format!("+{more} {word}")),
            None => Some(format!("−{} {word}", before - after)),
        });
    let told: Vec<String> = told.collect();
    match told.is_empty() {
        true => "nothing found".into(),
        false => told.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(time: i64, critical: usize, low: usize) -> Step {
        let counts = Counts {
            critical,
            low,
            ..Counts::default()
        };
        Step {
            time,
            counts,
            suppressed: 0,
        }
    }

    #[test]
    fn histories_are_added_up_side_by_side_in_time() {
        let shop = vec![step(10, 1, 0), step(30, 0, 2)];
        let bank = vec![step(20, 5, 5), step(30, 4, 5), step(40, 0, 0)];
        let expected = [
            step(10, 1, 0),
            step(20, 6, 5),
            step(30, 4, 7),
            step(40, 0, 2),
        ];
        assert_eq!(sum(&[shop.clone(), bank]), expected);
        assert_eq!(sum(std::slice::from_ref(&shop)), shop);
        assert_eq!(sum(&[]), []);
    }

    #[test]
    fn a_change_says_what_came_and_what_went() {
        let mut last = step(60, 3, 1);
        last.suppressed = 1;
        let steps = [step(0, 1, 2), step(30, 0, 0), last];
        let changes = changes(&steps, 10);
        let told: Vec<(&str, &str)> = changes
            .iter()
            .map(|change| (change.time.as_str(), change.told.as_str()))
            .collect();
        let expected = [
            ("1970-01-01T00:01:00Z", "+3 critical, +1 low, +1 suppressed"),
            ("1970-01-01T00:00:30Z", "−1 critical, −2 low"),
            ("1970-01-01T00:00:00Z", "+1 critical, +2 low"),
        ];
        assert_eq!(told, expected);
        assert_eq!(super::changes(&steps, 1).len(), 1);
        assert_eq!(super::changes(&[step(0, 0, 0)], 1)[0].told, "nothing found");
    }

    #[test]
    fn what_cannot_be_read_as_a_time_is_left_out() {
        let history = serde_json::json!({"points": [
            {"time": "2026-01-01T00:00:00Z", "summary": {"critical": 1, "suppressed": 2}},
            {"time": "soon"},
        ]});
        let history: History = serde_json::from_value(history).unwrap();
        let mut expected = step(1_767_225_600, 1, 0);
        expected.suppressed = 2;
        assert_eq!(steps(&history), [expected]);
    }
}
