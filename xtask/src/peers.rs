//! Programs of others that ours is held against. Each has a Go module of its own under `peers/`,
//! which pins everything it is built from; it is built once into the cache, under a lock.

use crate::run::root;
use anyhow::{Context, Result, ensure};
use muster_testkit::binaries;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

/// A program and the release of it that its module names.
pub(crate) struct Peer {
    name: &'static str,
    version: &'static str,
    package: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

pub(crate) const TRIVY: Peer = Peer {
    name: "trivy",
    version: "v0.72.0",
    package: "github.com/aquasecurity/trivy/cmd/trivy",
    environment: &[("GOEXPERIMENT", "jsonv2")],
};

pub(crate) const SYFT: Peer = Peer {
    name: "syft",
    version: "v1.42.0",
    package: "github.com/anchore/syft/cmd/syft",
    environment: &[],
};

pub(crate) const GRYPE: Peer = Peer {
    name: "grype",
    version: "v0.110.0",
    package: "github.com/anchore/grype/cmd/grype",
    environment: &[],
};

pub(crate) const OPA: Peer = Peer {
    name: "opa",
    version: "v1.17.0",
    package: "github.com/open-policy-agent/opa",
    environment: &[],
};

/// Builds all of them.
pub(crate) fn all() -> Result<()> {
    for peer in [TRIVY, SYFT, GRYPE, OPA] {
        eprintln!("{}", peer.ensure()?.display());
    }
    Ok(())
}

impl Peer {
    /// Finds the program in the cache, or builds it beside its place and renames it into it.
    pub fn ensure(&self) -> Result<PathBuf> {
        let cache = binaries::cache().context("neither MUSTER_CACHE nor HOME is set")?;
        let parent = cache.join("peers").join(self.version);
        let place = parent.join(self.name);
        if place.is_file() {
            return Ok(place);
        }
        fs::create_dir_all(&parent).with_context(|| format!("making {}", parent.display()))?;
        let lock = File::create(parent.join(format!("{}.lock", self.name)))?;
        lock.lock().context("taking the build lock")?;
        if place.is_file() {
            return Ok(place);
        }
        eprintln!("building {} {}, once", self.name, self.version);
        let output = tempfile::Builder::new().tempdir_in(&parent)?;
        let built = output.path().join(self.name);
        let status = Command::new("go")
            .args(["build", "-mod=mod", "-buildvcs=false", "-trimpath"])
            .args(["-ldflags", "-s -w", "-o"])
            .arg(&built)
            .arg(self.package)
            .current_dir(root().join("xtask/peers").join(self.name))
            .env("CGO_ENABLED", "0")
            .envs(self.environment.iter().copied())
            .status()
            .context("running Go, which builds the peers: install it")?;
        ensure!(status.success(), "building {} failed: {status}", self.name);
        fs::rename(&built, &place)?;
        Ok(place)
    }
}
