//! Many scans at once: they share data and layers, and never stand in each other's way.

use super::archive::{self, END};
use super::{Desk, debian_status, expected, found, only};
use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::{Pusher, digest};
use muster_testkit::registry::Registry;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const MANY: usize = 10;

struct Family {
    _registry: Registry,
    proxy: Proxy,
    references: Vec<String>,
    layers: Vec<String>,
}

fn packed(archive: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(archive)?;
    Ok(packed.finish()?)
}

/// Images upon one base, each with a layer of its own, behind a proxy that counts.
async fn family() -> Result<Family> {
    let registry = Registry::start()?;
    let pusher = Pusher::new(&registry)?;
    let base = [debian_status(), END.to_vec()].concat();
    let mut layers = vec![digest(&packed(&base)?)];
    for number in 0..MANY {
        let about = format!("{{\"name\":\"member-{number}\",\"version\":\"1.0.0\"}}");
        let own = [
            archive::file("srv/package.json", about.as_bytes()),
            END.to_vec(),
        ]
        .concat();
        let config = json!({
            "os": "linux", "architecture": "amd64",
            "rootfs": {"type": "layers", "diff_ids": [digest(&base), digest(&own)]},
        });
        let blobs = [packed(&base)?, packed(&own)?];
        layers.push(digest(&blobs[1]));
        pusher
            .image(
                &format!("member-{number}"),
                Some("1"),
                &[&blobs[0], &blobs[1]],
                &config,
            )
            .await?;
    }
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let references = (0..MANY)
        .map(|number| format!("{}/member-{number}:1", proxy.host()))
        .collect();
    Ok(Family {
        _registry: registry,
        proxy,
        references,
        layers,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_scans_of_one_command_read_each_layer_once() -> Result<()> {
    let family = family().await?;
    let desk = Desk::new()?;
    let mut arguments = vec!["scan", "-o", "json"];
    arguments.extend(family.references.iter().map(String::as_str));
    let told: Value = serde_json::from_str(&desk.told(&arguments)?)?;
    let inspections = told["inspections"].as_array().context("inspections")?;
    assert_eq!(inspections.len(), MANY);
    for (one, reference) in inspections.iter().zip(&family.references) {
        assert_eq!(one["name"], *reference, "in the order that was asked for");
        assert_eq!(found(one), expected());
        assert_eq!(one["packages"], 3);
    }
    for layer in &family.layers {
        assert_eq!(family.proxy.count(Method::GET, layer), 1, "{layer}");
    }
    // The next command reads none.
    desk.told(&arguments)?;
    for layer in &family.layers {
        assert_eq!(family.proxy.count(Method::GET, layer), 1, "{layer}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_commands_at_once_share_data_and_cache() -> Result<()> {
    let family = family().await?;
    let desk = Desk::new()?;
    let mut running = Vec::new();
    for reference in &family.references {
        let mut command = desk.command(&["scan", "-o", "json", reference])?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        running.push(command.spawn()?);
    }
    for child in running {
        let output = child.wait_with_output()?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{complaint}");
        let one = only(std::str::from_utf8(&output.stdout)?)?;
        assert_eq!(found(&one), expected());
    }
    Ok(())
}
