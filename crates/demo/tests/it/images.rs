//! The images: the same bytes every time, named by what they are, small, and sharing what they share.

use muster_demo::image::digest;
use muster_demo::{images, program};
use muster_scan::layer;
use muster_scan::limits::Limits;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// Small enough to be made and read while nobody notices.
const SMALL: usize = 8 * 1024;

#[test]
fn the_same_images_are_made_every_time() {
    assert_eq!(images::all().unwrap(), images::all().unwrap());
}

#[test]
fn everything_is_called_by_its_digest_and_says_so_of_its_parts() {
    for image in images::all().unwrap() {
        let name = format!("{}:{}", image.repository, image.tag);
        let root = image.manifest(image.tag).unwrap();
        assert_eq!(digest(&root.bytes), image.digest(), "{name}");
        let root: Value = serde_json::from_slice(&root.bytes).unwrap();
        let manifests: Vec<Value> = match root["manifests"].as_array() {
            None => vec![root],
            Some(entries) => entries
                .iter()
                .map(|entry| {
                    let manifest = image.manifest(entry["digest"].as_str().unwrap()).unwrap();
                    assert_eq!(entry["size"], manifest.bytes.len(), "{name}");
                    serde_json::from_slice(&manifest.bytes).unwrap()
                })
                .collect(),
        };
        assert_eq!(manifests.len(), image.builds.len(), "{name}");
        for (manifest, build) in manifests.iter().zip(&image.builds) {
            let config = manifest["config"]["digest"].as_str().unwrap();
            let config = &image.blob(config).unwrap().bytes;
            let config: Value = serde_json::from_slice(config).unwrap();
            assert_eq!(config["architecture"], build.architecture, "{name}");
            for (place, part) in manifest["layers"].as_array().unwrap().iter().enumerate() {
                let blob = image.blob(part["digest"].as_str().unwrap()).unwrap();
                assert_eq!(part["size"], blob.bytes.len(), "{name}");
                assert!(blob.bytes.len() < SMALL, "{name}: {}", blob.bytes.len());
                let read = layer::read(&*blob.bytes, &Limits::DEFAULT).unwrap();
                assert_eq!(read.digest.to_string(), blob.digest, "{name}");
                let said = &config["rootfs"]["diff_ids"][place];
                assert_eq!(read.diff_id.to_string(), said.as_str().unwrap(), "{name}");
            }
        }
    }
}

#[test]
fn images_have_several_layers_and_share_the_lowest() {
    let images = images::all().unwrap();
    let layers = || {
        let builds = images.iter().flat_map(|image| &image.builds);
        builds.flat_map(|build| &build.layers)
    };
    assert!(images.iter().all(|image| image.builds[0].layers.len() >= 2));
    let different: BTreeSet<&str> = layers().map(|layer| &*layer.blob().digest).collect();
    assert!(different.len() + 5 < layers().count(), "{different:?}");
    let platforms: Vec<usize> = images.iter().map(|image| image.builds.len()).collect();
    assert_eq!(platforms.iter().max(), Some(&2), "one is for two platforms");
}

#[test]
fn go_reads_the_record_of_a_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let modules = [("golang.org/x/net", "v0.15.0")];
    let program = program::go("go1.21.2", ("example.com/app", "v1.0.0"), &modules);
    std::fs::write(&path, program).unwrap();
    let listed = Command::new("go")
        .args(["version", "-m"])
        .arg(&path)
        .output();
    let listed = listed.expect("go runs; it is installed by `cargo xtask test`");
    let listed = String::from_utf8(listed.stdout).unwrap();
    for line in [
        ": go1.21.2",
        "mod\texample.com/app\tv1.0.0",
        "dep\tgolang.org/x/net\tv0.15.0",
    ] {
        assert!(listed.contains(line), "{line} in {listed}");
    }
}
