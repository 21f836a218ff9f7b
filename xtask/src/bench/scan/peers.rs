//! The same by others, as their users run them: Trivy with the same vulnerability data, Syft for the
//! bill of materials alone.

use super::{Row, done};
use anyhow::Result;
use muster_testkit::measure::Measured;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Another scanner.
pub(super) struct Peer {
    tool: Tool,
    program: PathBuf,
    data: PathBuf,
}

#[derive(Clone, Copy)]
enum Tool {
    Trivy,
    Syft,
}

/// All of them, built first where they are not there yet.
pub(super) fn all(data: &Path) -> Result<Vec<Peer>> {
    let peer = |tool, program| Peer {
        tool,
        program,
        data: data.into(),
    };
    Ok(vec![
        peer(Tool::Trivy, crate::peers::TRIVY.ensure()?),
        peer(Tool::Syft, crate::peers::SYFT.ensure()?),
    ])
}

impl Peer {
    fn command(&self, cache: &Path, layout: &Path) -> Result<Command> {
        let mut command = Command::new(&self.program);
        match self.tool {
            Tool::Trivy => {
                let place = cache.join("db");
                fs::create_dir_all(&place)?;
                for file in ["trivy.db", "metadata.json"] {
                    if !place.join(file).exists() {
                        fs::copy(self.data.join(file), place.join(file))?;
                    }
                }
                command
                    .args([
                        "image",
                        "--quiet",
                        "--scanners",
                        "vuln",
                        "--skip-db-update",
                        "--skip-java-db-update",
                    ])
                    .args([
                        "--offline-scan",
                        "--skip-version-check",
                        "--format",
                        "json",
                        "--cache-dir",
                    ])
                    .arg(cache)
                    .arg("--input")
                    .arg(layout);
            }
            Tool::Syft => {
                command
                    .args(["scan", "-q", "-o", "syft-json"])
                    .arg(format!("oci-dir:{}", layout.display()))
                    .env("SYFT_CHECK_FOR_APP_UPDATE", "false");
            }
        }
        Ok(command)
    }

    fn name(&self) -> &'static str {
        match self.tool {
            Tool::Trivy => "trivy",
            Tool::Syft => "syft (bill only)",
        }
    }

    fn row(&self, task: &'static str, taken: Vec<Measured>) -> Row {
        Row {
            tool: self.name().into(),
            task,
            taken,
        }
    }

    /// One image, without and with what earlier scans left, where that is anything.
    pub(super) fn image(&self, layout: &Path, runs: usize) -> Result<Vec<Row>> {
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            let cache = tempfile::tempdir()?;
            let command = self.command(cache.path(), layout)?;
            cold.push(done(&command)?);
            if matches!(self.tool, Tool::Trivy) {
                warm.push(done(&command)?);
            }
        }
        let mut rows = vec![self.row("cold", cold)];
        if !warm.is_empty() {
            rows.push(self.row("layers known", warm));
        }
        Ok(rows)
    }

    /// Images one after another, which may share what is known of their layers.
    pub(super) fn family(&self, family: &[PathBuf]) -> Result<Vec<Row>> {
        let cache = tempfile::tempdir()?;
        let mut sum: Option<Measured> = None;
        for layout in family {
            let one = done(&self.command(cache.path(), layout)?)?;
            sum = Some(match sum {
                None => one,
                Some(mut sum) => {
                    sum.wall += one.wall;
                    sum.processor += one.processor;
                    sum.peak = sum.peak.max(one.peak);
                    sum
                }
            });
        }
        Ok(sum
            .into_iter()
            .map(|sum| self.row("cold, one by one", vec![sum]))
            .collect())
    }
}
