//! The cluster as policies see it, over its API. Many evaluations ask the same within seconds, so what
//! was found is kept for a moment, and whoever asks while it is being fetched waits for it. Names come
//! from policies, which are not trusted: no name leads to another kind than the one that was asked for.

mod api;

use api::{Api, Found};
use muster_policy::evaluate::{Lookup, LookupError};
use muster_policy::request::GroupVersionKind;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How the cluster is looked at.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how long something that was found is good.
    pub kept: Duration,
    /// How long one question may take.
    pub time: Duration,
    /// The largest list or object, in bytes of JSON.
    pub largest: usize,
    /// How much is kept at most, likewise.
    pub most: usize,
    /// How many objects are asked for at once.
    pub page: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            kept: Duration::from_secs(5),
            time: Duration::from_secs(10),
            largest: 32 << 20,
            most: 64 << 20,
            page: 500,
        }
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    kind: GroupVersionKind,
    namespace: Option<String>,
    /// One object, or all of them.
    name: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
}

struct Kept {
    since: Instant,
    found: Result<Found, LookupError>,
}

type Slot = Arc<tokio::sync::Mutex<Option<Kept>>>;
type Answers = Mutex<HashMap<Question, Slot>>;

/// A cluster.
pub struct ClusterLookup {
    api: Api,
    options: Options,
    runtime: Handle,
    answers: Arc<Answers>,
}

impl fmt::Debug for ClusterLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterLookup").finish_non_exhaustive()
    }
}

impl ClusterLookup {
    /// The cluster of a client. It is asked on `runtime`, by threads that are none of its own.
    pub fn new(client: kube::Client, options: Options, runtime: Handle) -> ClusterLookup {
        ClusterLookup {
            api: Api::new(client, options.largest, options.page),
            options,
            runtime,
            answers: Arc::default(),
        }
    }

    async fn ask(&self, question: Question) -> Result<Value, LookupError> {
        let slot = self.slot(&question);
        let mut kept = slot.lock().await;
        if let Some(kept) = kept.as_ref()
            && kept.since.elapsed() < self.options.kept
        {
            return kept.found.clone().map(|found| found.value);
        }
        let asking = self.api.ask(&question);
        let found = match tokio::time::timeout(self.options.time, asking).await {
            Ok(found) => found,
            Err(_) => {
                let reason = format!("no answer within {:?}", self.options.time);
                Err(LookupError::transient(reason))
            }
        };
        let found = found.map_err(|error| question.explain(error));
        let answer = found.as_ref().map(|found| found.value.clone());
        let answer = answer.map_err(LookupError::clone);
        *kept = Some(Kept {
            since: Instant::now(),
            found,
        });
        drop(kept);
        drop(slot);
        self.make_room(&question);
        let (answers, kept) = (Arc::downgrade(&self.answers), self.options.kept);
        // It ends by itself, and holds nothing meanwhile.
        self.runtime.spawn(forget(answers, question, kept));
        answer
    }

    fn slot(&self, question: &Question) -> Slot {
        let mut answers = lock(&self.answers);
        answers.entry(question.clone()).or_default().clone()
    }

    /// Forgets everything but the newest if there is too much.
    fn make_room(&self, newest: &Question) {
        let mut answers = lock(&self.answers);
        let sizes = answers.values().filter_map(|slot| {
            // What is locked is being asked for.
            let kept = slot.try_lock().ok()?;
            Some(kept.as_ref()?.found.as_ref().ok()?.size)
        });
        if sizes.sum::<usize>() > self.options.most {
            answers.retain(|question, slot| question == newest || Arc::strong_count(slot) > 1);
        }
    }
}

/// Forgets an answer when it is no longer good, so that a large one is not kept until somebody asks
/// again.
async fn forget(answers: Weak<Answers>, question: Question, kept: Duration) {
    tokio::time::sleep(kept).await;
    let Some(answers) = answers.upgrade() else {
        return;
    };
    let mut answers = lock(&answers);
    let good = answers.get(&question).is_some_and(|slot| {
        let newer = |slot: &Option<Kept>| {
            let since = slot.as_ref().map(|kept| kept.since);
            since.is_some_and(|since| since.elapsed() < kept)
        };
        Arc::strong_count(slot) > 1 || slot.try_lock().map_or(true, |slot| newer(&slot))
    });
    if !good {
        answers.remove(&question);
    }
}

fn lock(answers: &Answers) -> MutexGuard<'_, HashMap<Question, Slot>> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Question {
    /// An error that says what was asked for.
    fn explain(&self, error: LookupError) -> LookupError {
        match error {
            LookupError::Unavailable {
                reason,
                is_transient,
            } => LookupError::Unavailable {
                reason: format!("{}: {reason}", self.place()),
                is_transient,
            },
            answer => answer,
        }
    }

    /// What is asked for, for people.
    fn place(&self) -> String {
        let kind = format!("{} {}", self.kind.api_version(), self.kind.kind);
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
            (None, Some(name)) => format!("{kind} {name}"),
            (Some(namespace), None) => format!("{kind} in {namespace}"),
            (None, None) => kind,
        }
    }
}

impl Lookup for ClusterLookup {
    fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, LookupError> {
        let question = Question {
            kind: kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            labels: None,
            fields: None,
        };
        self.runtime.block_on(self.ask(question))
    }

    fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Value, LookupError> {
        let question = Question {
            kind: kind.clone(),
            namespace: namespace.map(str::to_owned),
            name: None,
            labels: labels.map(str::to_owned),
            fields: fields.map(str::to_owned),
        };
        self.runtime.block_on(self.ask(question))
    }
}

/// No cluster at all, where policies are tried on manifests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Lookup for Nowhere {
    fn get(&self, _: &GroupVersionKind, _: Option<&str>, _: &str) -> Result<Value, LookupError> {
        Err(LookupError::permanent("there is no cluster to look at"))
    }

    fn list(
        &self,
        _: &GroupVersionKind,
        _: Option<&str>,
        _: Option<&str>,
        _: Option<&str>,
    ) -> Result<Value, LookupError> {
        Err(LookupError::permanent("there is no cluster to look at"))
    }
}

#[cfg(test)]
mod tests;
