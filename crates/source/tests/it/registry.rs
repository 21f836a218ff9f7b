//! Images in a real registry.

use crate::support::{Image, Told, bill, file, names, options, refusal, scan, status, tar};
use anyhow::Result;
use muster_source::{Options, Platform, Platforms};
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::Pusher;
use muster_testkit::registry::Registry;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_what_its_layers_leave_of_one_another() -> Result<()> {
    let registry = Registry::start()?;
    let image = Image::usual();
    let pushed = Pusher::new(&registry)?
        .image("team/app", Some("1"), &image.blobs(), &image.config)
        .await?;
    let told = Arc::new(Told::default());
    let options = Options {
        progress: told.clone(),
        ..options()
    };
    let name = format!("{}/team/app:1", registry.host());
    let found = bill(&name, &options).await?;
    assert_eq!(names(&found), ["base", "new"]);
    assert_eq!(found.subject.name, name);
    assert_eq!(found.subject.digest, pushed.digest);
    assert_eq!(
        found.subject.created.as_deref(),
        Some("2026-01-02T03:04:05Z")
    );
    assert_eq!((told.count("started"), told.count("read")), (3, 3));
    let missing = refusal(&format!("{}/team/app:2", registry.host()), &options).await;
    assert!(missing.contains("team/app:2"), "{missing}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wanted_platforms_of_an_index_are_scanned() -> Result<()> {
    let registry = Registry::start()?;
    let pusher = Pusher::new(&registry)?;
    let of = |architecture: &str, package: &str| {
        let layer = tar(&[file("var/lib/dpkg/status", &status(&[package]))]);
        Image::new(architecture, vec![layer])
    };
    let mut pushed = Vec::new();
    for (architecture, package) in [("s390x", "one"), ("riscv64", "two"), ("unknown", "none")] {
        let image = of(architecture, package);
        let image = pusher
            .image("team/app", None, &image.blobs(), &image.config)
            .await?;
        pushed.push(image);
    }
    let entries = [
        ("linux/s390x", &pushed[0]),
        ("linux/riscv64", &pushed[1]),
        ("unknown/unknown", &pushed[2]),
    ];
    pusher.index("team/app", Some("1"), &entries).await?;
    pusher.index("team/app", Some("one"), &entries[..1]).await?;
    // The second platform's layer never comes as it should.
    let broken = muster_testkit::push::digest(&of("riscv64", "two").layers[0]);
    let proxy = Proxy::start(&registry.host(), move |seen, _| {
        match seen.target.ends_with(&broken) {
            true => Fault::Change,
            false => Fault::Pass,
        }
    })
    .await?;
    let with = |platforms| Options {
        platforms,
        ..options()
    };
    let one = |text: &str| Platforms::One(Platform::parse(text).unwrap());
    let name = format!("{}/team/app:1", registry.host());

    let all = scan(&name, &with(Platforms::All)).await?;
    let found: Vec<_> = all.into_iter().collect::<Result<_, _>>()?;
    assert_eq!(names(&found[0].bill), ["one"]);
    assert_eq!(names(&found[1].bill), ["two"]);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].bill.subject.digest, pushed[0].digest);
    assert_eq!(
        found[1].platform.as_ref().unwrap().to_string(),
        "linux/riscv64"
    );

    let chosen = bill(&name, &with(one("linux/riscv64"))).await?;
    assert_eq!(names(&chosen), ["two"]);
    let error = refusal(&name, &with(one("linux/arm"))).await;
    assert!(
        error.contains("linux/arm") && error.contains("linux/s390x"),
        "{error}"
    );
    // This machine is neither.
    let error = refusal(&name, &options()).await;
    assert!(error.contains("linux/s390x, linux/riscv64"), "{error}");
    let only = bill(&format!("{}/team/app:one", registry.host()), &options()).await?;
    assert_eq!(names(&only), ["one"]);

    let name = format!("{}/team/app:1", proxy.host());
    let all = scan(&name, &with(Platforms::All)).await?;
    assert!(all[0].is_ok());
    let error = all[1].as_ref().unwrap_err();
    assert!(error.to_string().starts_with("linux/riscv64: "), "{error}");
    assert!(!error.is_transient());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_held_to_its_configuration() -> Result<()> {
    let registry = Registry::start()?;
    let pusher = Pusher::new(&registry)?;
    let image = Image::usual();
    let mut swapped = image.clone();
    swapped.layers.swap(0, 1);
    let mut short = image.clone();
    short.layers.pop();
    for (name, image, expected) in [
        ("swapped", swapped, "the diff ID of layer sha256:"),
        (
            "short",
            short,
            "it has 2 layers, and its configuration says 3",
        ),
    ] {
        pusher
            .image("team/app", Some(name), &image.blobs(), &image.config)
            .await?;
        let error = refusal(&format!("{}/team/app:{name}", registry.host()), &options()).await;
        assert!(error.contains(expected), "{error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_breaks_off_may_be_asked_again() -> Result<()> {
    let registry = Registry::start()?;
    let image = Image::usual();
    Pusher::new(&registry)?
        .image("team/app", Some("1"), &image.blobs(), &image.config)
        .await?;
    let proxy = Proxy::start(&registry.host(), |seen, _| {
        match seen.target.contains("/blobs/") {
            true => Fault::HangUp,
            false => Fault::Pass,
        }
    })
    .await?;
    let typed = format!("{}/team/app:1", proxy.host());
    let source = muster_source::Source::parse(&typed)?;
    let error = muster_source::bills(&source, &options()).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    Ok(())
}
