//! `muster up`: everything in one process, on one data directory.

use crate::admission::{Builtin, Jobs, Managed, ReportAuthors};
use crate::auditing::Auditing;
use crate::certificates::Authority;
use crate::health::Counted;
use crate::inspect::{Origin, Reach, places};
use crate::layers::LayersPage;
use crate::outside::{self, Outside};
use crate::pages::PagesLobby;
use crate::role::{self, History, Switch, bind, version};
use crate::{auditing, inside, kubeconfig, telemetry};
use anyhow::{Context, Result, bail};
use clap::builder::Resettable;
use clap::{Args, FromArgMatches};
use muster_api::guard::Accounts;
use muster_apiserver::front::Front;
use muster_apiserver::identity::{Certificates, Identity, OwnerOnly};
use muster_apiserver::respond::full;
use muster_apiserver::{Parts, Server, Upkeep, listen};
use muster_operator::Operator;
use muster_operator::admission::Gate;
use muster_queue::{EmbeddedQueue, Settings};
use muster_store::{Options, SqliteLayers, SqliteStore};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Who works inside the server.
const OPERATOR: &str = "muster";
/// Whose it is: whoever has the kubeconfig.
const OWNER: &str = "muster-admin";

#[derive(Args)]
pub(crate) struct Up {
    /// Where everything is kept; made if absent.
    #[arg(long, env = "MUSTER_DATA", default_value_os_t = places::data())]
    data: PathBuf,
    /// The address to serve on; port 0 chooses a free one.
    #[arg(long, env = "MUSTER_LISTEN", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// The namespace of Muster's own credentials, leases and policies.
    #[arg(long, env = "MUSTER_NAMESPACE", default_value = "muster")]
    namespace: String,
    /// Whether ScanJobs are worked on; off, the API is served and nothing else is done.
    #[arg(long, env = "MUSTER_SCANNING", value_enum, default_value = "on")]
    scanning: Switch,
    /// Whether the images of running workloads are scanned, once a WorkloadScanConfiguration says
    /// which; off, no pods are watched.
    #[arg(long, env = "MUSTER_WORKLOAD_SCAN", value_enum, default_value = "on")]
    workload_scan: Switch,
    /// Where the vulnerability data is: a directory with trivy.db and metadata.json. If not given,
    /// the directory `vulnerabilities` of the data directory.
    #[arg(long, env = "MUSTER_DATABASE", value_name = "DIR")]
    database: Option<PathBuf>,
    /// Whether vulnerability data and VEX hubs are fetched; off, what is there is used.
    #[arg(long, env = "MUSTER_DB_UPDATE", value_enum, default_value = "on")]
    db_update: Switch,
    #[command(flatten)]
    outside: Outside,
    #[command(flatten)]
    origin: Origin,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    auditing: Auditing,
    /// For how many seconds Event objects are kept.
    #[arg(long, env = "MUSTER_EVENT_SECONDS", value_name = "SECONDS", default_value_t = Upkeep::default().event_seconds, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    event_seconds: u64,
    #[command(flatten)]
    history: History,
}

