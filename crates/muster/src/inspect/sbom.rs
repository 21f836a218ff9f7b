//! `muster sbom`: what is in an image, and nothing about what is wrong with it.

use super::bars::Bars;
use super::documents::{Document, only};
use super::reading::Reading;
use crate::role;
use anyhow::Result;
use clap::Args;
use std::io::Write;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Sbom {
    /// What to read: an image reference, an OCI layout, an image archive, a root file system or a
    /// source directory.
    #[arg(value_name = "TARGET")]
    target: String,
    /// The form of the bill of materials.
    #[arg(short, long, value_enum, default_value = "spdx")]
    output: Document,
    #[command(flatten)]
    reading: Reading,
}

pub(crate) fn run(command: Sbom) -> Result<ExitCode> {
    role::run(async move {
        let bars = Bars::new(command.reading.quiet);
        let options = command.reading.options(&bars)?;
        let read = command.reading.read(&command.target, &options).await?;
        let read: Result<Vec<_>> = read.into_iter().collect();
        let bills: Vec<_> = read?.into_iter().map(|one| one.bill).collect();
        let bill = only(&bills)?;
        for one in &bill.incomplete {
            bars.say(&format!("warning: {}: {}", one.path, one.reason));
        }
        if bill.package_count() == 0 {
            bars.say(&format!(
                "warning: {}: no packages found",
                bill.subject.name
            ));
        }
        let unsupported = bill.package_count().saturating_sub(bill.components.len());
        if unsupported > 0 {
            bars.say(&format!(
                "warning: {}: {unsupported} packages of unsupported types are left out",
                bill.subject.name
            ));
        }
        std::io::stdout().write_all(&command.output.write(bill)?)?;
        Ok(ExitCode::SUCCESS)
    })
}
