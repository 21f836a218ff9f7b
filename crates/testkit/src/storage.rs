//! `muster storage` as a cluster runs it: some replicas on one PostgreSQL, registered with a real
//! kube-apiserver as an aggregated API.

use crate::balancer::Balancer;
use crate::certificates::{Authority, Pair};
use crate::http;
use crate::kubeconfig::Kubeconfig;
use crate::kubectl::Kubectl;
use crate::kubernetes::{self, Kubernetes};
use crate::port;
use crate::process::{Directory, Process};
use crate::wait;
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// How long a replica may take to be ready, and the API to be there.
const START: Duration = Duration::from_secs(60);
/// How long a replica may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(60);
/// The namespace it is installed in.
pub const NAMESPACE: &str = "muster";
/// Who our roles are to kube-apiserver, and what they may do: all that the chart can give.
pub const ROLES: &str = concat!(
    include_str!("../../../charts/muster/files/roles/operator.yaml"),
    "---\n",
    include_str!("../../../charts/muster/files/roles/workloads.yaml"),
    "---\n",
    include_str!("../../../charts/muster/files/roles/audit.yaml"),
    "---\n",
    include_str!("../../../charts/muster/files/roles/worker.yaml"),
    "---\n",
    include_str!("../../../charts/muster/files/roles/storage.yaml"),
    "---\n",
    include_str!("../../../charts/muster/files/roles/people.yaml"),
);
/// The groups and versions that are always served.
const FOUND: [(&str, &str); 1] = [("storage.sbomscanner.kubewarden.io", "v1alpha1")];
/// Those that are served if reports are.
const REPORTS: [(&str, &str); 4] = [
    ("wgpolicyk8s.io", "v1beta1"),
    ("wgpolicyk8s.io", "v1alpha2"),
    ("openreports.io", "v1alpha1"),
    ("aquasecurity.github.io", "v1alpha1"),
];

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many replicas.
    pub replicas: usize,
    /// The URL of the database.
    pub database: String,
    /// Whether kube-controller-manager runs too.
    pub controllers: bool,
    /// Whether reports are served and not left to CRDs.
    pub reports: bool,
    /// Further arguments of `muster storage`.
    pub arguments: Vec<String>,
}

impl Options {
    /// One replica on a database, and nothing else.
    pub fn on(database: String) -> Options {
        Options {
            replicas: 1,
            database,
            controllers: false,
            reports: false,
            arguments: Vec::new(),
        }
    }
}

/// A cluster with an aggregated API; it ends when dropped.
#[derive(Debug)]
pub struct Cluster {
    // The order is the order of dropping.
    replicas: Vec<Replica>,
    kubernetes: Kubernetes,
    balancer: Balancer,
    authority: Authority,
    directory: Directory,
}

impl Cluster {
    /// Starts everything, and returns when kube-apiserver serves our kinds.
    pub fn start(binary: impl AsRef<Path>, options: &Options) -> Result<Cluster> {
        let mut cluster = Cluster::prepare(binary, options)?;
        for replica in &mut cluster.replicas {
            replica.wait_ready()?;
        }
        cluster.wait_available(options.reports)?;
        Ok(cluster)
    }

