//! The same image in every form that a file can have.

use crate::support::{
    Image, archived, bill, gzip, header, link, names, options, refusal, scan, tar, written, zstd,
};
use anyhow::Result;
use muster_scan::sbom::Bill;
use muster_source::{Options, Platform, Platforms};
use muster_testkit::push::{INDEX, MANIFEST};
use serde_json::json;
use std::fs;

const NAME: &str = "example.org/team/app:1";

/// A bill without what depends on where it came from.
fn bare(bill: Bill) -> Bill {
    Bill {
        subject: Default::default(),
        ..bill
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_the_same_in_every_form() -> Result<()> {
    let home = tempfile::tempdir()?;
    let at = |name: &str| home.path().join(name).display().to_string();
    let image = Image::usual();
    written(&home.path().join("layout"), &image.layout(NAME));
    let mut dotted: Vec<_> = image.layout(NAME);
    dotted
        .iter_mut()
        .for_each(|(name, _)| *name = format!("./{name}"));
    fs::write(at("layout.tar"), archived(&dotted))?;
    let saved = archived(&image.saved(&[NAME, "other:2"]));
    fs::write(at("saved.tar.gz"), gzip(&saved))?;
    fs::write(at("saved.tar.zst"), zstd(&saved))?;
    fs::write(at("layout.tar.gz"), gzip(&archived(&image.layout(NAME))))?;
    fs::write(at("saved.tar"), saved)?;
    // Layers may be compressed here too, whatever their files are called.
    let mut compressed = image.clone();
    compressed.plain = image.layers.clone();
    fs::write(at("compressed.tar"), archived(&compressed.saved(&[NAME])))?;

    let expected = bare(bill(&at("layout"), &options()).await?);
    assert_eq!(names(&expected), ["base", "new"]);
    for form in [
        "layout.tar",
        "saved.tar",
        "saved.tar.gz",
        "saved.tar.zst",
        "layout.tar.gz",
        "compressed.tar",
    ] {
        let found = bill(&at(form), &options()).await?;
        assert_eq!(found.subject.name, NAME, "{form}");
        assert!(found.subject.digest.starts_with("sha256:"), "{form}");
        assert_eq!(bare(found), expected, "{form}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn layers_that_occur_twice_may_be_links() -> Result<()> {
    let home = tempfile::tempdir()?;
    let mut plain = Image::usual().plain;
    plain.extend([plain[1].clone(), plain[1].clone()]);
    let image = Image::new("amd64", plain);
    let layer = |place: usize| format!("{place:064}/layer.tar");
    let entry = |(name, bytes): &(String, Vec<u8>)| match name {
        name if *name == layer(3) => link(name, &format!("../{}", layer(1))),
        name if *name == layer(4) => header(name, b'1', 0, &layer(3)),
        name => crate::support::file(name, bytes),
    };
    let entries: Vec<_> = image.saved(&[NAME]).iter().map(entry).collect();
    for (name, bytes) in [("a.tar", tar(&entries)), ("a.tar.gz", gzip(&tar(&entries)))] {
        let path = home.path().join(name);
        fs::write(&path, bytes)?;
        let found = bill(&path.display().to_string(), &options()).await?;
        assert_eq!(names(&found), ["base", "new"]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_images_is_chosen_by_name() -> Result<()> {
    let home = tempfile::tempdir()?;
    let at = |name: &str| home.path().join(name).display().to_string();
    let (one, other) = (Image::usual(), Image::new("arm64", vec![]));
    let mut files = one.layout("example.org/a:1");
    let second = other.layout("example.org/b:2");
    let mut index: serde_json::Value = serde_json::from_slice(&files[1].1)?;
    let added: serde_json::Value = serde_json::from_slice(&second[1].1)?;
    let entries = index["manifests"].as_array_mut().unwrap();
    entries.push(added["manifests"][0].clone());
    files[1].1 = index.to_string().into_bytes();
    files.extend(second.into_iter().skip(2));
    written(&home.path().join("layout"), &files);

    let mut files = one.saved(&["example.org/a:1"]);
    let second = other.saved(&["example.org/b:2"]);
    let list = |files: &[(String, Vec<u8>)]| {
        serde_json::from_slice::<serde_json::Value>(&files.last().unwrap().1).unwrap()[0].clone()
    };
    let both = json!([list(&files), list(&second)]);
    files.last_mut().unwrap().1 = both.to_string().into_bytes();
    files.extend(second.into_iter().rev().skip(1));
    fs::write(at("saved.tar"), archived(&files))?;

    for place in ["layout", "saved.tar"] {
        let error = refusal(&at(place), &options()).await;
        let choice = format!("{}:example.org/b:2", at(place));
        assert!(error.contains(&choice), "{error}");
        assert_eq!(bill(&choice, &options()).await?.components.len(), 0);
        let first = bill(&format!("{}:example.org/a:1", at(place)), &options()).await?;
        assert_eq!(first.components.len(), 2);
        let error = refusal(&format!("{}:example.org/c", at(place)), &options()).await;
        assert!(
            error.contains("example.org/a:1, example.org/b:2"),
            "{error}"
        );
    }
    let by_tag = bill(&format!("oci:{}:1", at("layout")), &options()).await?;
    let by_digest = format!("oci:{}@{}", at("layout"), by_tag.subject.digest);
    assert_eq!(bill(&by_digest, &options()).await?, by_tag);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layout_may_list_platforms_that_it_does_not_hold() -> Result<()> {
    let home = tempfile::tempdir()?;
    let at = home.path().display().to_string();
    let image = Image::usual();
    let manifest = image.manifest().to_string().into_bytes();
    let mut here = crate::support::descriptor(MANIFEST, &manifest);
    here["platform"] = json!({"os": "linux", "architecture": "mips"});
    let mut absent = crate::support::descriptor(MANIFEST, b"absent");
    absent["platform"] = json!({"os": "linux", "architecture": "s390x"});
    let nested = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [absent, here]});
    let nested = nested.to_string().into_bytes();
    let entry = crate::support::descriptor(INDEX, &nested);
    let index = json!({"schemaVersion": 2, "manifests": [entry]});
    let mut files = image.layout(NAME);
    files[1].1 = index.to_string().into_bytes();
    files.push(crate::support::blob(&nested));
    written(home.path(), &files);

    assert_eq!(names(&bill(&at, &options()).await?), ["base", "new"]);
    let all = Options {
        platforms: Platforms::All,
        ..options()
    };
    let all = scan(&at, &all).await?;
    assert!(
        all[0]
            .as_ref()
            .is_err_and(|error| error.to_string().contains("it is not there"))
    );
    assert!(all[1].is_ok() && all.len() == 2);
    let wanted = Options {
        platforms: Platforms::One(Platform::parse("linux/s390x").unwrap()),
        ..options()
    };
    assert!(refusal(&at, &wanted).await.contains("linux/mips"));
    Ok(())
}
