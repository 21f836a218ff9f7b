//! What a demonstration knows before it begins: advisories, what is exploited, and what the makers of images
//! say. It comes the way it always does, by import and from a hub, only that both are on this machine.

use anyhow::{Context, Result};
use muster_advisories::hub::{Fetch, Hubs};
use muster_advisories::{DataDirectory, Silent};
use muster_demo::advisories;
use muster_demo::site::Site;
use std::fs;
use std::path::Path;

pub(super) async fn seed(directory: &Path, site: &Site) -> Result<()> {
    let known = advisories::known()?;
    let files = tempfile::tempdir().context("making a directory")?;
    let data = DataDirectory::new(directory.to_owned());
    for (name, contents) in [
        ("records.tar.gz", known.records()?),
        ("exploited.json", known.catalogue().to_string().into_bytes()),
    ] {
        let file = files.path().join(name);
        fs::write(&file, contents).context("writing vulnerability data")?;
        data.import(&file, &Silent)
            .context("importing vulnerability data")?;
    }
    let fetch = Fetch {
        force: true,
        authorities: None,
    };
    let hubs = Hubs::new(directory.join("vex"));
    hubs.fetch(&site.hub(), &fetch, &Silent).await?;
    Ok(())
}
