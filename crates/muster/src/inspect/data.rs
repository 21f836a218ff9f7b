//! The knowledge that a scan is made with: vulnerability data, which is fetched when there is none
//! or when its makers have newer, and VEX statements.

use super::bars::Bars;
use super::places;
use super::reading::Reach;
use anyhow::{Context, Result};
use clap::Args;
use muster_advisories::hub::{Hubs, OpenHubs};
use muster_advisories::{DataDirectory, Opened, Update};
use muster_scan::purl::Purl;
use muster_scan::sbom::Bill;
use muster_scan::vex::{Document, Statements};
use std::path::PathBuf;

const REMEDY: &str = "there is no vulnerability data to scan with; fetch it with `muster db update`, or bring it with `muster db import FILE`";

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
    /// A VEX hub, such as https://github.com/aquasecurity/vexhub; fetched when it is due. May be
    /// repeated.
    #[arg(
        long,
        env = "MUSTER_VEX_HUB",
        value_name = "URL",
        value_delimiter = ','
    )]
    vex_hub: Vec<String>,
    /// Ask the registry for VEX documents that are attached to the image. Whoever may push to the
    /// repository may attach some; signatures are not verified.
    #[arg(long)]
    pub(crate) vex_attached: bool,
}

impl Knowledge {
    /// Opens the data, fetched anew first if that is due and allowed. Old data is better than none:
    /// where it cannot be fetched, that is said and the old is used.
    pub(crate) async fn open(&self, reach: &Reach, offline: bool, bars: &Bars) -> Result<Opened> {
        let directory = self.place.directory();
        let known = directory.open();
        let is_due = known.as_ref().map_or(true, Opened::is_due);
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

    /// Everything that was said about what does harm where: documents that were named, and hubs,
    /// which are fetched when they are due.
    pub(crate) async fn statements(
        &self,
        reach: &Reach,
        offline: bool,
        bars: &Bars,
    ) -> Result<Said> {
        let mut documents = Vec::new();
        for file in &self.vex {
            let name = file.display().to_string();
            let bytes = std::fs::read(file).with_context(|| format!("reading --vex {name}"))?;
            let document =
                Document::parse(&bytes).with_context(|| format!("reading --vex {name}"))?;
            documents.push((name, document));
        }
        if self.vex_hub.is_empty() {
            return Ok(Said {
                documents,
                hubs: None,
            });
        }
        let hubs = Hubs::new(self.place.database.join("vex"));
        let fetch = reach.hubs()?;
        for hub in &self.vex_hub {
            if offline || self.no_update {
                break;
            }
            if let Err(error) = hubs.fetch(hub, &fetch, bars).await {
                bars.say(&format!("warning: {error}"));
            }
        }
        let hubs = hubs.open(&self.vex_hub);
        let hubs = hubs.context("a VEX hub that was never fetched cannot be asked")?;
        Ok(Said {
            documents,
            hubs: Some(hubs),
        })
    }
}

/// What others say about vulnerabilities in products.
pub(crate) struct Said {
    documents: Vec<(String, Document)>,
    hubs: Option<OpenHubs>,
}

impl Said {
    /// What is said about a bill and its image, there and in documents attached to it; nothing where
    /// nobody was asked.
    pub(crate) fn about(
        &self,
        bill: &Bill,
        image: Option<&Purl>,
        attached: &[(String, Document)],
    ) -> Result<Option<Statements>> {
        let documents = || attached.iter().chain(&self.documents);
        let mut statements = match &self.hubs {
            Some(hubs) => hubs.statements(bill, image)?.statements,
            None if documents().next().is_none() => return Ok(None),
            None => {
                let names: Vec<&str> = documents().map(|(name, _)| &**name).collect();
                Statements::new(names.join(","))
            }
        };
        for (name, document) in documents() {
            statements.add(document, name);
        }
        Ok(Some(statements))
    }
}
