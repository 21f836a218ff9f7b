//! Matching: a bill of materials and vulnerability data make findings. Each distribution has its
//! own rules about which name counts, which stream of advisories, and what a status means; they
//! stand in one module each, and here is what they share.

mod distribution;
mod language;

use crate::image::Component;
use crate::os::Os;
use crate::package::Detector;
use crate::sbom::Bill;
use crate::third_party;
use crate::vulnerability::severity::choose;
use crate::vulnerability::{Advisory, Database, DatabaseError, Severity, Status, Vulnerability};
use std::collections::HashMap;
use std::sync::Arc;

/// What matching yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The findings, in the order of the bill's components and then of identifiers.
    pub findings: Vec<Finding>,
    /// What could not be matched, and why.
    pub notes: Vec<String>,
}

/// One vulnerability of one package.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The package's place among the bill's components.
    pub component: usize,
    /// Identifier of the vulnerability.
    pub id: String,
    /// Versions that are free of it.
    pub fixed_versions: Vec<String>,
    /// What the vendor does about it.
    pub status: Status,
    /// How bad it is.
    pub severity: Severity,
    /// Who says how bad it is; empty where it is nobody in particular.
    pub severity_source: String,
    /// What the identifier means, where anybody has written that down.
    pub vulnerability: Arc<Vulnerability>,
}

/// Matches a bill.
pub fn find(bill: &Bill, database: &dyn Database) -> Result<Findings, DatabaseError> {
    let mut matching = Matching {
        database,
        known: HashMap::new(),
        found: Findings::default(),
    };
    for (place, component) in bill.components.iter().enumerate() {
        matching.component(place, component, bill.os.as_ref())?;
    }
    matching.found.notes.sort();
    matching.found.notes.dedup();
    Ok(matching.found)
}

struct Matching<'a> {
    database: &'a dyn Database,
    /// Many packages of one source share their vulnerabilities.
    known: HashMap<String, Arc<Vulnerability>>,
    found: Findings,
}

impl Matching<'_> {
    fn component(
        &mut self,
        place: usize,
        component: &Component,
        os: Option<&Os>,
    ) -> Result<(), DatabaseError> {
        let vendor = component.package.vendor.as_deref();
        if component.detector == Detector::Dpkg && third_party::is_one(vendor) {
            let name = &component.package.name;
            let note = format!("{name} is not of the distribution, whose advisories leave it out");
            self.found.notes.push(note);
            return Ok(());
        }
        let matched = if component.detector.is_os() {
            match distribution::rules(component, os) {
                Ok(rules) => rules.matched(component, self.database)?,
                Err(note) => {
                    self.found.notes.push(note);
                    return Ok(());
                }
            }
        } else {
            let ecosystem = component.detector.ecosystem();
            match language::rules(ecosystem) {
                Some(rules) => rules.matched(&component.package, self.database)?,
                None => {
                    let kind = ecosystem.purl_type();
                    let note = format!("packages of type {kind} are not matched");
                    self.found.notes.push(note);
                    return Ok(());
                }
            }
        };
        let mut findings = Vec::new();
        for advisory in matched {
            findings.push(self.finding(place, advisory)?);
        }
        findings.sort_by(|left, right| left.id.cmp(&right.id));
        findings.dedup_by(|left, right| left.id == right.id);
        self.found.findings.extend(findings);
        Ok(())
    }

    fn finding(&mut self, component: usize, advisory: Advisory) -> Result<Finding, DatabaseError> {
        let vulnerability = match self.known.get(&advisory.id) {
            Some(known) => known.clone(),
            None => {
                let read = self.database.vulnerability(&advisory.id)?;
                let read = Arc::new(read.unwrap_or_default());
                self.known.insert(advisory.id.clone(), read.clone());
                read
            }
        };
        let (severity, severity_source) = choose(&advisory, &vulnerability);
        let fixed_versions = fixed_versions(&advisory);
        let status = match advisory.status {
            Status::Unknown if fixed_versions.is_empty() => Status::Affected,
            Status::Unknown => Status::Fixed,
            status => status,
        };
        Ok(Finding {
            component,
            id: advisory.id,
            fixed_versions,
            status,
            severity,
            severity_source,
            vulnerability,
        })
    }
}

/// The versions that are free of it, as the advisory states them.
fn fixed_versions(advisory: &Advisory) -> Vec<String> {
    if !advisory.fixed_version.is_empty() {
        return vec![advisory.fixed_version.clone()];
    }
    language::fixed_versions(advisory)
}
