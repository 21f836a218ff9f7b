//! Results on standard output, in the form that was asked for.

use super::documents::{Document, only};
use anyhow::{Context, Result};
use clap::ValueEnum;
use muster_scan::output::{Inspection, Style, sarif, table};
use muster_scan::sbom::Bill;
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people.
    Table,
    /// Everything, for machines.
    Json,
    /// Everything, for machines and people.
    Yaml,
    /// For code hosts.
    Sarif,
    /// The bill of materials as SPDX 2.3.
    Spdx,
    /// The bill of materials as CycloneDX 1.6.
    Cyclonedx,
}

impl Form {
    /// The bill of materials, if that is all that is asked for.
    pub(crate) fn document(self) -> Option<Document> {
        match self {
            Form::Spdx => Some(Document::Spdx),
            Form::Cyclonedx => Some(Document::Cyclonedx),
            _ => None,
        }
    }
}

/// What machines get.
#[derive(Serialize)]
struct Listed<'a> {
    inspections: &'a [Inspection],
}

/// Prints what was found. Suppressed findings are in every form for machines.
pub(crate) fn findings(
    inspections: &[Inspection],
    bills: &[Bill],
    form: Form,
    suppressed: bool,
) -> Result<()> {
    let mut text = match form {
        Form::Table => tables(inspections, suppressed).into_bytes(),
        Form::Json => serde_json::to_vec_pretty(&Listed { inspections })?,
        Form::Yaml => serde_saphyr::to_string(&Listed { inspections })
            .context("printing the findings")?
            .into_bytes(),
        Form::Sarif => serde_json::to_vec_pretty(&sarif(inspections))?,
        Form::Spdx => Document::Spdx.write(only(bills)?)?,
        Form::Cyclonedx => Document::Cyclonedx.write(only(bills)?)?,
    };
    if text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
    std::io::stdout()
        .write_all(&text)
        .context("writing to standard output")
}

fn tables(inspections: &[Inspection], suppressed: bool) -> String {
    let watched = std::io::stdout().is_terminal();
    let style = Style {
        width: watched.then(|| usize::from(console::Term::stdout().size().1)),
        colour: watched && std::env::var_os("NO_COLOR").is_none(),
        suppressed,
    };
    let drawn: Vec<String> = inspections.iter().map(|one| table(one, style)).collect();
    drawn.join("\n")
}
