//! The most memory a process had since we began to look, by the kernel's own count.

use anyhow::{Context, Result};
use muster_testkit::process::Process;
use std::fs;

/// A look at the memory of a process.
pub(super) struct Watermark {
    status: String,
    before: u64,
}

impl Watermark {
    /// Begins to look.
    pub(super) fn begin(process: &Process) -> Result<Watermark> {
        let id = process.id();
        // 5 forgets the greatest memory so far.
        fs::write(format!("/proc/{id}/clear_refs"), "5").context("forgetting the peak")?;
        let status = format!("/proc/{id}/status");
        let before = peak(&status)?;
        Ok(Watermark { status, before })
    }

    /// By how many mebibytes the memory was ever greater than at the beginning.
    pub(super) fn growth(&self) -> Result<u64> {
        Ok(peak(&self.status)?.saturating_sub(self.before) / 1024)
    }
}

fn peak(status: &str) -> Result<u64> {
    let text = fs::read_to_string(status)?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    Ok(number.context("no VmHWM in the process status")?.parse()?)
}
