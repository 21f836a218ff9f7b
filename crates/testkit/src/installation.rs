//! Muster as a cluster runs it: kube-apiserver, PostgreSQL and NATS, some `muster storage`, operators
//! and workers, each a process that may be killed and replaced.

use crate::balancer::Balancer;
use crate::kubectl::Kubectl;
use crate::nats::Nats;
use crate::port;
use crate::process::{Directory, Process};
use crate::storage::{self, Cluster, NAMESPACE};
use crate::wait;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long the installation's namespace may take to be there.
const START: Duration = Duration::from_secs(60);

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// The servers behind kube-apiserver.
    pub storage: storage::Options,
    /// How many operators.
    pub operators: usize,
    /// How many workers.
    pub workers: usize,
}

impl Options {
    /// Two `muster storage` on a database, an operator and two workers.
    pub fn on(database: String) -> Options {
        Options {
            storage: storage::Options {
                replicas: 2,
                controllers: true,
                ..storage::Options::on(database)
            },
            operators: 1,
            workers: 2,
        }
    }
}

/// A whole installation; it ends when dropped.
#[derive(Debug)]
pub struct Installation {
    // The order is the order of dropping.
    /// Those that decide.
    pub operators: Vec<Process>,
    /// Those that scan.
    pub workers: Vec<Process>,
    /// What both speak through.
    pub nats: Nats,
    /// Where findings are kept.
    pub cluster: Cluster,
    /// Where kube-apiserver asks the operators, and where they answer.
    webhooks: Balancer,
    ports: Vec<u16>,
    binary: PathBuf,
    started: usize,
    directory: Directory,
}

impl Installation {
    /// Starts everything; the workers have what is, or comes to be, in [`Installation::data`].
    pub fn start(binary: impl AsRef<Path>, options: &Options) -> Result<Installation> {
        let binary = binary.as_ref().to_owned();
        let cluster = Cluster::start(&binary, &options.storage)?;
        let directory = Directory::new("installation")?;
        let storage = cluster.replicas().first().context("a replica")?;
        let authority = storage.kubeconfig().authority.clone();
        let authority = authority.context("the authority of muster storage")?;
        fs::write(directory.join("layers.crt"), authority)?;
        fs::create_dir(directory.join("vulnerabilities"))?;
        let mut installation = Installation {
            operators: Vec::new(),
            workers: Vec::new(),
            nats: Nats::start()?,
            cluster,
            webhooks: Balancer::start(Vec::new())?,
            ports: Vec::new(),
            binary,
            started: 0,
            directory,
        };
        installation.prepare()?;
        for _ in 0..options.operators {
            installation.add_operator()?;
        }
        for _ in 0..options.workers {
            installation.add_worker()?;
        }
        installation.wait_asked()?;
        Ok(installation)
    }

    /// Tells the cluster about our kinds, as a chart would.
    fn prepare(&self) -> Result<()> {
        let kubectl = self.kubectl()?;
        let crds = Command::new(&self.binary)
            .args(["crds", "--group", "sbomscanner.kubewarden.io"])
            .output()?;
        ensure!(crds.status.success(), "{crds:?}");
        let crds = String::from_utf8(crds.stdout)?;
        kubectl.define(&crds)?;
        wait::until("the namespace of the installation", START, || {
            Ok(kubectl.succeed(&["get", "namespace", NAMESPACE]).ok())
        })?;
        Ok(())
    }

    /// Waits until kube-apiserver asks the operators about our kinds.
    fn wait_asked(&self) -> Result<()> {
        let kubectl = self.kubectl()?;
        wait::until("the webhooks", START, || {
            let outcome = kubectl.run(&["get", "validatingwebhookconfiguration", "muster"], "")?;
            Ok(outcome.status.success().then_some(()))
        })
        .with_context(|| self.logs())
    }

    /// The administrator's kubectl.
    pub fn kubectl(&self) -> Result<Kubectl> {
        self.cluster.kubectl()
    }

    /// The directory of the vulnerability data.
    pub fn data(&self) -> PathBuf {
        self.directory.join("vulnerabilities")
    }

