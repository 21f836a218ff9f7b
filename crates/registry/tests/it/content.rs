//! What a registry has: lists, references, manifests, configurations, layers.

use crate::support::*;
use anyhow::Result;
use futures::StreamExt;
use http::Method;
use muster_registry::{Digest, Error, Limits, Manifest, media};
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::{self, Pusher};
use muster_testkit::registry::Registry;
use serde_json::json;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn repositories_come_page_by_page_and_tags_as_they_are_spelled() -> Result<()> {
    let registry = Registry::start()?;
    let pusher = Pusher::new(&registry)?;
    pusher
        .image("team/app", Some("1"), &[b"layer"], &config("amd64"))
        .await?;
    let manifest = json!({
        "schemaVersion": 2, "mediaType": push::MANIFEST,
        "config": {"mediaType": push::CONFIG, "digest": push::digest(config("amd64").to_string().as_bytes()),
                   "size": config("amd64").to_string().len()},
        "layers": [],
    });
    for tag in ["Upper", "_odd", "v1.0-rc.1_x"] {
        pusher
            .manifest(
                "team/app",
                Some(tag),
                push::MANIFEST,
                manifest.to_string().as_bytes(),
            )
            .await?;
    }
    for number in 0..7 {
        pusher
            .image(
                &format!("many/r{number}"),
                Some("1"),
                &[b"layer"],
                &config("amd64"),
            )
            .await?;
    }
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let mut small = options();
    small.limits.page_items = 3;
    let client = client(small)?;
    let mut tags = client.tags(&repository(&proxy.host(), "team/app")).await?;
    tags.sort();
    assert_eq!(tags, ["1", "Upper", "_odd", "v1.0-rc.1_x"]);
    let names: Vec<String> = client
        .catalog(&host(&proxy.host()))
        .await?
        .iter()
        .map(|repository| repository.name().to_string())
        .collect();
    assert_eq!(names.len(), 8);
    assert!(names.contains(&"many/r6".to_string()) && names.contains(&"team/app".to_string()));
    assert_eq!(proxy.count(Method::GET, "/v2/_catalog"), 3);
    let missing = client
        .tags(&repository(&registry.host(), "not/there"))
        .await;
    assert!(
        matches!(missing, Err(Error::NotFound { .. })),
        "{missing:?}"
    );
    Ok(())
}

