//! CustomResourceDefinitions of other projects whose objects the chart makes, so that a real kube-apiserver
//! judges those too. They are files of the projects' Go modules, which Go fetches and verifies once; what is
//! in the cache is what [`Project::sum`] says, and nothing fetched is part of this repository.

use crate::binaries;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A project, and the definitions that are taken from it.
struct Project {
    /// Its directory in the cache.
    name: &'static str,
    module: &'static str,
    version: &'static str,
    /// Go's hash of all files of the module.
    sum: &'static str,
    /// Where the definitions are in the module.
    directory: &'static str,
    files: &'static [&'static str],
}

const PROJECTS: [Project; 2] = [
    Project {
        name: "cert-manager",
        module: "github.com/cert-manager/cert-manager",
        version: "v1.21.2",
        sum: "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
        directory: "deploy/crds",
        files: &[
            "cert-manager.io_certificates.yaml",
            "cert-manager.io_issuers.yaml",
        ],
    },
    Project {
        name: "prometheus-operator",
        module: "github.com/prometheus-operator/prometheus-operator",
        version: "v0.85.0",
        sum: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        directory: "example/prometheus-operator-crd",
        files: &["monitoring.coreos.com_servicemonitors.yaml"],
    },
];

/// The definitions of all these projects, as one stream of YAML. What is missing is fetched.
pub fn read() -> Result<String> {
    ensure()?;
    let cache = cache()?;
    let mut text = String::new();
    for project in &PROJECTS {
        for file in project.files {
            let path = project.place(&cache).join(file);
            let read = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            text += &format!("---\n{read}\n");
        }
    }
    Ok(text)
}

/// Fetches what is missing.
pub fn ensure() -> Result<()> {
    let cache = cache()?;
    let mut projects = PROJECTS.iter();
    projects.try_for_each(|project| project.ensure(&cache))
}

fn cache() -> Result<PathBuf> {
    let cache = binaries::cache().context("neither MUSTER_CACHE nor HOME is set")?;
    Ok(cache.join("definitions"))
}

impl Project {
    fn place(&self, cache: &Path) -> PathBuf {
        cache.join(self.name).join(self.version)
    }

    fn is_complete(&self, place: &Path) -> bool {
        self.files.iter().all(|file| place.join(file).is_file())
    }

    /// Copies beside the final place and renames, so that no half of a set is found. The lock makes a
    /// second one wait for the first.
    fn ensure(&self, cache: &Path) -> Result<()> {
        let place = self.place(cache);
        if self.is_complete(&place) {
            return Ok(());
        }
        let parent = cache.join(self.name);
        fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let lock = File::create(parent.join(format!("{}.lock", self.version)))?;
        lock.lock().context("cannot take the lock")?;
        if self.is_complete(&place) {
            return Ok(());
        }
        let from = self.download(&parent)?.join(self.directory);
        let output = tempfile::Builder::new().tempdir_in(&parent)?;
        for file in self.files {
            let written = fs::read(from.join(file))
                .and_then(|bytes| fs::write(output.path().join(file), bytes));
            written.with_context(|| format!("{file} of {}", from.display()))?;
        }
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        fs::rename(output.keep(), &place)
            .with_context(|| format!("cannot move definitions to {}", place.display()))
    }

    /// Where Go has the files of the module. It is asked outside of any module, so that none is changed.
    fn download(&self, outside: &Path) -> Result<PathBuf> {
        let wanted = format!("{}@{}", self.module, self.version);
        let output = Command::new("go")
            .args(["mod", "download", "-json", &wanted])
            .current_dir(outside)
            .output()
            .context("cannot run Go, which fetches definitions: install it")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{wanted}: {said}{complaint}");
        let told: Value = serde_json::from_str(&said).context("what Go says of a module")?;
        ensure!(
            told["Sum"] == self.sum,
            "{wanted} is another than it was: {said}"
        );
        let place = told["Dir"].as_str().context("the place of a module")?;
        Ok(place.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_fetched_and_a_half_is_not_all() -> Result<()> {
        let cache = tempfile::tempdir()?;
        let project = Project {
            module: "muster.test/nowhere",
            ..PROJECTS[0]
        };
        let place = project.place(cache.path());
        fs::create_dir_all(&place)?;
        let (last, first) = project.files.split_last().context("files")?;
        for file in first {
            fs::write(place.join(file), "")?;
        }
        assert!(!project.is_complete(&place));
        fs::write(place.join(last), "")?;
        project.ensure(cache.path())
    }
}
