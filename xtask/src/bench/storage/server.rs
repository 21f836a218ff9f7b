//! A server to measure: how it is reached, and which processes work for it. Whatever it keeps its
//! objects in, the client's requests are the same.

use anyhow::{Context, Result};
use muster_testkit::http::Client;
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::muster::Muster;
use muster_testkit::postgres::Postgres;
use muster_testkit::storage::{Cluster, Options};
use std::fs;
use std::path::Path;

/// Where the objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// In PostgreSQL, by `muster storage`.
    Shared,
    /// In SQLite, by `muster up`.
    Embedded,
}

/// What runs.
enum Running {
    Shared { _cluster: Box<Cluster> },
    Embedded { _muster: Box<Muster> },
}

/// A running server; it ends when dropped.
pub(super) struct Server {
    kubeconfig: Kubeconfig,
    /// How to reach whoever keeps the namespaces.
    front: Kubeconfig,
    /// The number of its process.
    id: u32,
    _running: Running,
}

/// What a server and its database have used, in seconds of processor time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) server: f64,
    pub(super) database: f64,
}

impl Server {
    /// Starts one, with the database it shall use if it needs one.
    pub(super) fn start(engine: Engine, binary: &Path, postgres: &Postgres) -> Result<Server> {
        match engine {
            Engine::Shared => Server::shared(binary, postgres),
            Engine::Embedded => {
                let muster = Muster::start(binary)?;
                Ok(Server {
                    kubeconfig: muster.kubeconfig().clone(),
                    front: muster.kubeconfig().clone(),
                    id: muster.process().id(),
                    _running: Running::Embedded {
                        _muster: Box::new(muster),
                    },
                })
            }
        }
    }

    /// One replica. Its clients come to it directly, with a certificate that the cluster's
    /// authority has signed: kube-apiserver in front would be measured too.
    fn shared(binary: &Path, postgres: &Postgres) -> Result<Server> {
        let database = postgres.url(&postgres.database()?);
        let mut cluster = Cluster::start(binary, &Options::on(database))?;
        let front = cluster.kubernetes().kubeconfig().clone();
        let replica = cluster.replica(0);
        let kubeconfig = Kubeconfig {
            token: None,
            ..replica.kubeconfig().clone()
        };
        let id = replica.process()?.id();
        Ok(Server {
            kubeconfig,
            front,
            id,
            _running: Running::Shared {
                _cluster: Box::new(cluster),
            },
        })
    }

    /// A client of it.
    pub(super) fn client(&self) -> Result<Client> {
        Client::new(&self.kubeconfig)
    }

    /// A client of whoever keeps the namespaces.
    pub(super) fn front(&self) -> Result<Client> {
        Client::new(&self.front)
    }

    /// Its resident memory now, and the most it ever was, in megabytes.
    pub(super) fn memory(&self) -> Result<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id))?;
        let megabytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes = line.and_then(|rest| rest.split_whitespace().next());
            let kibibytes = kibibytes.with_context(|| format!("the process has no {name}"))?;
            Ok::<_, anyhow::Error>(kibibytes.parse::<f64>()? * 1024.0 / 1e6)
        };
        Ok((megabytes("VmRSS:")?, megabytes("VmHWM:")?))
    }

    pub(super) fn usage(&self, postgres: &Postgres) -> Result<Usage> {
        let file = fs::read_to_string(postgres.socket().join("data/postmaster.pid"))?;
        let postmaster = file.lines().next().unwrap_or_default().trim().parse()?;
        Ok(Usage {
            server: processor_seconds(self.id)?,
            database: processor_seconds(postmaster)?,
        })
    }
}

/// The processor time that a process and its children have used, those that have ended too.
fn processor_seconds(parent: u32) -> Result<f64> {
    /// Linux reports in hundredths, whatever its clock does.
    const TICKS: f64 = 100.0;
    let mut ticks = 0;
    for entry in fs::read_dir("/proc")? {
        // Most of what is there is no process, and some that are end meanwhile.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else {
            continue;
        };
        let Some((start, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let own = start.split(' ').next().and_then(|text| text.parse().ok());
        let fields = rest.split_whitespace();
        let fields: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
        // Behind the name: the state, the parent, and from the twelfth on the time in user mode,
        // in the kernel, and both again for children that were waited for.
        let times = match own == Some(parent) {
            true => 4,
            false if fields.get(1) == Some(&u64::from(parent)) => 2,
            false => 0,
        };
        ticks += fields.iter().skip(11).take(times).sum::<u64>();
    }
    Ok(ticks as f64 / TICKS)
}
