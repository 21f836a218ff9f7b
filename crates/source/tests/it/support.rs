//! What the tests share: archives, images of them, and scans.

use anyhow::Result;
use muster_registry::{Client, Retry, Traffic};
use muster_scan::sbom::Bill;
use muster_source::{Options, Progress, Scanned, Source, bills};
use muster_testkit::push::{CONFIG, INDEX, LAYER, MANIFEST, digest};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// The block of a tar header.
pub fn header(path: &str, kind: u8, size: u64, link: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..path.len()].copy_from_slice(path.as_bytes());
    block[100..108].copy_from_slice(b"0000644\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[148..156].copy_from_slice(b"        ");
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

pub fn file(path: &str, bytes: &[u8]) -> Vec<u8> {
    let mut entry = header(path, b'0', bytes.len() as u64, "");
    entry.extend_from_slice(bytes);
    entry.resize(entry.len().next_multiple_of(512), 0);
    entry
}

pub fn link(path: &str, target: &str) -> Vec<u8> {
    header(path, b'2', 0, target)
}

pub fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut archive = entries.concat();
    archive.extend_from_slice(&[0; 1024]);
    archive
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Debian's database with these packages, all of version 1.
pub fn status(packages: &[&str]) -> Vec<u8> {
    let packages = packages.iter().map(|name| {
        format!("Package: {name}\nStatus: install ok installed\nVersion: 1\nArchitecture: all\n\n")
    });
    packages.collect::<String>().into_bytes()
}

pub const RELEASE: &[u8] = b"ID=debian\nVERSION_ID=12\n";

/// An image: its layers decompressed and as they are distributed, and its configuration.
#[derive(Clone)]
pub struct Image {
    pub plain: Vec<Vec<u8>>,
    pub layers: Vec<Vec<u8>>,
    pub config: Value,
}

impl Image {
    /// An image of these archives, compressed in turn as gzip, zstd and not at all.
    pub fn new(architecture: &str, plain: Vec<Vec<u8>>) -> Image {
        let compress = |(place, layer): (usize, &Vec<u8>)| match place % 3 {
            0 => gzip(layer),
            1 => zstd(layer),
            _ => layer.clone(),
        };
        let diff_ids: Vec<String> = plain.iter().map(|layer| digest(layer)).collect();
        Image {
            layers: plain.iter().enumerate().map(compress).collect(),
            config: json!({
                "os": "linux", "architecture": architecture, "created": "2026-01-02T03:04:05Z",
                "rootfs": {"type": "layers", "diff_ids": diff_ids},
            }),
            plain,
        }
    }

    /// An image in which three layers add, replace and delete.
    pub fn usual() -> Image {
        let node = br#"{"name": "left-pad", "version": "1.3.0"}"#;
        let base = tar(&[
            file("etc/os-release", RELEASE),
            file("var/lib/dpkg/status", &status(&["base", "old"])),
            file("app/node_modules/left-pad/package.json", node),
        ]);
        let upper = tar(&[file("var/lib/dpkg/status", &status(&["base", "new"]))]);
        let top = tar(&[file("app/node_modules/.wh.left-pad", b"")]);
        Image::new("amd64", vec![base, upper, top])
    }

    pub fn blobs(&self) -> Vec<&[u8]> {
        self.layers.iter().map(Vec::as_slice).collect()
    }

    pub fn manifest(&self) -> Value {
        let config = self.config.to_string();
        let layers: Vec<Value> = self
            .layers
            .iter()
            .map(|layer| descriptor(LAYER, layer))
            .collect();
        json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": descriptor(CONFIG, config.as_bytes()), "layers": layers,
        })
    }

    /// The files of a layout that holds the image under a name.
    pub fn layout(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        let manifest = self.manifest().to_string().into_bytes();
        let mut entry = descriptor(MANIFEST, &manifest);
        entry["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
        let mut files = vec![
            (
                "oci-layout".into(),
                br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(),
            ),
            ("index.json".into(), index.to_string().into_bytes()),
            blob(&manifest),
            blob(self.config.to_string().as_bytes()),
        ];
        files.extend(self.layers.iter().map(|layer| blob(layer)));
        files
    }

    /// The files of an archive as Docker wrote them for years.
    pub fn saved(&self, names: &[&str]) -> Vec<(String, Vec<u8>)> {
        let config = self.config.to_string().into_bytes();
        let config_name = format!("{}.json", digits(&config));
        let layer = |place: usize| format!("{place:064}/layer.tar");
        let layers: Vec<String> = (0..self.plain.len()).map(layer).collect();
        let mut files = Vec::new();
        for (place, bytes) in self.plain.iter().enumerate() {
            files.push((format!("{place:064}/VERSION"), b"1.0".to_vec()));
            files.push((format!("{place:064}/json"), b"{}".to_vec()));
            files.push((layer(place), bytes.clone()));
        }
        let list = json!([{"Config": config_name, "RepoTags": names, "Layers": layers}]);
        files.push((config_name, config));
        files.push(("manifest.json".into(), list.to_string().into_bytes()));
        files
    }
}

pub fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}

pub fn digits(bytes: &[u8]) -> String {
    digest(bytes).trim_start_matches("sha256:").into()
}

pub fn blob(bytes: &[u8]) -> (String, Vec<u8>) {
    (format!("blobs/sha256/{}", digits(bytes)), bytes.to_vec())
}

/// The files as an archive.
pub fn archived(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let entries: Vec<_> = files
        .iter()
        .map(|(name, bytes)| file(name, bytes))
        .collect();
    tar(&entries)
}

/// The files below a directory.
pub fn written(root: &Path, files: &[(String, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

pub fn options() -> Options {
    let retry = Retry {
        attempts: 3,
        first: Duration::from_millis(5),
        longest: Duration::from_millis(50),
        patience: Duration::from_secs(20),
    };
    let options = muster_registry::Options {
        retry,
        ..muster_registry::Options::default()
    };
    Options::new(Client::new(options, Traffic::default()).unwrap())
}

/// Scans what somebody types.
pub async fn scan(
    typed: &str,
    options: &Options,
) -> Result<Vec<Result<Scanned, muster_source::Error>>> {
    Ok(bills(&Source::parse(typed)?, options).await?)
}

/// The one bill of what somebody types.
pub async fn bill(typed: &str, options: &Options) -> Result<Bill> {
    let mut scanned = scan(typed, options).await?;
    assert_eq!(scanned.len(), 1);
    Ok(scanned.remove(0)?.bill)
}

/// Why something cannot be scanned.
pub async fn refusal(typed: &str, options: &Options) -> String {
    match bill(typed, options).await {
        Ok(bill) => panic!("{typed} was scanned: {bill:?}"),
        Err(error) => format!("{error:#}"),
    }
}

pub fn names(bill: &Bill) -> Vec<&str> {
    bill.components
        .iter()
        .map(|component| component.package.name.as_str())
        .collect()
}

/// Remembers what it was told.
#[derive(Default)]
pub struct Told(Mutex<Vec<(String, String)>>);

impl Told {
    /// How often something was said.
    pub fn count(&self, what: &str) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|(said, _)| said == what)
            .count()
    }

    fn tell(&self, what: &str, layer: &str) {
        self.0.lock().unwrap().push((what.into(), layer.into()));
    }
}

impl Progress for Told {
    fn layer_started(&self, digest: &str, _: Option<u64>) {
        self.tell("started", digest);
    }

    fn layer_advanced(&self, _: &str, _: u64) {}

    fn layer_done(&self, digest: &str, cached: bool) {
        self.tell(if cached { "recalled" } else { "read" }, digest);
    }
}
