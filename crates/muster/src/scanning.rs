//! `muster operator` and `muster worker`: the roles that scan in a cluster. Both speak to
//! kube-apiserver and to NATS; the operator decides what is to be done, any number of workers do
//! it. Each waits for the servers it needs and says so.

use crate::auditing::{Auditing, Audits, Surroundings};
use crate::cluster::{Cluster, version};
use crate::health::{Counted, Data, Health};
use crate::inspect::{Origin, Reach};
use crate::nats::Nats;
use crate::role::{self, Switch, told_to_stop};
use crate::telemetry;
use crate::webhook::{self, Webhook};
use anyhow::{Context, Result};
use clap::Args;
use muster_advisories::hub::Fetch;
use muster_operator::{Election, Settings, Terms};
use muster_queue::NatsQueue;
use muster_registry::Mirrors;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long to wait before a server that is not there is asked again.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct Operator {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    nats: Nats,
    /// The namespace in which Muster is installed.
    #[arg(long, env = "MUSTER_NAMESPACE", default_value = "muster")]
    namespace: String,
    /// Whether the images of running workloads are scanned, once a WorkloadScanConfiguration says
    /// which; off, no pods are watched.
    #[arg(long, env = "MUSTER_WORKLOAD_SCAN", value_enum, default_value = "on")]
    workload_scan: Switch,
    #[command(flatten)]
    auditing: Auditing,
    /// Where the code of policies is kept; if not given, it is fetched again after a restart.
    #[arg(long, env = "MUSTER_POLICY_CACHE", value_name = "DIR")]
    policy_cache: Option<PathBuf>,
    #[command(flatten)]
    webhook: Webhook,
    #[command(flatten)]
    health: Health,
}

#[derive(Args)]
pub(crate) struct Worker {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    nats: Nats,
    /// The namespace in which Muster is installed.
    #[arg(long, env = "MUSTER_NAMESPACE", default_value = "muster")]
    namespace: String,
    /// Where vulnerability data is kept; made if absent.
    #[arg(
        long,
        env = "MUSTER_DATABASE",
        value_name = "DIR",
        default_value = "/var/lib/muster/vulnerabilities"
    )]
    database: PathBuf,
    /// Whether vulnerability data and VEX hubs are fetched; off, what is there is used.
    #[arg(long, env = "MUSTER_DB_UPDATE", value_enum, default_value = "on")]
    db_update: Switch,
    /// A `muster storage`, such as https://muster-storage.muster.svc, through which workers share
    /// what they find in layers. Without it each reads every layer itself.
    #[arg(
        long,
        env = "MUSTER_LAYERS",
        value_name = "URL",
        requires = "layers_ca"
    )]
    layers: Option<String>,
    /// The certificate authority of that server, in PEM.
    #[arg(long, env = "MUSTER_LAYERS_CA", value_name = "FILE")]
    layers_ca: Option<PathBuf>,
    #[command(flatten)]
    origin: Origin,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    health: Health,
}

