//! Matching: a bill of materials and vulnerability data make findings. Each distribution has its
//! own rules about which name counts, which stream of advisories, and what a status means; they
//! stand in modules of their own, and here is what they yield.

pub mod batch;
mod distribution;
mod end_of_life;
pub mod index;
mod language;
mod red_hat;
mod sources;
mod unmatched;

pub use end_of_life::EndOfLife;
pub use unmatched::{MAX_NAMED, Reason, Unmatched, UnmatchedPackage};

use crate::sbom::Bill;
use crate::vulnerability::{Database, DatabaseError, Severity, Status, Vulnerability};
use batch::Batch;
use jiff::Timestamp;
use std::ops::Deref;
use std::sync::Arc;

/// What matching yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The findings, in the order of the bill's components and then of identifiers.
    pub findings: Vec<Finding>,
    /// The packages that were not matched, by reason and type.
    pub unmatched: Vec<Unmatched>,
    /// The release gets no more fixes.
    pub end_of_life: Option<EndOfLife>,
}

/// One vulnerability of one package.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The package's place among the bill's components.
    pub component: usize,
    /// What hits it, which other packages share.
    pub matched: Arc<Match>,
}

impl Deref for Finding {
    type Target = Match;

    fn deref(&self) -> &Match {
        &self.matched
    }
}

/// What an advisory says about every package that it hits.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Identifier of the vulnerability.
    pub id: String,
    /// Its other identifiers, as far as the advisory declares them.
    pub aliases: Vec<String>,
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

impl Match {
    /// The versions that are free of it, for people.
    pub fn fixed_text(&self) -> String {
        self.fixed_versions.join(", ")
    }
}

/// Matches a bill, at the time that the data is of.
pub fn find(bill: &Bill, database: &dyn Database) -> Result<Findings, DatabaseError> {
    Batch::new(database, None).find(bill)
}

/// Matches a bill at a time, which decides what has ended.
pub fn find_at(
    bill: &Bill,
    database: &dyn Database,
    now: Timestamp,
) -> Result<Findings, DatabaseError> {
    Batch::new(database, Some(now)).find(bill)
}
