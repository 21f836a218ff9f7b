//! The operator put together: one reconciler and one worker for each stage, until they are told to
//! stop. A handler's failure is its message's alone; what a failure means for the image or the job
//! is written down before the message is given up.

use crate::message::{CATALOG, GENERATE, Job, Message, SCAN};
use crate::object::{FAILURE, IMAGE};
use crate::{bill, catalog, findings, layers, reconcile};
use futures::future::join4;
use kube::Client;
use muster_advisories::{DataDirectory, Opened};
use muster_queue::{Failure, Queue, Worker, consume};
use muster_registry::Traffic;
use muster_source::LayerCache;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long one stage of one image, or one catalog, may take.
const DEADLINE: Duration = Duration::from_secs(30 * 60);

/// What the operator works with.
pub struct Operator {
    client: Client,
    queue: Arc<dyn Queue>,
    layers: Arc<dyn LayerCache>,
    traffic: Traffic,
    data: DataDirectory,
    opened: Mutex<Option<Opened>>,
    installation: String,
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("talking to the API server: {0}")]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Registry(#[from] muster_registry::Error),
    #[error(transparent)]
    Source(#[from] muster_source::Error),
    #[error(transparent)]
    Queue(#[from] muster_queue::QueueError),
    /// It will not get better.
    #[error("{0}")]
    Permanent(String),
    /// It may get better.
    #[error("{0}")]
    Transient(String),
}

impl Trouble {
    pub(crate) fn permanent(why: impl ToString) -> Self {
        Trouble::Permanent(why.to_string())
    }

    /// Whether trying again is no use.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Trouble::Api(kube::Error::Api(status)) => matches!(status.code, 400 | 413 | 422),
            Trouble::Registry(error) => !error.is_transient(),
            Trouble::Source(error) => !error.is_transient(),
            Trouble::Permanent(_) => true,
            Trouble::Api(_) | Trouble::Queue(_) | Trouble::Transient(_) => false,
        }
    }

    /// Whether somebody else wrote meanwhile.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Trouble::Api(kube::Error::Api(refused)) if refused.code == 409)
    }

    fn into_failure(self) -> Failure {
        let after = match &self {
            Trouble::Registry(error) => error.retry_after(),
            Trouble::Source(error) => error.retry_after(),
            _ => None,
        };
        match self.is_permanent() {
            true => Failure::Permanent {
                reason: self.to_string(),
            },
            false => Failure::Transient {
                reason: self.to_string(),
                after,
            },
        }
    }
}

impl Operator {
    /// An operator that keeps its findings through `client`, and finds the vulnerability data in
    /// the directory `data` as soon as there is some. The inventories of layers are shared through
    /// `layers`, a client of a server of Muster itself, if there is one. Leases are kept in the
    /// namespace `installation`.
    pub fn new(
        client: Client,
        queue: Arc<dyn Queue>,
        data: PathBuf,
        layers: Option<Client>,
        installation: &str,
    ) -> Arc<Self> {
        Arc::new(Operator {
            client,
            queue,
            layers: layers::cache(layers),
            traffic: Traffic::default(),
            data: DataDirectory::new(data),
            opened: Mutex::default(),
            installation: installation.to_owned(),
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The namespace of our own Leases.
    #[allow(dead_code, reason = "the reconcilers come to use it")]
    pub(crate) fn installation(&self) -> &str {
        &self.installation
    }

    pub(crate) fn layers(&self) -> Arc<dyn LayerCache> {
        self.layers.clone()
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic.clone()
    }

    /// Sends a message, unless it waits already.
    pub(crate) async fn send(
        &self,
        subject: &str,
        stage: &str,
        message: &Message,
    ) -> Result<(), Trouble> {
        let payload = message.encode().map_err(Trouble::permanent)?;
        self.queue
            .publish(subject, &message.id(stage), payload)
            .await?;
        Ok(())
    }

    /// The vulnerability data as it is now: opened when first needed, and anew when it was replaced.
    pub(crate) fn knowledge(&self) -> Result<Opened, Trouble> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*opened
            && !self.data.is_stale(known).unwrap_or(false)
        {
            return Ok(known.clone());
        }
        match (self.data.open(), &*opened) {
            (Ok(fresh), _) => {
                tracing::info!(revision = fresh.revision, "vulnerability data opened");
                Ok(opened.insert(fresh).clone())
            }
            (Err(error), Some(known)) => {
                tracing::warn!(%error, "older vulnerability data is used");
                Ok(known.clone())
            }
            (Err(error), None) => Err(Trouble::Transient(format!(
                "{error}; fetch some with `muster db update --database {0}`, or bring it with `muster db import --database {0} FILE`",
                self.data.path().display()
            ))),
        }
    }

    /// Works until `stop`, then finishes what is under way.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let work = |subject, concurrency| {
            let worker = Worker {
                concurrency,
                wait: Duration::from_secs(1),
                grace: Duration::from_secs(5),
                ..Worker::default()
            };
            let operator = self.clone();
            let handler = move |job: muster_queue::Job| operator.clone().handle(job);
            consume(self.queue.clone(), subject, worker, handler, stop.clone())
        };
        join4(
            reconcile::run(self.clone(), stop.clone()),
            work(CATALOG, 2),
            work(GENERATE, 2),
            work(SCAN, 2),
        )
        .await;
    }

    async fn handle(self: Arc<Self>, delivery: muster_queue::Job) -> Result<(), Failure> {
        let message: Message = serde_json::from_slice(&delivery.payload)
            .map_err(|error| Trouble::permanent(error).into_failure())?;
        let work = async {
            match delivery.subject.as_str() {
                CATALOG => catalog::create(&self, &message.job).await,
                GENERATE => bill::generate(&self, &message).await,
                _ => findings::scan(&self, &message).await,
            }
        };
        let done = tokio::time::timeout(DEADLINE, work).await;
        let late = || Trouble::Transient(format!("not done within {} s", DEADLINE.as_secs()));
        let done = done.unwrap_or_else(|_| Err(late()));
        let Err(trouble) = done else { return Ok(()) };
        let (job, image) = (&message.job, message.image.as_deref());
        tracing::warn!(job = job.name, image, attempt = delivery.attempt, %trouble, "a stage failed");
        if trouble.is_permanent() || delivery.last {
            let recorded = self.record(job, image, &trouble.to_string()).await;
            recorded.map_err(Trouble::into_failure)?;
        }
        Err(trouble.into_failure())
    }

    /// Writes down that an image, or a whole job, cannot be scanned.
    async fn record(&self, job: &Job, image: Option<&str>, why: &str) -> Result<(), Trouble> {
        let Some(image) = image else {
            return reconcile::fail(self, job, why).await;
        };
        let failure = format!("{}: {why}", job.uid);
        let patch = json!({"metadata": {"annotations": {FAILURE: failure}}});
        match IMAGE
            .merge(&self.client, &job.namespace, image, &patch)
            .await
        {
            // An image that is gone is nobody's failure.
            Err(error) if crate::object::is_absent(&error) => Ok(()),
            other => Ok(other?),
        }
    }
}