pub(crate) fn operator(command: Operator) -> Result<()> {
    role::run(async move {
        let settings = Settings {
            data: PathBuf::new(),
            layers: None,
            update: None,
            hubs: Fetch::default(),
            mirrors: Mirrors::default(),
            installation: command.namespace.clone(),
            metrics: command.health.metrics(),
            tracer: telemetry::tracer(),
            cluster: None,
            workloads: command.workload_scan == Switch::On,
        };
        let client = command.cluster.client().await?;
        let health = command.health.serve(Data::Elsewhere).await?;
        tokio::select! {
            told = told_to_stop() => return told,
            is_supported = version::require(&client) => is_supported?,
        }
        // Whoever writes waits for an answer, so it does not wait for NATS, nor for a leader.
        let answering = CancellationToken::new();
        let webhook = command
            .webhook
            .start(&client, &command.namespace, answering.clone())
            .await?;
        let identity = identity();
        let election = Election::new(&client, &command.namespace, &identity, Terms::default());
        // Of several operators one decides; the others wait to take over.
        let lead = async |operator: Arc<muster_operator::Operator>, stop| {
            let decide = |term| operator.clone().decide(term);
            election.run(decide, stop).await;
        };
        let audits = command.auditing.prepare(Surroundings {
            home: client.clone(),
            cluster: client.clone(),
            installation: &command.namespace,
            cache: command.policy_cache,
            authorities: None,
            is_alone: false,
            metrics: command.health.audit(),
        })?;
        let duty = command.auditing.duty();
        let enough = CancellationToken::new();
        let auditor = election.clone().for_duty(&duty);
        // Judging what is there needs no queue, so it does not wait for one.
        let auditing = tokio::spawn(audited(audits, auditor, enough.clone()));
        let lived = live(client, &command.nats, settings, health, lead).await;
        enough.cancel();
        auditing.await.context("auditing")?;
        if let Some(webhook) = webhook {
            tokio::time::sleep(webhook::LINGER).await;
            answering.cancel();
            webhook.await.context("answering webhooks")?;
        }
        lived
    })
}

/// Audits, if it is to, whenever this process has the duty.
async fn audited(audits: Audits, election: Election, stop: CancellationToken) {
    if !audits.is_empty() {
        let audit = |term| audits.clone().run(term);
        election.run(audit, stop).await;
    }
}

/// A name that no other process has.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "operator".into());
    format!("{host}-{}", uuid::Uuid::new_v4())
}

pub(crate) fn worker(command: Worker) -> Result<()> {
    role::run(async move {
        let client = command.cluster.client().await?;
        let layers = match (&command.layers, &command.layers_ca) {
            (Some(server), Some(file)) => {
                let authorities = std::fs::read(file)
                    .with_context(|| format!("reading --layers-ca {}", file.display()))?;
                Some(command.cluster.client_of(server, authorities).await?)
            }
            _ => None,
        };
        let settings = Settings {
            data: command.database,
            layers,
            update: match command.db_update {
                Switch::On => Some(command.origin.update(&command.reach, false)?),
                Switch::Off => None,
            },
            hubs: command.reach.hubs()?,
            mirrors: command.reach.mirrors()?,
            installation: command.namespace,
            metrics: command.health.metrics(),
            tracer: telemetry::tracer(),
            cluster: None,
            workloads: false,
        };
        let health = command.health.serve(Data::Here).await?;
        let work = |operator: Arc<muster_operator::Operator>, stop| operator.work(stop);
        live(client, &command.nats, settings, health, work).await
    })
}

/// Does the work of a role until it is told to stop, then finishes what is under way.
async fn live<F: Future<Output = ()>>(
    client: kube::Client,
    nats: &Nats,
    settings: Settings,
    counted: Arc<Counted>,
    role: impl FnOnce(Arc<muster_operator::Operator>, CancellationToken) -> F,
) -> Result<()> {
    let stop = CancellationToken::new();
    let queue = tokio::select! {
        told = told_to_stop() => return told,
        queue = queue(nats) => Arc::new(queue?),
    };
    tracing::info!("working");
    let operator = muster_operator::Operator::new(client, queue, settings);
    counted.begin(&operator);
    let mut working = std::pin::pin!(role(operator, stop.clone()));
    tokio::select! {
        told = told_to_stop() => {
            stop.cancel();
            working.await;
            tracing::info!("stopped");
            told
        }
        () = &mut working => Ok(()),
    }
}

/// The queue, as soon as it can be reached.
async fn queue(nats: &Nats) -> Result<NatsQueue> {
    let options = nats
        .options()
        .context("no NATS server is named; say where it is with `--nats nats://HOST:4222`")?;
    loop {
        match NatsQueue::connect(options.clone(), muster_queue::Settings::default()).await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "waiting for NATS");
                tokio::time::sleep(AGAIN).await;
            }
            other => return Ok(other?),
        }
    }
}
