//! Bills that somebody else wrote, in SPDX or CycloneDX.

use crate::error::Error;
use crate::files::{open_regular, whole};
use muster_scan::sbom::{Bill, BillError, cyclonedx, spdx};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::path::Path;

/// The largest document that is read.
const LARGEST: u64 = 256 << 20;

/// What tells the two apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    spdx_version: Option<IgnoredAny>,
    bom_format: Option<IgnoredAny>,
}

/// Reads the bill in a file.
pub(crate) async fn bill(path: &Path) -> Result<Bill, Error> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read(&path)).await?
}

fn read(path: &Path) -> Result<Bill, Error> {
    let attempt = || format!("reading the document {}", path.display());
    let file = open_regular(path).map_err(|error| Error::file(attempt(), error))?;
    let bytes = whole(file, LARGEST, attempt)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let mut bill = parse(bytes).map_err(|source| Error::Document {
        path: path.into(),
        source,
    })?;
    if bill.subject.name.is_empty() {
        bill.subject.name = path.display().to_string();
    }
    Ok(bill)
}

fn parse(bytes: &[u8]) -> Result<Bill, BillError> {
    let head: Head = serde_json::from_slice(bytes)?;
    match (head.spdx_version, head.bom_format) {
        (Some(_), _) => spdx::read(bytes),
        (None, Some(_)) => cyclonedx::read(bytes),
        (None, None) => Err(BillError::Unknown(
            "it is neither SPDX 2 nor CycloneDX in JSON; other forms can be converted to these"
                .into(),
        )),
    }
}
