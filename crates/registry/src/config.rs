//! An image's configuration: its platform, the uncompressed digests of its layers, and how they
//! came to be. Untrusted, and read with the mildness that images in the wild need.

use crate::digest::Digest;
use crate::error::Error;
use bytes::Bytes;
use muster_api::Platform;
use serde::Deserialize;
use std::collections::BTreeMap;

const MOST_LAYERS: usize = 4096;

/// An image's configuration.
#[derive(Clone, Debug)]
pub struct ImageConfig {
    /// What the image is built for; none where it does not say.
    pub platform: Option<Platform>,
    /// When it was built, as it says.
    pub created: Option<String>,
    /// The digests of the layers, uncompressed, the lowest first.
    pub diff_ids: Vec<Digest>,
    /// The steps that built it, those without a layer too.
    pub history: Vec<History>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The bytes as they came.
    pub bytes: Bytes,
}

/// A step of a build.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct History {
    /// The command.
    pub created_by: String,
    /// Whether it left no layer.
    pub empty_layer: bool,
}

#[derive(Deserialize)]
struct Raw {
    os: Option<String>,
    architecture: Option<String>,
    variant: Option<String>,
    created: Option<String>,
    rootfs: Option<RawLayers>,
    history: Option<Vec<History>>,
    config: Option<RawConfig>,
}

#[derive(Deserialize)]
struct RawLayers {
    diff_ids: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RawConfig {
    #[serde(rename = "Labels")]
    labels: Option<BTreeMap<String, String>>,
}

impl ImageConfig {
    /// Reads the bytes of a configuration.
    pub fn read(attempt: &str, bytes: Bytes) -> Result<ImageConfig, Error> {
        let raw: Raw = serde_json::from_slice(&bytes)
            .map_err(|error| Error::malformed(attempt, format!("no configuration: {error}")))?;
        let texts = raw
            .rootfs
            .and_then(|layers| layers.diff_ids)
            .unwrap_or_default();
        let history = raw.history.unwrap_or_default();
        if texts.len() > MOST_LAYERS || history.len() > MOST_LAYERS {
            return Err(Error::too_large(
                attempt,
                format!("over {MOST_LAYERS} layers or steps"),
            ));
        }
        let mut diff_ids = Vec::with_capacity(texts.len());
        for text in texts {
            let digest = Digest::parse(&text);
            diff_ids.push(
                digest
                    .ok_or_else(|| Error::malformed(attempt, format!("{text:?} is no digest")))?,
            );
        }
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let platform = given(raw.os)
            .zip(given(raw.architecture))
            .map(|(os, architecture)| Platform {
                os,
                architecture,
                variant: given(raw.variant),
            });
        Ok(ImageConfig {
            platform,
            created: given(raw.created),
            diff_ids,
            history,
            labels: raw
                .config
                .and_then(|config| config.labels)
                .unwrap_or_default(),
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_read_mildly_and_digests_strictly() {
        let digest = Digest::of(b"x");
        let text = format!(
            r#"{{"os":"linux","architecture":"arm","variant":"v7","created":"2026-01-02T03:04:05Z",
               "rootfs":{{"type":"layers","diff_ids":["{digest}"]}},"config":{{"Labels":null}},
               "history":[{{"created_by":"ADD x","comment":"y"}},{{"empty_layer":true}}]}}"#
        );
        let config = ImageConfig::read("reading", text.into()).expect("read");
        assert_eq!(
            config.platform.map(|p| p.to_string()).as_deref(),
            Some("linux/arm/v7")
        );
        assert_eq!(config.diff_ids, [digest]);
        assert_eq!(config.history.len(), 2);
        assert!(config.history[1].empty_layer);
        let bare = ImageConfig::read("reading", Bytes::from("{}")).expect("read");
        assert!(bare.platform.is_none() && bare.diff_ids.is_empty());
        for hostile in ["", "[]", r#"{"rootfs":{"diff_ids":["sha256:x"]}}"#] {
            let error =
                ImageConfig::read("reading h/r", Bytes::from(hostile)).expect_err("refused");
            assert!(!error.is_transient(), "{error}");
        }
    }
}
