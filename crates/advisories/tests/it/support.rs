//! What the tests share: databases written by the real library, archives of them, and a registry
//! that has them.

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use muster_advisories::{DataDirectory, Progress, Update};
use muster_registry::{Client, Options, Retry, Traffic};
use muster_scan::vulnerability::{Database, Stream};
use muster_testkit::bolt::{self, Put};
use muster_testkit::push::{MANIFEST, Pushed, Pusher};
use muster_testkit::registry::Registry;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

pub const LAYER: &str = "application/vnd.aquasec.trivy.db.layer.v1.tar+gzip";
pub const CONFIG: &str = "application/vnd.aquasec.trivy.config.v1+json";

/// A database that says of openssl in Debian 12 what the fixed version is, and nothing more but
/// bulk that does not compress away.
pub fn database(fixed: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trivy.db");
    let source = json!({"ID": "debian", "Name": "Debian", "URL": "https://example.org"});
    let mut puts = vec![
        Put::text(&["data-source"], "debian 12", source.to_string()),
        Put::text(
            &["debian 12", "openssl"],
            "CVE-2025-1",
            json!({ "FixedVersion": fixed }).to_string(),
        ),
        Put::text(
            &["vulnerability"],
            "CVE-2025-1",
            json!({"Title": fixed}).to_string(),
        ),
    ];
    let mut state = 7_u64;
    for number in 0..400 {
        let noise: String = (0..256)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                format!("{:08x}", state >> 32)
            })
            .collect();
        let value = json!({ "Description": noise }).to_string();
        puts.push(Put::text(
            &["vulnerability"],
            &format!("CVE-2000-{number}"),
            value,
        ));
    }
    bolt::write(&file, &puts).unwrap();
    std::fs::read(file).unwrap()
}

pub fn metadata(updated: &str) -> String {
    json!({"Version": 2, "UpdatedAt": updated, "NextUpdate": "2026-02-01T00:00:00Z"}).to_string()
}

pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, contents) in files {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{:011o}", contents.len()).as_bytes());
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].copy_from_slice(b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
        header[154] = 0;
        bytes.extend(header);
        bytes.extend(*contents);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The archive of a database as it is published.
pub fn archive(fixed: &str) -> Vec<u8> {
    let metadata = metadata("2026-01-02T03:04:05.678Z");
    gzip(&tar(&[
        ("trivy.db", &database(fixed)),
        ("metadata.json", metadata.as_bytes()),
    ]))
}

/// Pushes an artifact of these layers.
pub async fn push(registry: &Registry, tag: &str, layers: &[(&str, &[u8])]) -> Result<Pushed> {
    let pusher = Pusher::new(registry)?;
    let config = pusher.blob("trivy-db", CONFIG, b"{}").await?;
    let mut pointers = Vec::new();
    for (media_type, bytes) in layers {
        let blob = pusher.blob("trivy-db", media_type, bytes).await?;
        pointers.push(blob.descriptor());
    }
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": CONFIG,
        "config": config.descriptor(), "layers": pointers,
    });
    let manifest = manifest.to_string();
    pusher
        .manifest("trivy-db", Some(tag), MANIFEST, manifest.as_bytes())
        .await
}

pub fn client() -> Client {
    let options = Options {
        retry: Retry {
            attempts: 2,
            first: Duration::from_millis(5),
            longest: Duration::from_millis(20),
            patience: Duration::from_secs(1),
        },
        ..Options::default()
    };
    Client::new(options, Traffic::default()).unwrap()
}

/// An update from these hosts.
pub fn from(hosts: &[&str]) -> Update {
    Update {
        repositories: hosts
            .iter()
            .map(|host| format!("{host}/trivy-db:2"))
            .collect(),
        client: client(),
        force: false,
    }
}

pub fn directory() -> (TempDir, DataDirectory) {
    let place = tempfile::tempdir().unwrap();
    let directory = DataDirectory::new(place.path().join("data"));
    (place, directory)
}

/// The fixed version that a database names.
pub fn fixed(database: &dyn Database) -> String {
    let debian = Stream::Distribution("debian 12".into());
    let advisories = database.advisories(&debian, "openssl").unwrap();
    advisories[0].fixed_version.clone()
}

pub fn fixed_in(directory: &DataDirectory) -> String {
    fixed(&*directory.open().unwrap().database)
}

/// The files of a directory.
pub fn files(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Hears nothing.
pub struct Deaf;

impl Progress for Deaf {
    fn begins(&self, _: &str, _: Option<u64>) {}
    fn advances(&self, _: u64) {}
    fn ends(&self) {}
}
