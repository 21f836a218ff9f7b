//! Whatever an image comes as, the same is found in it.

use super::archive::{self, END};
use super::{Desk, debian_status, expected, found, only, write_root};
use anyhow::{Context, Result, ensure};
use muster_testkit::layout::Layout;
use muster_testkit::push::digest;
use muster_testkit::registry::Registry;
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// What `docker save` writes of an image.
fn docker_archive(file: &Path) -> Result<()> {
    let layer = [debian_status(), END.to_vec()].concat();
    let config = json!({
        "os": "linux", "architecture": "amd64", "created": "2026-01-01T00:00:00Z",
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
    })
    .to_string();
    let manifest = json!([{
        "Config": "config.json", "RepoTags": ["example.org/app:1"], "Layers": ["aaaa/layer.tar"],
    }])
    .to_string();
    let archive = [
        archive::file("aaaa/layer.tar", &layer),
        archive::file("config.json", config.as_bytes()),
        archive::file("manifest.json", manifest.as_bytes()),
        END.to_vec(),
    ]
    .concat();
    Ok(std::fs::write(file, archive)?)
}

fn tar(directory: &Path, file: &Path) -> Result<()> {
    let status = Command::new("tar")
        .arg("-cf")
        .arg(file)
        .arg("-C")
        .arg(directory)
        .arg(".")
        .status()
        .context("cannot run tar")?;
    ensure!(status.success(), "tar failed");
    Ok(())
}

#[tokio::test]
async fn the_same_is_found_whatever_an_image_comes_as() -> Result<()> {
    let desk = Desk::new()?;
    let work = desk.path("work")?;
    let layout = Layout::create(&work.join("layout"))?;
    let layer = layout.layer([debian_status(), END.to_vec()].concat().as_slice())?;
    layout.image("app:1", std::slice::from_ref(&layer))?;
    tar(&work.join("layout"), &work.join("layout.tar"))?;
    docker_archive(&work.join("saved.tar"))?;
    write_root(&work.join("root"))?;
    let registry = Registry::start()?;
    crate::scan::push(&registry, 2026).await?;
    let reference = format!("{}/team/app:1.0", registry.host());
    for form in ["spdx", "cyclonedx"] {
        let document = desk.told(&["sbom", "-o", form, &reference])?;
        std::fs::write(work.join(form).with_extension("json"), document)?;
    }
    for target in [
        reference.as_str(),
        "layout",
        "./layout",
        "oci:layout",
        "layout.tar",
        "oci:layout.tar",
        "saved.tar",
        "archive:saved.tar",
        "root",
        "rootfs:root",
        "spdx.json",
        "cyclonedx.json",
        "sbom:spdx.json",
    ] {
        let one = only(&desk.told(&["scan", "-o", "json", target])?)?;
        ensure!(found(&one) == expected(), "{target}: {:?}", found(&one));
        ensure!(one["packages"] == 2, "{target}: {one}");
        ensure!(one["os"] == "debian 12.7", "{target}: {one}");
    }
    Ok(())
}

#[test]
fn a_bill_is_the_same_bytes_whether_the_layers_were_known_or_not() -> Result<()> {
    let desk = Desk::new()?;
    let work = desk.path("work")?;
    let layout = Layout::create(&work.join("layout"))?;
    let layer = layout.layer([debian_status(), END.to_vec()].concat().as_slice())?;
    layout.image("app:1", &[layer])?;
    for form in ["spdx", "cyclonedx"] {
        let cold = desk.told(&["sbom", "-o", form, "layout"])?;
        let warm = desk.told(&["sbom", "-o", form, "layout"])?;
        let uncached = desk.told(&["sbom", "-o", form, "--cache", "none", "layout"])?;
        let scanned = desk.told(&["scan", "-o", form, "layout"])?;
        ensure!(
            cold == warm && cold == uncached && cold == scanned,
            "{form}"
        );
    }
    Ok(())
}

#[test]
fn what_is_not_there_is_named_with_what_to_do() -> Result<()> {
    let desk = Desk::new()?;
    for (arguments, expected) in [
        (vec!["scan", "./missing.tar"], "./missing.tar"),
        (
            vec!["scan", "--offline", "nginx:1"],
            "--offline asks no registry",
        ),
        (vec!["scan", "--platform", "nowhere", "root"], "nowhere"),
        (vec!["scan", "--mirror", "docker.io", "root"], "HOST=MIRROR"),
        (vec!["scan", "UPPER/case:1"], "UPPER/case:1"),
        (vec!["sbom", "127.0.0.1:1/app:1"], "127.0.0.1:1"),
    ] {
        let (code, told) = desk.refused(&arguments)?;
        ensure!(code == Some(1), "{arguments:?} ended with {code:?}: {told}");
        ensure!(told.contains(expected), "{arguments:?}: {told}");
    }
    let (code, told) = Desk::empty()?.refused(&["scan", "--offline", "."])?;
    ensure!(code == Some(1), "{told}");
    ensure!(
        told.contains("muster db update") && told.contains("muster db import"),
        "{told}"
    );
    Ok(())
}

#[test]
fn one_bad_target_does_not_stop_the_others() -> Result<()> {
    let desk = Desk::new()?;
    write_root(&desk.path("work")?.join("root"))?;
    let output = desk.run(&["scan", "-o", "json", "./missing", "root", "./gone"])?;
    assert_eq!(output.status.code(), Some(1));
    let one = only(std::str::from_utf8(&output.stdout)?)?;
    assert_eq!(found(&one), expected());
    let told = String::from_utf8(output.stderr)?;
    ensure!(
        told.contains("./missing") && told.contains("./gone"),
        "{told}"
    );
    Ok(())
}
