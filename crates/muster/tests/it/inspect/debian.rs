//! A real Debian in a real registry: what is found is what Debian's own tool lists.

use super::{Desk, only};
use anyhow::{Context, Result, ensure};
use muster_scan::sbom::{cyclonedx, spdx};
use muster_testkit::debian;
use muster_testkit::layout::Layout;
use muster_testkit::push::Pusher;
use muster_testkit::registry::Registry;
use serde_json::json;

#[tokio::test]
async fn the_packages_of_a_real_debian_are_those_that_dpkg_lists() -> Result<()> {
    let root = debian::root()?;
    let expected = debian::installed(&root)?;
    ensure!(expected.len() > 80, "{} packages", expected.len());
    let desk = Desk::new()?;
    let layout = Layout::create(&desk.path("work")?.join("layout"))?;
    let mut archive = debian::archive(&root)?;
    let layer = layout.layer(archive.stdout.take().context("an archive")?)?;
    ensure!(archive.wait()?.success(), "tar failed");
    let registry = Registry::start()?;
    let blob = std::fs::read(layout.path(&layer.digest))?;
    let config = json!({
        "os": "linux", "architecture": "amd64", "created": "2026-01-01T00:00:00Z",
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id]},
    });
    let pusher = Pusher::new(&registry)?;
    pusher
        .image("debian", Some("12"), &[&blob], &config)
        .await?;
    let reference = format!("{}/debian:12", registry.host());
    let root = root.to_string_lossy();
    for target in [reference.as_str(), &format!("rootfs:{root}")] {
        for form in ["spdx", "cyclonedx"] {
            let document = desk.told(&["sbom", "-o", form, target])?;
            let bill = match form {
                "spdx" => spdx::read(document.as_bytes())?,
                _ => cyclonedx::read(document.as_bytes())?,
            };
            ensure!(
                bill.incomplete.is_empty(),
                "{target}: {:?}",
                bill.incomplete
            );
            let mut found: Vec<debian::Line> = bill
                .components
                .iter()
                .filter(|component| component.detector.is_os())
                .map(|component| {
                    let package = &component.package;
                    [
                        package.name.clone(),
                        package.version.clone(),
                        package.architecture.clone().unwrap_or_default(),
                        package.source_name().into(),
                        package.source_version().into(),
                    ]
                })
                .collect();
            found.sort();
            assert_eq!(found, expected, "{target} as {form}");
        }
    }
    let one = only(&desk.told(&["scan", "-o", "json", &reference])?)?;
    let os = one["os"].as_str().context("a distribution")?;
    ensure!(os.starts_with("debian 12"), "{os}");
    Ok(())
}