    /// Starts one more operator.
    pub fn add_operator(&mut self) -> Result<()> {
        let (process, port) = self.operator()?;
        self.operators.push(process);
        self.ports.push(port);
        Ok(())
    }

    /// Kills an operator as a power cut would, and starts another in its place.
    pub fn replace_operator(&mut self, at: usize) -> Result<()> {
        self.operators.get_mut(at).context("an operator")?.kill9()?;
        self.webhooks.remove(self.ports[at]);
        (self.operators[at], self.ports[at]) = self.operator()?;
        Ok(())
    }

    fn operator(&mut self) -> Result<(Process, u16)> {
        let port = port::free()?;
        self.webhooks.add(port);
        let address = format!("127.0.0.1:{port}");
        let asked = format!("https://127.0.0.1:{}", self.webhooks.port());
        let arguments = [["--webhook-listen", &address], ["--webhook-url", &asked]];
        Ok((self.launch("operator", &arguments.concat())?, port))
    }

    /// Starts one more worker.
    pub fn add_worker(&mut self) -> Result<()> {
        let storage = self.cluster.replicas().first().context("a replica")?;
        let server = storage.kubeconfig().server.clone();
        let file = |name: &str| self.directory.join(name).display().to_string();
        let (database, authority) = (file("vulnerabilities"), file("layers.crt"));
        let arguments = [
            ["--database", &database],
            ["--db-update", "off"],
            ["--layers", &server],
            ["--layers-ca", &authority],
        ];
        let process = self.launch("worker", &arguments.concat())?;
        self.workers.push(process);
        Ok(())
    }

    /// Kills all workers as a power cut would.
    pub fn kill_workers(&mut self) -> Result<()> {
        let mut workers = self.workers.drain(..);
        workers.try_for_each(|mut worker| worker.kill9().map(drop))
    }

    /// Starts a role as the user that it is in a cluster, with the rights of that.
    fn launch(&mut self, role: &str, arguments: &[&str]) -> Result<Process> {
        let kubeconfig = self.cluster.role_path(role)?;
        let mut command = Command::new(&self.binary);
        command.arg(role).arg("--kubeconfig").arg(kubeconfig);
        command.args(["--nats", &self.nats.url()]);
        command
            .args(["--health-listen", "127.0.0.1:0"])
            .args(arguments);
        self.started += 1;
        let log = self.directory.join(&format!("{role}-{}.log", self.started));
        Process::start(&format!("muster {role}"), &mut command, &log)
    }

    /// Whether nothing was tried that a role may not do, by those that run and those that ran.
    pub fn lacks_no_right(&self) -> Result<()> {
        for file in fs::read_dir(self.directory.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let log = fs::read_to_string(&path)?;
                let refused = lacking_right(&log);
                ensure!(refused.is_none(), "{}: {refused:?}", path.display());
            }
        }
        Ok(())
    }

    /// How the logs of all that runs end.
    pub fn logs(&self) -> String {
        let processes = self.operators.iter().chain(&self.workers);
        let tails = processes.map(|process| {
            format!(
                "the log of {} ends:\n{}",
                process.name(),
                process.log_tail()
            )
        });
        tails.collect::<Vec<_>>().join("\n")
    }
}

/// The line of a log that tells of a right that somebody lacks. What an admission rule refuses, such as a job
/// for a Registry that is just being deleted, is forbidden too, and nobody lacks a right.
pub fn lacking_right(log: &str) -> Option<&str> {
    let lacks = |line: &&str| line.contains("forbidden: User");
    log.lines().find(lacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_by_a_rule_is_no_right_that_is_lacking() {
        for (line, lacks) in [
            (
                r#"pods is forbidden: User "worker" cannot list resource "pods" in API group """#,
                true,
            ),
            (
                r#"message: \"secrets is forbidden: User \"worker\" cannot get resource\""#,
                true,
            ),
            (
                r#"scanjobs "a" is forbidden: the Registry "b" is being deleted, nothing begins on it"#,
                false,
            ),
            (
                r#"configmaps "a" is forbidden: unable to create new content in namespace x"#,
                false,
            ),
            ("ready", false),
        ] {
            let log = format!("before\n{line}\nafter");
            assert_eq!(lacking_right(&log), lacks.then_some(line), "{line}");
        }
    }
}
