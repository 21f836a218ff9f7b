//! `muster storage`: what was found, served as an aggregated API behind a real kube-apiserver. Any
//! number of replicas share one PostgreSQL. A replica listens at once and says what it waits for;
//! it is ready when it knows whom to believe and has reached its database.

mod access;
mod cache;
mod namespaces;
mod pages;
mod requester;
mod served;
mod trust;

use crate::accounts::OwnAccounts;
use crate::admission::{Managed, ReportAuthors};
use crate::cluster::Cluster;
use crate::database::Database;
use crate::layers::LayersPage;
use crate::nats::Nats;
use crate::pages::PagesLobby;
use crate::role::{self, History, Switch, bind, told_to_stop, version};
use crate::tls;
use access::Access;
use anyhow::{Context, Result};
use clap::Args;
use muster_api::storage;
use muster_apiserver::front::Front;
use muster_apiserver::store::{Resource, Store};
use muster_apiserver::{Check, Parts, Server, listen};
use muster_store::{PostgresLayers, PostgresStore};
use namespaces::Namespaces;
use requester::{ClusterClients, FrontProxy, Tokens};
pub(crate) use served::Reports;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How often the database is looked at, and how often in a row it may be away before this replica
/// says that it is not ready. A hiccup makes no replica unready: that would take the whole group of
/// kinds away from the cluster.
const LOOK: Duration = Duration::from_secs(5);
const ABSENCES: u32 = 6;

#[derive(Args)]
pub(crate) struct Storage {
    /// The address to serve on.
    #[arg(long, env = "MUSTER_LISTEN", default_value = "[::]:7443")]
    listen: SocketAddr,
    /// The server's certificate, and those between it and its authority, in PEM. The file is read
    /// again when it changes.
    #[arg(long, env = "MUSTER_TLS_CERT", value_name = "FILE")]
    tls_cert: PathBuf,
    /// The certificate's key, in PEM.
    #[arg(long, env = "MUSTER_TLS_KEY", value_name = "FILE")]
    tls_key: PathBuf,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    nats: Nats,
    /// The namespace in which Muster is installed.
    #[arg(long, env = "MUSTER_NAMESPACE", default_value = "muster")]
    namespace: String,
    #[command(flatten)]
    accounts: OwnAccounts,
    /// Where policy and audit reports live: `crd` leaves them to kube-apiserver, `served` serves
    /// them here and spares etcd.
    #[arg(
        long,
        env = "MUSTER_REPORTS_BACKEND",
        value_enum,
        default_value = "crd"
    )]
    reports_backend: Reports,
    /// Whether web pages are served at `/ui`, to people who show a token that the cluster knows.
    #[arg(long, env = "MUSTER_PAGES", value_enum, default_value = "on")]
    pages: Switch,
    /// For how many seconds a replica that was told to stop still answers, so that nobody is sent
    /// to one that is gone.
    #[arg(
        long,
        env = "MUSTER_DRAIN_SECONDS",
        value_name = "SECONDS",
        default_value_t = 5
    )]
    drain_seconds: u64,
    #[command(flatten)]
    history: History,
}

pub(crate) fn run(command: Storage) -> Result<()> {
    role::run(serve(command))
}

async fn serve(command: Storage) -> Result<()> {
    let files = tls::Files {
        certificate: command.tls_cert.clone(),
        key: command.tls_key.clone(),
    };
    let tls = tls::follow(files).await?;
    let client = command.cluster.client().await?;
    let lobby = match command.pages {
        Switch::On => {
            let stranger = command.cluster.stranger().await?;
            Some(pages::lobby(client.clone(), stranger, tls.key))
        }
        Switch::Off => None,
    };
    let listener = bind("--listen", command.listen).await?;
    let address = listener.local_addr().context("asking for the port")?;
    tracing::info!(%address, "listening");
    let front = Front::waiting("kube-apiserver");
    let stop = CancellationToken::new();
    let serving = listen::serve(front.clone(), listener, tls.config, stop.clone());
    let serving = tokio::spawn(serving);
    let outcome = tokio::select! {
        told = told_to_stop() => told.map(|()| None),
        made = make(&command, client, lobby, &front, &stop) => made.map(Some),
    };
    let outcome = match outcome {
        Ok(Some(made)) => live(&command, made, &stop, serving).await,
        other => {
            stop.cancel();
            serving.await.context("serving")?;
            other.map(|_| ())
        }
    };
    tracing::info!("stopped");
    outcome
}

