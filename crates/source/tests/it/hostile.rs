//! Layouts and archives that want to be read for more than they are. Each ends with an error that
//! says which file it is about.

use crate::support::{
    Image, archived, blob, descriptor, digits, file, gzip, header, link, options, refusal, tar,
    written,
};
use anyhow::Result;
use muster_scan::limits::Limits;
use muster_source::Options;
use muster_source::archive::Index;
use muster_testkit::push::{CONFIG, INDEX, LAYER, MANIFEST, digest};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

const NAME: &str = "example.org/app:1";

fn index(entries: &[Value]) -> (String, Vec<u8>) {
    let index = json!({"schemaVersion": 2, "manifests": entries});
    ("index.json".into(), index.to_string().into_bytes())
}

/// A layout whose one image has this manifest.
fn layout_of(manifest: &Value) -> Vec<(String, Vec<u8>)> {
    let manifest = manifest.to_string().into_bytes();
    let mut files = Image::usual().layout(NAME);
    files[1] = index(&[descriptor(MANIFEST, &manifest)]);
    files.push(blob(&manifest));
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layout_yields_only_what_its_digests_promise() -> Result<()> {
    let image = Image::usual();
    let config = image.config.to_string();
    let layer = descriptor(LAYER, &image.layers[0]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut manifest = image.manifest();
        change(&mut manifest);
        layout_of(&manifest)
    };
    let replaced = |name: String, bytes: &[u8]| {
        let mut files = image.layout(NAME);
        files.retain(|(other, _)| *other != name);
        files.push((name, bytes.to_vec()));
        files
    };
    let without = |name: String| {
        let mut files = image.layout(NAME);
        files.retain(|(other, _)| *other != name);
        files
    };
    let mut deep = descriptor(INDEX, b"missing");
    let mut nested = image.layout(NAME);
    for _ in 0..5 {
        let (_, bytes) = index(&[deep]);
        deep = descriptor(INDEX, &bytes);
        nested.push(blob(&bytes));
    }
    nested[1] = index(&[deep]);
    let many: Vec<Value> = vec![layer.clone(); 5000];
    for (what, files, expected) in [
        (
            "traversal",
            with(&|manifest| manifest["config"]["digest"] = json!("sha256:../../../etc/passwd")),
            "is no digest",
        ),
        (
            "a missing blob",
            with(&|manifest| manifest["layers"][0]["digest"] = json!(digest(b"missing"))),
            "No such file",
        ),
        (
            "a missing configuration",
            without(blob(config.as_bytes()).0),
            "it is not there",
        ),
        (
            "a lying size",
            with(&|manifest| manifest["layers"][0]["size"] = json!(1_u64 << 60)),
            "the size of layer",
        ),
        (
            "another layer",
            replaced(blob(&image.layers[0]).0, &gzip(&image.plain[1])),
            "the digest of layer",
        ),
        (
            "another configuration",
            replaced(blob(config.as_bytes()).0, b"{}"),
            "its digest is",
        ),
        ("indexes without end", nested, "indexes lead to indexes"),
        (
            "many layers",
            with(&|manifest| manifest["layers"] = json!(many)),
            "at most 4096",
        ),
        (
            "an artifact",
            with(&|manifest| manifest["artifactType"] = json!("application/x")),
            "no container image but application/x",
        ),
        ("no list", without("index.json".into()), "no index.json"),
        (
            "no JSON",
            replaced("index.json".into(), b"{"),
            "no manifest",
        ),
        (
            "no image",
            vec![image.layout(NAME).swap_remove(0), index(&[])],
            "no image in it",
        ),
        (
            "both forms at once",
            replaced(
                "index.json".into(),
                json!({"schemaVersion": 2, "manifests": [], "config": descriptor(CONFIG, b"")})
                    .to_string()
                    .as_bytes(),
            ),
            "does not have the fields",
        ),
    ] {
        let home = tempfile::tempdir()?;
        written(&home.path().join("layout"), &files);
        let place = home.path().join("layout").display().to_string();
        let error = refusal(&place, &options()).await;
        assert!(error.contains(expected), "{what}: {error}");
        let archive = home.path().join("layout.tar");
        fs::write(&archive, archived(&files))?;
        let error = refusal(&archive.display().to_string(), &options()).await;
        let expected = expected.replace("No such file", "it is not there");
        assert!(error.contains(&expected), "{what} in an archive: {error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_in_the_place_of_a_blob_keeps_nobody_waiting() -> Result<()> {
    let home = tempfile::tempdir()?;
    let image = Image::usual();
    written(home.path(), &image.layout(NAME));
    let path = home.path().join(blob(&image.layers[0]).0);
    fs::remove_file(&path)?;
    assert!(Command::new("mkfifo").arg(&path).status()?.success());
    let error = refusal(&home.path().display().to_string(), &options()).await;
    assert!(error.contains("no regular file"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_yields_only_its_own_files() -> Result<()> {
    let image = Image::usual();
    let first = format!("{:064}/layer.tar", 0);
    let files = image.saved(&[NAME]);
    let config = format!("{}.json", digits(image.config.to_string().as_bytes()));
    let with = |name: &str, entry: Vec<u8>| {
        let entries = files.iter().map(|(other, bytes)| match other == name {
            true => entry.clone(),
            false => file(other, bytes),
        });
        tar(&entries.collect::<Vec<_>>())
    };
    let list = |value: Value| {
        with(
            "manifest.json",
            file("manifest.json", value.to_string().as_bytes()),
        )
    };
    let mut long = header(&first, b'0', (1 << 33) - 1, "");
    long.extend_from_slice(b"x");
    let whole = archived(&files);
    for (what, archive, expected) in [
        (
            "a link out",
            with(&first, link(&first, "../../../etc/passwd")),
            "it is not there",
        ),
        (
            "a link to itself",
            with(&first, link(&first, "layer.tar")),
            "it is not there",
        ),
        (
            "an absolute link",
            with(&first, link(&first, "/etc/passwd")),
            "it is not there",
        ),
        (
            "a device",
            with(&first, header(&first, b'3', 0, "")),
            "it is not there",
        ),
        ("no layer", with(&first, Vec::new()), "it is not there"),
        ("a lying size", long, " end"),
        (
            "another layer",
            with(&first, file(&first, &image.plain[1])),
            "the diff ID of layer",
        ),
        (
            "another configuration",
            with(&config, file(&config, b"{}")),
            "its digest is",
        ),
        (
            "no configuration",
            with(&config, Vec::new()),
            "it is not there",
        ),
        (
            "a configuration outside",
            list(json!([{"Config": "../../etc/passwd", "Layers": []}])),
            "leads out of it",
        ),
        ("a list of nothing", list(json!([])), "no image in it"),
        (
            "a list of something else",
            list(json!([{"Layers": 1}])),
            "manifest.json",
        ),
        (
            "no list",
            with("manifest.json", Vec::new()),
            "no manifest.json",
        ),
        ("a cut", whole[..whole.len() / 2].to_vec(), ""),
        ("an empty file", Vec::new(), "no manifest.json"),
        ("noise", vec![7; 4096], "checksum"),
    ] {
        let home = tempfile::tempdir()?;
        for (name, bytes) in [("a.tar", archive.clone()), ("b.tar", gzip(&archive))] {
            let path = home.path().join(name);
            fs::write(&path, bytes)?;
            let error = refusal(&path.display().to_string(), &options()).await;
            assert!(error.contains(expected), "{what} in {name}: {error}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_archive_may_not_grow_out_of_nothing() -> Result<()> {
    let home = tempfile::tempdir()?;
    let path = home.path().join("bomb.tar.gz");
    fs::write(&path, gzip(&vec![0; 64 << 20]))?;
    let mut options: Options = options();
    options.limits = Limits {
        expansion_from: 1 << 20,
        expansion: 20,
        ..Limits::DEFAULT
    };
    let error = refusal(&path.display().to_string(), &options).await;
    assert!(error.contains("more than 20 times"), "{error}");
    let cut = gzip(&archived(&Image::usual().saved(&[NAME])));
    fs::write(&path, &cut[..cut.len() - 4])?;
    let error = refusal(&path.display().to_string(), &options).await;
    assert!(error.contains("bomb.tar.gz"), "{error}");
    Ok(())
}

#[test]
fn whatever_an_archive_says_its_files_are_inside_of_it() {
    let image = Image::usual();
    let mut entries: Vec<_> = image
        .saved(&[NAME])
        .iter()
        .map(|(name, bytes)| file(name, bytes))
        .collect();
    entries.push(link("a/layer.tar", &format!("../{:064}/layer.tar", 0)));
    entries.push(header("b", b'1', 0, "a/layer.tar"));
    let whole = tar(&entries);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut read = 0;
    for _ in 0..20_000 {
        let mut archive = whole.clone();
        for _ in 0..1 + random(4) {
            // Headers are what matters, and a checksum must be right to be looked behind.
            let block = random(archive.len() / 512) * 512;
            let place = block + random(345);
            archive[place] = random(256) as u8;
            archive[block + 148..block + 156].copy_from_slice(b"        ");
            let sum: u32 = archive[block..block + 512]
                .iter()
                .map(|byte| u32::from(*byte))
                .sum();
            archive[block + 148..block + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
        archive.truncate(archive.len() - random(2) * random(archive.len()));
        let length = archive.len() as u64;
        let index = Index::read(std::io::Cursor::new(&archive), length, &Limits::DEFAULT);
        let Ok(index) = index else { continue };
        for name in [
            "manifest.json",
            "a/layer.tar",
            "b",
            &format!("{:064}/layer.tar", 0),
        ] {
            if let Some(section) = index.find(name) {
                assert!(section.start + section.size <= length);
                read += 1;
            }
        }
    }
    assert!(read > 1000, "{read}");
}
