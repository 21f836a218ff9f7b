//! What the ConfigMap of the installation says of policies and kinds. All of it together has to fit
//! into one ConfigMap, or else nothing would be told or remembered: what is wrong goes first, then what
//! has to be remembered, and what is left is for who judges what, by name or at least by number.

use super::State;
use muster_checks::force::Force;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The keys.
const KINDS: &str = "kinds.json";
const PROBLEMS: &str = "problems.json";
pub(super) const LAST_GOOD: &str = "last-good.json";

/// What the keys may take together: a ConfigMap holds a mebibyte.
const ROOM: usize = 960 * 1024;
/// How much of that problems may take.
const ROOM_FOR_PROBLEMS: usize = 160 * 1024;
/// How much of that is left for kinds, whatever has to be remembered.
const ROOM_FOR_KINDS: usize = 160 * 1024;
/// How much of a reason is told, in bytes.
const LONGEST: usize = 1_000;

/// What the ConfigMap says; `all` is whether reports tell of checks that are kept, too.
pub(super) fn data(state: &State, force: &Force, all: bool) -> BTreeMap<String, String> {
    let mut data = BTreeMap::new();
    let mut room = ROOM - ROOM_FOR_KINDS;
    let last_good = force.remember();
    let last_good = (!last_good.is_empty()).then(|| json!(last_good).to_string());
    let problems = problems(force);
    let (mut told, left) = fitting(problems, ROOM_FOR_PROBLEMS);
    if left > 0 {
        told.push(json!({"why": format!("and {left} more")}));
    }
    if let Some(text) = last_good {
        match text.len() <= room - ROOM_FOR_PROBLEMS {
            true => {
                room -= text.len();
                data.insert(LAST_GOOD.to_owned(), text);
            }
            false => told.insert(
                0,
                json!({"why": "the last good versions of policies are too long to be remembered: a restart loses them"}),
            ),
        }
    }
    let problems = pretty(&json!(told));
    room = room.saturating_sub(problems.len()) + ROOM_FOR_KINDS;
    data.insert(PROBLEMS.to_owned(), problems);
    data.insert(KINDS.to_owned(), kinds(state, all, room));
    data
}

fn problems(force: &Force) -> impl Iterator<Item = Value> {
    force.troubles().iter().map(|(id, trouble)| {
        let end = trouble.why.floor_char_boundary(LONGEST);
        json!({"source": id.source, "name": id.name, "why": trouble.why.get(..end),
            "isLibrary": trouble.is_library, "lastGoodInForce": trouble.has_older})
    })
}

/// As many as there is room for, as they are written, and how many are left out.
fn fitting(values: impl Iterator<Item = Value>, mut room: usize) -> (Vec<Value>, usize) {
    let (mut fitting, mut left) = (Vec::new(), 0);
    for value in values {
        // Each line is indented once more in a list.
        let text = pretty(&value);
        let size = text.len() + 2 * text.lines().count() + 2;
        match room.checked_sub(size) {
            Some(rest) => {
                room = rest;
                fitting.push(value);
            }
            None => left += 1,
        }
    }
    (fitting, left)
}

/// Which policies judge each kind, under which hash: their names if there is room, else how many.
fn kinds(state: &State, all: bool, room: usize) -> String {
    let named = pretty(&json!(judged(
        state,
        all,
        |names| json!({"policies": names})
    )));
    if named.len() <= room {
        return named;
    }
    let counted = judged(state, all, |names| json!({"policyCount": names.len()}));
    let entries = counted
        .into_iter()
        .map(|(kind, entry)| json!({kind: entry}));
    let (fitting, _) = fitting(entries, room);
    let mut kinds = Map::new();
    for entry in fitting {
        if let Value::Object(entry) = entry {
            kinds.extend(entry);
        }
    }
    pretty(&Value::Object(kinds))
}

