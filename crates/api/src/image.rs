//! Which image an object speaks about: the fields that Image, SBOM and VulnerabilityReport share,
//! and what field selectors and tables show of them.

use crate::platform::Platform;
use muster_kind::schema::{Schema, any, object, string};
use muster_kind::{Column, Kind};
use serde_json::Value;

/// The fields of `imageMetadata` that field selectors may name.
pub const SELECTABLE: &[&str] = &[
    "registry",
    "registryURI",
    "repository",
    "tag",
    "platform",
    "digest",
    "indexDigest",
];

/// The schema of `imageMetadata`.
pub fn metadata() -> Schema {
    object()
        .describe("Which image this is about, and where it was found.")
        .required(
            "registry",
            string()
                .length(1, 253)
                .describe("Name of the Registry object through which the image was found."),
        )
        .field(
            "registryURI",
            string().describe("Host of the registry, with its port if any."),
        )
        .required(
            "repository",
            string()
                .length(1, 255)
                .describe("Repository of the image, without the host."),
        )
        .field(
            "tag",
            string().describe("Tag of the image; empty when it is known by digest only."),
        )
        // An object, or the line that older writers use: no single type can say that.
        .field(
            "platform",
            any().describe(
                "What the image is built for: {os, architecture, variant}, or os/arch[/variant]. \
                 Field selectors spell it the second way.",
            ),
        )
        .field(
            "digest",
            string().describe("Digest of the image's own manifest."),
        )
        .field(
            "indexDigest",
            string().describe("Digest of the index that lists the manifest, if there is one."),
        )
        .field(
            "configDigest",
            string().describe(
                "Digest of the image's configuration, by which some container runtimes know it.",
            ),
        )
}

/// Gives a kind `imageMetadata.*` as selectable fields and its columns.
pub(crate) fn about_an_image(kind: Kind) -> Kind {
    SELECTABLE
        .iter()
        .fold(kind, |kind, field| {
            kind.selectable(&format!(".imageMetadata.{field}"))
        })
        .column(
            Column::computed("Reference", "string", reference).describe("Where the image lies."),
        )
        .column(
            Column::computed("Platform", "string", platform)
                .describe("What the image is built for."),
        )
}

/// `host/repository:tag`, or `host/repository@digest` where there is no tag.
pub fn reference(object: &Value) -> Value {
    let part = |name: &str| {
        object
            .pointer(&format!("/imageMetadata/{name}"))
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let Some(repository) = part("repository") else {
        return Value::Null;
    };
    let host = part("registryURI")
        .map(|host| format!("{host}/"))
        .unwrap_or_default();
    let rest = match (part("tag"), part("digest")) {
        (Some(tag), _) => format!(":{tag}"),
        (None, Some(digest)) => format!("@{digest}"),
        (None, None) => String::new(),
    };
    format!("{host}{repository}{rest}").into()
}

/// The platform on one line, whichever way it is written.
pub fn platform(object: &Value) -> Value {
    object
        .pointer("/imageMetadata/platform")
        .and_then(Platform::read)
        .map_or(Value::Null, |platform| platform.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_image_is_shown_by_tag_and_else_by_digest() {
        let image = |fields: Value| json!({ "imageMetadata": fields });
        for (fields, shown) in [
            (
                json!({"registryURI": "ghcr.io", "repository": "a/b", "tag": "1", "digest": "d"}),
                json!("ghcr.io/a/b:1"),
            ),
            (
                json!({"registryURI": "ghcr.io", "repository": "a/b", "digest": "sha256:d"}),
                json!("ghcr.io/a/b@sha256:d"),
            ),
            (json!({"repository": "a", "tag": ""}), json!("a")),
            (json!({}), Value::Null),
        ] {
            assert_eq!(reference(&image(fields)), shown);
        }
    }

    #[test]
    fn a_platform_is_shown_on_one_line_whichever_way_it_is_written() {
        for written in [
            json!("linux/arm/v7"),
            json!({"os": "linux", "arch": "arm", "variant": "v7"}),
        ] {
            assert_eq!(
                platform(&json!({"imageMetadata": {"platform": written}})),
                "linux/arm/v7"
            );
        }
    }
}
