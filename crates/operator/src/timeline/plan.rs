//! Which histories of a namespace have something new to say, given its reports and what the histories
//! said last. A workload that is being scanned counts as it last did: what is not known yet must not
//! look as if it had been mended. Pure.

use super::point::{Summary, Tally};
use crate::object::noted;
use kube::api::ObjectMeta;
use muster_api::history::OF_NAMESPACE;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a history said last, on the history: with it, one that says nothing new need not be read.
pub(super) const CURRENT: &str = "sbomscanner.kubewarden.io/current";

/// A report of a workload, without its findings.
#[derive(Debug, Deserialize)]
pub(super) struct Report {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    summary: Option<Summary>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    container_statuses: Vec<Container>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    scan_status: String,
    #[serde(default)]
    message: Option<String>,
}

impl Report {
    /// What was found, once it is all that can be: every image is scanned, or cannot be, and one is.
    fn found(&self) -> Option<Summary> {
        let containers = &self.status.container_statuses;
        let is_scanned = |one: &Container| one.scan_status == "ScanComplete";
        let is_settled = |one: &Container| is_scanned(one) || one.message.is_some();
        let all = containers.iter().all(is_settled) && containers.iter().any(is_scanned);
        self.summary.filter(|_| all)
    }
}

/// A history as far as its metadata tells.
#[derive(Debug, Default)]
pub(super) struct Known {
    owner: Option<String>,
    current: Option<Tally>,
}

impl Known {
    pub(super) fn read(metadata: &ObjectMeta) -> Self {
        let owner = metadata.owner_references.iter().flatten().next();
        let current = noted(metadata, CURRENT).and_then(|text| serde_json::from_str(text).ok());
        Known {
            owner: owner.map(|owner| owner.uid.clone()),
            current,
        }
    }
}

/// What a history is to say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) name: String,
    /// The UID of the report that it goes with; none if it is the namespace's.
    pub(super) report: Option<String>,
    pub(super) tally: Tally,
}

/// What is to be written in a namespace.
pub(super) fn plan(reports: &[Report], known: &BTreeMap<String, Known>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut sum = Tally::nothing();
    for report in reports {
        let Metadata { name, uid } = &report.metadata;
        let known = known.get(name);
        // The history of a report that had this name before is not this one's.
        let known = known.filter(|known| known.owner.as_ref() == Some(uid));
        let before = known.and_then(|known| known.current);
        let found = report.found().map(|summary| Tally {
            workloads: None,
            summary,
        });
        let Some(now) = found.or(before) else {
            continue;
        };
        sum.add(&now.summary);
        if Some(now) != before && name != OF_NAMESPACE {
            changes.push(Change {
                name: name.clone(),
                report: Some(uid.clone()),
                tally: now,
            });
        }
    }
    let before = known.get(OF_NAMESPACE).and_then(|known| known.current);
    // Where nothing was ever counted, nothing need be said.
    if before.unwrap_or_else(Tally::nothing) != sum {
        changes.push(Change {
            name: OF_NAMESPACE.into(),
            report: None,
            tally: sum,
        });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn report(name: &str, critical: u64, statuses: Value) -> Report {
        let report = json!({
            "metadata": {"name": name, "uid": format!("{name}-uid")},
            "status": {"containerStatuses": statuses}, "summary": {"critical": critical},
        });
        serde_json::from_value(report).unwrap()
    }

    fn known(entries: &[(&str, &str, Value)]) -> BTreeMap<String, Known> {
        let known = entries.iter().map(|(name, owner, tally)| {
            let mut metadata = json!({"annotations": {CURRENT: tally.to_string()}});
            if !owner.is_empty() {
                metadata["ownerReferences"] =
                    json!([{"apiVersion": "v1", "kind": "X", "name": name, "uid": owner}]);
            }
            let metadata = serde_json::from_value(metadata).unwrap();
            ((*name).to_owned(), Known::read(&metadata))
        });
        known.collect()
    }

    /// Name, workloads and critical findings of every change.
    fn told(changes: &[Change]) -> Vec<(&str, Option<u64>, u64)> {
        let told = |change: &Change| {
            let Tally { workloads, summary } = change.tally;
            (workloads, summary.critical)
        };
        let told = changes.iter().map(|change| {
            let (workloads, critical) = told(change);
            (change.name.as_str(), workloads, critical)
        });
        told.collect()
    }

    #[test]
    fn what_is_new_is_told_of_workloads_and_of_their_namespace() {
        let done = || json!([{"scanStatus": "ScanComplete"}]);
        let reports = [report("a", 1, done()), report("b", 2, done())];
        let namespace = |workloads: u64, critical: u64| json!({"workloads": workloads, "summary": {"critical": critical}});
        let one = |critical: u64| json!({"summary": {"critical": critical}});
        for (before, expected, case) in [
            (
                known(&[]),
                &[("a", None, 1), ("b", None, 2), ("namespace", Some(2), 3)][..],
                "all is new",
            ),
            (
                known(&[
                    ("a", "a-uid", one(1)),
                    ("b", "b-uid", one(2)),
                    ("namespace", "", namespace(2, 3)),
                ]),
                &[],
                "nothing is",
            ),
            (
                known(&[
                    ("a", "a-uid", one(1)),
                    ("b", "b-uid", one(3)),
                    ("namespace", "", namespace(2, 4)),
                ]),
                &[("b", None, 2), ("namespace", Some(2), 3)],
                "one was mended",
            ),
            (
                known(&[
                    ("a", "other-uid", one(1)),
                    ("b", "b-uid", one(2)),
                    ("namespace", "", namespace(2, 3)),
                ]),
                &[("a", None, 1)],
                "a workload came again",
            ),
        ] {
            assert_eq!(told(&plan(&reports, &before)), expected, "{case}");
        }
        let left = known(&[("namespace", "", namespace(2, 3))]);
        assert_eq!(told(&plan(&[], &left)), [("namespace", Some(0), 0)]);
        let empty = known(&[("namespace", "", namespace(0, 0))]);
        assert_eq!(plan(&[], &empty), []);
    }

    #[test]
    fn a_workload_that_is_being_scanned_counts_as_it_last_did() {
        let before = known(&[
            ("a", "a-uid", json!({"summary": {"critical": 5}})),
            (
                "namespace",
                "",
                json!({"workloads": 1, "summary": {"critical": 5}}),
            ),
        ]);
        for (statuses, is_counted) in [
            (json!([]), false),
            (json!([{"scanStatus": "WaitingForScan"}]), false),
            (
                json!([{"scanStatus": "ScanComplete"}, {"scanStatus": "ScanInProgress"}]),
                false,
            ),
            (
                json!([{"scanStatus": "WaitingForScan", "message": "gone"}]),
                false,
            ),
            (
                json!([{"scanStatus": "ScanComplete"}, {"scanStatus": "WaitingForScan", "message": "gone"}]),
                true,
            ),
        ] {
            let reports = [report("a", 0, statuses.clone())];
            let changes = plan(&reports, &before);
            assert_eq!(!changes.is_empty(), is_counted, "{statuses}: {changes:?}");
            let changes = plan(&reports, &known(&[]));
            assert_eq!(!changes.is_empty(), is_counted, "{statuses}: {changes:?}");
        }
    }
}