#[tokio::test]
async fn pages_are_followed_on_the_same_list_only_and_without_end_never() -> Result<()> {
    let (registry, _) = with_image(b"layer").await?;
    let page = |items: &str, link: &str| {
        let body = format!(r#"{{"name":"x","tags":{items}}}"#);
        Fault::Answer(http::StatusCode::OK, vec![("link", link.to_string())], body)
    };
    let proxy = Proxy::start(&registry.host(), move |seen, _| {
        match seen.target.as_str() {
            "/v2/good/tags/list?n=1000" => page(
                r#"["a","b"]"#,
                r#"</v2/good/tags/list?n=1000&last=b>; rel="next""#,
            ),
            "/v2/good/tags/list?n=1000&last=b" => page(r#"["b","c","not a tag"]"#, ""),
            target if target.starts_with("/v2/circle/") => page(
                r#"["a"]"#,
                r#"</v2/circle/tags/list?n=1&last=a>; rel="next""#,
            ),
            target if target.starts_with("/v2/away/") => {
                page(r#"["a"]"#, r#"<http://127.0.0.1:1/steal?x=1>; rel="next""#)
            }
            target if target.starts_with("/v2/endless/") => {
                let number = seen.target.len();
                page(
                    &format!(r#"["a{number}"]"#),
                    &format!(
                        r#"</v2/endless/tags/list?{}>; rel="next""#,
                        "x".repeat(number)
                    ),
                )
            }
            _ => page("null", ""),
        }
    })
    .await?;
    let mut small = options();
    small.limits = Limits {
        items: 20,
        ..Limits::default()
    };
    let client = client(small)?;
    let at = |name: &str| repository(&proxy.host(), name);
    assert_eq!(client.tags(&at("good")).await?, ["a", "b", "c"]);
    assert!(client.tags(&at("empty")).await?.is_empty());
    for (name, malformed) in [("circle", true), ("away", true), ("endless", false)] {
        let error = client.tags(&at(name)).await.expect_err(name);
        assert_eq!(
            matches!(error, Error::Malformed { .. }),
            malformed,
            "{error}"
        );
        assert!(
            error
                .to_string()
                .contains(&format!("{}/{name}", proxy.host())),
            "{error}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_tag_is_resolved_with_one_request_and_read_with_its_digest() -> Result<()> {
    let (registry, pushed) = with_image(b"layer").await?;
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let client = client(options())?;
    let tagged = repository(&proxy.host(), "team/app").tagged("1")?;
    let resolved = client.resolve(&tagged).await?;
    assert_eq!(resolved.digest.as_str(), pushed.digest);
    assert_eq!(resolved.media_type.as_deref(), Some(media::OCI_MANIFEST));
    assert_eq!(resolved.size, Some(pushed.size as u64));
    assert_eq!(proxy.seen().len(), 1);
    let by_digest = tagged.repository().at(&resolved.digest);
    assert_eq!(client.resolve(&by_digest).await?.digest, resolved.digest);
    for reference in [tagged, by_digest] {
        let fetched = client.manifest(&reference).await?;
        assert_eq!(fetched.digest, resolved.digest);
        let Manifest::Image(manifest) = fetched.manifest else {
            panic!("an image")
        };
        assert!(manifest.is_image());
        let config = client
            .config(reference.repository(), &manifest.config)
            .await?;
        assert_eq!(
            config.platform.map(|p| p.to_string()).as_deref(),
            Some("linux/amd64")
        );
        assert_eq!(config.diff_ids, [Digest::of(b"a layer")]);
    }
    let missing = repository(&proxy.host(), "team/app").tagged("2")?;
    let error = client.resolve(&missing).await.expect_err("not there");
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    assert!(error.to_string().contains(&missing.to_string()), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_registry_without_digest_headers_or_heads_is_asked_for_the_manifest() -> Result<()> {
    let (registry, pushed) = with_image(b"layer").await?;
    let mute = Proxy::start(&registry.host(), |_, _| {
        Fault::Without("docker-content-digest")
    })
    .await?;
    let headless = Proxy::start(&registry.host(), |seen, _| {
        match seen.method == Method::HEAD {
            true => Fault::Answer(http::StatusCode::METHOD_NOT_ALLOWED, vec![], String::new()),
            false => Fault::Pass,
        }
    })
    .await?;
    let client = client(options())?;
    for proxy in [&mute, &headless] {
        let resolved = client
            .resolve(&repository(&proxy.host(), "team/app").tagged("1")?)
            .await?;
        assert_eq!(resolved.digest.as_str(), pushed.digest);
    }
    Ok(())
}

#[tokio::test]
async fn an_index_gives_every_platform_and_no_attestation() -> Result<()> {
    let registry = Registry::start()?;
    let pusher = Pusher::new(&registry)?;
    let mut images = Vec::new();
    for architecture in ["amd64", "arm64", "attestation"] {
        images.push(
            pusher
                .image("multi", None, &[b"layer"], &config(architecture))
                .await?,
        );
    }
    let listed = [
        ("linux/amd64", &images[0]),
        ("linux/arm64/v8", &images[1]),
        ("unknown/unknown", &images[2]),
        ("linux/amd64", &images[0]),
    ];
    let index = pusher.index("multi", Some("all"), &listed).await?;
    let client = client(options())?;
    let fetched = client
        .manifest(&repository(&registry.host(), "multi").tagged("all")?)
        .await?;
    assert_eq!(fetched.digest.as_str(), index.digest);
    let Manifest::Index(index) = fetched.manifest else {
        panic!("an index")
    };
    let platforms: Vec<String> = index
        .images()
        .filter_map(|entry| entry.platform.as_ref().map(ToString::to_string))
        .collect();
    assert_eq!(platforms, ["linux/amd64", "linux/arm64/v8"]);
    for entry in index.images() {
        let fetched = client
            .manifest(&repository(&registry.host(), "multi").at(&entry.digest))
            .await?;
        assert!(matches!(fetched.manifest, Manifest::Image(_)));
    }
    Ok(())
}

#[tokio::test]
async fn a_layer_is_read_in_pieces_as_a_stream_or_a_reader() -> Result<()> {
    let bytes = noise(3 << 20);
    let (registry, _) = with_image(&bytes).await?;
    let client = client(options())?;
    let (repository, layer) = first_layer(&client, &registry.host()).await?;
    assert_eq!(layer.size, bytes.len() as u64);
    assert!(read(client.layer(&repository, &layer)?).await? == bytes);
    let pieces: Vec<_> = client
        .layer(&repository, &layer)?
        .into_stream()
        .collect()
        .await;
    let size: usize = pieces.iter().flatten().map(|piece| piece.len()).sum();
    assert_eq!(size, bytes.len());
    let mut whole = Vec::new();
    client
        .layer(&repository, &layer)?
        .into_reader()
        .read_to_end(&mut whole)
        .await?;
    assert!(whole == bytes);
    let mut missing = layer.clone();
    missing.digest = Digest::of(b"nothing");
    let error = read(client.layer(&repository, &missing)?)
        .await
        .expect_err("not there");
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    Ok(())
}

#[tokio::test]
async fn what_is_over_a_limit_is_refused_by_name() -> Result<()> {
    let (registry, _) = with_image(&noise(5000)).await?;
    let patient = client(options())?;
    let (repository, layer) = first_layer(&patient, &registry.host()).await?;
    let mut small = options();
    small.limits = Limits {
        manifest: 100,
        config: 10,
        layer: 4999,
        page: 3,
        page_items: 10,
        items: 10,
    };
    let client = client(small)?;
    let reference = repository.tagged("1")?;
    let mut lying = layer.clone();
    lying.size = 4000;
    for (what, error) in [
        (
            "manifest",
            client.manifest(&reference).await.expect_err("large"),
        ),
        (
            "config",
            client.config(&repository, &layer).await.expect_err("large"),
        ),
        (
            "layer",
            client.layer(&repository, &layer).expect_err("large"),
        ),
        ("tags", client.tags(&repository).await.expect_err("large")),
    ] {
        assert!(matches!(error, Error::TooLarge { .. }), "{what}: {error}");
        assert!(
            error.to_string().contains(&repository.to_string()),
            "{error}"
        );
    }
    let error = read(client.layer(&repository, &lying)?)
        .await
        .expect_err("longer than it says");
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
    Ok(())
}
