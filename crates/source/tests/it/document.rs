//! Bills that are scanned in place of what they are about.

use crate::support::{Image, bill, options, refusal, written};
use anyhow::Result;
use muster_scan::sbom::{cyclonedx, spdx};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn a_bill_is_as_good_as_what_it_is_about() -> Result<()> {
    let home = tempfile::tempdir()?;
    written(&home.path().join("layout"), &Image::usual().layout("a"));
    let found = bill(
        &home.path().join("layout").display().to_string(),
        &options(),
    )
    .await?;
    for (name, text) in [
        ("spdx.json", spdx::write(&found)?),
        ("cyclonedx.json", cyclonedx::write(&found)?),
    ] {
        let path = home.path().join(name);
        fs::write(&path, text)?;
        let read = bill(&path.display().to_string(), &options()).await?;
        assert_eq!(read.components, found.components, "{name}");
        assert_eq!(read.os, found.os, "{name}");
    }
    for (text, expected) in [
        ("{}", "neither SPDX 2 nor CycloneDX"),
        ("{\"spdxVersion\": 7}", "other.json"),
        ("{", "other.json"),
    ] {
        let path = home.path().join("other.json");
        fs::write(&path, text)?;
        let error = refusal(&path.display().to_string(), &options()).await;
        assert!(error.contains(expected), "{error}");
    }
    Ok(())
}
