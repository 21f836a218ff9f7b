//! One look at a namespace: its reports and its histories are read, and what is new is written. A
//! history that cannot be written holds up no other.

use super::plan::{CURRENT, Change, Known, Report, plan};
use super::point::{points, record};
use crate::object::{FINDING_HISTORY, MANAGER, WORKLOAD_REPORT, is_owned, noted};
use crate::work::Trouble;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::{Client, ResourceExt};
use muster_api::guard::{MANAGED_BY, MANAGER as SCANNER, WORKLOAD_SCAN};
use muster_api::history::{LABEL, OF_NAMESPACE, OF_WORKLOAD};
use serde_json::json;
use std::collections::BTreeMap;

/// How many histories are written at once.
const AT_ONCE: usize = 4;

/// Makes the histories of a namespace say what there is.
pub(super) async fn namespace(client: &Client, namespace: &str) -> Result<(), Trouble> {
    let reports: Vec<Report> = WORKLOAD_REPORT.list_brief(client, namespace).await?;
    let histories = FINDING_HISTORY.metadata(client, namespace, ListParams::default());
    let histories = histories.await?.into_iter();
    let known: BTreeMap<String, Known> = histories
        .filter_map(|metadata| Some((metadata.name.clone()?, Known::read(&metadata))))
        .collect();
    let changes = plan(&reports, &known).into_iter();
    let writes = changes.map(|change| write(client.clone(), namespace.to_owned(), change));
    let mut written = stream::iter(writes).buffer_unordered(AT_ONCE);
    let mut outcome = Ok(());
    while let Some(one) = written.next().await {
        // The last failure is as good as any: all that failed is tried again.
        outcome = one.and(outcome);
    }
    outcome
}

/// Has a history say what is new.
async fn write(client: Client, namespace: String, change: Change) -> Result<(), Trouble> {
    let api = FINDING_HISTORY.within(&client, &namespace);
    let stored = api.get_opt(&change.name).await?;
    let Some(history) = history(stored.as_ref(), &namespace, &change, Timestamp::now())? else {
        return Ok(());
    };
    let parameters = PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    };
    match stored {
        Some(_) => api.replace(&change.name, &parameters, &history).await?,
        None => api.create(&parameters, &history).await?,
    };
    Ok(())
}

/// A history as it should be; none if it says so already.
fn history(
    stored: Option<&DynamicObject>,
    namespace: &str,
    change: &Change,
    now: Timestamp,
) -> Result<Option<DynamicObject>, Trouble> {
    // The history of a report that had this name before is not this one's.
    let is_ours = |stored: &&DynamicObject| {
        let report = change.report.as_deref();
        report.is_none_or(|report| is_owned(&stored.metadata, report))
    };
    let before = match stored.filter(is_ours) {
        Some(ours) => points(&ours.data).map_err(Trouble::permanent)?,
        None => Vec::new(),
    };
    let current = serde_json::to_string(&change.tally).map_err(Trouble::permanent)?;
    let note = stored.and_then(|stored| noted(&stored.metadata, CURRENT));
    let after = match record(&before, change.tally, now) {
        Some(after) => after,
        None if note == Some(&current) => return Ok(None),
        None => before,
    };
    let mut history = match stored {
        Some(stored) => stored.clone(),
        None => DynamicObject::new(&change.name, &FINDING_HISTORY.resource()).within(namespace),
    };
    history.annotations_mut().insert(CURRENT.into(), current);
    let of = match change.report {
        Some(_) => OF_WORKLOAD,
        None => OF_NAMESPACE,
    };
    for (label, value) in [(LABEL, of), (MANAGED_BY, SCANNER), (WORKLOAD_SCAN, "true")] {
        history.labels_mut().insert(label.into(), value.into());
    }
    if let Some(uid) = &change.report {
        let owner = json!([{
            "apiVersion": WORKLOAD_REPORT.api_version(), "kind": WORKLOAD_REPORT.kind,
            "name": change.name, "uid": uid, "controller": true, "blockOwnerDeletion": false,
        }]);
        let owner = serde_json::from_value(owner).map_err(Trouble::permanent)?;
        history.metadata.owner_references = Some(owner);
    }
    if !history.data.is_object() {
        history.data = json!({});
    }
    history.data["points"] = serde_json::to_value(after).map_err(Trouble::permanent)?;
    Ok(Some(history))
}

#[cfg(test)]
mod tests {
    use super::super::point::{Summary, Tally};
    use super::*;

    fn change(report: &str, critical: u64) -> Change {
        let summary = Summary {
            critical,
            ..Summary::default()
        };
        Change {
            name: "deployment-app".into(),
            report: Some(report.into()),
            tally: Tally {
                workloads: None,
                summary,
            },
        }
    }

    #[test]
    fn a_history_goes_with_its_report_and_begins_anew_with_another() {
        let now = |second| Timestamp::from_second(second).unwrap();
        let write = |stored: Option<&DynamicObject>, change: &Change, second| {
            history(stored, "shop", change, now(second)).unwrap()
        };
        let first = write(None, &change("a", 1), 10).unwrap();
        assert_eq!(first.namespace().as_deref(), Some("shop"));
        assert_eq!(first.labels()[LABEL], OF_WORKLOAD);
        assert!(is_owned(&first.metadata, "a"));
        assert_eq!(write(Some(&first), &change("a", 1), 20), None);
        let second = write(Some(&first), &change("a", 2), 20).unwrap();
        assert_eq!(points(&second.data).unwrap().len(), 2);
        let other = write(Some(&second), &change("b", 2), 30).unwrap();
        assert_eq!(points(&other.data).unwrap().len(), 1);
        assert!(is_owned(&other.metadata, "b") && !is_owned(&other.metadata, "a"));

        // A note that somebody took away is written again, and no point is.
        let mut bare = second.clone();
        bare.annotations_mut().clear();
        let noted = write(Some(&bare), &change("a", 2), 30).unwrap();
        assert_eq!(noted.data, second.data);
        assert!(noted.annotations().contains_key(CURRENT));
    }
}
