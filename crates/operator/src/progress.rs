//! What the stages say of the job they work for, whatever its kind: each kind of job keeps a status
//! of its own.

use crate::message::{Job, JobKind};
use crate::object::{REGISTRY, is_absent};
use crate::work::{Operator, Trouble};
use crate::{discovery, reconcile};
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// What is noted on a Registry begins with this.
const NOTE: &str = "sbomscanner.kubewarden.io/last-";

/// The job itself, if it is still the same and its results are wanted.
pub(crate) async fn live(operator: &Operator, job: &Job) -> Result<Option<DynamicObject>, Trouble> {
    match job.kind {
        JobKind::ScanJob => reconcile::live(operator, job).await,
        JobKind::RegistryDiscovery => discovery::reconcile::live(operator, job).await,
    }
}

/// Says that work on a job has begun.
pub(crate) async fn begin(operator: &Operator, job: &Job) -> Result<(), Trouble> {
    match job.kind {
        JobKind::ScanJob => {
            reconcile::begin(operator, job).await?;
            let Some(object) = reconcile::live(operator, job).await? else {
                return Ok(());
            };
            let registry = object.data["spec"]["registry"].as_str().unwrap_or_default();
            let notes = [
                ("job-name", job.name.clone()),
                ("job-type", "scan".to_owned()),
            ];
            note(operator, &job.namespace, registry, &notes).await
        }
        JobKind::RegistryDiscovery => discovery::reconcile::begin(operator, job).await,
    }
}

/// Says how many images a job has, and what could not be listed.
pub(crate) async fn listed(
    operator: &Operator,
    job: &Job,
    images: usize,
    unlisted: &[String],
) -> Result<(), Trouble> {
    match job.kind {
        JobKind::ScanJob => reconcile::listed(operator, job, images, unlisted).await,
        JobKind::RegistryDiscovery => {
            discovery::reconcile::listed(operator, job, images, unlisted).await
        }
    }
}

/// Ends a job that cannot be done.
pub(crate) async fn fail(operator: &Operator, job: &Job, why: &str) -> Result<(), Trouble> {
    match job.kind {
        JobKind::ScanJob => reconcile::fail(operator, job, why).await,
        JobKind::RegistryDiscovery => discovery::reconcile::fail(operator, job, why).await,
    }
}

/// Notes something about the last job on a Registry, if that is still there.
pub(crate) async fn note(
    operator: &Operator,
    namespace: &str,
    registry: &str,
    notes: &[(&str, String)],
) -> Result<(), Trouble> {
    let notes = notes
        .iter()
        .map(|(key, value)| (format!("{NOTE}{key}"), json!(value)));
    let patch = json!({"metadata": {"annotations": Value::Object(notes.collect())}});
    match REGISTRY
        .merge(operator.client(), namespace, registry, &patch)
        .await
    {
        Err(error) if is_absent(&error) => Ok(()),
        other => Ok(other?),
    }
}
