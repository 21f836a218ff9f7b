//! The RegistryDiscovery's reconciler: as that of the ScanJob, without the last stage. It also
//! keeps the notes about the last discovery on the Registry.

use super::{Facts, Phase, has_ended, phase};
use crate::controller;
use crate::lease::{self, Outcome, Place};
use crate::message::{CATALOG, GENERATE, Job, JobKind, Message};
use crate::object::{DISCOVERY, DISCOVERY_NAME, IMAGE, Kind, REGISTRY, SBOM, now, owned_by};
use crate::progress::{Cataloged, failure, insist, note, tell};
use crate::stage;
use crate::work::{Operator, Trouble};
use kube::api::{DynamicObject, ObjectMeta, PartialObjectMeta};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use kube::{Api, ResourceExt};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// A discovery under way is looked at this often, whatever happens.
const AGAIN: Duration = Duration::from_secs(30);
/// After trouble, and while another is waited for.
const SOON: Duration = Duration::from_secs(5);

/// Reconciles until `stop`.
pub(crate) async fn run(operator: Arc<Operator>, stop: CancellationToken) {
    let client = operator.client();
    let marked = || watcher::Config::default().labels(DISCOVERY_NAME);
    let discovery_of = |object: PartialObjectMeta<DynamicObject>| {
        let name = object.labels().get(DISCOVERY_NAME).cloned();
        let namespace = object.namespace().unwrap_or_default();
        name.map(|name| ObjectRef::new_with(&name, DISCOVERY.resource()).within(&namespace))
    };
    let changes = |kind: Kind| -> Api<PartialObjectMeta<DynamicObject>> {
        Api::all_with(client.clone(), &kind.resource())
    };
    let controller = Controller::new_with(
        DISCOVERY.all(client),
        watcher::Config::default(),
        DISCOVERY.resource(),
    );
    operator.follow(JobKind::RegistryDiscovery, controller.store());
    let controller = controller
        .watches_with(changes(IMAGE), IMAGE.resource(), marked(), discovery_of)
        .watches_with(changes(SBOM), SBOM.resource(), marked(), discovery_of);
    let context = operator.clone();
    controller::run(DISCOVERY, controller, reconcile, context, operator, stop).await;
}

/// A discovery that changed while we looked at it is looked at again.
async fn reconcile(object: Arc<DynamicObject>, operator: Arc<Operator>) -> Result<Action, Trouble> {
    match look(&object, &operator).await {
        Err(trouble) if trouble.is_conflict() => Ok(Action::requeue(Duration::from_secs(1))),
        other => other,
    }
}

fn registry_of(object: &DynamicObject) -> &str {
    object.data["spec"]["registry"].as_str().unwrap_or_default()
}

async fn look(object: &DynamicObject, operator: &Operator) -> Result<Action, Trouble> {
    if has_ended(&object.data["status"]) || object.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let job = Job {
        kind: JobKind::RegistryDiscovery,
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
    };
    if object.data["spec"]["cancel"] == true {
        return end(operator, object, &job, &Phase::Canceled, &Facts::default()).await;
    }
    if Cataloged::of(object).is_none() && !copy(operator, object).await? {
        return refuse(operator, object, &job, "does not exist").await;
    }
    let place = Place {
        namespace: &job.namespace,
        registry: registry_of(object),
    };
    let taken = lease::acquire(
        operator.client(),
        operator.installation(),
        place,
        &job,
        object,
    );
    match taken.await? {
        Outcome::Acquired => {}
        Outcome::Absent => return refuse(operator, object, &job, "does not exist").await,
        Outcome::Closing => return refuse(operator, object, &job, "is being deleted").await,
        Outcome::HeldBy(other) => {
            let waits_for = Some(other.to_string());
            let phase = Phase::Pending { waits_for };
            write(operator, object, &phase, &Facts::default()).await?;
            return Ok(Action::requeue(SOON));
        }
    }
    let loaded = load(operator, object, &job).await?;
    let phase = phase(&loaded.facts);
    if phase.has_ended() {
        return end(operator, object, &job, &phase, &loaded.facts).await;
    }
    hand_out(operator, &job, &loaded).await?;
    write(operator, object, &phase, &loaded.facts).await?;
    Ok(Action::requeue(AGAIN))
}

/// Copies the Registry's spec into a discovery, once, which goes with the Registry from then on;
/// says whether there is a Registry.
async fn copy(operator: &Operator, object: &DynamicObject) -> Result<bool, Trouble> {
    let namespace = object.namespace().unwrap_or_default();
    let registries = REGISTRY.within(operator.client(), &namespace);
    let Some(registry) = registries.get_opt(registry_of(object)).await? else {
        return Ok(false);
    };
    if !object.data["spec"]["registrySpec"].is_null() {
        return Ok(true);
    }
    let mut patch = json!({"spec": {"registrySpec": registry.data["spec"]}});
    if object.owner_references().is_empty() {
        patch["metadata"]["ownerReferences"] = json!([owned_by(REGISTRY, &registry)]);
    }
    DISCOVERY
        .merge(operator.client(), &namespace, &object.name_any(), &patch)
        .await?;
    Ok(true)
}

async fn refuse(
    operator: &Operator,
    object: &DynamicObject,
    job: &Job,
    what: &str,
) -> Result<Action, Trouble> {
    let why = format!("The Registry {} {what}", registry_of(object));
    let phase = Phase::Refused { why };
    end(operator, object, job, &phase, &Facts::default()).await
}

