//! The ScanJob's reconciler: load what is there, decide how far the job has come, hand out what is
//! missing, and say so in its status. It is woken by the job and by what is made for it; should
//! every message be lost, it hands them out again.

use crate::job::{self, Facts, Phase};
use crate::message::{CATALOG, GENERATE, Job, JobKind, Message};
use crate::object::{
    CLAIM, FAILURE, IMAGE, JOB_NAME, Kind, MANAGER, REGISTRY, REPORT, SBOM, SCAN_JOB, UNLISTED,
    is_absent, now,
};
use crate::work::{Operator, Trouble};
use futures::StreamExt;
use kube::api::{DynamicObject, ListParams, ObjectMeta, PartialObjectMeta, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A job under way is looked at this often, whatever happens.
const AGAIN: Duration = Duration::from_secs(30);
/// After trouble.
const SOON: Duration = Duration::from_secs(5);

/// Reconciles until `stop`.
pub(crate) async fn run(operator: Arc<Operator>, stop: CancellationToken) {
    let client = operator.client();
    let marked = || watcher::Config::default().labels(JOB_NAME);
    let job_of = |object: PartialObjectMeta<DynamicObject>| {
        let name = object.labels().get(JOB_NAME).cloned();
        let namespace = object.namespace().unwrap_or_default();
        name.map(|name| ObjectRef::new_with(&name, SCAN_JOB.resource()).within(&namespace))
    };
    // Only the metadata: findings are many and large.
    let changes = |kind: Kind| -> Api<PartialObjectMeta<DynamicObject>> {
        Api::all_with(client.clone(), &kind.resource())
    };
    Controller::new_with(
        SCAN_JOB.all(client),
        watcher::Config::default(),
        SCAN_JOB.resource(),
    )
    .watches_with(changes(IMAGE), IMAGE.resource(), marked(), job_of)
    .watches_with(changes(REPORT), REPORT.resource(), marked(), job_of)
    .graceful_shutdown_on(stop.cancelled_owned())
    .run(reconcile, |_, _, _| Action::requeue(SOON), operator)
    .for_each(async |outcome| {
        if let Err(error) = outcome {
            tracing::warn!(%error, "reconciling ScanJobs");
        }
    })
    .await;
}

/// A job that changed while we looked at it is looked at again.
async fn reconcile(object: Arc<DynamicObject>, operator: Arc<Operator>) -> Result<Action, Trouble> {
    match look(&object, &operator).await {
        Err(trouble) if trouble.is_conflict() => Ok(Action::requeue(Duration::from_secs(1))),
        other => other,
    }
}

async fn look(object: &DynamicObject, operator: &Operator) -> Result<Action, Trouble> {
    let status = &object.data["status"];
    if job::has_ended(status) || object.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let job = Job {
        kind: JobKind::ScanJob,
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
    };
    if !claim(operator, object, &job).await? {
        write(operator, object, &Phase::Scheduled, &Facts::default()).await?;
        return Ok(Action::requeue(SOON));
    }
    let loaded = load(operator, object, &job).await?;
    let phase = job::phase(&loaded.facts);
    if !phase.has_ended() {
        hand_out(operator, &job, &loaded).await?;
    }
    write(operator, object, &phase, &loaded.facts).await?;
    Ok(match phase.has_ended() {
        true => Action::await_change(),
        false => Action::requeue(AGAIN),
    })
}

/// Takes the Registry for a job, by compare-and-swap: one job at a time looks through it. Says
/// whether it is the job's; it stays so until the job has ended.
async fn claim(operator: &Operator, object: &DynamicObject, job: &Job) -> Result<bool, Trouble> {
    let (client, namespace) = (operator.client(), &job.namespace);
    let name = object.data["spec"]["registry"].as_str().unwrap_or_default();
    let registry = REGISTRY
        .within(client, namespace)
        .get_metadata_opt(name)
        .await?;
    let Some(registry) = registry else {
        // There is nothing to take; the phase says so.
        return Ok(true);
    };
    match registry.annotations().get(CLAIM) {
        Some(holder) if *holder == job.uid => return Ok(true),
        Some(holder) => {
            let selected = ListParams::default().fields(&format!("spec.registry={name}"));
            let jobs = SCAN_JOB.within(client, namespace).list(&selected).await?;
            let holds = |other: &&DynamicObject| other.uid().as_ref() == Some(holder);
            let ended = |other: &DynamicObject| job::has_ended(&other.data["status"]);
            if jobs
                .items
                .iter()
                .find(holds)
                .is_some_and(|other| !ended(other))
            {
                return Ok(false);
            }
        }
        None => {}
    }
    let patch = json!({"metadata": {
        "resourceVersion": registry.metadata.resource_version, "annotations": {CLAIM: job.uid},
    }});
    REGISTRY.merge(client, namespace, name, &patch).await?;
    Ok(true)
}

struct Loaded {
    facts: Facts,
    /// Images that have neither findings nor a failure.
    open: Vec<String>,
}

async fn load(operator: &Operator, object: &DynamicObject, job: &Job) -> Result<Loaded, Trouble> {
    let (client, namespace) = (operator.client(), &job.namespace);
    let registry = object.data["spec"]["registry"].as_str().unwrap_or_default();
    let registry = REGISTRY
        .within(client, namespace)
        .get_metadata_opt(registry)
        .await?;
    let status = &object.data["status"];
    let mut facts = Facts {
        registry: registry.is_some(),
        started: status["startTime"].is_string(),
        images: status["imagesCount"].as_u64().map(|count| count as usize),
        ..Facts::default()
    };
    let mut open = Vec::new();
    if facts.images.is_some() {
        let names = |found: Vec<ObjectMeta>| -> BTreeSet<String> {
            found
                .into_iter()
                .filter_map(|metadata| metadata.name)
                .collect()
        };
        let reports = names(REPORT.of_job(client, job).await?);
        let bills = names(SBOM.of_job(client, job).await?);
        let images = IMAGE.of_job(client, job).await?;
        facts.failures.extend(unlisted(object));
        let expected = facts.images.unwrap_or_default();
        let expected = expected.saturating_sub(facts.failures.len());
        facts.gone = expected.saturating_sub(images.len());
        for image in images {
            let name = image.name.clone().unwrap_or_default();
            facts.bills += usize::from(bills.contains(&name));
            match failure(&image, &job.uid) {
                _ if reports.contains(&name) => facts.scanned += 1,
                Some(why) => facts.failures.push(format!("{name}: {why}")),
                None => open.push(name),
            }
        }
    }
    Ok(Loaded { facts, open })
}

/// What the catalog could not list.
fn unlisted(object: &DynamicObject) -> Vec<String> {
    let text = object.annotations().get(UNLISTED);
    let list = text.and_then(|text| serde_json::from_str(text).ok());
    list.unwrap_or_default()
}

/// Why this job cannot scan an image.
fn failure(image: &ObjectMeta, uid: &str) -> Option<String> {
    let text = image.annotations.as_ref()?.get(FAILURE)?;
    let (job, why) = text.split_once(": ")?;
    (job == uid).then(|| why.to_owned())
}

async fn hand_out(operator: &Operator, job: &Job, loaded: &Loaded) -> Result<(), Trouble> {
    let message = |image| Message {
        job: job.clone(),
        image,
    };
    if loaded.facts.images.is_none() {
        return operator
            .send(CATALOG, "createCatalog", &message(None))
            .await;
    }
    for image in &loaded.open {
        let message = message(Some(image.clone()));
        operator.send(GENERATE, "generateSBOM", &message).await?;
    }
    Ok(())
}

/// Writes the status if it says anything new.
async fn write(
    operator: &Operator,
    object: &DynamicObject,
    phase: &Phase,
    facts: &Facts,
) -> Result<(), Trouble> {
    let now = now();
    let before = &object.data["status"];
    let generation = object.metadata.generation.unwrap_or_default();
    let mut status =
        json!({"conditions": phase.conditions(&before["conditions"], generation, &now)});
    if facts.images.is_some() {
        status["scannedImagesCount"] = json!(facts.scanned);
        status["failedImagesCount"] = json!(facts.failures.len().saturating_add(facts.gone));
    }
    if phase.has_ended() {
        let known = before["completionTime"].as_str();
        status["completionTime"] = json!(known.unwrap_or(&now));
    }
    let new = status.as_object().into_iter().flatten();
    if new
        .into_iter()
        .all(|(field, value)| before[field] == *value)
    {
        return Ok(());
    }
    patch(operator, object, status).await
}

/// Writes to the status of the very state that was looked at: what has changed since is looked at
/// again, and decides anew.
async fn patch(operator: &Operator, object: &DynamicObject, status: Value) -> Result<(), Trouble> {
    let namespace = object.namespace().unwrap_or_default();
    let api = SCAN_JOB.within(operator.client(), &namespace);
    let patch = Patch::Merge(json!({
        "metadata": {"resourceVersion": object.metadata.resource_version},
        "status": status,
    }));
    let patched = api
        .patch_status(&object.name_any(), &PatchParams::apply(MANAGER), &patch)
        .await;
    match patched {
        Err(error) if is_absent(&error) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// Writes to the status of a job that has not ended, however often others write meanwhile.
async fn insist(
    operator: &Operator,
    job: &Job,
    status: impl Fn(&DynamicObject) -> Value,
) -> Result<(), Trouble> {
    loop {
        let Some(object) = live(operator, job).await? else {
            return Ok(());
        };
        match patch(operator, &object, status(&object)).await {
            Err(trouble) if trouble.is_conflict() => {}
            other => return other,
        }
    }
}

/// The job itself, if it is still the same and has not ended.
pub(crate) async fn live(operator: &Operator, job: &Job) -> Result<Option<DynamicObject>, Trouble> {
    let api = SCAN_JOB.within(operator.client(), &job.namespace);
    let object = api.get_opt(&job.name).await?;
    Ok(object.filter(|object| {
        object.uid().as_ref() == Some(&job.uid) && !job::has_ended(&object.data["status"])
    }))
}

/// Ends a job that cannot be done.
pub(crate) async fn fail(operator: &Operator, job: &Job, why: &str) -> Result<(), Trouble> {
    let phase = Phase::Failed {
        reason: "InternalError",
        message: why.to_owned(),
    };
    insist(operator, job, |object| {
        let generation = object.metadata.generation.unwrap_or_default();
        let before = &object.data["status"]["conditions"];
        json!({
            "conditions": phase.conditions(before, generation, &now()),
            "completionTime": now(),
        })
    })
    .await
}

/// Says that work on a job has begun.
pub(crate) async fn begin(operator: &Operator, job: &Job) -> Result<(), Trouble> {
    insist(operator, job, |object| {
        let known = object.data["status"]["startTime"].as_str();
        json!({"startTime": known.map_or_else(now, str::to_owned)})
    })
    .await
}

/// Says how many images a job has, and what could not be listed.
pub(crate) async fn listed(
    operator: &Operator,
    job: &Job,
    images: usize,
    unlisted: &[String],
) -> Result<(), Trouble> {
    let reasons = json!(unlisted).to_string();
    let patch = json!({"metadata": {"annotations": {UNLISTED: reasons}}});
    SCAN_JOB
        .merge(operator.client(), &job.namespace, &job.name, &patch)
        .await?;
    let count = images + unlisted.len();
    insist(operator, job, |_| json!({"imagesCount": count})).await
}
