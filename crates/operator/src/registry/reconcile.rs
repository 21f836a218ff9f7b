//! The Registry's reconciler: load it and its jobs, decide what is to be started, start it, and tell
//! what is known. Whether it may go meanwhile is [`hold`]'s to see.

use super::bond::Need;
use super::hold;
use super::plan::{Plan, Registry, Start, Why, plan};
use super::retry::Last;
use super::run::Run;
use super::status::{self, Probe, spell};
use super::targets::Targets;
use crate::message::JobKind;
use crate::news::{self, News};
use crate::object::{DISCOVERY, MANAGER, REGISTRY, SCAN_JOB, is_absent, owned_by};
use crate::progress::laid_over;
use crate::work::{Operator, Trouble};
use crate::{access, controller, events};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use muster_registry::Error;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A Registry is looked at this often, whatever happens.
const AGAIN: Duration = Duration::from_secs(5 * 60);
/// How many jobs are started within `WINDOW`, so that many Registries do not start at once.
const STARTS: usize = 5;
const WINDOW: Duration = Duration::from_secs(10);
/// How long a registry may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

struct Context {
    operator: Arc<Operator>,
    /// When the last jobs were started.
    started: Mutex<VecDeque<Instant>>,
    /// When this process began to reconcile.
    began: Timestamp,
}

/// Reconciles until `stop`.
pub(crate) async fn run(operator: Arc<Operator>, stop: CancellationToken) {
    let client = operator.client().clone();
    let registry_of = |job: DynamicObject| {
        let name = job.data["spec"]["registry"].as_str();
        let namespace = job.namespace().unwrap_or_default();
        name.map(|name| ObjectRef::new_with(name, REGISTRY.resource()).within(&namespace))
    };
    let all = watcher::Config::default;
    let context = Arc::new(Context {
        operator: operator.clone(),
        started: Mutex::default(),
        began: Timestamp::now(),
    });
    // A job tells of every image; its Registry need not look each time.
    let calm = Config::default()
        .debounce(Duration::from_secs(1))
        .concurrency(16);
    let controller = Controller::new_with(REGISTRY.all(&client), all(), REGISTRY.resource())
        .watches_with(
            SCAN_JOB.all(&client),
            SCAN_JOB.resource(),
            all(),
            registry_of,
        )
        .watches_with(
            DISCOVERY.all(&client),
            DISCOVERY.resource(),
            all(),
            registry_of,
        )
        .with_config(calm);
    controller::run(REGISTRY, controller, reconcile, context, operator, stop).await;
}

/// A Registry that changed while we looked at it is looked at again.
async fn reconcile(seen: Arc<DynamicObject>, context: Arc<Context>) -> Result<Action, Trouble> {
    // What was seen may be older than what we did ourselves.
    let namespace = seen.namespace().unwrap_or_default();
    let api = REGISTRY.within(context.operator.client(), &namespace);
    let Some(object) = api.get_opt(&seen.name_any()).await? else {
        return Ok(Action::await_change());
    };
    let done = match object.metadata.deletion_timestamp.is_some() {
        true => hold::let_go(&object, &context.operator).await,
        false => look(&object, &context).await,
    };
    match done {
        Err(trouble) if trouble.is_conflict() => Ok(Action::requeue(Duration::from_secs(1))),
        Err(Trouble::Api(error)) if is_absent(&error) => Ok(Action::await_change()),
        other => other,
    }
}

async fn look(object: &DynamicObject, context: &Context) -> Result<Action, Trouble> {
    let operator = &context.operator;
    let runs = load(operator, object).await?;
    let mut registry = Registry::read(object);
    if Last::of(&registry, &runs).is_some_and(|last| last.has_failed) {
        registry.secret_written = access::written(operator, object).await?;
    }
    let now = Timestamp::now();
    let mut plan = plan(&registry, &runs, now);
    let need = hold::need(operator, object, &runs, &plan).await?;
    if hold::settle(operator, object, need).await? {
        // The change brings us back.
        return Ok(Action::requeue(hold::SOON));
    }
    let mut status = json!({});
    if let Some(start) = plan.start.take() {
        if !context.may_start() {
            tracing::debug!(name = object.name_any(), "a Registry waits for its turn");
            return Ok(Action::requeue(WINDOW));
        }
        begin(operator, object, &start).await?;
        if let Start::Discovery { check } = start {
            status["lastScheduledTime"] = json!(spell(check));
        }
    }
    for name in &plan.forget {
        let namespace = object.namespace().unwrap_or_default();
        let api = DISCOVERY.within(operator.client(), &namespace);
        match api.delete(name, &DeleteParams::background()).await {
            Err(error) if !is_absent(&error) => return Err(error.into()),
            _ => {}
        }
    }
    if let Some(covered) = &plan.covered {
        status["covered"] = json!(covered);
    }
    let probe = match status::is_due(&registry, &runs, context.began, now) {
        true => Some(probe(operator, object).await?),
        false => None,
    };
    let told = status::status(&registry, &runs, &plan, probe.as_ref(), now);
    let usual = status::look_after(&told, AGAIN);
    tell(operator, object, status, told).await?;
    Ok(again(&plan, need, usual, now))
}

