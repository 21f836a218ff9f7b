//! What people and machines get to see of a scan: a table, SARIF, and the value that JSON and YAML
//! are written from. All are functions from an [`Inspection`] to text; what is shown of it is chosen
//! before, by a [`Selection`].

mod ignore;
pub mod layout;
mod sarif;
mod selection;
mod table;

pub use ignore::{IgnoreError, Ignored};
pub use layout::Style;
pub use sarif::sarif;
pub use selection::{LeftOut, Selection};
pub use table::table;

use crate::report::Report;
use crate::sbom::Bill;
use serde::Serialize;

/// One thing that was scanned, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// What is wrong with them, in the shape of the VulnerabilityReport kind.
    pub report: Report,
}

impl Inspection {
    /// The inspection of a bill.
    pub fn new(bill: &Bill, platform: Option<String>, report: Report) -> Self {
        Inspection {
            name: bill.subject.name.clone(),
            digest: bill.subject.digest.clone(),
            platform,
            os: bill.os.as_ref().map(ToString::to_string),
            packages: bill.components.len(),
            report,
        }
    }
}