/// A server that is up, as its company finds it.
pub(crate) struct Serving {
    /// The server itself, called as its owner.
    pub(crate) client: kube::Client,
    pub(crate) url: String,
    /// The link that leads a browser to the pages, once.
    pub(crate) pages: String,
    pub(crate) kubeconfig: PathBuf,
    /// Ctrl-C or SIGTERM, from before anybody could know of the server.
    pub(crate) end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Up {
    /// As if told by these arguments and by nothing else, whatever the environment says.
    pub(crate) fn told(arguments: impl IntoIterator<Item = OsString>) -> Result<Up> {
        let line = Up::augment_args(clap::Command::new("up").no_binary_name(true));
        let line = line.mut_args(|argument| argument.env(Resettable::Reset));
        Ok(Up::from_arg_matches(
            &line.try_get_matches_from(arguments)?,
        )?)
    }

    /// Whether anything is fetched that nobody asked for.
    #[cfg(test)]
    pub(crate) fn fetches(&self) -> bool {
        self.db_update == Switch::On
    }
}

pub(crate) fn run(command: Up) -> Result<()> {
    role::run(serve(command, announce))
}

/// Serves for as long as its company stays.
pub(crate) async fn serve<C>(command: Up, company: impl FnOnce(Serving) -> C) -> Result<()>
where
    C: Future<Output = Result<()>>,
{
    let store = Arc::new(SqliteStore::open(Options::new(&command.data)).await?);
    let outcome = serve_store(&command, store.clone(), company).await;
    let closed = store.close().await.context("closing the store");
    outcome.and(closed)
}

/// Says where the server is, and stays until it is told to end.
async fn announce(serving: Serving) -> Result<()> {
    eprintln!(
        "Muster {} serves {}\n\n  export KUBECONFIG={}\n  kubectl api-resources --categories muster\n\nLook at it in a browser; the link leads in once:\n\n  {}\n\nStop it with Ctrl-C.",
        env!("CARGO_PKG_VERSION"),
        serving.url,
        serving.kubeconfig.display(),
        serving.pages
    );
    serving.end.await;
    Ok(())
}

async fn serve_store<C>(
    command: &Up,
    store: Arc<SqliteStore>,
    company: impl FnOnce(Serving) -> C,
) -> Result<()>
where
    C: Future<Output = Result<()>>,
{
    let own = command.data.join("kubeconfig");
    let cluster = command.outside.open(&own).await?;
    let listener = bind("--listen", command.listen).await?;
    let address = listener.local_addr().context("asking for the port")?;
    let authority = Authority::open(&command.data)?;
    let local = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        address.ip(),
    ];
    let tls = Arc::new(authority.tls(&authority.server(&local)?)?);
    let tls = watch::Sender::new(tls).subscribe();
    let mut kinds = muster_api::builtin::builtin();
    kinds.extend(muster_api::kinds());
    if cluster.is_some() {
        outside::disown(&mut kinds);
    }
    let authorizer = Arc::new(OwnerOnly);
    let accounts = Accounts {
        controller: OPERATOR.into(),
        worker: OPERATOR.into(),
    };
    let layers = Arc::new(SqliteLayers::open(&command.data.join("layers.db")).await?);
    let shared = LayersPage::new(layers.clone());
    let jobs = Jobs::default();
    let counted = Arc::new(Counted::default());
    let server = Server::new(Parts {
        kinds,
        store,
        authenticators: vec![Box::new(Certificates)],
        authorizer: authorizer.clone(),
        admissions: vec![
            Box::new(Builtin),
            Box::new(Managed(accounts)),
            Box::new(ReportAuthors(authorizer)),
            Box::new(jobs.clone()),
        ],
        pages: vec![shared.clone()],
        protobuf: muster_api::builtin::protobuf::decode,
        version: version(),
        upkeep: Upkeep {
            event_seconds: command.event_seconds,
            ..command.history.upkeep()
        },
        checks: Vec::new(),
        counters: Some(counted.clone()),
    });
    server
        .store_missing_links()
        .await
        .context("storing the links of older objects")?;
    for namespace in ["default", "kube-system", command.namespace.as_str()] {
        create_namespace(&server, namespace).await?;
    }
    server.start_controllers();
    server.start_upkeep();
    let queue = command.data.join("queue.db");
    let queue = EmbeddedQueue::open(&queue, Settings::default()).await?;
    let queue = Arc::new(queue);
    let client = inside::client(&server, Identity::new(OPERATOR, &["system:masters"]));
    jobs.through(Gate::new(client.clone(), &command.namespace));
    let vulnerabilities = command.database.clone();
    let vulnerabilities = vulnerabilities.unwrap_or_else(|| command.data.join("vulnerabilities"));
    let update = match command.db_update {
        Switch::On => Some(command.origin.update(&command.reach, false)?),
        Switch::Off => None,
    };
    let settings = muster_operator::Settings {
        data: vulnerabilities,
        layers: Some(client.clone()),
        update,
        hubs: command.reach.hubs()?,
        mirrors: command.reach.mirrors()?,
        installation: command.namespace.clone(),
        metrics: counted.metrics(),
        tracer: telemetry::tracer(),
        cluster: cluster.as_ref().map(|cluster| cluster.client.clone()),
        workloads: command.workload_scan == Switch::On,
    };
    let rest = CancellationToken::new();
    let audited = cluster.as_ref().map(|cluster| cluster.client.clone());
    let audits = command.auditing.prepare(auditing::Surroundings {
        home: client.clone(),
        cluster: audited.unwrap_or_else(|| client.clone()),
        installation: &command.namespace,
        cache: Some(command.data.join("policies")),
        authorities: command.reach.authorities()?,
        is_alone: true,
        metrics: counted.audit(),
    })?;
    let auditing = tokio::spawn(audits.run(rest.clone()));
    let looking = match cluster {
        Some(cluster) => {
            if command.workload_scan == Switch::On {
                outside::configure(&client).await?;
            }
            tokio::spawn(cluster.announce(rest.clone()))
        }
        None => tokio::spawn(async {}),
    };
    let operator = Operator::new(client, queue.clone(), settings);
    counted.begin(&operator);
    let keeping = tokio::spawn(shared.keep_small(rest.clone()));
    let operating = match command.scanning {
        Switch::On => tokio::spawn(operator.run(rest.clone())),
        Switch::Off => tokio::spawn(async {}),
    };
    let stop = CancellationToken::new();
    let client = inside::client(&server, Identity::new(OWNER, &["system:masters"]));
    let (lobby, pages) = PagesLobby::owned(OWNER, client.clone(), address)?;
    let front = Front::of(server);
    front.furnish(lobby);
    let serving = tokio::spawn(listen::serve(front, listener, tls, stop.clone()));
    let end = role::end()?;
    let url = format!("https://{}", reachable(address));
    let owner = authority.client(OWNER, "system:masters")?;
    kubeconfig::write(&own, &url, &authority.certificate, &owner)?;
    let stayed = company(Serving {
        client,
        url,
        pages,
        kubeconfig: own.canonicalize().unwrap_or(own),
        end: Box::pin(end),
    });
    let outcome = stayed.await;
    eprintln!("stopping");
    // What is being worked on still needs the server.
    rest.cancel();
    operating.await.context("scanning")?;
    auditing.await.context("auditing")?;
    keeping.await.context("forgetting layers")?;
    looking.await.context("looking at the cluster")?;
    stop.cancel();
    serving.await.context("serving")?;
    layers.close().await.context("closing the layers")?;
    let closed = queue.close().await.context("closing the queue");
    outcome.and(closed)
}

/// The address clients on this machine use; an unspecified one stands for all of them.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if !ip.is_unspecified() => address,
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()),
    }
}

/// Creates a namespace through the server itself, unless it is there.
async fn create_namespace(server: &Arc<Server>, name: &str) -> Result<()> {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let mut request = http_request("/api/v1/namespaces?fieldManager=muster", &body);
    request
        .extensions_mut()
        .insert(Identity::new(OPERATOR, &["system:masters"]));
    let response = server.handle(request).await;
    if response.status().is_success() || response.status().as_u16() == 409 {
        return Ok(());
    }
    bail!(
        "creating the namespace {name}: the server answered {}",
        response.status()
    )
}

fn http_request(path: &str, body: &Value) -> http::Request<muster_apiserver::body::RequestBody> {
    let mut request = http::Request::new(full(body.to_string()));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = path.parse().unwrap_or_default();
    request
}