/// When to look again. Who is about to come may not, and nobody says so.
fn again(plan: &Plan, need: Need, usual: Duration, now: Timestamp) -> Action {
    let latest = match need {
        Need::Coming => hold::SOON,
        Need::Job | Need::Nobody => usual,
    };
    let wake = plan.wake.map(|wake| wake.duration_since(now));
    let wake = wake.map(|wait| Duration::try_from(wait).unwrap_or_default());
    let soonest = Duration::from_millis(200);
    Action::requeue(wake.map_or(latest, |wake| wake.max(soonest).min(latest)))
}

impl Context {
    /// Whether another job may be started now; if so, it is counted.
    fn may_start(&self) -> bool {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        while started.front().is_some_and(|time| time.elapsed() >= WINDOW) {
            started.pop_front();
        }
        let may = started.len() < STARTS;
        if may {
            started.push_back(Instant::now());
        }
        may
    }
}

/// The jobs of a Registry; not those of an older one of the same name.
async fn load(operator: &Operator, object: &DynamicObject) -> Result<Vec<Run>, Trouble> {
    let namespace = object.namespace().unwrap_or_default();
    let selected = ListParams::default().fields(&format!("spec.registry={}", object.name_any()));
    let mut runs = Vec::new();
    for kind in [JobKind::ScanJob, JobKind::RegistryDiscovery] {
        let api = kind.object().within(operator.client(), &namespace);
        let jobs = api.list(&selected).await?;
        runs.extend(jobs.items.iter().map(|job| Run::read(kind, job)));
    }
    let created = object.creation_timestamp().map(|time| time.0);
    runs.retain(|run| run.outcome.is_none() || created.is_none_or(|time| run.created >= time));
    Ok(runs)
}

/// Starts a job, unless it is there: what is started for one reason has one name.
async fn begin(operator: &Operator, object: &DynamicObject, start: &Start) -> Result<(), Trouble> {
    let namespace = object.namespace().unwrap_or_default();
    let registry = object.name_any();
    let (kind, name, spec) = match start {
        Start::Discovery { check } => {
            let name = called(&registry, &check.as_second().to_string());
            (
                DISCOVERY,
                name,
                json!({ "registry": registry, "registrySpec": object.data["spec"] }),
            )
        }
        Start::Scan { why, targets } => {
            let mut spec = json!({ "registry": registry });
            if *targets != Targets::All {
                spec["repositories"] = targets.repositories();
            }
            (SCAN_JOB, called(&registry, &reason(object, why)), spec)
        }
    };
    let mut job = DynamicObject::new(&name, &kind.resource());
    job.data = json!({ "spec": spec });
    let owner = serde_json::from_value(owned_by(REGISTRY, object)).map_err(Trouble::permanent)?;
    job.metadata.owner_references = Some(vec![owner]);
    let parameters = PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    };
    match kind
        .within(operator.client(), &namespace)
        .create(&parameters, &job)
        .await
    {
        Ok(_) => {
            tracing::info!(kind = kind.kind, name, namespace, "started");
            let news = scheduled(kind.kind, &name, start);
            events::tell(operator, REGISTRY, &object.metadata, &news).await;
        }
        Err(kube::Error::Api(refused)) if refused.reason == "AlreadyExists" => {}
        Err(error) => return Err(error.into()),
    }
    if let Start::Scan {
        why: Why::Requested(requests),
        ..
    } = start
    {
        for (key, value) in requests {
            answer(operator, object, key, value).await?;
        }
    }
    Ok(())
}

/// Says what was started, and why.
fn scheduled(kind: &str, name: &str, start: &Start) -> News {
    let (reason, why) = match start {
        Start::Discovery { .. } => ("DiscoveryScheduled", "it is time for it"),
        Start::Scan { why, .. } => (
            "ScanScheduled",
            match why {
                Why::Requested(_) => "somebody asked for it",
                Why::Grown { .. } => "there is more to scan",
                Why::Due { .. } => "it is time for it",
                Why::Retry { .. } => "the last scan failed",
            },
        ),
    };
    News::good(reason, format!("Created the {kind} {name}: {why}"))
}

/// Takes a request away, unless it has become another.
async fn answer(
    operator: &Operator,
    object: &DynamicObject,
    key: &str,
    value: &str,
) -> Result<(), Trouble> {
    let path = format!(
        "/metadata/annotations/{}",
        key.replace('~', "~0").replace('/', "~1")
    );
    let operations = json!([
        {"op": "test", "path": path, "value": value}, {"op": "remove", "path": path},
    ]);
    let namespace = object.namespace().unwrap_or_default();
    let client = operator.client();
    let revised = REGISTRY
        .revise(client, &namespace, &object.name_any(), &operations)
        .await;
    match revised {
        Err(kube::Error::Api(refused)) if matches!(refused.code, 404 | 409 | 422) => Ok(()),
        other => Ok(other?),
    }
}

