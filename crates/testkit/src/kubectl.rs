//! The real `kubectl` against either server.

use crate::binaries;
use crate::process::Directory;
use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

/// `kubectl` for one server. Each has a home of its own, so that cached discovery documents never
/// pass from one server to another.
#[derive(Debug)]
pub struct Kubectl {
    binary: PathBuf,
    kubeconfig: PathBuf,
    home: Directory,
}

/// What one run of `kubectl` did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Kubectl {
    /// Finds `kubectl` and points it at a server.
    pub fn new(kubeconfig: &Path) -> Result<Kubectl> {
        let binary = binaries::find_one("kubectl")?;
        Ok(Kubectl {
            binary,
            kubeconfig: kubeconfig.into(),
            home: Directory::new("kubectl")?,
        })
    }

    /// The command with its surroundings, for whoever needs a running process (`get -w`).
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .env("KUBECACHEDIR", self.home.join("cache"))
            .current_dir(self.home.path());
        command
    }

    /// Runs it to its end, whatever that is.
    pub fn run(&self, arguments: &[&str], stdin: &str) -> Result<Outcome> {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        let mut pipe = child.stdin.take().context("no standard input")?;
        let text = stdin.to_string();
        // Written from a thread: with both pipes full, each side would wait for the other. An
        // early end of kubectl breaks the pipe, which its own message explains better.
        let writer = thread::spawn(move || pipe.write_all(text.as_bytes()));
        let output = child.wait_with_output()?;
        let _ = writer.join();
        Ok(Outcome {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs it, expects success and returns what it printed.
    pub fn succeed(&self, arguments: &[&str]) -> Result<String> {
        self.succeed_with(arguments, "")
    }

    /// As [`Kubectl::succeed`], with something on its standard input.
    pub fn succeed_with(&self, arguments: &[&str], stdin: &str) -> Result<String> {
        let outcome = self.run(arguments, stdin)?;
        ensure!(
            outcome.status.success(),
            "kubectl {arguments:?} ended with {}:\n{}{}",
            outcome.status,
            outcome.stdout,
            outcome.stderr,
        );
        Ok(outcome.stdout)
    }

    /// Runs it, expects failure and returns what it complained about.
    pub fn fail(&self, arguments: &[&str], stdin: &str) -> Result<String> {
        let outcome = self.run(arguments, stdin)?;
        ensure!(
            !outcome.status.success(),
            "kubectl {arguments:?} should have failed but printed:\n{}",
            outcome.stdout,
        );
        Ok(outcome.stderr)
    }
}
