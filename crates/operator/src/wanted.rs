//! What of a Registry a job is about: its repositories with their conditions, or those that the job
//! names. A job never widens its Registry: where all conditions must hold, naming some of them
//! chooses the repository and the others hold too. How an image is labelled is for all conditions
//! of the Registry to say, whichever of them a job names.

use crate::access::{Access, Condition, Filter};
use crate::work::Trouble;
use muster_api::filter::{MatchCondition, Operator, Selection};
use muster_registry::Repository;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A repository that a ScanJob names, with the names of its conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) match_conditions: Vec<String>,
}

/// Labels of images.
pub(crate) type Labels = BTreeMap<String, String>;

/// A repository and which of its images are wanted; a condition keeps the labels of what meets it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) repository: Repository,
    /// What the job is about.
    pub(crate) selection: Arc<Selection<Labels>>,
    /// What the Registry wants; the same thing, unless the job names conditions.
    pub(crate) every: Arc<Selection<Labels>>,
}

impl Wanted {
    /// Everything in a repository.
    pub(crate) fn whole(repository: Repository) -> Self {
        let everything = Arc::new(Selection::new(Vec::new(), Operator::And));
        Wanted {
            repository,
            selection: everything.clone(),
            every: everything,
        }
    }

    /// Whether the job is about less than the Registry.
    pub(crate) fn is_narrowed(&self) -> bool {
        !Arc::ptr_eq(&self.selection, &self.every)
    }

    /// The labels of an image: those of the conditions that hold for what it was found by, and of
    /// those that name another digest it is known by.
    pub(crate) fn labels<'a>(
        &self,
        tag: Option<&str>,
        found_by: &str,
        digests: impl Iterator<Item = &'a str>,
    ) -> Labels {
        let holding = self.every.judge(tag, found_by).unwrap_or_default();
        let mut labels: Labels = Labels::new();
        for more in holding
            .into_iter()
            .chain(digests.flat_map(|digest| self.every.naming(digest)))
        {
            labels.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        labels
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
    let parse = |condition: &Condition| {
        let parsed = MatchCondition::parse(&condition.expression).map_err(|error| {
            Trouble::permanent(format!(
                "the condition {} of the repository {} {error}",
                condition.name, filter.name
            ))
        })?;
        Ok::<_, Trouble>((parsed, condition.labels.clone()))
    };
    let all = filter.match_conditions.iter();
    let repository = access.repository(&filter.name)?;
    if operator == Operator::And || names.is_empty() {
        let every = all.map(parse).collect::<Result<_, _>>()?;
        let every = Arc::new(Selection::new(every, operator));
        return Ok(Wanted {
            repository,
            selection: every.clone(),
            every,
        });
    }
    let chosen = all.clone().filter(|one| names.contains(&one.name));
    let chosen = chosen.map(parse).collect::<Result<_, _>>()?;
    // Those that the job does not name cannot spoil it.
    let every = all.filter_map(|one| parse(one).ok()).collect();
    Ok(Wanted {
        repository,
        selection: Arc::new(Selection::new(chosen, operator)),
        every: Arc::new(Selection::new(every, operator)),
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
    fn an_image_is_labelled_by_every_condition_that_means_it() {
        let condition = |name: &str, expression: &str| json!({"name": name, "expression": expression, "labels": {name: "true"}});
        let access = Access::unasked(json!({"uri": "a", "repositories": [
            {"name": "app", "matchOperator": "Or", "matchConditions": [
                condition("tag", "tag == '1'"), condition("index", "digest == 'i'"),
                condition("manifest", "digest == 'm'"), condition("other", "digest == 'o'"),
                condition("not", "digest != 'i'"),
            ]},
        ]}));
        for names in [json!([]), json!(["manifest"])] {
            let target = targets(json!([{"name": "app", "matchConditions": names}]));
            let found = wanted(&access, &target).unwrap();
            let [Ok(found)] = &found[..] else {
                panic!("one repository")
            };
            let labels = found.labels(Some("1"), "i", ["i", "m", "c"].into_iter());
            let labels: Vec<&str> = labels.keys().map(String::as_str).collect();
            assert_eq!(labels, ["index", "manifest", "tag"], "{names}");
            assert_eq!(found.is_narrowed(), names != json!([]));
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