/// What tells one reason from another.
fn reason(object: &DynamicObject, why: &Why) -> String {
    let (word, about) = match why {
        Why::Requested(_) => ("rescan", json!(object.resource_version())),
        Why::Grown { generation } => ("change", json!(generation)),
        Why::Due { at } => ("interval", json!(at.as_second())),
        Why::Retry { at } => ("retry", json!(at.as_second())),
    };
    format!("{word}-{}", hash(&json!([object.uid(), about]).to_string()))
}

/// `<registry>-<suffix>`, as much of it as a name can hold.
fn called(registry: &str, suffix: &str) -> String {
    const LONGEST: usize = 253;
    if registry.len() + 1 + suffix.len() <= LONGEST {
        return format!("{registry}-{suffix}");
    }
    let hash = hash(registry);
    let kept = LONGEST.saturating_sub(hash.len() + suffix.len() + 2);
    let kept = registry
        .get(..kept)
        .unwrap_or_default()
        .trim_end_matches(['-', '.']);
    format!("{kept}-{hash}-{suffix}")
}

fn hash(text: &str) -> String {
    let hash = Sha256::digest(text);
    hash.iter()
        .take(5)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Asks a registry whether it answers.
async fn probe(operator: &Operator, object: &DynamicObject) -> Result<Probe, Trouble> {
    let namespace = object.namespace().unwrap_or_default();
    let name = object.name_any();
    let asking = async {
        match access::open(operator, &namespace, &name).await? {
            Some(access) => access
                .client
                .ping(&access.host)
                .await
                .map(|_| ())
                .map_err(Trouble::from),
            None => Ok(()),
        }
    };
    let no = |reason, message: String| Probe {
        reachable: false,
        reason,
        message,
    };
    Ok(match tokio::time::timeout(PATIENCE, asking).await {
        Ok(Ok(())) => Probe {
            reachable: true,
            reason: "Answered",
            message: "The registry answers".into(),
        },
        Err(_) => no(
            "TimedOut",
            format!(
                "The registry did not answer within {} s",
                PATIENCE.as_secs()
            ),
        ),
        Ok(Err(trouble @ Trouble::Api(_))) => return Err(trouble),
        Ok(Err(trouble)) => {
            let reason = match &trouble {
                Trouble::Registry(Error::Unauthorized { .. } | Error::Denied { .. }) => {
                    "Unauthorized"
                }
                Trouble::Registry(Error::Untrusted { .. }) => "Untrusted",
                Trouble::Permanent(_) => "Misconfigured",
                _ => "Unreachable",
            };
            no(reason, trouble.to_string())
        }
    })
}

/// Writes the status if it says anything new. Nobody else writes it, so nothing is compared.
async fn tell(
    operator: &Operator,
    object: &DynamicObject,
    mut status: Value,
    told: Value,
) -> Result<(), Trouble> {
    if let (Some(status), Value::Object(told)) = (status.as_object_mut(), told) {
        status.extend(told);
    }
    let before = &object.data["status"];
    let mut fields = status.as_object().into_iter().flatten();
    if fields.all(|(field, value)| before[field] == known(value)) {
        return Ok(());
    }
    let namespace = object.namespace().unwrap_or_default();
    let api = REGISTRY.within(operator.client(), &namespace);
    let patch = Patch::Merge(json!({ "status": &status }));
    let parameters = PatchParams::apply(MANAGER);
    api.patch_status(&object.name_any(), &parameters, &patch)
        .await?;
    if let Some(news) = news::of_registry(before, &laid_over(before, &status)) {
        events::tell(operator, REGISTRY, &object.metadata, &news).await;
    }
    Ok(())
}

/// An object as it is once a patch is merged: what is null is not there.
fn known(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(field, value)| (field.clone(), known(value)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod away;

#[cfg(test)]
mod hostile;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_called_after_its_registry() {
        assert_eq!(called("hub", "1742868000"), "hub-1742868000");
        let (one, other) = ("x".repeat(253), format!("{}y", "x".repeat(252)));
        let names = [called(&one, "1742868000"), called(&other, "1742868000")];
        assert!(names.iter().all(|name| name.len() == 253), "{names:?}");
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn what_is_null_is_not_there() {
        let patch = json!({"a": null, "b": {"c": null, "d": 1}, "e": [null]});
        assert_eq!(known(&patch), json!({"b": {"d": 1}, "e": [null]}));
        assert_eq!(known(&Value::Null), Value::Null);
    }
}
