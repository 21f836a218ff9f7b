//! The digests that an image is known by: of its index, its manifest and its configuration; and
//! what becomes of a tag and of the digest that runs when a Registry wants both.

use super::conditions::{Bench, image, registry};
use super::*;
use http::Method;
use muster_testkit::proxy::{Fault, Proxy};

const ABOUT: [&str; 3] = ["images", "sboms", "vulnerabilityreports"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_image_learns_its_configuration_without_being_read_again() -> Result<()> {
    let server = Registry::start()?;
    let proxy = Proxy::start(&server.host(), |_, _| Fault::Pass).await?;
    image(&Pusher::new(&server)?, "team/app", Some("1"), 2000).await?;
    let bench = Bench::start()?;
    let repositories = json!([{"name": "team/app"}]);
    let spec = json!({"catalogType": "NoCatalog", "repositories": repositories});
    bench.apply(&registry(&proxy.host(), spec))?;
    bench.scan("first", json!({"registry": "local"}))?;
    let kubectl = &bench.kubectl;
    let configuration = |kind: &str| -> Result<Value> {
        Ok(get(kubectl, &[kind])?["items"][0]["imageMetadata"]["configDigest"].clone())
    };
    let known = configuration("images")?;
    assert!(known.as_str().context("a digest")?.starts_with("sha256:"));
    let layer = digest(&layer()?.1);
    let read = proxy.count(Method::GET, &layer);

    // As an older version has left them.
    let forget = r#"[{"op": "remove", "path": "/imageMetadata/configDigest"}]"#;
    for kind in ABOUT {
        assert_eq!(configuration(kind)?, known, "{kind}");
        let name = kubectl.succeed(&["get", kind, "-o", "name"])?;
        kubectl.succeed(&["patch", name.trim(), "--type=json", "-p", forget])?;
        assert!(configuration(kind)?.is_null(), "{kind}");
    }
    let (reason, _) = bench.scan("second", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    for kind in ABOUT {
        assert_eq!(configuration(kind)?, known, "{kind}");
    }
    assert_eq!(proxy.count(Method::GET, &layer), read);
    Ok(())
}

/// Pushes the image for two platforms under a tag, as it was built in some year.
async fn push(pusher: &Pusher, tag: &str, year: u32) -> Result<[String; 2]> {
    let (plain, packed) = layer()?;
    let mut platforms = Vec::new();
    for architecture in ["amd64", "arm64"] {
        let config = json!({
            "os": "linux", "architecture": architecture, "created": format!("{year}-01-01T00:00:00Z"),
            "rootfs": {"type": "layers", "diff_ids": [digest(&plain)]},
        });
        let image = pusher.image("team/app", None, &[&packed], &config).await?;
        platforms.push((format!("linux/{architecture}"), image));
    }
    let entries: Vec<_> = platforms
        .iter()
        .map(|(name, image)| (name.as_str(), image))
        .collect();
    let index = pusher.index("team/app", Some(tag), &entries).await?;
    Ok([index.digest, platforms[1].1.digest.clone()])
}

/// A Registry that wants some tags and some digests; each condition is named like what it names.
fn wanting(host: &str, tags: &[&str], digests: &[&str]) -> Value {
    let condition = |what: &str, value: &str| {
        let label = format!("{what}-{}", value.chars().rev().take(8).collect::<String>());
        json!({
            "name": value, "expression": format!("{what} == \"{value}\""),
            "labels": {label: "true"},
        })
    };
    let tags = tags.iter().map(|tag| condition("tag", tag));
    let digests = digests.iter().map(|digest| condition("digest", digest));
    let conditions: Vec<Value> = tags.chain(digests).collect();
    let repository = json!({
        "name": "team/app", "matchOperator": "Or", "matchConditions": conditions,
    });
    registry(
        host,
        json!({"catalogType": "NoCatalog", "repositories": [repository]}),
    )
}

/// A job that names some conditions.
fn naming(conditions: &[&str]) -> Value {
    let repository = json!({"name": "team/app", "matchConditions": conditions});
    json!({"registry": "local", "repositories": [repository]})
}

/// The Images, each with its UID.
fn identities(bench: &Bench) -> Result<BTreeSet<String>> {
    let images = get(&bench.kubectl, &["images"])?;
    let images = images["items"].as_array().context("items")?;
    let uid = |image: &Value| Some(image["metadata"]["uid"].as_str()?.to_owned());
    images
        .iter()
        .map(|image| uid(image).context("a UID"))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_answers_for_the_digest_that_it_means() -> Result<()> {
    let server = Registry::start()?;
    let pusher = Pusher::new(&server)?;
    let [index, manifest] = push(&pusher, "1", 2024).await?;
    let bench = Bench::start()?;
    let host = server.host();
    let full = || json!({"registry": "local"});
    let scan = |name: &str, spec: Value, count: usize| -> Result<()> {
        let (reason, job) = bench.scan(name, spec)?;
        assert!(reason.contains("AllImagesScanned"), "{name}: {reason}");
        assert_eq!(job["status"]["imagesCount"], count, "{name}");
        let missing = &job["metadata"]["annotations"]["sbomscanner.kubewarden.io/not-found"];
        assert!(missing.is_null(), "{name}: {missing}");
        Ok(())
    };
    let tagged = |images: &[(String, Value)]| {
        images
            .iter()
            .filter(|(name, _)| name == "team/app:1")
            .count()
    };

    // Whoever names the digest alone comes to what the whole Registry comes to.
    bench.apply(&wanting(&host, &["1", "0"], &[&index]))?;
    scan("digest", naming(&[&index]), 2)?;
    let images = bench.images()?;
    assert_eq!((images.len(), tagged(&images)), (2, 2), "{images:?}");
    for (_, labels) in &images {
        let short: String = index.chars().rev().take(8).collect();
        assert_eq!(labels["tag-1"], "true", "{labels}");
        assert_eq!(labels[format!("digest-{short}")], "true", "{labels}");
    }
    bench.apply(&wanting(&host, &["1"], &[&index]))?;
    let first = identities(&bench)?;
    scan("full", full(), 2)?;
    assert_eq!(identities(&bench)?, first);

    // So it is with the digests that its platforms are known by.
    let about = get(&bench.kubectl, &["images"])?["items"][0]["imageMetadata"].clone();
    let config = about["configDigest"]
        .as_str()
        .context("a digest")?
        .to_owned();
    bench.apply(&wanting(&host, &["1"], &[&index, &manifest, &config]))?;
    scan("platforms", naming(&[&manifest, &config]), 2)?;
    scan("all", full(), 2)?;
    assert_eq!(identities(&bench)?, first);

    // A tag that moves takes nothing with it: the digest that runs is scanned by itself.
    let reference = json!({
        "registry": "local", "namespace": "default", "repository": "team/app", "tag": "1",
        "digest": index,
    });
    bench.apply(&json!({
        "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1", "kind": "WorkloadScanReport",
        "metadata": {"name": "runs", "namespace": "default"},
        "spec": {"containers": [{"name": "app", "imageRef": reference}]},
    }))?;
    bench.apply(&wanting(&host, &["1"], &[&index]))?;
    push(&pusher, "1", 2025).await?;
    scan("moved", full(), 4)?;
    let images = bench.images()?;
    assert_eq!((images.len(), tagged(&images)), (4, 2), "{images:?}");
    wait::until("the findings of what runs", LIMIT, || {
        let report = get(&bench.kubectl, &["workloadscanreport", "runs"])?;
        let status = &report["status"]["containerStatuses"][0]["scanStatus"];
        Ok((status == "ScanComplete" && report["summary"]["critical"] == 1).then_some(()))
    })?;
    let moved = identities(&bench)?;
    scan("again", naming(&[&index]), 2)?;
    scan("all-again", full(), 4)?;
    assert_eq!(identities(&bench)?, moved);

    // And back.
    push(&pusher, "1", 2024).await?;
    scan("back", naming(&[&index]), 2)?;
    scan("all-back", full(), 2)?;
    let images = bench.images()?;
    assert_eq!((images.len(), tagged(&images)), (2, 2), "{images:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_of_the_workload_scan_keeps_what_is_gone() -> Result<()> {
    const NOTE: &str = "sbomscanner.kubewarden.io/last-missing";
    let server = Registry::start()?;
    let pusher = Pusher::new(&server)?;
    image(&pusher, "team/app", Some("1"), 2000).await?;
    let gone = digest(b"gone");
    let bench = Bench::start()?;
    let kept = || -> Result<Value> {
        let registry = get(&bench.kubectl, &["registry", "local"])?;
        match registry["metadata"]["annotations"][NOTE].as_str() {
            Some(text) => Ok(serde_json::from_str(text)?),
            None => Ok(Value::Null),
        }
    };
    let mut object = wanting(&server.host(), &["1", "2", "3"], &[&gone]);
    bench.apply(&object)?;
    bench.scan("plain", json!({"registry": "local"}))?;
    assert!(kept()?.is_null(), "a Registry of somebody");

    bench.kubectl.succeed(&["delete", "registry", "local"])?;
    object["metadata"]["labels"] = json!({"sbomscanner.kubewarden.io/workloadscan": "true"});
    bench.apply_as_operator(&object)?;
    bench.scan("first", naming(&["2"]))?;
    assert_eq!(kept()?, json!(["team/app:2"]));
    bench.scan("second", json!({"registry": "local"}))?;
    let digest = format!("team/app@{gone}");
    assert_eq!(kept()?, json!(["team/app:2", "team/app:3", digest]));
    image(&pusher, "team/app", Some("2"), 2001).await?;
    bench.scan("third", naming(&["2"]))?;
    assert_eq!(kept()?, json!(["team/app:3", digest]));

    // What nobody wants is forgotten.
    object["spec"] = wanting(&server.host(), &["1", "2"], &[])["spec"].clone();
    bench.apply_as_operator(&object)?;
    bench.scan("fourth", json!({"registry": "local"}))?;
    assert!(kept()?.is_null());
    Ok(())
}
