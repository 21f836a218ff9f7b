//! Where two servers' answers differ, and how a person is told.

use super::Outcome;
use super::request::{Answer, Case};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The width of a column in reports.
const WIDTH: usize = 76;

/// One point in which the answers to one step differ.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    /// The case's title.
    pub case: String,
    /// The step's place in the case, from 1, and what it asks.
    pub step: String,
    /// What differs: `status`, `header warning`, `body /metadata/name`, `event 2 /type`.
    pub what: String,
    /// The whole of kube-apiserver's answer.
    pub answer: String,
    /// What kube-apiserver says there.
    pub real: String,
    /// What Muster says there.
    pub ours: String,
}

/// All differences between the answers to one case.
pub(super) fn answers(case: &Case, real: &[Answer], ours: &[Answer]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (index, (real, ours)) in real.iter().zip(ours).enumerate() {
        let step = format!("{}. {}", index + 1, real.step);
        let whole = json!(real).to_string();
        differences.extend(
            answer(real, ours)
                .into_iter()
                .map(|(what, real, ours)| Difference {
                    case: case.title(),
                    step: step.clone(),
                    answer: whole.clone(),
                    what,
                    real,
                    ours,
                }),
        );
    }
    differences
}

/// Three texts: what differs, there, here.
type Point = (String, String, String);

fn answer(real: &Answer, ours: &Answer) -> Vec<Point> {
    let mut points = Vec::new();
    if real.status != ours.status {
        points.push((
            "status".into(),
            real.status.to_string(),
            ours.status.to_string(),
        ));
    }
    let names: BTreeSet<&String> = real.headers.keys().chain(ours.headers.keys()).collect();
    for name in names {
        let (there, here) = (real.headers.get(name), ours.headers.get(name));
        if there != here {
            points.push((
                format!("header {name}"),
                shown(&json!(there)),
                shown(&json!(here)),
            ));
        }
    }
    values("body ", &real.body, &ours.body, &mut points);
    let (there, here) = (real.events.as_deref(), ours.events.as_deref());
    let (there, here) = (there.unwrap_or_default(), here.unwrap_or_default());
    for index in 0..there.len().max(here.len()) {
        let path = format!("event {} ", index + 1);
        let absent = json!("(no such event)");
        let there = there.get(index).unwrap_or(&absent);
        values(
            &path,
            there,
            here.get(index).unwrap_or(&absent),
            &mut points,
        );
    }
    points
}

/// Descends as long as both sides have the same shape.
fn values(path: &str, there: &Value, here: &Value, points: &mut Vec<Point>) {
    match (there, here) {
        (Value::Object(real), Value::Object(ours)) => {
            let names: BTreeSet<&String> = real.keys().chain(ours.keys()).collect();
            for name in names {
                let path = format!("{path}/{name}");
                match (real.get(name), ours.get(name)) {
                    (Some(there), Some(here)) => values(&path, there, here, points),
                    (there, here) => points.push((path, presence(there), presence(here))),
                }
            }
        }
        (Value::Array(real), Value::Array(ours)) if real.len() == ours.len() => {
            for (index, (there, here)) in real.iter().zip(ours).enumerate() {
                values(&format!("{path}/{index}"), there, here, points);
            }
        }
        (there, here) if there == here => {}
        (there, here) => points.push((path.into(), shown(there), shown(here))),
    }
}

fn presence(value: Option<&Value>) -> String {
    value.map_or("(absent)".into(), shown)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) if items.len() > 1 => format!("{} items: {value}", items.len()),
        other => other.to_string(),
    }
}

/// The differences as text, two columns wide: kube-apiserver on the left, Muster on the right.
pub(super) fn render(differences: &[Difference]) -> String {
    let mut text = String::new();
    let mut last = ("", "");
    for difference in differences {
        if last.0 != difference.case {
            let _ = writeln!(text, "\n{}", difference.case);
        }
        if last != (&difference.case, &difference.step) {
            let _ = writeln!(text, "  {}", difference.step);
        }
        last = (&difference.case, &difference.step);
        let _ = writeln!(text, "    {}", difference.what);
        let (left, right) = (folded(&difference.real), folded(&difference.ours));
        for line in 0..left.len().max(right.len()) {
            let (left, right) = (left.get(line), right.get(line));
            let left = left.map_or("", String::as_str);
            let right = right.map_or("", String::as_str);
            let _ = writeln!(text, "      {left:<WIDTH$} | {right}");
        }
    }
    text
}

fn folded(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters
        .chunks(WIDTH)
        .map(|chunk| chunk.iter().collect())
        .collect()
}

/// Kube-apiserver's answers as one JSON document.
pub(super) fn document(outcomes: &[Outcome]) -> Value {
    let cases = outcomes
        .iter()
        .map(|outcome| json!({"case": outcome.case.title(), "answers": outcome.real}));
    Value::Array(cases.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(there: Value, here: Value) -> Vec<String> {
        let mut points = Vec::new();
        values("body ", &there, &here, &mut points);
        points.into_iter().map(|(what, _, _)| what).collect()
    }

    #[test]
    fn a_difference_is_named_by_its_deepest_path() {
        assert_eq!(
            points(
                json!({"a": {"b": [1, 2], "c": 1}}),
                json!({"a": {"b": [1, 3]}})
            ),
            ["body /a/b/1", "body /a/c"],
        );
    }

    #[test]
    fn equal_values_do_not_differ() {
        assert!(points(json!({"a": [null, 1.5]}), json!({"a": [null, 1.5]})).is_empty());
    }
}
