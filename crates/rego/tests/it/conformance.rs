//! What we answer beside what OPA answers, row by row (`conformance.yaml`).

use muster_rego::{Limits, Module, Program, Value, input};
use serde::Deserialize;
use serde_json::Value as Json;
use std::time::Duration;

#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    module: String,
    #[serde(default)]
    libraries: Vec<String>,
    input: Option<Json>,
    answer: Option<Json>,
    ours: Option<Json>,
    why: Option<String>,
}

/// All defined rules of the package, or why there is no answer.
fn ask(row: &Row, object: &Json) -> Result<Json, String> {
    let named: Vec<Module<'_>> = row
        .libraries
        .iter()
        .map(|text| Module {
            name: "library.rego",
            text,
        })
        .collect();
    let policy = Module {
        name: "policy.rego",
        text: &row.module,
    };
    let limits = Limits {
        time: Duration::from_secs(20),
        ..Limits::default()
    };
    let program = Program::load(policy, &named, &[], limits).map_err(|error| error.to_string())?;
    let rules: Vec<&str> = program.rules().collect();
    let values = program.ask(input(object), &rules);
    let values = values.map_err(|error| error.to_string())?;
    let defined = rules.iter().zip(values);
    let defined = defined.filter(|(_, value)| *value != Value::Undefined);
    let fields = defined.map(|(name, value)| (name.to_string(), serde_json::to_value(value)));
    let fields: Result<serde_json::Map<String, Json>, _> = fields
        .map(|(name, value)| value.map(|value| (name, value)))
        .collect();
    fields.map(Json::Object).map_err(|error| error.to_string())
}

#[test]
fn we_answer_as_opa_does() {
    let rows: Vec<Row> = serde_saphyr::from_str(include_str!("conformance.yaml")).unwrap();
    let first = rows[0].input.clone().unwrap();
    let mut wrong = Vec::new();
    for row in &rows {
        let object = row.input.as_ref().unwrap_or(&first);
        let got = ask(row, object);
        let expected = match &row.why {
            Some(_) => &row.ours,
            None => &row.answer,
        };
        match (&got, expected) {
            (Ok(got), Some(Json::Object(expected))) => {
                let Json::Object(got) = got else { panic!() };
                let empty = Json::Null;
                for name in expected
                    .keys()
                    .chain(got.keys().filter(|k| !expected.contains_key(*k)))
                {
                    let (ours, theirs) = (got.get(name), expected.get(name));
                    // Rules of libraries in the same package are not the policy's own.
                    let own = row.module.contains(name.as_str());
                    if own && !same(ours.unwrap_or(&empty), theirs.unwrap_or(&empty)) {
                        wrong.push(format!("{}: {name}: {ours:?}, not {theirs:?}", row.name));
                    }
                }
            }
            (Err(_), None) => {}
            _ => wrong.push(format!("{}: {got:?}, not {expected:?}", row.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows.len() > 50);
}

/// Whether values are the same; numbers may be written differently.
fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => left.as_f64() == right.as_f64(),
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        (Json::Object(left), Json::Object(right)) => {
            let alike =
                |(name, value): (&String, &Json)| right.get(name).is_some_and(|r| same(value, r));
            left.len() == right.len() && left.iter().all(alike)
        }
        (left, right) => left == right,
    }
}
