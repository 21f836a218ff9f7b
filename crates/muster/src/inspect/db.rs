//! `muster db`: vulnerability data on this machine. It is fetched as an OCI artifact, or brought
//! along where there is no network, and never half there.

use super::bars::Bars;
use super::data::{Origin, Place};
use super::reading::Reach;
use crate::role;
use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use muster_advisories::{Info, Outcome};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Db {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch the newest data, if there is newer.
    ///
    /// An interrupted download goes on where it stopped, and scans under way are not disturbed.
    Update(Update),
    /// Bring data from files: a Trivy database, OSV records, EPSS scores, the KEV catalogue.
    ///
    ///   muster db import trivy-db.tar.gz
    ///   muster db import osv/all.zip
    ///   muster db import epss_scores-current.csv.gz
    ///   muster db import known_exploited_vulnerabilities.json
    #[command(verbatim_doc_comment)]
    Import(Import),
    /// Say which data there is, how old it is and what it covers.
    Info(Describe),
}

#[derive(Args)]
struct Update {
    /// Fetch it even if it is here already.
    #[arg(long)]
    force: bool,
    /// Show no progress.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    origin: Origin,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
struct Import {
    /// Files or directories; what they are is seen by looking at them.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show no progress.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
struct Describe {
    /// The form of the answer.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Form,
    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    Table,
    Json,
    Yaml,
}

pub(crate) fn run(command: Db) -> Result<ExitCode> {
    match command.command {
        Command::Update(command) => role::run(update(command))?,
        Command::Import(command) => import(&command)?,
        Command::Info(command) => info(&command)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn update(command: Update) -> Result<()> {
    let bars = Bars::new(command.quiet);
    let update = command.origin.update(&command.reach, command.force)?;
    let outcome = command.place.directory().update(&update, &bars).await?;
    let (text, failures) = match outcome {
        Outcome::Updated {
            repository,
            revision,
            failures,
            ..
        } => (format!("updated from {repository} to {revision}"), failures),
        Outcome::Current {
            repository,
            revision,
            failures,
        } => (
            format!("{revision} is the newest that {repository} has"),
            failures,
        ),
    };
    for failure in failures {
        bars.say(&format!(
            "warning: {}: {}",
            failure.repository, failure.reason
        ));
    }
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

fn import(command: &Import) -> Result<()> {
    let bars = Bars::new(command.quiet);
    let directory = command.place.directory();
    for path in &command.paths {
        let imported = directory
            .import(path, &bars)
            .with_context(|| format!("importing {}", path.display()))?;
        let mut line = format!("{}: {}", path.display(), imported.kind.name());
        if let Some(records) = imported.records {
            line += &format!(", {records} records");
        }
        writeln!(std::io::stdout(), "{line}")?;
        for (why, count) in &imported.summary.left_out {
            bars.say(&format!("left out: {count} ({why})"));
        }
    }
    Ok(())
}

fn info(command: &Describe) -> Result<()> {
    let info = command.place.directory().info()?;
    let mut text = match command.output {
        Form::Table => table(&info),
        Form::Json => serde_json::to_string_pretty(&info)?,
        Form::Yaml => serde_saphyr::to_string(&info).context("printing the information")?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// What people want to know: how old it is, where it came from, what it covers.
fn table(info: &Info) -> String {
    let mut text = format!("Vulnerability data in {}\n", info.path.display());
    if info.parts.is_empty() {
        text += "none yet; fetch it with `muster db update`, or bring it with `muster db import FILE`\n";
    }
    let now = jiff::Timestamp::now();
    for part in &info.parts {
        let size = part.size as f64 / 1e6;
        text += &format!("\n{} ({size:.1} MB)\n", part.kind.name());
        let mut line = |name: &str, value: String| text += &format!("  {name:14} {value}\n");
        line("revision", part.revision.clone());
        if let Some(origin) = &part.origin {
            line("from", origin.clone());
        }
        for (name, time) in [
            ("made", &part.updated_at),
            ("fetched", &part.downloaded_at),
            ("next expected", &part.next_update),
        ] {
            if let Some(time) = time {
                line(name, format!("{time}{}", distance(time, now)));
            }
        }
        let summary = &part.summary;
        line("vulnerabilities", summary.vulnerabilities.to_string());
        if !summary.streams.is_empty() {
            let packages: u64 = summary.streams.iter().map(|stream| stream.packages).sum();
            let names: Vec<&str> = summary
                .streams
                .iter()
                .map(|one| one.name.as_str())
                .collect();
            line(
                "streams",
                format!(
                    "{} of {packages} packages: {}",
                    names.len(),
                    names.join(", ")
                ),
            );
        }
        for (why, count) in &summary.left_out {
            line("left out", format!("{count} ({why})"));
        }
    }
    text
}

/// How long ago a time was, or how soon it will be.
fn distance(time: &str, now: jiff::Timestamp) -> String {
    let Ok(time) = time.parse::<jiff::Timestamp>() else {
        return String::new();
    };
    let hours = time.duration_since(now).as_hours();
    let length = |hours: i64| match hours {
        0..48 => format!("{hours} h"),
        hours => format!("{} days", hours / 24),
    };
    match hours {
        ..0 => format!(" ({} ago)", length(-hours)),
        hours => format!(" (in {})", length(hours)),
    }
}
