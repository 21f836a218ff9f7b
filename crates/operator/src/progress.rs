//! What the stages say of the job they work for, whatever its kind, and what they leave for its
//! reconciler. Each kind of job keeps a status of its own, written by compare-and-swap: what has
//! changed since it was looked at is looked at again, and decides anew.

use crate::message::{Job, JobKind};
use crate::object::{CATALOGED, FAILURE, MANAGER, REGISTRY, is_absent, noted};
use crate::work::{Operator, Trouble};
use crate::{discovery, events, news, reconcile, trace};
use kube::ResourceExt;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many reasons are kept for what could not be listed.
const MOST_UNLISTED: usize = 1000;

/// What the catalog came to. It is written in one piece, when every image exists.
#[derive(Deserialize, Serialize)]
pub(crate) struct Cataloged {
    /// How many images there are.
    pub(crate) images: usize,
    /// Why something could not be listed.
    pub(crate) unlisted: Vec<String>,
}

impl Cataloged {
    pub(crate) fn of(object: &DynamicObject) -> Option<Self> {
        serde_json::from_str(noted(&object.metadata, CATALOGED)?).ok()
    }

    /// Writes it on a job that still wants to know.
    pub(crate) async fn keep(mut self, operator: &Operator, job: &Job) -> Result<(), Trouble> {
        self.unlisted.truncate(MOST_UNLISTED);
        let text = json!(self).to_string();
        let (client, kind) = (operator.client(), job.kind.object());
        loop {
            let Some(object) = live(operator, job).await? else {
                return Ok(());
            };
            let patch = json!({"metadata": {
                "resourceVersion": object.metadata.resource_version,
                "annotations": {CATALOGED: text},
            }});
            let written = kind.merge(client, &job.namespace, &job.name, &patch).await;
            match written.map_err(Trouble::from) {
                Err(trouble) if trouble.is_conflict() => {}
                other => return other,
            }
        }
    }
}

/// Why a job cannot scan an image.
pub(crate) fn failure(image: &ObjectMeta, job: &Job) -> Option<String> {
    let (uid, why) = noted(image, FAILURE)?.split_once(": ")?;
    (uid == job.uid).then(|| why.to_owned())
}

/// Writes a job's status, if it says anything new, to the very state that was looked at.
pub(crate) async fn tell(
    operator: &Operator,
    kind: JobKind,
    object: &DynamicObject,
    status: Value,
) -> Result<(), Trouble> {
    let before = &object.data["status"];
    let mut fields = status.as_object().into_iter().flatten();
    if fields.all(|(field, value)| before[field] == *value) {
        return Ok(());
    }
    let namespace = object.namespace().unwrap_or_default();
    let api = kind.object().within(operator.client(), &namespace);
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": object.metadata.resource_version},
        "status": &status,
    }));
    let (name, parameters) = (object.name_any(), PatchParams::apply(MANAGER));
    match api.patch_status(&name, &parameters, &patch).await {
        Err(error) if is_absent(&error) => return Ok(()),
        other => other?,
    };
    announce(operator, kind, object, &status).await;
    Ok(())
}

/// Counts and tells what a job's new status says that the old one did not.
async fn announce(operator: &Operator, kind: JobKind, object: &DynamicObject, status: &Value) {
    let before = &object.data["status"];
    let after = laid_over(before, status);
    if let Some(end) = news::end_of_job(kind, before, &after) {
        operator.metrics().ended(kind, &end.reason);
        trace::keep_job(operator.tracer(), kind, object, &after, end);
    }
    if let Some(news) = news::of_job(kind, before, &after) {
        events::tell(operator, kind.object(), &object.metadata, &news).await;
    }
}

/// A status with some of its fields replaced.
pub(crate) fn laid_over(before: &Value, status: &Value) -> Value {
    let mut after = before.as_object().cloned().unwrap_or_default();
    after.extend(status.as_object().cloned().unwrap_or_default());
    Value::Object(after)
}

/// Writes to the status of a job that is still wanted, however often others write meanwhile.
pub(crate) async fn insist(
    operator: &Operator,
    job: &Job,
    status: impl Fn(&DynamicObject) -> Value,
) -> Result<(), Trouble> {
    loop {
        let Some(object) = live(operator, job).await? else {
            return Ok(());
        };
        match tell(operator, job.kind, &object, status(&object)).await {
            Err(trouble) if trouble.is_conflict() => {}
            other => return other,
        }
    }
}

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
    unlisted: Vec<String>,
) -> Result<(), Trouble> {
    match job.kind {
        JobKind::ScanJob => {
            // What could not be listed is among the images that could not be scanned.
            let images = images.saturating_add(unlisted.len());
            Cataloged { images, unlisted }.keep(operator, job).await
        }
        JobKind::RegistryDiscovery => {
            discovery::reconcile::listed(operator, job).await?;
            Cataloged { images, unlisted }.keep(operator, job).await
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