    /// Starts everything, and waits for nothing but kube-apiserver.
    pub fn prepare(binary: impl AsRef<Path>, options: &Options) -> Result<Cluster> {
        let kubernetes = Kubernetes::start(&kubernetes::Options {
            controllers: options.controllers,
            ..kubernetes::Options::default()
        })?;
        let directory = Directory::new("storage")?;
        let authority = Authority::new("muster storage authority")?;
        let service = format!("muster-storage.{NAMESPACE}.svc");
        let serving = authority.server(&[&service, "localhost", "127.0.0.1"])?;
        let kubeconfig = role_path(&kubernetes, "storage")?;
        let ports = (0..options.replicas).map(|_| port::free());
        let ports = ports.collect::<Result<Vec<u16>>>()?;
        let balancer = Balancer::start(ports.clone())?;
        let cluster = Cluster {
            replicas: Vec::new(),
            kubernetes,
            balancer,
            authority,
            directory,
        };
        cluster.write_certificate(&serving)?;
        cluster.register(options.reports)?;
        let replicas = ports.into_iter().enumerate().map(|(number, port)| {
            let mut arguments = vec!["--kubeconfig".to_owned(), kubeconfig.display().to_string()];
            let file = |name: &str| cluster.directory.join(name).display().to_string();
            arguments.extend(["--tls-cert".into(), file("tls.crt")]);
            arguments.extend(["--tls-key".into(), file("tls.key")]);
            if options.reports {
                arguments.push("--reports-backend=served".into());
            }
            arguments.extend(options.arguments.clone());
            let mut replica = Replica {
                process: None,
                binary: binary.as_ref().into(),
                database: options.database.clone(),
                arguments,
                port,
                log: cluster.directory.join(&format!("storage-{number}.log")),
                kubeconfig: Kubeconfig {
                    server: format!("https://127.0.0.1:{port}"),
                    authority: Some(cluster.authority.certificate.clone().into_bytes()),
                    ..cluster.kubernetes.kubeconfig().clone()
                },
            };
            replica.launch()?;
            Ok(replica)
        });
        let replicas = replicas.collect::<Result<Vec<_>>>()?;
        Ok(Cluster {
            replicas,
            ..cluster
        })
    }

    /// The control plane in front.
    pub fn kubernetes(&self) -> &Kubernetes {
        &self.kubernetes
    }

    /// A replica.
    pub fn replica(&mut self, number: usize) -> &mut Replica {
        &mut self.replicas[number]
    }

    /// All replicas.
    pub fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// The administrator's kubectl.
    pub fn kubectl(&self) -> Result<Kubectl> {
        Kubectl::new(&self.kubernetes.kubeconfig_path())
    }

    /// Somebody else's kubectl.
    pub fn kubectl_of(&self, user: &str, groups: &[&str]) -> Result<Kubectl> {
        Kubectl::new(&self.kubernetes.user_path(user, groups)?)
    }

    /// A kubeconfig of the account that a role of ours has in this cluster.
    pub fn role_path(&self, role: &str) -> Result<PathBuf> {
        role_path(&self.kubernetes, role)
    }

    /// A serving certificate for the replicas from their authority, named as asked.
    pub fn serving(&self, names: &[&str]) -> Result<Pair> {
        self.authority.server(names)
    }

    /// Puts a serving certificate where the replicas look for it.
    pub fn write_certificate(&self, pair: &Pair) -> Result<()> {
        for (name, contents) in [("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
            let part = self.directory.join("part");
            fs::write(&part, contents)?;
            fs::rename(&part, self.directory.join(name))?;
        }
        Ok(())
    }

    /// Where the replicas look for their certificate and its key.
    pub fn certificate_files(&self) -> (PathBuf, PathBuf) {
        let file = |name: &str| self.directory.join(name);
        (file("tls.crt"), file("tls.key"))
    }

    /// Has kube-apiserver take connections and say nothing any more; the replicas stay.
    pub fn silence_kubernetes(&mut self) -> Result<()> {
        self.kubernetes.silence_server()
    }

    /// Waits until kube-apiserver serves our kinds.
    pub fn wait_available(&self, reports: bool) -> Result<()> {
        let kubectl = self.kubectl()?;
        for (group, version) in groups(reports) {
            let path = format!("/apis/{group}/{version}");
            wait::until(&format!("the availability of {path}"), START, || {
                let outcome = kubectl.run(&["get", "--raw", &path], "")?;
                Ok(outcome.status.success().then_some(()))
            })
            .with_context(|| self.logs())?;
        }
        Ok(())
    }

    fn logs(&self) -> String {
        let logs = self.replicas.iter().map(|replica| {
            let tail = replica.process.as_ref().map(Process::log_tail);
            format!(
                "a replica's log ends:\n{}\n",
                tail.unwrap_or_else(|| "(it does not run)".into())
            )
        });
        logs.collect()
    }

    /// Tells the cluster about us, as a chart would.
    fn register(&self, reports: bool) -> Result<()> {
        let kubectl = self.kubectl()?;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        kubectl.succeed_with(&["apply", "-f", "-"], &namespace.to_string())?;
        kubectl.succeed_with(&["apply", "-f", "-"], ROLES)?;
        let mut objects = vec![json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "muster-storage", "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        })];
        objects.extend(groups(reports).map(|(group, version)| self.service(group, version)));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        kubectl.succeed_with(&["apply", "-f", "-"], &list.to_string())?;
        Ok(())
    }

    fn service(&self, group: &str, version: &str) -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 1000,
                "versionPriority": 10,
                "caBundle": STANDARD.encode(&self.authority.certificate),
                "service": {
                    "namespace": NAMESPACE, "name": "muster-storage", "port": self.balancer.port(),
                },
            },
        })
    }
}

