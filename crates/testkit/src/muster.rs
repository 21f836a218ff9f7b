//! Muster itself as a process, as a user starts it: `muster up`.

use crate::http;
use crate::kubeconfig::Kubeconfig;
use crate::port;
use crate::process::{Directory, Process};
use crate::wait;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// How long `muster up` may take to be ready.
const START: Duration = Duration::from_secs(30);

/// How long it may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(90);

/// The kernel chooses the port.
const ANY_PORT: &str = "127.0.0.1:0";

/// A running `muster up`; it ends when dropped.
#[derive(Debug)]
pub struct Muster {
    process: Process,
    kubeconfig: Kubeconfig,
    binary: PathBuf,
    data: PathBuf,
    told: Told,
    directory: Directory,
}

/// What it is told beside where it is.
#[derive(Debug)]
struct Told {
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Muster {
    /// Starts the binary on a fresh data directory. The path comes from the caller, because only
    /// the tests of the package that holds the binary know it (`env!("CARGO_BIN_EXE_muster")`).
    pub fn start(binary: impl AsRef<Path>) -> Result<Muster> {
        Muster::start_with(binary, &[])
    }

    /// As [`Muster::start`], with nobody at work: the API is served, and what is written there stays
    /// as it was written.
    pub fn start_idle(binary: impl AsRef<Path>) -> Result<Muster> {
        Muster::start_with(binary, &["--scanning", "off", "--audit", "off"])
    }

    /// Starts the binary with further arguments after `up`.
    pub fn start_with(binary: impl AsRef<Path>, arguments: &[&str]) -> Result<Muster> {
        Muster::start_told(binary, arguments, &[])
    }

    /// Starts the binary on a data directory that `fill` makes, as one that another process has left.
    pub fn start_on(
        binary: impl AsRef<Path>,
        arguments: &[&str],
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Muster> {
        let directory = Directory::new("up")?;
        fs::create_dir(directory.join("data"))?;
        fill(&directory.join("data"))?;
        Muster::launch(binary.as_ref(), arguments, &[], directory)
    }

    /// As [`Muster::start_with`], with further variables in its environment.
    pub fn start_told(
        binary: impl AsRef<Path>,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Muster> {
        Muster::launch(binary.as_ref(), arguments, variables, Directory::new("up")?)
    }

    fn launch(
        binary: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
        directory: Directory,
    ) -> Result<Muster> {
        let data = directory.join("data");
        let told = Told {
            arguments: arguments.iter().map(|&argument| argument.into()).collect(),
            variables: variables
                .iter()
                .map(|&(name, value)| (name.into(), value.into()))
                .collect(),
        };
        let (process, kubeconfig) = launch(binary, &data, ANY_PORT, &told, &directory)?;
        let binary = binary.into();
        Ok(Muster {
            process,
            kubeconfig,
            binary,
            data,
            told,
            directory,
        })
    }

    /// Starts it again on the same data, after [`Muster::kill9`] or [`Muster::terminate`]. What
    /// still runs is killed first.
    pub fn restart(&mut self) -> Result<()> {
        self.restart_at(ANY_PORT)
    }

    /// As [`Muster::restart`], where it was: for clients that try again by themselves.
    pub fn restart_in_place(&mut self) -> Result<()> {
        self.restart_at(&self.kubeconfig.server.clone())
    }

    /// As [`Muster::restart`], at an address or URL where it has been before.
    pub fn restart_at(&mut self, address: &str) -> Result<()> {
        if self.process.exit_status()?.is_none() {
            self.process.kill9()?;
        }
        let listen = address.trim_start_matches("https://");
        (self.process, self.kubeconfig) = launch(
            &self.binary,
            &self.data,
            listen,
            &self.told,
            &self.directory,
        )?;
        Ok(())
    }

    /// Kills it as a power cut would, with no chance to tidy up.
    pub fn kill9(&mut self) -> Result<ExitStatus> {
        self.process.kill9()
    }

    /// Sets a variable of its environment, from its next start on.
    pub fn tell(&mut self, name: &str, value: &str) {
        let variables = &mut self.told.variables;
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value.into()));
    }

    /// Gives it other arguments after `up`, from its next start on.
    pub fn instruct(&mut self, arguments: &[&str]) {
        self.told.arguments = arguments.iter().map(|&argument| argument.into()).collect();
    }

    /// Asks it to end with SIGTERM, and waits.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        self.process.terminate(STOP)
    }

    /// How to reach it; the port is a new one after [`Muster::restart`].
    pub fn kubeconfig(&self) -> &Kubeconfig {
        &self.kubeconfig
    }

    /// The kubeconfig file it wrote.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.data.join("kubeconfig")
    }

    /// Its data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The process, for its memory and its log.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The process, for its signals and its end.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

fn launch(
    binary: &Path,
    data: &Path,
    listen: &str,
    told: &Told,
    directory: &Directory,
) -> Result<(Process, Kubeconfig)> {
    let mut command = Command::new(binary);
    command
        .arg("up")
        .arg("--data")
        .arg(data)
        .args(["--listen", listen])
        // Tests fetch nothing from the world; one that wants to see it fetched says from where.
        .env("MUSTER_DB_UPDATE", "off")
        // What every server would do beside what a test is about; one that is about it says so.
        .env("MUSTER_CONFIG_AUDIT", "off")
        .args(&told.arguments)
        .envs(told.variables.iter().map(|(name, value)| (name, value)));
    let mut start = || Process::start("muster", &mut command, &directory.join("muster.log"));
    let mut process = start()?;
    // After a restart the file of the last run is still there and names the old port, so its mere
    // presence means nothing: ready is what answers.
    let kubeconfig = wait::until("the readiness of muster", START, || {
        if let Err(error) = port::early_exit(&mut process) {
            // Somebody took the port while nobody listened there; it is waited for.
            if listen == ANY_PORT || !process.log_tail().contains("is in use by another process") {
                return Err(error);
            }
            process = start()?;
        }
        let kubeconfig = Kubeconfig::read(&data.join("kubeconfig")).ok();
        Ok(kubeconfig.filter(http::is_ready))
    })
    .with_context(|| format!("the log of muster ends:\n{}", process.log_tail()))?;
    Ok((process, kubeconfig))
}
