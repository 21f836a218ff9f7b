use super::*;
use serde_json::{Value, json};

fn digest(letter: &str) -> String {
    format!("sha256:{}", letter.repeat(64))
}

fn pointer(media_type: &str, letter: &str) -> Value {
    json!({"mediaType": media_type, "digest": digest(letter), "size": 7})
}

fn image(config: &str) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": media::OCI_MANIFEST,
        "config": pointer(config, "a"),
        "layers": [pointer("application/vnd.oci.image.layer.v1.tar+gzip", "b")],
    })
}

fn understood(declared: Option<&str>, document: &Value) -> Result<(String, Manifest), Error> {
    read("reading h/r:t", declared, document.to_string().as_bytes())
}

#[test]
fn images_of_both_families_are_read_and_other_artifacts_told_apart() {
    for (config, container) in [
        (media::OCI_CONFIG, true),
        (media::DOCKER_CONFIG, true),
        ("application/vnd.cncf.helm.config.v1+json", false),
        ("application/vnd.oci.empty.v1+json", false),
    ] {
        let (_, manifest) = understood(Some(media::OCI_MANIFEST), &image(config)).expect("read");
        let Manifest::Image(manifest) = manifest else {
            panic!("an image")
        };
        assert_eq!(manifest.is_image(), container, "{config}");
        assert_eq!(manifest.layers.len(), 1);
    }
    let mut signature = image(media::OCI_CONFIG);
    signature["subject"] = pointer(media::OCI_MANIFEST, "c");
    let (_, Manifest::Image(signature)) = understood(None, &signature).expect("read") else {
        panic!("an image")
    };
    assert!(!signature.is_image());
}

#[test]
fn an_index_gives_each_image_once_and_no_attestations() {
    let entry = |letter: &str, os: &str, architecture: &str, variant: Option<&str>| {
        let mut entry = pointer(media::OCI_MANIFEST, letter);
        entry["platform"] = json!({"os": os, "architecture": architecture, "variant": variant});
        entry
    };
    let mut labelled = entry("e", "linux", "amd64", None);
    labelled["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    let document = json!({
        "schemaVersion": 2,
        "manifests": [
            entry("a", "linux", "amd64", Some("")),
            entry("b", "linux", "arm", Some("v7")),
            entry("a", "linux", "amd64", None),
            entry("c", "unknown", "unknown", None),
            pointer(media::DOCKER_MANIFEST, "d"),
            labelled,
            pointer("application/octet-stream", "f"),
        ],
    });
    let (kind, manifest) = understood(None, &document).expect("read");
    assert_eq!(kind, media::OCI_INDEX);
    let Manifest::Index(index) = manifest else {
        panic!("an index")
    };
    let images: Vec<(String, Option<String>)> = index
        .images()
        .map(|entry| {
            let platform = entry.platform.as_ref().map(ToString::to_string);
            (entry.digest.to_string(), platform)
        })
        .collect();
    let expected = [
        (digest("a"), Some("linux/amd64".into())),
        (digest("b"), Some("linux/arm/v7".into())),
        (digest("d"), None),
    ];
    assert_eq!(images, expected);
    assert_eq!(index.entries.len(), 7);
}

#[test]
fn the_first_schema_is_refused_with_advice() {
    let old = json!({"schemaVersion": 1, "name": "x", "fsLayers": []});
    let signed = "application/vnd.docker.distribution.manifest.v1+prettyjws";
    for (declared, document) in [
        (None, &old),
        (Some(signed), &old),
        (Some(signed), &json!({})),
    ] {
        let error = understood(declared, document).expect_err("refused");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("schema 1"), "{error}");
        assert!(error.to_string().contains("h/r:t"), "{error}");
    }
}

#[test]
fn documents_that_contradict_themselves_are_refused() {
    let with = |change: fn(&mut Value)| {
        let mut document = image(media::OCI_CONFIG);
        change(&mut document);
        document
    };
    for (declared, document) in [
        (Some(media::OCI_INDEX), with(|_| ())),
        (Some(media::DOCKER_MANIFEST), with(|_| ())),
        (None, with(|d| d["manifests"] = json!([]))),
        (None, with(|d| d["mediaType"] = json!(media::OCI_INDEX))),
        (
            None,
            with(|d| d["config"]["digest"] = json!("sha256:../../etc")),
        ),
        (None, with(|d| d["layers"][0]["size"] = json!(-1))),
        (None, with(|d| d["layers"] = json!("many"))),
        (None, with(|d| d["schemaVersion"] = json!(3))),
        (None, with(|d| d["mediaType"] = json!("text/html"))),
        (None, json!({"schemaVersion": 2})),
        (None, json!([])),
        (None, Value::Null),
    ] {
        let refused = understood(declared, &document);
        assert!(
            refused.as_ref().is_err_and(|e| !e.is_transient()),
            "{document} {refused:?}"
        );
    }
    assert!(read("x", None, b"<html>").is_err());
    assert!(understood(Some("text/plain"), &image(media::OCI_CONFIG)).is_ok());
}

#[test]
fn counts_are_bounded() {
    let mut document = image(media::OCI_CONFIG);
    let layer = document["layers"][0].clone();
    document["layers"] = Value::Array(vec![layer; MOST_LAYERS + 1]);
    let error = understood(None, &document).expect_err("refused");
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}
