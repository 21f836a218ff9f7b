//! What bills are matched with: the vulnerability data of a directory, and what VEX hubs say about
//! it. Both are replaced while we work; whoever asks gets what is there now, and a short text that
//! is another one as soon as a report could be.

use crate::work::Trouble;
use muster_advisories::hub::{Hubs, OpenHubs};
use muster_advisories::{DataDirectory, Opened};
use muster_registry::Reference;
use muster_scan::digest::Digest;
use muster_scan::layer::ANALYZER_VERSION;
use muster_scan::matching;
use muster_scan::purl::Purl;
use muster_scan::report::Report;
use muster_scan::sbom::Bill;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The form of the reports that are written. A higher number makes every report again, once, from the
/// stored SBOMs: 2 added `unmatched`, without which a report does not say whether it looked.
const REPORT_FORM: u32 = 2;
/// How many digits tell two states apart.
const DIGITS: usize = 32;

/// Where the data lies, and what of it is open.
pub(crate) struct Knowledge {
    data: DataDirectory,
    hubs: Hubs,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    opened: Option<Opened>,
    hubs: Option<Arc<OpenHubs>>,
}

/// The data of one moment.
#[derive(Clone)]
pub(crate) struct Known {
    opened: Opened,
    hubs: Option<Arc<OpenHubs>>,
}

impl Knowledge {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Knowledge {
            hubs: Hubs::new(directory.join("vex")),
            data: DataDirectory::new(directory),
            state: Mutex::default(),
        }
    }

    pub(crate) fn data(&self) -> &DataDirectory {
        &self.data
    }

    pub(crate) fn hubs(&self) -> &Hubs {
        &self.hubs
    }

    /// From now on these hubs are asked.
    pub(crate) fn ask(&self, hubs: Option<OpenHubs>) {
        self.state().hubs = hubs.map(Arc::new);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is behind the lock is whole at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The data as it is now: opened when first needed, and anew when it was replaced.
    pub(crate) fn now(&self) -> Result<Known, Trouble> {
        let mut state = self.state();
        let hubs = state.hubs.clone();
        let known = |opened| Known { opened, hubs };
        if let Some(opened) = &state.opened
            && !self.data.is_stale(opened).unwrap_or(false)
        {
            return Ok(known(opened.clone()));
        }
        match (self.data.open(), &state.opened) {
            (Ok(fresh), _) => {
                tracing::info!(revision = fresh.revision, "vulnerability data opened");
                Ok(known(state.opened.insert(fresh).clone()))
            }
            (Err(error), Some(opened)) => {
                tracing::warn!(%error, "older vulnerability data is used");
                Ok(known(opened.clone()))
            }
            (Err(error), None) => Err(Trouble::Transient(format!(
                "{error}; fetch some with `muster db update --database {0}`, or bring it with `muster db import --database {0} FILE`",
                self.data.path().display()
            ))),
        }
    }
}

impl Known {
    /// What identifies the vulnerability data.
    pub(crate) fn revision(&self) -> &str {
        &self.opened.revision
    }

    /// When its makers last changed it.
    pub(crate) fn made(&self) -> Option<jiff::Timestamp> {
        let metadata = self.opened.database.metadata();
        metadata.updated_at.as_deref()?.parse().ok()
    }

    /// Another text as soon as a report about the same image could be another one.
    pub(crate) fn key(&self) -> String {
        let hubs = self.hubs.as_ref().map_or("", |hubs| hubs.revision());
        let version = env!("CARGO_PKG_VERSION");
        let data = &self.opened.revision;
        let text = format!("{version}\n{ANALYZER_VERSION}\n{REPORT_FORM}\n{data}\n{hubs}");
        Digest::of(text.as_bytes()).digits()[..DIGITS].to_owned()
    }

    /// What is wrong with what a bill lists.
    pub(crate) fn report(&self, bill: &Bill) -> Result<Report, Trouble> {
        let database = &*self.opened.database;
        let now = jiff::Timestamp::now();
        let findings = matching::find_at(bill, database, now).map_err(Trouble::permanent)?;
        let now = crate::object::now();
        let mut report = Report::new(bill, &findings, database.metadata(), Some(&now));
        if let Some(hubs) = &self.hubs {
            let image = image(bill);
            let said = hubs.statements(bill, image.as_ref());
            let said = said.map_err(Trouble::permanent)?;
            for problem in &said.problems {
                tracing::warn!(problem, "a VEX document is passed over");
            }
            said.statements.apply(&mut report, image.as_ref());
        }
        report.enrich(&self.opened.exploitation);
        Ok(report)
    }
}

/// The package URL of the image itself, for statements about a package in this image alone.
fn image(bill: &Bill) -> Option<Purl> {
    let subject = &bill.subject;
    let reference = Reference::parse(&subject.name).ok()?;
    let repository = reference.repository();
    let place = format!("{}/{}", repository.host(), repository.name());
    let name = repository.name().rsplit('/').next()?;
    Purl::parse(&format!(
        "pkg:oci/{name}@{}?repository_url={place}",
        subject.digest
    ))
}
