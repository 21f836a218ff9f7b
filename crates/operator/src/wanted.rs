//! What of a Registry a job is about: its repositories with their conditions, or those that the job
//! names. A job never widens its Registry: where all conditions must hold, naming some of them
//! chooses the repository and the others hold too.

use crate::access::{Access, Condition, Filter};
use crate::work::Trouble;
use muster_api::filter::{MatchCondition, Operator, Selection};
use muster_registry::Repository;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A repository that a ScanJob names, with the names of its conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) match_conditions: Vec<String>,
}

/// A repository and which of its images are wanted; a condition keeps the labels of what meets it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) repository: Repository,
    pub(crate) selection: Selection<BTreeMap<String, String>>,
}

impl Wanted {
    /// Everything in a repository.
    pub(crate) fn whole(repository: Repository) -> Self {
        Wanted {
            repository,
            selection: Selection::new(Vec::new(), Operator::And),
        }
    }
}

/// The repositories that a Registry lists, as far as a job is about them; one that cannot be looked
/// for does not stop the others. None if the registry's own catalog has to be asked.
pub(crate) fn wanted(access: &Access, targets: &[Target]) -> Option<Vec<Result<Wanted, Trouble>>> {
    let filters = &access.spec.repositories;
    if targets.is_empty() {
        let all = filters.iter().map(|filter| select(access, filter, &[]));
        return (!filters.is_empty()).then(|| all.collect());
    }
    let named = |target: &Target| -> Result<Wanted, Trouble> {
        let repository = access.repository(&target.name)?;
        let listed = filters.iter().find(|filter| {
            let name = access.repository(&filter.name);
            name.is_ok_and(|name| name == repository)
        });
        match listed {
            Some(filter) => select(access, filter, &target.match_conditions),
            // A Registry that lists none has all repositories, and no conditions.
            None if filters.is_empty() => {
                let filter = Filter {
                    name: target.name.clone(),
                    ..Filter::default()
                };
                select(access, &filter, &target.match_conditions)
            }
            None => Err(Trouble::permanent(format!(
                "the Registry {} does not list the repository {} that this ScanJob names",
                access.name, target.name
            ))),
        }
    };
    Some(targets.iter().map(named).collect())
}

fn select(access: &Access, filter: &Filter, names: &[String]) -> Result<Wanted, Trouble> {
    let known = |name: &str| filter.match_conditions.iter().any(|c| c.name == name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        return Err(Trouble::permanent(format!(
            "the repository {} of the Registry {} does not have the condition {name} that this ScanJob names",
            filter.name, access.name
        )));
    }
    let operator = Operator::read(&filter.match_operator);
    let chosen = |condition: &&Condition| {
        operator == Operator::And || names.is_empty() || names.contains(&condition.name)
    };
    let mut conditions = Vec::new();
    for condition in filter.match_conditions.iter().filter(chosen) {
        let parsed = MatchCondition::parse(&condition.expression).map_err(|error| {
            Trouble::permanent(format!(
                "the condition {} of the repository {} {error}",
                condition.name, filter.name
            ))
        })?;
        conditions.push((parsed, condition.labels.clone()));
    }
    Ok(Wanted {
        repository: access.repository(&filter.name)?,
        selection: Selection::new(conditions, operator),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn listed(operator: &str) -> Access {
        let condition = |name: &str, expression: &str| json!({"name": name, "expression": expression, "labels": {name: "true"}});
        Access::unasked(json!({"uri": "docker.io", "repositories": [
            {"name": "busybox"},
            {"name": "team/app", "matchOperator": operator, "matchConditions": [
                condition("a", "tag.startsWith('1')"), condition("b", "tag.endsWith('2')"),
            ]},
        ]}))
    }

    fn targets(value: Value) -> Vec<Target> {
        serde_json::from_value(value).unwrap()
    }

    fn met(wanted: &Wanted, tag: &str) -> Option<Vec<String>> {
        let met = wanted.selection.judge(Some(tag), "")?;
        Some(
            met.iter()
                .flat_map(|labels| labels.keys().cloned())
                .collect(),
        )
    }

    #[test]
    fn a_job_is_about_what_it_names_and_never_more_than_its_registry() {
        let app = json!([{"name": "team/app", "matchConditions": ["a"]}]);
        let whole = json!([{"name": "team/app"}]);
        for (operator, target, tag, expected) in [
            ("Or", &whole, "1.1", Some(&["a"][..])),
            ("Or", &whole, "2.2", Some(&["b"])),
            ("Or", &app, "1.2", Some(&["a"])),
            ("Or", &app, "2.2", None),
            ("And", &whole, "1.2", Some(&["a", "b"])),
            ("And", &app, "1.2", Some(&["a", "b"])),
            ("And", &app, "1.1", None),
        ] {
            let found = wanted(&listed(operator), &targets(target.clone()));
            let [Ok(found)] = &found.unwrap()[..] else {
                panic!("one repository")
            };
            let case = format!("{operator} {target} {tag}");
            let expected = expected.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
            assert_eq!(met(found, tag), expected, "{case}");
        }
    }

    #[test]
    fn what_the_registry_does_not_have_is_named() {
        for (target, why) in [
            (json!([{"name": "team/x"}]), "the repository team/x"),
            (
                json!([{"name": "team/app", "matchConditions": ["a", "c"]}]),
                "the condition c",
            ),
            (
                json!([{"name": "busybox", "matchConditions": ["a"]}]),
                "the condition a",
            ),
            (json!([{"name": "Not:a/name"}]), "Not:a/name"),
        ] {
            let mut both = targets(target);
            both.extend(targets(json!([{"name": "busybox"}])));
            let found = wanted(&listed("Or"), &both).unwrap();
            let [Err(error), Ok(_)] = &found[..] else {
                panic!("what is there is wanted all the same")
            };
            assert!(error.is_permanent());
            assert!(error.to_string().contains(why), "{error}");
        }
        let broken = Access::unasked(json!({"uri": "a", "repositories": [
            {"name": "r", "matchConditions": [{"name": "c", "expression": "tag"}]},
        ]}));
        let found = wanted(&broken, &[]).unwrap();
        let [Err(error)] = &found[..] else {
            panic!("an error")
        };
        assert_eq!(
            error.to_string(),
            "the condition c of the repository r must yield bool and not string"
        );
    }

    #[test]
    fn a_short_name_is_a_library_of_docker_hub() {
        for name in ["busybox", "library/busybox"] {
            let found = wanted(&listed("Or"), &targets(json!([{ "name": name }]))).unwrap();
            let first = found[0].as_ref().unwrap();
            assert_eq!(first.repository.name(), "library/busybox");
        }
        let all = Access::unasked(json!({"uri": "registry.example"}));
        assert!(wanted(&all, &[]).is_none(), "the catalog is asked");
        let found = wanted(&all, &targets(json!([{"name": "busybox"}]))).unwrap();
        assert_eq!(found[0].as_ref().unwrap().repository.name(), "busybox");
    }
}
