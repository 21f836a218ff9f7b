//! The real `helm` for one chart.

use crate::binaries;
use crate::kubectl::Outcome;
use crate::process::Directory;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// `helm`, with a home of its own, so that nobody's plugins and repositories matter.
#[derive(Debug)]
pub struct Helm {
    binary: PathBuf,
    kubeconfig: Option<PathBuf>,
    home: Directory,
}

impl Helm {
    /// Finds `helm`, for what needs no cluster.
    pub fn new() -> Result<Helm> {
        Ok(Helm {
            binary: binaries::find_one("helm")?,
            kubeconfig: None,
            home: Directory::new("helm")?,
        })
    }

    /// Finds `helm` and points it at a cluster.
    pub fn of(kubeconfig: &Path) -> Result<Helm> {
        Ok(Helm {
            kubeconfig: Some(kubeconfig.into()),
            ..Helm::new()?
        })
    }

    /// Runs it to its end, whatever that is.
    pub fn run(&self, arguments: &[&str]) -> Result<Outcome> {
        let mut command = Command::new(&self.binary);
        command.args(arguments).env("HOME", self.home.path());
        for (variable, directory) in [
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
        ] {
            command.env(variable, self.home.join(directory));
        }
        match &self.kubeconfig {
            Some(kubeconfig) => command.env("KUBECONFIG", kubeconfig),
            None => command.env_remove("KUBECONFIG"),
        };
        let output = command
            .output()
            .with_context(|| format!("cannot start {}", self.binary.display()))?;
        Ok(Outcome {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs it, expects success and returns what it printed.
    pub fn succeed(&self, arguments: &[&str]) -> Result<String> {
        let outcome = self.run(arguments)?;
        ensure!(
            outcome.status.success(),
            "helm {arguments:?} ended with {}:\n{}{}",
            outcome.status,
            outcome.stdout,
            outcome.stderr,
        );
        Ok(outcome.stdout)
    }

    /// Runs it, expects failure and returns what it complained about.
    pub fn fail(&self, arguments: &[&str]) -> Result<String> {
        let outcome = self.run(arguments)?;
        ensure!(
            !outcome.status.success(),
            "helm {arguments:?} should have failed but printed:\n{}",
            outcome.stdout,
        );
        Ok(outcome.stderr)
    }
}
