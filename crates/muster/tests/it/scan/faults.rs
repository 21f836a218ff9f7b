//! What goes wrong while a registry is scanned: images that cannot be read, a registry that
//! stumbles or lies. Every job ends, with the truth, and the rest is scanned.

use super::conditions::Bench;
use super::discovery::registry;
use super::{get, layer, push};
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, StatusCode};
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::{Pushed, Pusher, digest};
use muster_testkit::registry::Registry;
use serde_json::{Value, json};
use std::io::Write;

const PLATFORMS: [&str; 3] = ["amd64", "arm64", "s390x"];
const TAGS: usize = 17;

fn config(architecture: &str, number: usize, layers: &[&[u8]]) -> Value {
    let layers: Vec<String> = layers.iter().map(|layer| digest(layer)).collect();
    json!({
        "os": "linux", "architecture": architecture, "config": {"Labels": {"number": number.to_string()}},
        "rootfs": {"type": "layers", "diff_ids": layers},
    })
}

/// Pushes images of three platforms under many tags, all on one layer, and one that cannot be read;
/// returns how many there are.
pub(crate) async fn crowd(registry: &Registry) -> Result<usize> {
    let pusher = Pusher::new(registry)?;
    let (plain, packed) = layer()?;
    for number in 0..TAGS {
        let mut images: Vec<(String, Pushed)> = Vec::new();
        for architecture in PLATFORMS {
            let config = config(architecture, number, &[&plain]);
            let image = pusher.image("team/app", None, &[&packed], &config).await?;
            images.push((format!("linux/{architecture}"), image));
        }
        let entries: Vec<(&str, &Pushed)> = images
            .iter()
            .map(|(name, image)| (name.as_str(), image))
            .collect();
        let tag = format!("1.{number}");
        pusher.index("team/app", Some(&tag), &entries).await?;
    }
    let garbage = b"this is no layer at all, whatever its manifest says";
    let config = config("amd64", TAGS, &[garbage]);
    pusher
        .image("team/app", Some("bad"), &[garbage], &config)
        .await?;
    Ok(TAGS * PLATFORMS.len() + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_is_scanned_but_for_the_one_that_cannot_be_read() -> Result<()> {
    let server = Registry::start()?;
    let all = crowd(&server).await?;
    let proxy = Proxy::start(&server.host(), |_, _| Fault::Pass).await?;
    let bench = Bench::start()?;
    bench.apply(&registry("local", &proxy.host()))?;
    let (reason, first) = bench.scan("first", json!({"registry": "local"}))?;
    let expected = format!("1 of {all} images could not be scanned");
    assert!(
        reason.contains("InternalError") && reason.contains(&expected),
        "{reason}"
    );
    let status = &first["status"];
    assert_eq!(status["imagesCount"], all, "{status}");
    assert_eq!(status["scannedImagesCount"], all - 1, "{status}");
    assert_eq!(status["failedImagesCount"], 1, "{status}");
    let errors = status["errors"].as_array().context("errors")?;
    assert!(
        errors.len() == 1 && errors[0].as_str().is_some_and(|why| why.contains("bad")),
        "{status}"
    );
    let reports = get(&bench.kubectl, &["vulnerabilityreports"])?;
    assert_eq!(reports["items"].as_array().map(Vec::len), Some(all - 1));
    // What they share is fetched once.
    let (_, packed) = layer()?;
    assert_eq!(proxy.count(Method::GET, &digest(&packed)), 1);

    // Finding an image and reading it are one question, which some registries count.
    let mut manifests: Vec<String> = proxy
        .seen()
        .into_iter()
        .filter(|seen| seen.method == Method::GET && seen.target.contains("/manifests/sha256:"))
        .map(|seen| seen.target)
        .collect();
    let asked = manifests.len();
    manifests.sort();
    manifests.dedup();
    assert_eq!(manifests.len(), asked, "a manifest was asked for twice");

    // Who scans again asks for every tag once, and reads and matches nothing that was.
    let before = proxy.seen().len();
    let (_, second) = bench.scan("second", json!({"registry": "local"}))?;
    let status = &second["status"];
    assert_eq!(status["scannedImagesCount"], all - 1, "{status}");
    assert_eq!(status["readImagesCount"], 0, "{status}");
    assert_eq!(status["matchedImagesCount"], 0, "{status}");
    let asked = proxy.seen().split_off(before);
    let heads = asked
        .iter()
        .filter(|seen| seen.method == Method::HEAD)
        .count();
    assert!(heads <= TAGS + 1, "{heads} questions for {TAGS} tags");
    let manifests = asked
        .iter()
        .filter(|seen| seen.method == Method::GET && seen.target.contains("/manifests/1."));
    assert_eq!(manifests.count(), 0, "an unchanged tag was read again");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_stumbles_is_asked_again() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let proxy = Proxy::start(&server.host(), |seen, before| {
        let later = vec![("retry-after", "1".to_owned())];
        let refused = |code| Fault::Answer(code, later.clone(), String::new());
        match (seen.target.as_str(), before) {
            (target, 0) if target.contains("/tags/list") => refused(StatusCode::TOO_MANY_REQUESTS),
            (target, 0) if target.contains("/manifests/") => {
                refused(StatusCode::INTERNAL_SERVER_ERROR)
            }
            (target, 0) if target.contains("/blobs/") => Fault::CutAfter(20),
            (target, 1) if target.contains("/blobs/") => Fault::HangUp,
            _ => Fault::Pass,
        }
    })
    .await?;
    let bench = Bench::start()?;
    bench.apply(&registry("local", &proxy.host()))?;
    let (reason, job) = bench.scan("first", json!({"registry": "local"}))?;
    assert!(
        reason.contains("AllImagesScanned"),
        "{reason}: {}",
        bench.muster.process().log_tail()
    );
    assert_eq!(job["status"]["scannedImagesCount"], 2);
    Ok(())
}

/// What is not what it is said to be is not believed, however often it is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_not_those_of_their_digest_are_an_images_own_failure() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let pusher = Pusher::new(&server)?;
    // An archive may end in any number of empty blocks.
    let plain = [layer()?.0, vec![0; 512]].concat();
    let mut other = GzEncoder::new(Vec::new(), Compression::default());
    other.write_all(&plain)?;
    let other = other.finish()?;
    let config = config("amd64", 1, &[&plain]);
    let forged = pusher
        .image("team/app", Some("forged"), &[&other], &config)
        .await?;
    let swapped = digest(&other);
    let target = format!("/blobs/{swapped}");
    let proxy = Proxy::start(&server.host(), move |seen, _| {
        match seen.target.contains(&target) {
            true => Fault::Change,
            false => Fault::Pass,
        }
    })
    .await?;
    let bench = Bench::start()?;
    bench.apply(&registry("local", &proxy.host()))?;
    let (reason, job) = bench.scan("first", json!({"registry": "local"}))?;
    assert!(
        reason.contains("1 of 3 images could not be scanned"),
        "{reason}"
    );
    let status = &job["status"];
    assert_eq!(status["scannedImagesCount"], 2, "{status}");
    let why = status["errors"][0].as_str().context("an error")?;
    assert!(why.contains(&swapped), "{why}");
    let bills = get(&bench.kubectl, &["sboms"])?;
    let bills = bills["items"].as_array().context("items")?;
    let about = |bill: &Value| bill["imageMetadata"]["digest"] == forged.digest;
    assert!(!bills.iter().any(about), "a bill of forged bytes");
    Ok(())
}
