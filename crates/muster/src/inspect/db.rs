//! `muster db`: vulnerability data on this machine. It is fetched as an OCI artifact, or brought
//! along where there is no network, and never half there.

use super::bars::Bars;
use super::data::{Origin, Place};
use super::reading::Reach;
use crate::role;
use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use muster_advisories::{Imported, Info, OriginInfo, Outcome};
use muster_scan::output::layout::plain;
use std::io::Write;
use std::path::{Path, PathBuf};
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
    /// Import data from files: a Trivy database, OSV records, EPSS scores, the KEV catalogue.
    ///
    /// Each path is an origin of OSV records, named after its file or directory. An import replaces
    /// the records of the same origin and keeps those of others.
    ///
    ///   muster db import trivy-db.tar.gz
    ///   muster db import Alpine.zip Go.zip PyPI.zip
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
    /// Files or directories. Their contents decide what they are.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Remove the OSV records of all other origins.
    #[arg(long)]
    replace: bool,
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
    let import = directory.import_all(&command.paths, command.replace, &bars);
    let import = import.context("cannot import vulnerability data")?;
    let mut out = std::io::stdout();
    for (path, imported) in command.paths.iter().zip(&import.imported) {
        writeln!(out, "{}", brought(path, imported))?;
        for (why, count) in &imported.summary.left_out {
            bars.say(&format!("left out: {count} ({why})"));
        }
    }
    for (what, origins) in [("removed", &import.removed), ("kept", &import.kept)] {
        for origin in origins {
            writeln!(out, "{what}: {}", counted(origin))?;
        }
    }
    Ok(())
}

/// What an import brought from a path, and what that replaced.
fn brought(path: &Path, imported: &Imported) -> String {
    let mut line = format!("{}: {}", path.display(), imported.kind.name());
    if let Some(count) = imported.records {
        line += &format!(", {}", records(count));
    }
    if !imported.replaced.is_empty() {
        let replaced: Vec<String> = imported.replaced.iter().map(counted).collect();
        line += &format!("; replaced {}", replaced.join(", "));
    }
    line
}

fn counted(origin: &OriginInfo) -> String {
    let imported = origin.downloaded_at.as_ref();
    let imported = imported.map(|time| format!(", imported {time}"));
    format!(
        "{} ({}{})",
        plain(&origin.name),
        records(origin.records),
        imported.unwrap_or_default()
    )
}

fn records(count: u64) -> String {
    match count {
        1 => "1 record".to_owned(),
        count => format!("{count} records"),
    }
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
            line("from", plain(origin));
        }
        line("made", dated(part.updated_at.as_deref(), now));
        for (name, time) in [
            ("fetched", &part.downloaded_at),
            ("next expected", &part.next_update),
        ] {
            if time.is_some() {
                line(name, dated(time.as_deref(), now));
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
        for origin in &part.origins {
            let made = dated(origin.updated_at.as_deref(), now);
            line("origin", format!("{}, made {made}", counted(origin)));
        }
    }
    text
}

/// A date with its distance from now.
fn dated(time: Option<&str>, now: jiff::Timestamp) -> String {
    match time {
        Some(time) => format!("{time}{}", distance(time, now)),
        None => "unknown".to_owned(),
    }
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
