//! The operator put together: one reconciler and one worker for each stage, until they are told to
//! stop. A handler's failure is its message's alone; what a failure means for the image or the job
//! is written down before the message is given up.

use crate::clients::Clients;
use crate::knowledge::Knowledge;
use crate::message::{CATALOG, GENERATE, Job, JobKind, Message, REMATCH, Rematch, SCAN};
use crate::metrics::Metrics;
use crate::object::{DISCOVERY, FAILURE, IMAGE, REGISTRY, SCAN_JOB, VEX_HUB};
use crate::trace::Tracer;
use crate::{
    discovery, hubs, layers, mirror, progress, reconcile, refresh, registry, rematch, stage,
    timeline, workload,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use kube::api::DynamicObject;
use kube::runtime::reflector::Store;
use muster_advisories::Update;
use muster_advisories::hub::Fetch;
use muster_control::Panicked;
use muster_queue::{Failure, Queue, Worker, consume};
use muster_registry::{Mirrors, Traffic};
use muster_source::LayerCache;
use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// The components, as panics are counted.
pub(crate) const OPERATOR: &str = "operator";
pub(crate) const WORKER: &str = "worker";
/// Controllers without a kind of their own.
pub(crate) const WORKLOAD_SCAN: &str = "workload-scan";
pub(crate) const VULNERABILITY_DATA: &str = "vulnerability-data";

/// What the operator works with.
pub struct Operator {
    client: Client,
    queue: Arc<dyn Queue>,
    layers: Arc<dyn LayerCache>,
    traffic: Traffic,
    clients: Clients,
    knowledge: Knowledge,
    update: Option<Update>,
    hubs: Fetch,
    mirrors: Mirrors,
    installation: String,
    metrics: Arc<Metrics>,
    tracer: Tracer,
    cluster: Option<Client>,
    workloads: bool,
    jobs: Mutex<HashMap<JobKind, Store<DynamicObject>>>,
    handed_out: Mutex<HashMap<String, (bool, Instant)>>,
}

/// What an operator is told.
pub struct Settings {
    /// The directory of the vulnerability data; what is there is used as soon as it is.
    pub data: PathBuf,
    /// A client of a server of Muster itself, through which the inventories of layers are shared.
    pub layers: Option<Client>,
    /// How vulnerability data is fetched; nobody fetches any, nor VEX hubs, without it.
    pub update: Option<Update>,
    /// How VEX hubs are fetched.
    pub hubs: Fetch,
    /// Where images are asked for before the registry that has them.
    pub mirrors: Mirrors,
    /// The namespace of Leases and of Muster's own credentials.
    pub installation: String,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// How spans are tied together.
    pub tracer: Tracer,
    /// Where pods, namespaces and owners are looked at, if that is not where findings are kept;
    /// nothing is written there.
    pub cluster: Option<Client>,
    /// Whether the images of running workloads are scanned.
    pub workloads: bool,
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
    /// The work on an object panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
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
            Trouble::Api(_) | Trouble::Queue(_) | Trouble::Panicked(_) | Trouble::Transient(_) => {
                false
            }
        }
    }

    /// Whether our own API server cannot be asked now, which says nothing about the work.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            // Without an operator nobody answers kube-apiserver's questions about our kinds.
            Trouble::Api(kube::Error::Api(status)) => {
                matches!(status.code, 429 | 502 | 503 | 504)
                    || status.code == 500 && status.message.contains("failed calling webhook")
            }
            Trouble::Api(kube::Error::HyperError(_) | kube::Error::Service(_)) => true,
            _ => false,
        }
    }

    /// Whether somebody else wrote meanwhile.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Trouble::Api(kube::Error::Api(refused)) if refused.code == 409)
    }

    pub(crate) fn into_failure(self) -> Failure {
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
    /// An operator that keeps its findings through `client`.
    pub fn new(client: Client, queue: Arc<dyn Queue>, settings: Settings) -> Arc<Self> {
        Arc::new(Operator {
            client,
            queue,
            layers: layers::cache(settings.layers),
            traffic: Traffic::default(),
            clients: Clients::default(),
            knowledge: Knowledge::new(settings.data),
            update: settings.update,
            hubs: settings.hubs,
            mirrors: settings.mirrors,
            installation: settings.installation,
            metrics: settings.metrics,
            tracer: settings.tracer,
            cluster: settings.cluster,
            workloads: settings.workloads,
            jobs: Mutex::default(),
            handed_out: Mutex::default(),
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Where pods, namespaces and owners are looked at.
    pub(crate) fn cluster(&self) -> &Client {
        self.cluster.as_ref().unwrap_or(&self.client)
    }

    /// Whether findings are kept where the pods are.
    pub(crate) fn is_at_home(&self) -> bool {
        self.cluster.is_none()
    }

    /// The namespace of our own Leases.
    pub(crate) fn installation(&self) -> &str {
        &self.installation
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn tracer(&self) -> Tracer {
        self.tracer
    }

    pub(crate) fn queue(&self) -> &dyn Queue {
        &*self.queue
    }

    /// Remembers where the jobs of a kind are known, as long as this process decides.
    pub(crate) fn follow(&self, kind: JobKind, jobs: Store<DynamicObject>) {
        let known = self.jobs.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        known.insert(kind, jobs);
    }

    /// The jobs of a kind; none unless this process decides.
    pub(crate) fn jobs(&self, kind: JobKind) -> Vec<Arc<DynamicObject>> {
        let known = self.jobs.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        known.get(&kind).map(Store::state).unwrap_or_default()
    }

    pub(crate) fn layers(&self) -> Arc<dyn LayerCache> {
        self.layers.clone()
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic.clone()
    }

    pub(crate) fn mirrors(&self) -> &Mirrors {
        &self.mirrors
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Sends a message, unless it waits already.
    pub(crate) async fn send(
        &self,
        subject: &str,
        stage: &str,
        message: &Message,
    ) -> Result<(), Trouble> {
        let message = Message {
            traceparent: (self.tracer.name)(&Span::current()),
            ..message.clone()
        };
        let payload = message.encode().map_err(Trouble::permanent)?;
        self.queue
            .publish(subject, &message.id(stage), payload)
            .await?;
        Ok(())
    }

    /// Whether a job's work is to be handed out: it never was, or it has come further, or that is
    /// a while ago. Only what it spares depends on this: a job that is forgotten is asked again.
    pub(crate) fn is_time(&self, uid: &str, further: bool, pause: Duration) -> bool {
        let known = self.handed_out.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (_, at)| at.elapsed() < pause * 4);
        let is_time = known
            .get(uid)
            .is_none_or(|(before, at)| *before != further || at.elapsed() >= pause);
        if is_time {
            known.insert(uid.to_owned(), (further, Instant::now()));
        }
        is_time
    }

    /// Why messages of some subjects were laid aside, by their ids.
    pub(crate) async fn dead(&self, subjects: &[&str]) -> Result<HashMap<String, String>, Trouble> {
        const MOST: usize = 10_000;
        let mut dead = HashMap::new();
        for subject in subjects {
            let laid_aside = self.queue.dead(subject, MOST).await?;
            dead.extend(laid_aside.into_iter().map(|one| (one.id, one.reason)));
        }
        Ok(dead)
    }

    /// Has the report of that revision made again with the data of that key, unless that waits.
    pub(crate) async fn again(
        &self,
        message: &Rematch,
        key: &str,
        revision: &str,
    ) -> Result<(), Trouble> {
        let payload = serde_json::to_vec(message).map_err(Trouble::permanent)?;
        let id = format!("{key}/{}/{}/{revision}", message.namespace, message.image);
        self.queue.publish(REMATCH, &id, payload.into()).await?;
        Ok(())
    }

    pub(crate) fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// Decides and works until `stop`, then finishes what is under way.
    ///
    /// This and what follows are boxed so that they are compiled here, once: an `async fn` would be
    /// compiled anew with every binary that awaits it.
    pub fn run(self: Arc<Self>, stop: CancellationToken) -> BoxFuture<'static, ()> {
        let both = futures::future::join(self.clone().decide(stop.clone()), self.work(stop));
        Box::pin(both.map(|_| ()))
    }

    /// Decides what is to be done, and hands it out.
    pub fn decide(self: Arc<Self>, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.decisions(stop))
    }

    /// Does what is handed out.
    pub fn work(self: Arc<Self>, stop: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.stages(stop))
    }

    /// Runs work on one object. A panic is a failure of that object.
    pub(crate) async fn catch<T>(
        &self,
        component: &'static str,
        controller: &'static str,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let panics = self.metrics.panics();
        let done = panics.catch(component, controller, work).await;
        done.unwrap_or_else(|panicked| Err(panicked.into()))
    }

    /// Runs a loop of a component, and runs it again if it panics.
    async fn restart<F: Future<Output = ()>>(
        self: &Arc<Self>,
        component: &'static str,
        controller: &'static str,
        run: impl Fn(Arc<Self>, CancellationToken) -> F,
        stop: &CancellationToken,
    ) {
        let run = || run(self.clone(), stop.clone());
        let panics = self.metrics.panics();
        panics.restart(component, controller, run, stop).await;
    }

    async fn decisions(self: Arc<Self>, stop: CancellationToken) {
        self.metrics.leads(true);
        tokio::join!(
            self.restart(OPERATOR, SCAN_JOB.kind, reconcile::run, &stop),
            self.restart(OPERATOR, DISCOVERY.kind, discovery::reconcile::run, &stop),
            self.restart(OPERATOR, REGISTRY.kind, registry::reconcile::run, &stop),
            self.scan_workloads(&stop),
        );
        self.metrics.leads(false);
        let known = self.jobs.lock();
        known.unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn scan_workloads(self: &Arc<Self>, stop: &CancellationToken) {
        if self.workloads {
            tokio::join!(
                self.restart(OPERATOR, "Namespace", mirror::run, stop),
                self.restart(OPERATOR, "FindingHistory", timeline::run, stop),
                self.restart(OPERATOR, WORKLOAD_SCAN, workload::run, stop),
            );
        }
    }

    async fn stages(self: Arc<Self>, stop: CancellationToken) {
        let work = |subject, concurrency| {
            let worker = Worker {
                concurrency,
                wait: Duration::from_secs(1),
                grace: Duration::from_secs(5),
                ..Worker::default()
            };
            let operator = self.clone();
            let handler = move |job: muster_queue::Job| stage::handle(operator.clone(), job);
            consume(self.queue.clone(), subject, worker, handler, stop.clone())
        };
        hubs::recall(&self, &stop).await;
        tokio::join!(
            self.restart(WORKER, "rematch", rematch::run, &stop),
            self.fetch(&stop),
            work(CATALOG, 2),
            work(GENERATE, 2),
            work(SCAN, 2),
            work(REMATCH, 1),
        );
    }

    /// Keeps what reports are made with young, if that is wanted; hubs that are here are asked
    /// either way.
    async fn fetch(self: &Arc<Self>, stop: &CancellationToken) {
        let fetched = self.update.as_ref().map(|_| self.hubs.clone());
        let hubs = |operator, stop| hubs::run(operator, fetched.clone(), stop);
        let hubs = self.restart(WORKER, VEX_HUB.kind, hubs, stop);
        let Some(update) = &self.update else {
            return hubs.await;
        };
        let data = |operator, stop| refresh::run(operator, update.clone(), stop);
        tokio::join!(hubs, self.restart(WORKER, VULNERABILITY_DATA, data, stop));
    }

    /// Writes down that an image, or a whole job, cannot be scanned.
    pub(crate) async fn record(
        &self,
        job: &Job,
        image: Option<&str>,
        why: &str,
    ) -> Result<(), Trouble> {
        let Some(image) = image else {
            return progress::fail(self, job, why).await;
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
