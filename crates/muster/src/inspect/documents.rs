//! Bills of materials as documents; one document speaks of one image.

use anyhow::{Result, bail};
use clap::ValueEnum;
use muster_scan::sbom::{Bill, cyclonedx, spdx};

/// The forms of a bill of materials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Document {
    /// SPDX 2.3, as JSON.
    Spdx,
    /// CycloneDX 1.6, as JSON.
    Cyclonedx,
}

impl Document {
    /// Writes a bill.
    pub(crate) fn write(self, bill: &Bill) -> Result<Vec<u8>> {
        let mut bytes = match self {
            Document::Spdx => spdx::write(bill)?,
            Document::Cyclonedx => cyclonedx::write(bill)?,
        };
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        Ok(bytes)
    }
}

/// The only bill there is.
pub(crate) fn only(bills: &[Bill]) -> Result<&Bill> {
    match bills {
        [bill] => Ok(bill),
        [] => bail!("there is nothing to write a bill of materials of"),
        bills => bail!(
            "a bill of materials speaks of one image, and these are {}; name one target, and with --platform one platform",
            bills.len()
        ),
    }
}