/// Ends a discovery: notes it, says so, and gives the Registry back, in this order, so that
/// whatever was left out is done the next time.
async fn end(
    operator: &Operator,
    object: &DynamicObject,
    job: &Job,
    phase: &Phase,
    facts: &Facts,
) -> Result<Action, Trouble> {
    let registry = registry_of(object);
    if *phase == (Phase::Succeeded { done: true }) && facts.failures.is_empty() {
        let notes = [
            ("discovery-completed", "true".to_owned()),
            ("discovery-completed-at", now()),
        ];
        note(operator, &job.namespace, registry, &notes).await?;
    }
    write(operator, object, phase, facts).await?;
    let place = Place {
        namespace: &job.namespace,
        registry,
    };
    lease::release(operator.client(), operator.installation(), place, job).await?;
    Ok(Action::await_change())
}

struct Loaded {
    facts: Facts,
    /// Images that have neither a bill nor a failure.
    open: Vec<String>,
}

async fn load(operator: &Operator, object: &DynamicObject, job: &Job) -> Result<Loaded, Trouble> {
    let client = operator.client();
    let status = &object.data["status"];
    let mut facts = Facts {
        started: status["startedAt"].is_string(),
        ..Facts::default()
    };
    let mut open = Vec::new();
    if let Some(cataloged) = Cataloged::of(object) {
        facts.images = Some(cataloged.images);
        let bills = SBOM.of_job(client, job).await?.into_iter();
        let bills: BTreeSet<String> = bills.filter_map(|metadata| metadata.name).collect();
        for image in IMAGE.of_job(client, job).await? {
            let name = image.name.clone().unwrap_or_default();
            match failure(&image, job) {
                _ if bills.contains(&name) => facts.bills += 1,
                Some(why) => facts.failures.push(format!("{name}: {why}")),
                None => open.push(name),
            }
        }
        facts.unlisted = cataloged.unlisted;
        facts.open = open.len();
    }
    Ok(Loaded { facts, open })
}

/// Hands out what is to be done, unless that was done a moment ago; what the queue has laid aside
/// is written down as failed.
async fn hand_out(operator: &Operator, job: &Job, loaded: &Loaded) -> Result<(), Trouble> {
    if !operator.is_time(&job.uid, loaded.facts.images.is_some(), AGAIN) {
        return Ok(());
    }
    let span = stage::span(operator, "hand out", job, None);
    give_out(operator, job, loaded).instrument(span).await
}

async fn give_out(operator: &Operator, job: &Job, loaded: &Loaded) -> Result<(), Trouble> {
    let message = |image| Message::new(job, image);
    let dead = operator.dead(&[CATALOG, GENERATE]).await?;
    if loaded.facts.images.is_none() {
        let message = message(None);
        return match dead.get(&message.id("createCatalog")) {
            Some(why) => fail(operator, job, why).await,
            None => operator.send(CATALOG, "createCatalog", &message).await,
        };
    }
    for image in &loaded.open {
        let message = message(Some(image.clone()));
        match dead.get(&message.id("generateSBOM")) {
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
    let before = &object.data["status"];
    let generation = object.metadata.generation.unwrap_or_default();
    let status = phase.status(facts, before, generation, &now());
    tell(operator, JobKind::RegistryDiscovery, object, status).await
}

/// The discovery itself, if it is still the same, has not ended and was not called off.
pub(crate) async fn live(operator: &Operator, job: &Job) -> Result<Option<DynamicObject>, Trouble> {
    let api = DISCOVERY.within(operator.client(), &job.namespace);
    let object = api.get_opt(&job.name).await?;
    Ok(object.filter(|object| {
        let same = object.uid().as_ref() == Some(&job.uid);
        let wanted =
            object.data["spec"]["cancel"] != true && object.metadata.deletion_timestamp.is_none();
        same && wanted && !has_ended(&object.data["status"])
    }))
}

/// Ends a discovery that cannot be done.
pub(crate) async fn fail(operator: &Operator, job: &Job, why: &str) -> Result<(), Trouble> {
    let phase = Phase::Failed {
        why: why.to_owned(),
    };
    let status = |object: &DynamicObject| {
        let generation = object.metadata.generation.unwrap_or_default();
        phase.status(
            &Facts::default(),
            &object.data["status"],
            generation,
            &now(),
        )
    };
    insist(operator, job, status).await
}

/// Says that work on a discovery has begun, once.
pub(crate) async fn begin(operator: &Operator, job: &Job) -> Result<(), Trouble> {
    let Some(object) = live(operator, job).await? else {
        return Ok(());
    };
    let known = object.data["status"]["startedAt"].as_str();
    let started = known.map_or_else(now, str::to_owned);
    let notes = [
        ("discovery-completed", "false".to_owned()),
        ("discovery-completed-at", String::new()),
        ("discovery-started-at", started.clone()),
        ("job-name", job.name.clone()),
        ("job-type", "discovery".to_owned()),
    ];
    note(operator, &job.namespace, registry_of(&object), &notes).await?;
    let status = |object: &DynamicObject| {
        let generation = object.metadata.generation.unwrap_or_default();
        let before = &object.data["status"];
        let mut status = Phase::Running.status(&Facts::default(), before, generation, &now());
        status["startedAt"] = json!(before["startedAt"].as_str().unwrap_or(&started));
        status
    };
    insist(operator, job, status).await
}

/// Notes on the Registry which image a discovery found last.
pub(crate) async fn listed(operator: &Operator, job: &Job) -> Result<(), Trouble> {
    let Some(object) = live(operator, job).await? else {
        return Ok(());
    };
    let made = IMAGE.of_job(operator.client(), job).await?;
    let order = |image: &ObjectMeta| {
        (
            image.creation_timestamp.clone().map(|time| time.0),
            image.name.clone(),
        )
    };
    let last = made.into_iter().max_by_key(order);
    let Some(last) = last.and_then(|image| image.name) else {
        return Ok(());
    };
    let notes = [("discovered-image-name", last)];
    note(operator, &job.namespace, registry_of(&object), &notes).await
}
