//! What conditions name and the registry does not have. It is no failure, and it should not go
//! unnoticed: a job says so, and a Registry of the workload scan keeps it, so that a workload can be
//! told that its image is gone. Only one job at a time works on a Registry, so nobody else writes
//! that note meanwhile.

use crate::access::Access;
use crate::listing::spelled;
use crate::message::Job;
use crate::object::{MISSING, NOT_FOUND, REGISTRY, is_absent, noted};
use crate::tally::Tally;
use crate::work::{Operator, Trouble};
use kube::api::ObjectMeta;
use muster_api::filter::MatchCondition;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How many things that are not there a job names.
const MOST_TOLD: usize = 20;
/// How many a Registry keeps.
const MOST_KEPT: usize = 200;

/// What a Registry says that its registry does not have.
pub(crate) fn of(registry: &ObjectMeta) -> BTreeSet<String> {
    let kept = noted(registry, MISSING).and_then(|text| serde_json::from_str(text).ok());
    kept.unwrap_or_default()
}

/// What is missing after a job, of which it is known only what it looked at, and of what the Registry
/// still names.
fn after(
    before: &BTreeSet<String>,
    tally: &Tally,
    whole: bool,
    is_named: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    // Where looking failed nobody can tell whether it has come back.
    let kept = match whole && tally.failures.is_empty() {
        true => BTreeSet::new(),
        false => before.difference(&tally.present).cloned().collect(),
    };
    let all = kept.union(&tally.missing).filter(|name| is_named(name));
    all.take(MOST_KEPT).cloned().collect()
}

/// Everything that the conditions of a Registry name, as [`spelled`] does.
fn named(access: &Access) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for filter in &access.spec.repositories {
        let Ok(repository) = access.repository(&filter.name) else {
            continue;
        };
        for condition in &filter.match_conditions {
            let condition = MatchCondition::parse(&condition.expression).ok();
            if let Some(exact) = condition.as_ref().and_then(MatchCondition::exact) {
                named.insert(spelled(&repository, exact));
            }
        }
    }
    named
}

/// Says on the job what is not there.
pub(crate) async fn tell(
    operator: &Operator,
    job: &Job,
    access: &Access,
    tally: &Tally,
) -> Result<(), Trouble> {
    let missing = &tally.missing;
    if missing.is_empty() {
        return Ok(());
    }
    tracing::info!(job = job.name, ?missing, "not in the registry");
    let whole = |name: &String| format!("{}/{name}", access.host);
    let told: Vec<String> = missing.iter().take(MOST_TOLD).map(whole).collect();
    let patch = json!({"metadata": {"annotations": {NOT_FOUND: json!(told).to_string()}}});
    let (client, kind) = (operator.client(), job.kind.object());
    match kind.merge(client, &job.namespace, &job.name, &patch).await {
        Err(error) if is_absent(&error) => Ok(()),
        other => Ok(other?),
    }
}

/// Keeps on a Registry of the workload scan what is not there; nothing is written if that is known.
pub(crate) async fn keep(
    operator: &Operator,
    job: &Job,
    access: &Access,
    tally: &Tally,
    whole: bool,
) -> Result<(), Trouble> {
    if access.inherited.is_empty() || access.missing.is_empty() && tally.missing.is_empty() {
        return Ok(());
    }
    let named = named(access);
    let now = after(&access.missing, tally, whole, |name| named.contains(name));
    if now == access.missing {
        return Ok(());
    }
    let text = match now.is_empty() {
        true => Value::Null,
        false => json!(json!(now).to_string()),
    };
    let patch = json!({"metadata": {"annotations": {MISSING: text}}});
    let (client, name) = (operator.client(), &access.name);
    match REGISTRY.merge(client, &job.namespace, name, &patch).await {
        Err(error) if is_absent(&error) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_a_job_did_not_look_at_stays_missing() {
        let before = names(&["a:1", "a:2", "b@d"]);
        for (missing, present, whole, failed, expected) in [
            (
                &["a:3"][..],
                &["a:1"][..],
                false,
                false,
                &["a:2", "a:3", "b@d"][..],
            ),
            (&["a:3"], &["a:1"], true, false, &["a:3"]),
            (&["a:3"], &["a:1"], true, true, &["a:2", "a:3", "b@d"]),
            (&[], &["a:1", "a:2", "b@d", "c:1"], false, false, &[]),
            (
                &["a:1", "a:2", "b@d"],
                &[],
                true,
                false,
                &["a:1", "a:2", "b@d"],
            ),
        ] {
            let tally = Tally {
                missing: names(missing),
                present: names(present),
                failures: failed.then(|| "no answer".to_owned()).into_iter().collect(),
                ..Tally::default()
            };
            assert_eq!(
                after(&before, &tally, whole, |_| true),
                names(expected),
                "{present:?}"
            );
        }
    }

    #[test]
    fn a_note_is_bounded_and_one_of_another_shape_is_none() {
        // Of what was missing before, only what is still named.
        let before = names(&["b:1", "b:2"]);
        let tally = Tally {
            missing: (0..1000).map(|number| format!("a:{number}")).collect(),
            ..Tally::default()
        };
        let kept = after(&BTreeSet::new(), &tally, true, |_| true);
        assert_eq!(kept.len(), MOST_KEPT);
        let kept = after(&before, &tally, false, |name| {
            name == "b:1" || name == "a:7"
        });
        assert_eq!(kept, names(&["a:7", "b:1"]));
        for (text, expected) in [("[\"a:1\"]", names(&["a:1"])), ("{}", names(&[]))] {
            let annotations = [(MISSING.to_owned(), text.to_owned())].into();
            let registry = ObjectMeta {
                annotations: Some(annotations),
                ..ObjectMeta::default()
            };
            assert_eq!(of(&registry), expected);
        }
    }
}
