//! How many ScanJobs that have ended a Registry keeps. Jobs of the whole Registry and targeted ones
//! are counted apart, so that the many small ones push no full one out; one that runs always stays.

use crate::job;
use crate::message::Job;
use crate::object::{REGISTRY, SCAN_JOB, is_absent};
use crate::work::{Operator, Trouble};
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, ListParams, Preconditions};

/// How many are kept where the Registry does not say.
const USUAL: u64 = 10;

/// Deletes the oldest jobs of a Registry that are too many.
pub(crate) async fn prune(operator: &Operator, of: &Job, registry: &str) -> Result<(), Trouble> {
    let client = operator.client();
    let found = REGISTRY.within(client, &of.namespace);
    let Some(found) = found.get_opt(registry).await? else {
        // Its jobs go with it.
        return Ok(());
    };
    let limit = found.data["spec"]["scanJobsHistoryLimit"].as_u64();
    let limit = usize::try_from(limit.unwrap_or(USUAL)).unwrap_or(usize::MAX);
    let api = SCAN_JOB.within(client, &of.namespace);
    let selected = ListParams::default().fields(&format!("spec.registry={registry}"));
    let jobs = api.list(&selected).await?.items;
    for job in surplus(&jobs, limit) {
        let exactly = DeleteParams {
            preconditions: Some(Preconditions {
                uid: job.uid(),
                resource_version: None,
            }),
            ..DeleteParams::background()
        };
        match api.delete(&job.name_any(), &exactly).await {
            Err(error) if !is_absent(&error) => return Err(error.into()),
            _ => tracing::debug!(job = job.name_any(), "an old ScanJob is deleted"),
        }
    }
    Ok(())
}

/// The jobs that are too many.
fn surplus(jobs: &[DynamicObject], limit: usize) -> Vec<&DynamicObject> {
    let is_targeted = |job: &DynamicObject| {
        let targets = job.data["spec"]["repositories"].as_array();
        targets.is_some_and(|targets| !targets.is_empty())
    };
    let mut surplus = Vec::new();
    for targeted in [false, true] {
        let ended = jobs
            .iter()
            .filter(|job| job::has_ended(&job.data["status"]));
        let mut ended: Vec<_> = ended.filter(|job| is_targeted(job) == targeted).collect();
        ended.sort_by_cached_key(|job| {
            let end = job.data["status"]["completionTime"].as_str();
            let end = end.unwrap_or_default().to_owned();
            std::cmp::Reverse((end, job.creation_timestamp(), job.name_any()))
        });
        surplus.extend(ended.into_iter().skip(limit));
    }
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job(name: &str, end: Option<&str>, is_targeted: bool) -> DynamicObject {
        let mut job = DynamicObject::new(name, &SCAN_JOB.resource());
        let targets = if is_targeted {
            json!([{"name": "r"}])
        } else {
            json!([])
        };
        job.data = json!({"spec": {"repositories": targets}});
        if let Some(end) = end {
            let complete = json!([{"type": "Complete", "status": "True"}]);
            job.data["status"] = json!({"completionTime": end, "conditions": complete});
        }
        job
    }

    #[test]
    fn the_oldest_go_and_targeted_jobs_push_no_full_one_out() {
        let jobs = [
            job("first", Some("2026-01-01T00:00:00Z"), false),
            job("running", None, false),
            job("second", Some("2026-01-02T00:00:00Z"), false),
            job("small-1", Some("2026-01-03T00:00:00Z"), true),
            job("small-2", Some("2026-01-04T00:00:00Z"), true),
            job("small-3", Some("2026-01-05T00:00:00Z"), true),
        ];
        for (limit, expected) in [
            (0, &["second", "first", "small-3", "small-2", "small-1"][..]),
            (1, &["first", "small-2", "small-1"]),
            (2, &["small-1"]),
            (3, &[]),
        ] {
            let names: Vec<_> = surplus(&jobs, limit)
                .iter()
                .map(|job| job.name_any())
                .collect();
            assert_eq!(names, expected, "{limit}");
        }
    }
}