fn judged(
    state: &State,
    all: bool,
    policies: impl Fn(Vec<String>) -> Value,
) -> BTreeMap<String, Value> {
    let desks = state.desks.iter().filter_map(|(place, desk)| {
        let sheet = desk.sheet.as_ref()?;
        let names = sheet.policies().iter().map(|policy| policy.id.to_string());
        let name = match desk.kind.is_native() {
            true => desk.kind.kind.clone(),
            false => format!("{}.{}", desk.kind.kind, desk.kind.group),
        };
        let mut entry = policies(names.collect());
        entry["hash"] = sheet.report_hash(all).into();
        if let Some(why) = state.why_unlisted(place) {
            entry["unlisted"] = why.into();
        }
        Some((name, entry))
    });
    desks.collect()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::desks;
    use crate::ledger::Place;
    use muster_checks::Kind;
    use muster_checks::force::{Choice, Sources};
    use muster_checks::written::Written;

    const SERVED: &[&str] = &["v1 Pod", "example.com/v1 Gadget", "v1 Node"];

    fn state(policies: &[[&str; 3]], served: &[&str]) -> State {
        State {
            desks: desks(policies, "1", served),
            ..State::default()
        }
    }

    fn parsed(data: &BTreeMap<String, String>, key: &str) -> Value {
        serde_json::from_str(&data[key]).unwrap()
    }

    #[test]
    fn who_judges_what_is_told_with_the_hash_of_reports() {
        let policies = &[["a", "Pod,Gadget", "1"], ["b", "Pod", "1"]];
        let mut state = state(policies, SERVED);
        let place = Place::new((String::new(), "pods".to_owned()));
        state
            .unlisted
            .insert((place.clone(), None), "forbidden".into());
        let sheet = state.desks[&place].sheet.clone().unwrap();
        for all in [false, true] {
            let data = data(&state, &Force::default(), all);
            assert_eq!(data.keys().collect::<Vec<_>>(), [KINDS, PROBLEMS]);
            assert_eq!(data[PROBLEMS], "[]");
            let kinds = parsed(&data, KINDS);
            assert_eq!(
                kinds["Pod"],
                json!({"hash": sheet.report_hash(all), "unlisted": "forbidden",
                    "policies": ["muster/policies a", "muster/policies b"]})
            );
            assert_eq!(
                kinds["Gadget.example.com"]["policies"],
                json!(["muster/policies a"])
            );
            assert_eq!(kinds["Gadget.example.com"]["unlisted"], Value::Null);
            assert_eq!(kinds.as_object().unwrap().len(), 2);
        }
    }

    /// The last good versions of policies of such sizes, all of them broken by now.
    fn broken(sizes: &[usize], why: usize) -> Force {
        let kinds = [Kind::parse("v1", "Pod")];
        let source = |is_good: bool| {
            let entries = sizes.iter().enumerate().flat_map(|(index, size)| {
                let filling = "# filling\n".repeat(size / 10);
                let text = match is_good {
                    true => {
                        format!("{filling}package a\nimport rego.v1\ndeny contains \"x\" if true")
                    }
                    false => "package a\nno".to_owned(),
                };
                let about = match is_good {
                    true => "Pod".to_owned(),
                    false => format!("K{}", "x".repeat(why)),
                };
                [
                    (format!("policy.{index}.rego"), text),
                    (format!("policy.{index}.kinds"), about),
                ]
            });
            let written = Written::read("policies", Some("v2"), &entries.collect());
            Sources::from([("muster/policies".into(), written)])
        };
        let mut force = Force::default();
        for is_good in [true, false] {
            force.update(&source(is_good), &kinds, &Choice::default());
        }
        assert_eq!(force.troubles().len(), sizes.len());
        force
    }

    #[test]
    fn all_that_is_told_fits_into_one_config_map() {
        let few = state(&[["a", "*", "1"]], SERVED);
        let names: Vec<String> = (0..400)
            .map(|index| format!("{index}-{}", "n".repeat(40)))
            .collect();
        let policies: Vec<[&str; 3]> = names.iter().map(|name| [name.as_str(), "*", "1"]).collect();
        let kinds: Vec<String> = (0..100).map(|index| format!("v1 Kind{index}")).collect();
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let many = state(&policies, &kinds);
        let (small, good) = (broken(&[100; 3], 0), broken(&[60_000; 8], 0));
        let (long, much) = (broken(&[100; 900], 2_000), broken(&[60_000; 16], 2_000));
        // Whether policies are named, last good versions are there, and how many problems are told.
        for (what, state, force, named, remembered, told) in [
            ("little", &few, &small, true, true, 3),
            ("long policies", &few, &good, true, true, 8),
            ("long policies and many kinds", &many, &good, false, true, 8),
            ("many kinds", &many, &small, false, true, 3),
            ("many problems", &few, &long, true, true, 900),
            ("too much to remember", &many, &much, false, false, 17),
        ] {
            let data = data(state, force, false);
            let size: usize = data.iter().map(|(key, text)| key.len() + text.len()).sum();
            assert!(size <= 1_000_000, "{what}: {size}");
            assert_eq!(data.contains_key(LAST_GOOD), remembered, "{what}");
            let kinds = parsed(&data, KINDS);
            let kinds = kinds.as_object().unwrap();
            assert_eq!(kinds.len(), state.desks.len(), "{what}");
            for entry in kinds.values() {
                assert!(entry["hash"].is_string(), "{what}");
                assert_eq!(entry["policies"].is_array(), named, "{what}");
                assert_eq!(entry["policyCount"].is_u64(), !named, "{what}");
            }
            let problems = parsed(&data, PROBLEMS);
            let problems = problems.as_array().unwrap();
            if told < 900 {
                assert_eq!(problems.len(), told, "{what}");
                continue;
            }
            let last = problems.last().unwrap()["why"].as_str().unwrap();
            assert_eq!(last, format!("and {} more", told - (problems.len() - 1)));
        }
    }
}
