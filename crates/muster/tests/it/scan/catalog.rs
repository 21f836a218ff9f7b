//! What is in a registry: all its repositories, where it lists them, and of each what is an image.

use super::conditions::{Bench, image, registry};
use super::*;
use http::{Method, StatusCode};
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::{INDEX, MANIFEST};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_is_an_image_is_found_once() -> Result<()> {
    let server = Registry::start()?;
    let pusher = Pusher::new(&server)?;
    let plain = image(&pusher, "plain", Some("1"), 2000).await?;
    let first = image(&pusher, "mixed", None, 2001).await?;
    let second = image(&pusher, "mixed", None, 2002).await?;
    let nested = image(&pusher, "mixed", None, 2003).await?;

    // A chart is no image, though it has the form of one.
    let config = pusher
        .blob(
            "charts/app",
            "application/vnd.cncf.helm.config.v1+json",
            b"{}",
        )
        .await?;
    let chart = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config.descriptor(), "layers": [],
    });
    let chart = chart.to_string();
    pusher
        .manifest("charts/app", Some("1.0.0"), MANIFEST, chart.as_bytes())
        .await?;

    // An index with an attestation, an entry without platform, the same digest twice, and another
    // index.
    let with = |mut entry: Value, field: &str, value: Value| {
        entry[field] = value;
        entry
    };
    let inner = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [nested.descriptor()]});
    let inner = pusher
        .manifest("mixed", None, INDEX, inner.to_string().as_bytes())
        .await?;
    let amd = json!({"os": "linux", "architecture": "amd64"});
    let unknown = json!({"os": "unknown", "architecture": "unknown"});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        with(first.descriptor(), "platform", amd.clone()),
        with(first.descriptor(), "platform", amd),
        second.descriptor(),
        inner.descriptor(),
        with(plain_attestation(&pusher).await?, "platform", unknown),
    ]});
    pusher
        .manifest("mixed", Some("1"), INDEX, index.to_string().as_bytes())
        .await?;

    let bench = Bench::start()?;
    bench.apply(&registry(&server.host(), json!({})))?;
    let (reason, job) = bench.scan("all", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(job["status"]["imagesCount"], 4);
    let images = get(&bench.kubectl, &["images"])?;
    let digests: BTreeSet<&str> = images["items"]
        .as_array()
        .context("items")?
        .iter()
        .filter_map(|image| image["imageMetadata"]["digest"].as_str())
        .collect();
    let expected = [&plain, &first, &second, &nested];
    assert_eq!(
        digests,
        expected.iter().map(|image| image.digest.as_str()).collect()
    );
    // Without a platform in the index, the image itself says what it is for.
    let platform = |image: &Value| image["imageMetadata"]["platform"]["architecture"] == "amd64";
    assert!(
        images["items"]
            .as_array()
            .context("items")?
            .iter()
            .all(platform)
    );

    // A job may name a repository of a Registry that lists none.
    let spec = json!({"registry": "local", "repositories": [{"name": "plain"}]});
    let (reason, job) = bench.scan("one", spec)?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(job["status"]["imagesCount"], 1);
    assert_eq!(bench.references()?.len(), 4);
    Ok(())
}

/// Something that is about an image.
async fn plain_attestation(pusher: &Pusher) -> Result<Value> {
    let config = pusher
        .blob("mixed", "application/vnd.oci.image.config.v1+json", b"{}")
        .await?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": config.descriptor(), "layers": [],
    });
    let manifest = manifest.to_string();
    let pushed = pusher
        .manifest("mixed", None, MANIFEST, manifest.as_bytes())
        .await?;
    Ok(pushed.descriptor())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_bad_tag_or_a_missing_catalog_is_told_as_such() -> Result<()> {
    let server = Registry::start()?;
    let pusher = Pusher::new(&server)?;
    for (year, tag) in ["good", "torn", "down"].iter().enumerate() {
        image(&pusher, "team/app", Some(tag), 2000 + year as u32).await?;
    }
    let answer = |status| Fault::Answer(status, Vec::new(), "{}".into());
    let proxy = Proxy::start(&server.host(), move |seen, _| match seen.target.as_str() {
        target if target.contains("_catalog") => answer(StatusCode::NOT_FOUND),
        target if target.ends_with("/manifests/torn") && seen.method == Method::GET => {
            Fault::Change
        }
        target if target.ends_with("/manifests/down") => answer(StatusCode::FORBIDDEN),
        _ => Fault::Pass,
    })
    .await?;
    let bench = Bench::start()?;
    bench.apply(&registry(&proxy.host(), json!({})))?;
    let (reason, _) = bench.scan("unlisted", json!({"registry": "local"}))?;
    for word in [
        "InternalError",
        "set spec.catalogType to NoCatalog",
        &proxy.host(),
    ] {
        assert!(reason.contains(word), "{word}: {reason}");
    }
    let spec = json!({"catalogType": "NoCatalog", "repositories": [{"name": "team/app"}]});
    bench.apply(&registry(&proxy.host(), spec))?;
    let (reason, job) = bench.scan("listed", json!({"registry": "local"}))?;
    assert!(reason.contains("2 of 3 images"), "{reason}");
    assert_eq!(job["status"]["scannedImagesCount"], 1);
    assert_eq!(bench.references()?, ["team/app:good"]);
    Ok(())
}
