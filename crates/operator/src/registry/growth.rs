//! What a Registry has that it did not have: what is new in its spec is scanned at once. Of what was
//! there before only hashes are kept, one for each part that can be scanned by itself.

use super::targets::Targets;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Hashes of the parts of a spec.
pub(crate) type Parts = BTreeSet<String>;

/// A part of a spec that can be scanned by itself.
struct Part {
    hash: String,
    /// What to scan if it is new.
    targets: Targets,
    /// The parts that, had one been there, would have contained this one.
    within: Vec<String>,
}

/// The parts of a spec.
pub(crate) fn parts(spec: &Value) -> Parts {
    split(spec).into_iter().map(|part| part.hash).collect()
}

/// What is new in a spec, given the parts of the one before; none if nothing is.
pub(crate) fn growth(spec: &Value, before: &Parts) -> Option<Targets> {
    let known = |hash: &String| before.contains(hash);
    let new = split(spec)
        .into_iter()
        .filter(|part| !known(&part.hash) && !part.within.iter().any(known));
    new.map(|part| part.targets).reduce(Targets::unite)
}

fn split(spec: &Value) -> Vec<Part> {
    let uri = &spec["uri"];
    let hash = |part: &Value| {
        let hash = Sha256::digest(json!([uri, part]).to_string());
        let hash = hash.iter().take(5).map(|byte| format!("{byte:02x}"));
        hash.collect::<String>()
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut parts = Vec::new();
    let mut add = |part: Value, targets: Targets, within: &[&Value]| {
        parts.push(Part {
            hash: hash(&part),
            targets,
            within: within.iter().map(|part| hash(part)).collect(),
        });
    };
    let everywhere = json!(["platforms"]);
    let platforms = list(&spec["platforms"]);
    if platforms.is_empty() {
        add(everywhere.clone(), Targets::All, &[]);
    }
    for platform in platforms {
        let part = json!(["platform", platform]);
        add(part, Targets::All, &[&everywhere]);
    }
    let catalog = json!(["catalog"]);
    let repositories = list(&spec["repositories"]);
    if repositories.is_empty() {
        add(catalog.clone(), Targets::All, &[]);
    }
    for repository in repositories {
        let name = repository["name"].as_str().unwrap_or_default().to_owned();
        let conditions = list(&repository["matchConditions"]);
        let whole = json!(["repository", name]);
        let any = repository["matchOperator"] == "Or" || conditions.len() == 1;
        let target = |conditions: Vec<String>| Targets::repository(name.clone(), conditions);
        if conditions.is_empty() {
            add(whole, target(Vec::new()), &[&catalog]);
        } else if any {
            for condition in conditions {
                let part = json!(["tags", name, condition["expression"]]);
                let called = condition["name"].as_str().map(str::to_owned);
                add(
                    part,
                    target(called.into_iter().collect()),
                    &[&whole, &catalog],
                );
            }
        } else {
            // Only together do they say which tags are wanted.
            let all: BTreeSet<String> = conditions
                .iter()
                .map(|c| c["expression"].to_string())
                .collect();
            add(
                json!(["tags", name, all]),
                target(Vec::new()),
                &[&whole, &catalog],
            );
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(name: &str, expression: &str) -> Value {
        json!({"name": name, "expression": expression})
    }

    #[test]
    fn only_what_is_new_is_scanned() {
        let plain = json!({"uri": "r", "repositories": [{"name": "a"}]});
        let one = json!({"uri": "r", "repositories": [
            {"name": "a", "matchConditions": [condition("x", "1")]},
        ]});
        let either = json!({"uri": "r", "repositories": [
            {"name": "a", "matchOperator": "Or", "matchConditions": [condition("x", "1"), condition("y", "2")]},
        ]});
        let both = json!({"uri": "r", "repositories": [
            {"name": "a", "matchOperator": "And", "matchConditions": [condition("x", "1"), condition("y", "2")]},
        ]});
        let renamed = json!({"uri": "r", "repositories": [
            {"name": "a", "matchConditions": [condition("z", "1")]},
        ]});
        let more =
            json!({"uri": "r", "repositories": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
        let catalog = json!({"uri": "r"});
        let moved = json!({"uri": "s", "repositories": [{"name": "a"}]});
        let narrow =
            json!({"uri": "r", "repositories": [{"name": "a"}], "platforms": [{"os": "linux"}]});
        let wider = json!({"uri": "r", "repositories": [{"name": "a"}], "platforms": [{"os": "linux"}, {"os": "windows"}]});
        let other = json!({"uri": "r", "repositories": [{"name": "a"}], "scanInterval": "1h", "insecure": true});
        for (before, after, scanned, case) in [
            (&plain, &plain, None, "nothing changed"),
            (&plain, &other, None, "what is not about images changed"),
            (
                &plain,
                &more,
                Some(json!([{"name": "b"}, {"name": "c"}])),
                "two came",
            ),
            (&more, &plain, None, "two went"),
            (&plain, &catalog, Some(json!([])), "all are wanted"),
            (&catalog, &one, None, "not all are wanted any more"),
            (&plain, &moved, Some(json!([])), "it is elsewhere"),
            (
                &one,
                &either,
                Some(json!([{"name": "a", "matchConditions": ["y"]}])),
                "a condition came",
            ),
            (&either, &one, None, "a condition went"),
            (&one, &renamed, None, "a condition has another name"),
            (&plain, &one, None, "not every tag is wanted any more"),
            (
                &one,
                &plain,
                Some(json!([{"name": "a"}])),
                "every tag is wanted",
            ),
            (
                &one,
                &both,
                Some(json!([{"name": "a"}])),
                "the conditions together are others",
            ),
            (
                &plain,
                &narrow,
                None,
                "not every platform is wanted any more",
            ),
            (&narrow, &wider, Some(json!([])), "a platform came"),
            (&narrow, &plain, Some(json!([])), "every platform is wanted"),
        ] {
            let growth = growth(after, &parts(before));
            assert_eq!(
                growth.map(|targets| targets.repositories()),
                scanned,
                "{case}"
            );
        }
    }
}