/// A server that is ready, and what it lives on.
struct Made {
    server: Arc<Server>,
    store: Arc<PostgresStore>,
    /// Tasks that end when they are told to stop.
    helpers: JoinSet<()>,
    /// Tasks that never end by themselves.
    followers: Followers,
}

/// Tasks that are ended when nobody needs them any more.
struct Followers(Vec<tokio::task::JoinHandle<()>>);

impl Drop for Followers {
    fn drop(&mut self) {
        for follower in &self.0 {
            follower.abort();
        }
    }
}

/// Makes a server ready.
async fn make(
    command: &Storage,
    client: kube::Client,
    lobby: Option<Arc<PagesLobby>>,
    front: &Front,
    stop: &CancellationToken,
) -> Result<Made> {
    let trust = watch::Sender::new(None);
    let mut trusted = trust.subscribe();
    let mut followers = Followers(Vec::new());
    let following = tokio::spawn(trust::follow(client.clone(), trust));
    followers.0.push(following);
    trusted.wait_for(Option::is_some).await?;
    command.reports_backend.check(&client).await?;
    let (namespaces, following) = Namespaces::follow(client.clone());
    followers.0.push(following);
    namespaces.wait().await;
    front.wait_for("the database");
    let store = PostgresStore::open_when_ready(command.database.options()?).await?;
    let store = Arc::new(store);
    let (reachable, looking) = reachable(store.clone());
    followers.0.push(looking);
    let authorizer = Arc::new(Access::new(client.clone()));
    let layers = LayersPage::new(Arc::new(PostgresLayers::new(store.clone())));
    let server = Server::new(Parts {
        kinds: command.reports_backend.kinds(),
        store: store.clone(),
        authenticators: vec![
            Box::new(FrontProxy(trusted.clone())),
            Box::new(ClusterClients(trusted)),
            Box::new(Tokens::new(client)),
        ],
        authorizer: authorizer.clone(),
        admissions: vec![
            Box::new(namespaces),
            Box::new(Managed(command.accounts.within(&command.namespace))),
            Box::new(ReportAuthors(authorizer)),
        ],
        pages: vec![layers.clone()],
        protobuf: muster_api::builtin::protobuf::decode,
        version: version(),
        upkeep: command.history.upkeep(),
        checks: vec![reachable],
        counters: None,
    });
    front.wait_for("the links of older objects");
    server
        .store_missing_links()
        .await
        .context("storing the links of older objects")?;
    server.start_upkeep();
    let mut helpers = JoinSet::new();
    helpers.spawn(layers.keep_small(stop.clone()));
    if let Some(nats) = command.nats.options() {
        let (written, hearer) = (store.written(), store.clone());
        let hear = move |resource: &Resource, revision| hearer.nudge(resource, revision);
        helpers.spawn(muster_queue::nudge(nats, written, hear, stop.clone()));
    }
    if let Some(lobby) = lobby {
        front.furnish(lobby);
    }
    front.open(server.clone());
    tracing::info!("ready");
    Ok(Made {
        server,
        store,
        helpers,
        followers,
    })
}

/// Lives until it is told to stop; then says so, still answers for a while, and ends in order.
async fn live(
    command: &Storage,
    made: Made,
    stop: &CancellationToken,
    serving: tokio::task::JoinHandle<()>,
) -> Result<()> {
    let told = told_to_stop().await;
    made.server.drain();
    tracing::info!(seconds = command.drain_seconds, "draining");
    tokio::time::sleep(Duration::from_secs(command.drain_seconds)).await;
    stop.cancel();
    // Answers under way still need the store.
    serving.await.context("serving")?;
    made.helpers.join_all().await;
    drop(made.followers);
    made.store.close().await;
    told
}

/// Looks at the database again and again; the check fails once it was away for long.
fn reachable(store: Arc<PostgresStore>) -> (Check, tokio::task::JoinHandle<()>) {
    let fine = Arc::new(AtomicBool::new(true));
    let seen = fine.clone();
    let look = tokio::spawn(async move {
        let resource = Resource::from(format!("images.{}", storage::GROUP));
        let mut absences = 0;
        loop {
            tokio::time::sleep(LOOK).await;
            let answer = tokio::time::timeout(LOOK, store.revision(&resource)).await;
            absences = match answer {
                Ok(Ok(_)) => 0,
                _ => absences + 1,
            };
            seen.store(absences < ABSENCES, Ordering::Relaxed);
        }
    });
    let check = Check {
        name: "database",
        is_fine: Box::new(move || fine.load(Ordering::Relaxed)),
    };
    (check, look)
}
