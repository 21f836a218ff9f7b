//! The ScanJob's reconciler: load what is there, decide how far the job has come, hand out what is
//! missing, and say so in its status. It is woken by the job and by what is made for it; should
//! every message be lost, it hands them out again.

use crate::controller;
use crate::history;
use crate::job::{self, Facts, Phase};
use crate::lease::{self, Outcome, Place};
use crate::message::{CATALOG, GENERATE, Job, JobKind, Message, SCAN};
use crate::object::{
    IMAGE, JOB_NAME, Kind, MATCHED_BY, READ_BY, REGISTRY, REPORT, SBOM, SCAN_JOB, SNAPSHOT, noted,
    now,
};
use crate::progress::{self, Cataloged, failure};
use crate::stage;
use crate::work::{Operator, Trouble};
use kube::api::{DynamicObject, ObjectMeta, PartialObjectMeta};
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use kube::{Api, ResourceExt};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// A job under way is looked at this often, whatever happens.
const AGAIN: Duration = Duration::from_secs(30);
/// After trouble.
const SOON: Duration = Duration::from_secs(5);
/// Changes of so many objects are looked at together.
const TOGETHER: Duration = Duration::from_millis(250);
/// How many jobs are looked at at once.
const AT_ONCE: u16 = 8;

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
    let controller = Controller::new_with(
        SCAN_JOB.all(client),
        watcher::Config::default(),
        SCAN_JOB.resource(),
    );
    operator.follow(JobKind::ScanJob, controller.store());
    let controller = controller
        .watches_with(changes(IMAGE), IMAGE.resource(), marked(), job_of)
        .watches_with(changes(REPORT), REPORT.resource(), marked(), job_of)
        .with_config(Config::default().debounce(TOGETHER).concurrency(AT_ONCE));
    let context = operator.clone();
    controller::run(SCAN_JOB, controller, reconcile, context, operator, stop).await;
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
    let registry = object.data["spec"]["registry"].as_str().unwrap_or_default();
    let place = Place {
        namespace: &job.namespace,
        registry,
    };
    let (client, installation) = (operator.client(), operator.installation());
    let refused = match lease::acquire(client, installation, place, &job, object).await? {
        Outcome::Acquired | Outcome::Absent => None,
        Outcome::HeldBy(other) => Some(Phase::Waiting(other.to_string())),
        Outcome::Closing => Some(Phase::Failed {
            reason: "RegistryNotFound",
            message: "The Registry of this ScanJob is being deleted".into(),
        }),
    };
    if let Some(phase) = refused {
        write(operator, object, &phase, &Facts::default()).await?;
        return Ok(Action::requeue(SOON));
    }
    if noted(&object.metadata, SNAPSHOT).is_none() && snapshot(operator, object, place).await? {
        // The object is another one now, and comes again.
        return Ok(Action::requeue(SOON));
    }
    let loaded = load(operator, object, &job).await?;
    let phase = job::phase(&loaded.facts);
    if !phase.has_ended() {
        hand_out(operator, &job, &loaded).await?;
    }
    write(operator, object, &phase, &loaded.facts).await?;
    if !phase.has_ended() {
        return Ok(Action::requeue(AGAIN));
    }
    // Whoever comes next would see for himself that the job has ended.
    lease::release(client, installation, place, &job).await?;
    history::prune(operator, &job, registry).await?;
    Ok(Action::await_change())
}

