//! What is tortured, and how: a server alone on its data directory, or three replicas with their
//! PostgreSQL and NATS.

use super::Resource;
use super::target::Announcer;
use anyhow::{Result, ensure};
use muster_testkit::etcd::Durability;
use muster_testkit::http::Client;
use muster_testkit::muster::Muster;
use muster_testkit::nats::Nats;
use muster_testkit::postgres::Postgres;
use muster_testkit::storage::{Cluster, Options};
use muster_testkit::wait;
use rand::RngExt;
use rand::rngs::StdRng;
use std::time::Duration;

/// How long a replica may take to use a database that is back.
const BACK: Duration = Duration::from_secs(60);

/// Somebody to be harmed.
pub(super) trait Victim: Send + Sized + 'static {
    /// What is written and watched.
    const RESOURCES: [Resource; 2];
    /// So many strikes there are at least.
    const STRIKES: u32;

    /// Who tells clients where the servers are.
    fn announcer(&self) -> &Announcer;
    /// Who makes namespaces.
    fn keeper_of_namespaces(&mut self) -> Result<Client>;
    /// Does some harm, and lets the victim recover; says what was done.
    fn strike(&mut self, round: u32, random: &mut StdRng) -> Result<&'static str>;
    /// Ends everything as asked and starts it again.
    fn rest(&mut self) -> Result<()>;
    /// The end of a log.
    fn log_tail(&self) -> String;
}

/// `muster up`.
pub(super) struct Alone {
    muster: Muster,
    announcer: Announcer,
}

impl Alone {
    pub(super) fn start() -> Result<Alone> {
        let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
        let announcer = Announcer::new(vec![Client::new(muster.kubeconfig())?]);
        Ok(Alone { muster, announcer })
    }

    fn restart(&mut self) -> Result<()> {
        self.muster.restart()?;
        self.announcer.up(0, Client::new(self.muster.kubeconfig())?);
        Ok(())
    }
}

impl Victim for Alone {
    const RESOURCES: [Resource; 2] = [Resource::ConfigMaps, Resource::Sboms];
    const STRIKES: u32 = 1;

    fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    fn keeper_of_namespaces(&mut self) -> Result<Client> {
        Client::new(self.muster.kubeconfig())
    }

    fn strike(&mut self, _: u32, _: &mut StdRng) -> Result<&'static str> {
        self.announcer.down(0);
        self.muster.kill9()?;
        self.restart()?;
        Ok("killed")
    }

    fn rest(&mut self) -> Result<()> {
        self.announcer.down(0);
        ensure!(
            self.muster.terminate()?.success(),
            "the server did not end well"
        );
        self.restart()
    }

    fn log_tail(&self) -> String {
        self.muster.process().log_tail()
    }
}

const REPLICAS: usize = 3;

/// Three `muster storage` behind one kube-apiserver. Clients go to each of them directly: through
/// the aggregator, nobody could choose whom to ask.
pub(super) struct Replicas {
    cluster: Cluster,
    postgres: Postgres,
    nats: Nats,
    announcer: Announcer,
    /// Whether NATS is away just now.
    silent: bool,
}

impl Replicas {
    pub(super) fn start() -> Result<Replicas> {
        let postgres = Postgres::start(Durability::Unsynced)?;
        let nats = Nats::start()?;
        let mut options = Options::on(postgres.url(&postgres.database()?));
        options.replicas = REPLICAS;
        options.arguments = vec!["--nats".into(), nats.url()];
        let cluster = Cluster::start(env!("CARGO_BIN_EXE_muster"), &options)?;
        let clients = cluster.replicas().iter();
        let clients = clients.map(|replica| Client::new(replica.kubeconfig()));
        let announcer = Announcer::new(clients.collect::<Result<_>>()?);
        Ok(Replicas {
            cluster,
            postgres,
            nats,
            announcer,
            silent: false,
        })
    }

    fn client(&self, place: usize) -> Result<Client> {
        Client::new(self.cluster.replicas()[place].kubeconfig())
    }

    fn kill_replica(&mut self, place: usize) -> Result<()> {
        self.announcer.down(place);
        self.cluster.replica(place).kill9()?;
        self.cluster.replica(place).restart()?;
        let client = self.client(place)?;
        self.announcer.up(place, client);
        Ok(())
    }

    fn kill_database(&mut self) -> Result<()> {
        for place in 0..REPLICAS {
            self.announcer.down(place);
        }
        self.postgres.kill9()?;
        self.postgres.restart()?;
        for place in 0..REPLICAS {
            wait::until("the database to be used again", BACK, || {
                Ok(reads(self.client(place)?).then_some(()))
            })?;
            let client = self.client(place)?;
            self.announcer.up(place, client);
        }
        Ok(())
    }

    /// NATS goes, and comes back a strike later. No client may notice.
    fn turn_nats(&mut self) -> Result<&'static str> {
        self.silent = !self.silent;
        if self.silent {
            self.nats.kill9()?;
            return Ok("NATS stopped");
        }
        self.nats.restart()?;
        Ok("NATS started")
    }
}

/// Whether a replica reads from its database.
fn reads(client: Client) -> bool {
    let ask = move || -> Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let path = format!("{}?limit=1", Resource::Images.everywhere());
        Ok(runtime.block_on(client.get(&path))?.status == 200)
    };
    std::thread::spawn(ask)
        .join()
        .is_ok_and(|asked| asked.is_ok_and(|reads| reads))
}

impl Victim for Replicas {
    const RESOURCES: [Resource; 2] = [Resource::Images, Resource::Sboms];
    const STRIKES: u32 = 5;

    fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    fn keeper_of_namespaces(&mut self) -> Result<Client> {
        Client::new(self.cluster.kubernetes().kubeconfig())
    }

    fn strike(&mut self, round: u32, random: &mut StdRng) -> Result<&'static str> {
        // Even a short run sees every fault once.
        match round % 5 {
            0 => {
                self.kill_database()?;
                Ok("PostgreSQL killed")
            }
            1 | 3 => self.turn_nats(),
            _ => {
                self.kill_replica(random.random_range(0..REPLICAS))?;
                Ok("a replica killed")
            }
        }
    }

    fn rest(&mut self) -> Result<()> {
        for place in 0..REPLICAS {
            self.announcer.down(place);
            let ended = self.cluster.replica(place).terminate()?;
            ensure!(ended.success(), "a replica did not end well: {ended}");
            self.cluster.replica(place).restart()?;
            let client = self.client(place)?;
            self.announcer.up(place, client);
        }
        Ok(())
    }

    fn log_tail(&self) -> String {
        let replicas = self.cluster.replicas().iter();
        let tails =
            replicas.map(|replica| format!("a replica's log ends:\n{}", replica.log_tail()));
        tails.collect::<Vec<_>>().join("\n")
    }
}
