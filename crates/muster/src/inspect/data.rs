//! The knowledge that a scan is made with: vulnerability data, which is fetched when there is none
//! or when its makers have newer, and VEX statements.

use super::bars::Bars;
use super::places;
use super::reading::Reach;
use anyhow::{Context, Result};
use clap::Args;
use muster_advisories::{DataDirectory, Opened, Update};
use muster_scan::vex::{Document, Statements};
use std::path::PathBuf;

const REMEDY: &str = "there is no vulnerability data to scan with; fetch it with `muster db update`, or bring it with `muster db import FILE`";

/// Whether its makers have said that there would be newer data by now.
fn is_due(opened: &Opened) -> bool {
    let next = opened.database.metadata().next_update.as_deref();
    let next = next.and_then(|time| time.parse::<jiff::Timestamp>().ok());
    next.is_some_and(|next| next <= jiff::Timestamp::now())
}

/// Where vulnerability data is.
#[derive(Args)]
pub(crate) struct Place {
    /// Where vulnerability data is kept.
    #[arg(long, env = "MUSTER_DATABASE", value_name = "DIR", default_value_os_t = places::vulnerabilities())]
    database: PathBuf,
}

impl Place {
    pub(crate) fn directory(&self) -> DataDirectory {
        DataDirectory::new(self.database.clone())
    }
}

/// Where vulnerability data comes from.
#[derive(Args)]
pub(crate) struct Origin {
    /// A repository that has the data as an OCI artifact; the next is asked when one fails.
    #[arg(
        long,
        env = "MUSTER_DB_REPOSITORY",
        value_name = "REFERENCE",
        value_delimiter = ','
    )]
    db_repository: Vec<String>,
}

impl Origin {
    pub(crate) fn update(&self, reach: &Reach, force: bool) -> Result<Update> {
        Ok(Update {
            repositories: self.db_repository.clone(),
            client: reach.client()?,
            force,
        })
    }
}

/// What a scan knows.
#[derive(Args)]
pub(crate) struct Knowledge {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    origin: Origin,
    /// Take vulnerability data as it is, however old.
    #[arg(long)]
    no_update: bool,
    /// A VEX document; what it declares harmless is suppressed. May be repeated.
    #[arg(long, value_name = "FILE")]
    vex: Vec<PathBuf>,
}

impl Knowledge {
    /// Opens the data, fetched anew first if that is due and allowed. Old data is better than none:
    /// where it cannot be fetched, that is said and the old is used.
    pub(crate) async fn open(&self, reach: &Reach, offline: bool, bars: &Bars) -> Result<Opened> {
        let directory = self.place.directory();
        let known = directory.open();
        let is_due = known.as_ref().map_or(true, is_due);
        if offline || self.no_update || !is_due {
            return known.context(REMEDY);
        }
        let update = self.origin.update(reach, false)?;
        match (directory.update(&update, bars).await, known) {
            (Ok(_), _) => Ok(directory.open()?),
            (Err(error), Ok(known)) => {
                bars.say(&format!(
                    "warning: older vulnerability data is used: {error}"
                ));
                Ok(known)
            }
            (Err(error), Err(_)) => Err(error).context(REMEDY),
        }
    }

    /// The statements of all documents that were named.
    pub(crate) fn statements(&self) -> Result<Option<Statements>> {
        if self.vex.is_empty() {
            return Ok(None);
        }
        let mut read = Vec::new();
        for file in &self.vex {
            let name = file.display().to_string();
            let bytes = std::fs::read(file).with_context(|| format!("reading --vex {name}"))?;
            let document =
                Document::parse(&bytes).with_context(|| format!("reading --vex {name}"))?;
            read.push((name, document));
        }
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        let mut statements = Statements::new(names.join(","));
        for (name, document) in &read {
            statements.add(document, name);
        }
        Ok(Some(statements))
    }
}
