//! What follows for each resource from who judges it now and who did before. Pure: what is done about
//! it is done elsewhere ([`super::settle`]). A kind whose policies are the same as before is not touched.

use super::Desk;
use crate::ledger::Place;
use std::collections::HashMap;

/// What has to be done about which resources.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// All of their objects are looked at.
    pub(super) judged: Vec<Place>,
    /// Nobody has anything to say about them: their reports go.
    pub(super) left: Vec<Place>,
    /// Nobody serves them any longer, so there is nothing to watch.
    pub(super) gone: Vec<Place>,
}

/// What is judged differently than before. Whether an object is judged at all may depend on who judges
/// the kind of its owner, so where a workload changes all of them are looked at.
pub(super) fn changed(before: &HashMap<Place, Desk>, now: &HashMap<Place, Desk>) -> Changed {
    let hash = |desk: &Desk| desk.sheet.as_ref().map(|sheet| sheet.hash().to_owned());
    let differs = |place: &Place, desk: &Desk| {
        before
            .get(place)
            .is_none_or(|old| hash(old) != hash(desk) || old.served != desk.served)
    };
    let owners = now.iter().any(|(place, desk)| {
        desk.kind.is_workload()
            && before
                .get(place)
                .is_some_and(|old| covered(old) != covered(desk))
    });
    let mut changed = Changed::default();
    for (place, desk) in now {
        match &desk.sheet {
            Some(_) if differs(place, desk) || owners && desk.kind.is_workload() => {
                changed.judged.push(place.clone());
            }
            None if differs(place, desk) => changed.left.push(place.clone()),
            _ => {}
        }
    }
    let gone = before.keys().filter(|place| !now.contains_key(*place));
    changed.gone.extend(gone.cloned());
    changed
}

/// The policies that judge a kind, by name.
fn covered(desk: &Desk) -> Vec<String> {
    let sheet = desk.sheet.iter();
    let policies = sheet.flat_map(|sheet| sheet.policies());
    policies.map(|policy| policy.id.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::testing::desks;

    /// Names of resources, in their order.
    fn names(places: &[Place]) -> Vec<&str> {
        let mut names: Vec<&str> = places.iter().map(|place| place.1.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn only_what_is_judged_differently_is_looked_at() {
        const SERVED: &[&str] = &[
            "v1 Pod",
            "v1 Service",
            "v1 Secret",
            "apps/v1 Deployment",
            "apps/v1 ReplicaSet",
        ];
        const LATER: &[&str] = &[
            "v1 Pod",
            "v2 Service",
            "v1 Secret",
            "apps/v1 Deployment",
            "apps/v1 ReplicaSet",
        ];
        let (service, workload, pod) = (
            ["service", "Service", "1"],
            ["workload", "Workload", "1"],
            ["pod", "Pod", "1"],
        );
        let all = [service, workload];
        let changed_service = [["service", "Service", "2"], workload];
        let changed_pod = [service, workload, ["pod", "Pod", "2"]];
        let workloads = &["deployments", "pods", "replicasets"][..];
        let judged = &["deployments", "pods", "replicasets", "services"][..];
        let none = &[][..];
        type Policies<'a> = &'a [[&'static str; 3]];
        type Row<'a> = (
            &'static str,
            Option<(Policies<'a>, &'a str, &'a [&'static str])>,
            (Policies<'a>, &'a str, &'a [&'static str]),
            [&'a [&'static str]; 3],
        );
        let rows: [Row; 13] = [
            (
                "the first time",
                None,
                (&all, "1", SERVED),
                [judged, &["secrets"], none],
            ),
            (
                "the same",
                Some((&all, "1", SERVED)),
                (&all, "1", SERVED),
                [none, none, none],
            ),
            (
                "one kind's text",
                Some((&all, "1", SERVED)),
                (&changed_service, "1", SERVED),
                [&["services"], none, none],
            ),
            (
                "a library",
                Some((&all, "1", SERVED)),
                (&all, "2", SERVED),
                [judged, none, none],
            ),
            (
                "the last policy about a kind is gone",
                Some((&all, "1", SERVED)),
                (&[workload], "1", SERVED),
                [none, &["services"], none],
            ),
            (
                "the first policy about a kind",
                Some((&[workload], "1", SERVED)),
                (&all, "1", SERVED),
                [&["services"], none, none],
            ),
            (
                "a policy about pods comes",
                Some((&all, "1", SERVED)),
                (&[service, workload, pod], "1", SERVED),
                [workloads, none, none],
            ),
            (
                "a policy about pods goes",
                Some((&[service, workload, pod], "1", SERVED)),
                (&all, "1", SERVED),
                [workloads, none, none],
            ),
            (
                "the text of a policy about pods",
                Some((&[service, workload, pod], "1", SERVED)),
                (&changed_pod, "1", SERVED),
                [&["pods"], none, none],
            ),
            (
                "all policies about workloads go",
                Some((&all, "1", SERVED)),
                (&[service], "1", SERVED),
                [none, workloads, none],
            ),
            (
                "another version is served",
                Some((&all, "1", SERVED)),
                (&all, "1", LATER),
                [&["services"], none, none],
            ),
            (
                "a kind is served no longer",
                Some((&all, "1", SERVED)),
                (&all, "1", &SERVED[..4]),
                [none, none, &["replicasets"]],
            ),
            (
                "a kind is served for the first time",
                Some((&all, "1", &SERVED[..4])),
                (&all, "1", SERVED),
                [&["replicasets"], none, none],
            ),
        ];
        for (what, before, now, expected) in rows {
            let before = before.map(|(policies, library, served)| desks(policies, library, served));
            let now = desks(now.0, now.1, now.2);
            let changed = changed(&before.unwrap_or_default(), &now);
            let found = [&changed.judged, &changed.left, &changed.gone];
            assert_eq!(found.map(|places| names(places)), expected, "{what}");
        }
    }
}
