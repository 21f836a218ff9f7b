//! VEX documents that are attached to an image in a registry, in each of the ways in use.

use super::{Desk, only};
use crate::hub::statement;
use crate::scan::layer;
use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_testkit::push::{Pushed, Pusher, digest};
use muster_testkit::registry::Registry;
use serde_json::{Value, json};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
const IN_TOTO: &str = "application/vnd.in-toto+json";
const OPENVEX: &str = "application/vnd.openvex+json";

/// The document as what in-toto states.
fn stated() -> Value {
    json!({
        "_type": "https://in-toto.io/Statement/v1", "subject": [],
        "predicateType": "https://openvex.dev/ns/v0.2.0", "predicate": statement(),
    })
}

/// That in an envelope whose signature nobody looks at.
fn enveloped() -> Value {
    json!({"payloadType": IN_TOTO, "payload": STANDARD.encode(stated().to_string()), "signatures": []})
}

struct Shop {
    registry: Registry,
    pusher: Pusher,
}

impl Shop {
    async fn image(&self, repository: &str, tag: Option<&str>) -> Result<Pushed> {
        let (plain, packed) = layer()?;
        let config = json!({
            "os": "linux", "architecture": "amd64",
            "rootfs": {"type": "layers", "diff_ids": [digest(&plain)]},
        });
        self.pusher
            .image(repository, tag, &[&packed], &config)
            .await
    }

    /// Pushes a manifest with one document.
    async fn attach(
        &self,
        repository: &str,
        tag: Option<&str>,
        kind: &str,
        document: &Value,
    ) -> Result<Pushed> {
        let config = self
            .pusher
            .blob(repository, "application/vnd.oci.empty.v1+json", b"{}");
        let config = config.await?.descriptor();
        let document = document.to_string();
        let layer = self
            .pusher
            .blob(repository, kind, document.as_bytes())
            .await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": kind,
            "config": config, "layers": [layer.descriptor()],
        });
        let manifest = manifest.to_string();
        let pushed = self
            .pusher
            .manifest(repository, tag, MANIFEST, manifest.as_bytes());
        pushed.await
    }

    async fn index(&self, repository: &str, tag: &str, entries: &[Value]) -> Result<Pushed> {
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
        let index = index.to_string();
        let pushed = self
            .pusher
            .manifest(repository, Some(tag), INDEX, index.as_bytes());
        pushed.await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_attached_to_an_image_suppresses_when_it_is_asked_for() -> Result<()> {
    let registry = Registry::start()?;
    let pusher = Pusher::new(&registry)?;
    let shop = Shop { registry, pusher };
    let tag = |image: &Pushed| image.digest.replace(':', "-");

    // An index under a tag of the digest, where the registry keeps no list of referrers.
    let image = shop.image("referred", Some("1")).await?;
    let attached = shop.attach("referred", None, OPENVEX, &statement()).await?;
    let entries = [attached.descriptor()];
    shop.index("referred", &tag(&image), &entries).await?;
    // As cosign does it.
    let image = shop.image("signed", Some("1")).await?;
    let name = format!("{}.att", tag(&image));
    shop.attach("signed", Some(&name), ENVELOPE, &enveloped())
        .await?;
    // As builders do it, in the index of the image itself.
    let image = shop.image("built", None).await?;
    let attached = shop.attach("built", None, IN_TOTO, &stated()).await?;
    let (mut one, mut other) = (image.descriptor(), attached.descriptor());
    one["platform"] = json!({"os": "linux", "architecture": "amd64"});
    other["platform"] = json!({"os": "unknown", "architecture": "unknown"});
    other["annotations"] = json!({
        "vnd.docker.reference.type": "attestation-manifest",
        "vnd.docker.reference.digest": image.digest,
    });
    shop.index("built", "1", &[one, other]).await?;
    // What cannot be read is told, and harms nobody.
    let image = shop.image("broken", Some("1")).await?;
    let name = format!("{}.att", tag(&image));
    let broken = json!({"payload": "%%"});
    shop.attach("broken", Some(&name), ENVELOPE, &broken)
        .await?;

    let desk = Desk::new()?;
    for (repository, suppressed) in [("referred", 1), ("signed", 1), ("built", 1), ("broken", 0)] {
        let reference = format!("{}/{repository}:1", shop.registry.host());
        let scan = [
            "scan",
            "-o",
            "json",
            "--platform",
            "linux/amd64",
            &reference,
        ];
        let one = only(&desk.told(&scan)?)?;
        assert_eq!(one["report"]["summary"]["suppressed"], 0, "{repository}");
        let asked = [&scan[..], &["--vex-attached"]].concat();
        let one = only(&desk.told(&asked)?)?;
        let summary = &one["report"]["summary"];
        assert_eq!(summary["suppressed"], suppressed, "{repository}: {one}");
    }
    let reference = format!("{}/broken:1", shop.registry.host());
    let (code, told) = desk.refused(&["scan", "--vex-attached", &reference])?;
    ensure!(code == Some(0) && told.contains("warning"), "{told}");
    Ok(())
}