/// Keeps with a job what its Registry was when it began; says whether there was one to keep.
async fn snapshot(
    operator: &Operator,
    object: &DynamicObject,
    place: Place<'_>,
) -> Result<bool, Trouble> {
    let client = operator.client();
    let registry = REGISTRY.within(client, place.namespace);
    let Some(registry) = registry.get_opt(place.registry).await? else {
        return Ok(false);
    };
    let kept = json!({
        "apiVersion": REGISTRY.api_version(), "kind": REGISTRY.kind,
        "metadata": {
            "name": place.registry, "namespace": place.namespace,
            "uid": registry.metadata.uid, "generation": registry.metadata.generation,
        },
        "spec": registry.data["spec"],
    });
    let patch = json!({"metadata": {
        "resourceVersion": object.metadata.resource_version,
        "annotations": {SNAPSHOT: kept.to_string()},
    }});
    let name = object.name_any();
    SCAN_JOB
        .merge(client, place.namespace, &name, &patch)
        .await?;
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
        ..Facts::default()
    };
    let cataloged = Cataloged::of(object);
    facts.images = cataloged.as_ref().map(|cataloged| cataloged.images);
    let mut open = Vec::new();
    if let Some(cataloged) = cataloged {
        let by_name = |found: Vec<ObjectMeta>| -> BTreeMap<String, ObjectMeta> {
            let named = found.into_iter();
            let named = named.filter_map(|metadata| Some((metadata.name.clone()?, metadata)));
            named.collect()
        };
        let reports = by_name(REPORT.of_job(client, job).await?);
        let bills = by_name(SBOM.of_job(client, job).await?);
        let images = IMAGE.of_job(client, job).await?;
        let is_by = |found: Option<&ObjectMeta>, key| {
            let by = found.and_then(|metadata| noted(metadata, key));
            usize::from(by == Some(job.uid.as_str()))
        };
        facts.failures = cataloged.unlisted;
        let expected = cataloged.images.saturating_sub(facts.failures.len());
        facts.gone = expected.saturating_sub(images.len());
        for image in images {
            let name = image.name.clone().unwrap_or_default();
            facts.bills += usize::from(bills.contains_key(&name));
            facts.read += is_by(bills.get(&name), READ_BY);
            facts.matched += is_by(reports.get(&name), MATCHED_BY);
            match failure(&image, job) {
                _ if reports.contains_key(&name) => facts.scanned += 1,
                Some(why) => facts.failures.push(format!("{name}: {why}")),
                None => open.push(name),
            }
        }
    }
    Ok(Loaded { facts, open })
}

/// Hands out what is to be done, unless that was done a moment ago. What the queue has laid aside
/// took its workers with it every time; it is written down as failed and not handed out again.
async fn hand_out(operator: &Operator, job: &Job, loaded: &Loaded) -> Result<(), Trouble> {
    if !operator.is_time(&job.uid, loaded.facts.images.is_some(), AGAIN) {
        return Ok(());
    }
    let span = stage::span(operator, "hand out", job, None);
    give_out(operator, job, loaded).instrument(span).await
}

async fn give_out(operator: &Operator, job: &Job, loaded: &Loaded) -> Result<(), Trouble> {
    let message = |image| Message::new(job, image);
    if loaded.facts.images.is_none() {
        let message = message(None);
        let dead = operator.dead(&[CATALOG]).await?;
        return match dead.get(&message.id("createCatalog")) {
            Some(why) => fail(operator, job, why).await,
            None => operator.send(CATALOG, "createCatalog", &message).await,
        };
    }
    let dead = operator.dead(&[GENERATE, SCAN]).await?;
    for image in &loaded.open {
        let message = message(Some(image.clone()));
        let stages = ["generateSBOM", "scanSBOM"].iter();
        let mut laid_aside = stages.filter_map(|stage| dead.get(&message.id(stage)));
        match laid_aside.next() {
            Some(why) => operator.record(job, Some(image), why).await?,
            None => operator.send(GENERATE, "generateSBOM", &message).await?,
        }
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
    let mut status = job::counts(facts);
    status["conditions"] = phase.conditions(&before["conditions"], generation, &now);
    if phase.has_ended() {
        let known = before["completionTime"].as_str();
        status["completionTime"] = json!(known.unwrap_or(&now));
    }
    progress::tell(operator, JobKind::ScanJob, object, status).await
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
    progress::insist(operator, job, |object| {
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
    progress::insist(operator, job, |object| {
        let known = object.data["status"]["startTime"].as_str();
        json!({"startTime": known.map_or_else(now, str::to_owned)})
    })
    .await
}
