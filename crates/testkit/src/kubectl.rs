//! The real `kubectl` against either server.

use crate::binaries;
use crate::process::Directory;
use crate::wait;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// For how long somebody else's writes may get in the way of ours.
const UNDISTURBED: Duration = Duration::from_secs(30);
/// How long a server may take to act on what it was just told.
const SERVED: Duration = Duration::from_secs(90);

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

    /// Makes a whole object what `document` says, so that nothing of the one before is kept. `kubectl
    /// replace` reads the object first; a controller that writes it in between is not the test's
    /// business, so that conflict alone is tried again, and so is an object that comes or goes.
    pub fn put(&self, document: &str) -> Result<()> {
        wait::until("a replacement nobody is in the way of", UNDISTURBED, || {
            for verb in ["replace", "create"] {
                let outcome = self.run(&[verb, "-f", "-"], document)?;
                if outcome.status.success() {
                    return Ok(Some(()));
                }
                let complaint = outcome.stderr;
                let overtaken = ["(NotFound)", "(Conflict)", "(AlreadyExists)"];
                if !overtaken.iter().any(|reason| complaint.contains(reason)) {
                    bail!("kubectl {verb} ended with {}:\n{complaint}", outcome.status);
                }
            }
            Ok(None)
        })
    }

    /// Teaches a server kinds by their definitions, and waits until it serves them. A definition that
    /// was just made has no conditions for `kubectl wait` to look at, and one that is established is
    /// served a moment later only.
    pub fn define(&self, definitions: &str) -> Result<()> {
        let arguments = ["apply", "--server-side", "-o", "json", "-f", "-"];
        let made: Value = serde_json::from_str(&self.succeed_with(&arguments, definitions)?)?;
        let made = match made["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![made],
        };
        for definition in made {
            let spec = &definition["spec"];
            let (group, plural) = (&spec["group"], &spec["names"]["plural"]);
            let named = group.as_str().zip(plural.as_str());
            let (group, plural) = named.with_context(|| format!("no definition: {definition}"))?;
            for version in spec["versions"].as_array().into_iter().flatten() {
                let Some(name) = version["name"]
                    .as_str()
                    .filter(|_| version["served"] == true)
                else {
                    continue;
                };
                let path = format!("/apis/{group}/{name}/{plural}?limit=1");
                wait::until(&format!("{path} to be served"), SERVED, || {
                    let outcome = self.run(&["get", "--raw", &path], "")?;
                    Ok(outcome.status.success().then_some(()))
                })?;
            }
        }
        Ok(())
    }

    /// Waits until somebody has a right that was just granted: who decides learns of it by a watch.
    pub fn wait_allowed(
        &self,
        user: &str,
        verb: &str,
        resource: &str,
        namespace: &str,
    ) -> Result<()> {
        let asked = [
            "auth", "can-i", verb, resource, "-n", namespace, "--as", user,
        ];
        wait::until(
            &format!("{user} to be allowed to {verb} {resource}"),
            SERVED,
            || Ok(self.run(&asked, "")?.status.success().then_some(())),
        )
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
