//! A registry of many images that share nine of their ten layers with others, as the images of one
//! company do. All bytes are the same every time.

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use muster_testkit::bolt::{self, Put};
use muster_testkit::push::{CONFIG, LAYER, MANIFEST, Pushed, Pusher, digest};
use muster_testkit::registry::Registry;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;

/// How many images share their bases; each base is a repository.
pub(super) const BASES: usize = 10;
/// How many layers of a base.
const SHARED: usize = 9;
/// How large the files are that nobody understands, in a layer of a base and in an image's own.
const FILLING: usize = 1 << 20;
const OWN_FILLING: usize = 64 << 10;
/// How many Debian packages a base has.
const PACKAGES: usize = 120;

/// A layer, plain and compressed.
struct Layer {
    plain: String,
    packed: Vec<u8>,
}

/// What is pushed of a base.
struct Base {
    diff_ids: Vec<String>,
    layers: Vec<Value>,
}

/// Pushes `count` images, spread over [`BASES`] repositories; returns their references.
pub(super) async fn push(registry: &Registry, count: usize) -> Result<Vec<String>> {
    let pusher = Pusher::new(registry)?;
    let mut references = Vec::new();
    for number in 0..BASES {
        let repository = repository(number);
        let base = base(&pusher, &repository, number).await?;
        for image in (number..count).step_by(BASES) {
            let tag = format!("1.{image}");
            push_image(&pusher, &repository, &tag, &base, image).await?;
            references.push(format!("{}/{repository}:{tag}", registry.host()));
        }
    }
    Ok(references)
}

pub(super) fn repository(number: usize) -> String {
    format!("team/base-{number}")
}

async fn base(pusher: &Pusher, repository: &str, number: usize) -> Result<Base> {
    let mut base = Base {
        diff_ids: Vec::new(),
        layers: Vec::new(),
    };
    for place in 0..SHARED {
        let seed = number * SHARED + place;
        let mut files = vec![(format!("opt/part-{place}/data"), filling(seed, FILLING))];
        match place {
            0 => files.extend(system(number)),
            _ => files.push(module(&format!("shared-{place}"), number)),
        }
        let layer = layer(&files)?;
        let pushed = pusher.blob(repository, LAYER, &layer.packed).await?;
        base.diff_ids.push(layer.plain);
        base.layers.push(pushed.descriptor());
    }
    Ok(base)
}

async fn push_image(
    pusher: &Pusher,
    repository: &str,
    tag: &str,
    base: &Base,
    number: usize,
) -> Result<Pushed> {
    let own = layer(&[
        module("application", number),
        ("srv/data".into(), filling(1_000_000 + number, OWN_FILLING)),
    ])?;
    let pushed = pusher.blob(repository, LAYER, &own.packed).await?;
    let diff_ids: Vec<&String> = base.diff_ids.iter().chain([&own.plain]).collect();
    let config = json!({
        "os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": diff_ids},
    });
    let config = config.to_string();
    let config = pusher.blob(repository, CONFIG, config.as_bytes()).await?;
    let mut layers = base.layers.clone();
    layers.push(pushed.descriptor());
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config.descriptor(), "layers": layers,
    });
    let manifest = manifest.to_string();
    let tag = Some(tag);
    pusher
        .manifest(repository, tag, MANIFEST, manifest.as_bytes())
        .await
}

/// What a base knows of Debian.
fn system(number: usize) -> Vec<(String, Vec<u8>)> {
    let packages = (0..PACKAGES).map(|package| {
        format!(
            "Package: lib{package}\nStatus: install ok installed\nArchitecture: amd64\nSource: source{package}\n\
             Version: 1.{number}.0-1\nMaintainer: Somebody <somebody@example.org>\nDescription: a package\n\n"
        )
    });
    let status: String = packages.collect();
    let release = "ID=debian\nVERSION_ID=\"12\"\nNAME=\"Debian GNU/Linux\"\n";
    vec![
        ("etc/os-release".into(), release.into()),
        ("var/lib/dpkg/status".into(), status.into_bytes()),
    ]
}

/// A package of npm.
fn module(name: &str, number: usize) -> (String, Vec<u8>) {
    let about = json!({"name": name, "version": format!("1.{number}.0"), "license": "MIT"});
    let path = format!("app/node_modules/{name}/package.json");
    (path, about.to_string().into_bytes())
}

/// Bytes that cannot be compressed.
fn filling(seed: usize, size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed as u64 + 1) | 1;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

fn layer(files: &[(String, Vec<u8>)]) -> Result<Layer> {
    let mut archive = Vec::new();
    for (path, contents) in files {
        archive.extend(header(path, contents.len()));
        archive.extend(contents);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&archive)?;
    Ok(Layer {
        plain: digest(&archive),
        packed: packed.finish()?,
    })
}

/// The header of a file in a POSIX archive.
fn header(path: &str, size: usize) -> [u8; 512] {
    let mut header = [0; 512];
    let mut put = |at: usize, text: &[u8]| {
        for (place, byte) in header.iter_mut().skip(at).zip(text) {
            *place = *byte;
        }
    };
    put(0, path.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    for (place, byte) in header.iter_mut().skip(148).zip(sum.as_bytes()) {
        *place = *byte;
    }
    header
}

/// Vulnerability data in which a third of Debian's packages has an advisory.
pub(super) fn data(directory: &Path) -> Result<()> {
    let source = json!({"ID": "debian", "Name": "Debian"}).to_string();
    let mut puts = vec![Put::text(&["data-source"], "debian 12", source)];
    for package in (0..PACKAGES).step_by(3) {
        let id = format!("CVE-2026-{package:04}");
        let fixed = json!({"FixedVersion": "1.5.0-1"}).to_string();
        let source = format!("source{package}");
        puts.push(Put::text(&["debian 12", &source], &id, fixed));
        let about = json!({"Title": "A hole", "VendorSeverity": {"nvd": package % 5}});
        puts.push(Put::text(&["vulnerability"], &id, about.to_string()));
    }
    bolt::write(&directory.join("trivy.db"), &puts)?;
    let about = json!({
        "Version": 2, "UpdatedAt": "2026-01-02T00:00:00Z", "NextUpdate": "2999-01-03T00:00:00Z",
    });
    Ok(fs::write(
        directory.join("metadata.json"),
        about.to_string(),
    )?)
}
