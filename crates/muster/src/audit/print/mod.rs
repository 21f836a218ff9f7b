//! Results on standard output, in the form that was asked for. Reports and SARIF are written as they
//! are made: all of them at once may be more than there is room for.

mod line;
mod patch;
mod reports;
mod sarif;
mod table;

use super::judge::{Audited, Bench};
use anyhow::{Context, Result};
use clap::ValueEnum;
use jiff::Timestamp;
use muster_policy::report::Format;
use muster_scan::output::Style;
use std::io::{BufWriter, IsTerminal, Write};

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// For people.
    Table,
    /// All reports, for machines.
    Json,
    /// All reports, for machines and people.
    Yaml,
    /// For code hosts.
    Sarif,
}

/// Everything that was found out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) bench: &'a Bench,
    /// What was said of each object, in the order in which they came.
    pub(super) audited: &'a [Audited],
    /// When.
    pub(super) now: Timestamp,
}

/// Prints what was found out.
pub(super) fn print(found: Found<'_>, form: Form, format: Format) -> Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = match form {
        Form::Table => {
            let text = table::table(found, style());
            out.write_all(text.as_bytes()).map_err(Into::into)
        }
        Form::Json => reports::json(found, format, &mut out),
        Form::Yaml => reports::yaml(found, format, &mut out),
        Form::Sarif => serde_json::to_writer_pretty(&mut out, &sarif::sarif(found))
            .map_err(std::io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .map_err(Into::into),
    };
    let written = written.and_then(|()| out.flush().map_err(Into::into));
    written.context("writing to standard output")
}

fn style() -> Style {
    let watched = std::io::stdout().is_terminal();
    Style {
        width: watched.then(|| usize::from(console::Term::stdout().size().1)),
        colour: watched && std::env::var_os("NO_COLOR").is_none(),
        suppressed: true,
    }
}