/// A kubeconfig of the account that a role of ours has in a cluster.
pub fn role_path(kubernetes: &Kubernetes, role: &str) -> Result<PathBuf> {
    let user = format!("system:serviceaccount:{NAMESPACE}:muster-{role}");
    let namespace = format!("system:serviceaccounts:{NAMESPACE}");
    kubernetes.user_path(&user, &["system:serviceaccounts", &namespace])
}

fn groups(reports: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let served = REPORTS.into_iter().filter(move |_| reports);
    FOUND.into_iter().chain(served)
}

/// One `muster storage`.
#[derive(Debug)]
pub struct Replica {
    process: Option<Process>,
    binary: PathBuf,
    database: String,
    arguments: Vec<String>,
    port: u16,
    log: PathBuf,
    kubeconfig: Kubeconfig,
}

impl Replica {
    /// Starts it where it was, and returns when it is ready. What still runs is killed.
    pub fn restart(&mut self) -> Result<()> {
        self.launch()?;
        self.wait_ready()
    }

    fn launch(&mut self) -> Result<()> {
        self.process = None;
        let mut command = Command::new(&self.binary);
        command
            .args(["storage", "--listen", &format!("127.0.0.1:{}", self.port)])
            .args(&self.arguments)
            .env("MUSTER_POSTGRES", &self.database)
            // Nobody has to learn that it goes, unless a test says otherwise.
            .env("MUSTER_DRAIN_SECONDS", "0");
        self.process = Some(Process::start("muster storage", &mut command, &self.log)?);
        Ok(())
    }

    /// Waits until it says that it is ready. A port that somebody took while nobody listened is
    /// waited for too.
    pub fn wait_ready(&mut self) -> Result<()> {
        let kubeconfig = self.kubeconfig.clone();
        let ready = wait::until("the readiness of muster storage", START, || {
            if let Err(error) = port::early_exit(self.process()?) {
                if !self.log_tail().contains("is in use by another process") {
                    return Err(error);
                }
                self.launch()?;
            }
            Ok(http::is_ready(&kubeconfig).then_some(()))
        });
        ready.with_context(|| format!("its log ends:\n{}", self.log_tail()))
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        self.process
            .as_ref()
            .map_or_else(String::new, Process::log_tail)
    }

    /// Its process, for a look.
    pub fn running(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// Its process, while it has one.
    pub fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().context("the replica does not run")
    }

    /// Kills it as a power cut would.
    pub fn kill9(&mut self) -> Result<ExitStatus> {
        self.process()?.kill9()
    }

    /// Asks it to end with SIGTERM, and waits.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        self.process()?.terminate(STOP)
    }

    /// How to reach it directly, as the cluster's administrator.
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    /// How to reach it directly, as somebody with this certificate, or as nobody.
    pub fn kubeconfig_with(&self, pair: Option<Pair>) -> Kubeconfig {
        Kubeconfig {
            token: None,
            certificate: pair.map(|pair| (pair.certificate.into(), pair.key.into())),
            ..self.kubeconfig.clone()
        }
    }
}
