//! What people and machines get to see of a scan: a table, SARIF, and the value that JSON and YAML
//! are written from. All are functions from an [`Inspection`] to text; what is shown of it is chosen
//! before, by a [`Selection`].

mod ignore;
pub mod layout;
mod sarif;
mod selection;
mod table;
mod words;

pub use ignore::{IgnoreError, Ignored};
pub use layout::Style;
pub use sarif::sarif;
pub use selection::{LeftOut, Selection};
pub use table::table;

use crate::report::Report;
use crate::sbom::Bill;
use crate::vulnerability::Severity;
use serde::Serialize;

/// One thing that was scanned, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// What was asked for: a reference, a file or a directory.
    pub name: String,
    /// The digest of the image's manifest; empty for what is no image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// What the image was built for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The distribution and its release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// How many packages were found.
    pub packages: usize,
    /// Findings that a selection left out of the report.
    #[serde(skip_serializing_if = "is_nothing")]
    pub left_out: LeftOut,
    /// The severities that were selected; empty if all were.
    #[serde(skip)]
    pub severities: Vec<Severity>,
    /// What is wrong with them, in the shape of the VulnerabilityReport kind.
    pub report: Report,
}

fn is_nothing(left_out: &LeftOut) -> bool {
    left_out.total() == 0
}

impl Inspection {
    /// The inspection of a bill.
    pub fn new(bill: &Bill, platform: Option<String>, report: Report) -> Self {
        Inspection {
            name: bill.subject.name.clone(),
            digest: bill.subject.digest.clone(),
            platform,
            os: bill.os.as_ref().map(ToString::to_string),
            packages: bill.package_count(),
            report,
            ..Inspection::default()
        }
    }

    /// Takes out of the report what is not selected, and remembers how much that is.
    pub fn select(&mut self, selection: &Selection, today: &str) {
        self.left_out.add(selection.apply(&mut self.report, today));
        self.severities = selection.severities.iter().copied().collect();
    }

    /// Number of packages that were not matched.
    pub fn unmatched_count(&self) -> u64 {
        let counts = self.report.unmatched().iter().map(|one| one.count);
        counts.fold(0, u64::saturating_add)
    }

    /// Number of packages that were not matched though a data source exists for them.
    pub fn matchable_count(&self) -> u64 {
        let matchable = self.report.unmatched().iter().filter(|one| one.matchable);
        let counts = matchable.map(|one| one.count);
        counts.fold(0, u64::saturating_add)
    }
}
