//! Manifests and indexes, of OCI and of Docker's second schema. They are untrusted: counts are
//! bounded, digests parsed, and a document that could be read as either form is refused.

use crate::digest::Digest;
use crate::error::Error;
use bytes::Bytes;
use muster_api::Platform;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The media types that are known here.
pub mod media {
    /// An OCI image manifest.
    pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// An OCI image index.
    pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// An OCI image configuration.
    pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// A Docker image manifest.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// A Docker manifest list.
    pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// A Docker image configuration.
    pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
    /// What Docker's first schema calls itself, with whatever follows.
    pub(crate) const DOCKER_FIRST: &str = "application/vnd.docker.distribution.manifest.v1+";
}

/// What we ask for, the best first.
pub(crate) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.docker.distribution.manifest.v2+json";

const MOST_LAYERS: usize = 4096;
const MOST_ENTRIES: usize = 4096;

/// A pointer to content: its type, digest and size, and for an index entry its platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// The media type.
    pub media_type: String,
    /// The digest.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// The platform of an index entry; none where it names none.
    pub platform: Option<Platform>,
    /// What kind of artifact an entry is, if it says so.
    pub artifact_type: Option<String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Whether an index entry is about another image and is none itself: an attestation or the
    /// like, which builders list with the platform `unknown/unknown`.
    pub fn is_attestation(&self) -> bool {
        let unknown =
            |platform: &Platform| platform.os == "unknown" && platform.architecture == "unknown";
        self.platform.as_ref().is_some_and(unknown)
            || self.annotations.contains_key("vnd.docker.reference.type")
    }

    /// Whether this points to a manifest or an index.
    pub fn is_manifest(&self) -> bool {
        [
            media::OCI_MANIFEST,
            media::OCI_INDEX,
            media::DOCKER_MANIFEST,
            media::DOCKER_INDEX,
        ]
        .contains(&self.media_type.as_str())
    }

    /// Whether a layer may not be distributed, so that registries usually do not have it.
    pub fn is_foreign(&self) -> bool {
        self.media_type.contains(".foreign.") || self.media_type.contains(".nondistributable.")
    }
}

/// One image or artifact.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageManifest {
    /// The configuration.
    pub config: Descriptor,
    /// The layers, the lowest first.
    pub layers: Vec<Descriptor>,
    /// What kind of artifact this is, if it says so.
    pub artifact_type: Option<String>,
    /// What this is about, for signatures and the like.
    pub subject: Option<Digest>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

impl ImageManifest {
    /// Whether this is a container image, and not a chart, a policy, a signature or other
    /// artifact in the same form.
    pub fn is_image(&self) -> bool {
        [media::OCI_CONFIG, media::DOCKER_CONFIG].contains(&self.config.media_type.as_str())
            && self.artifact_type.is_none()
            && self.subject.is_none()
    }
}

/// Images of several platforms under one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Every entry, in order.
    pub entries: Vec<Descriptor>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Index {
    /// The entries that are images or indexes of such, each digest once and attestations left out.
    /// An entry without a platform is among them: its configuration tells.
    pub fn images(&self) -> impl Iterator<Item = &Descriptor> {
        let mut seen = BTreeSet::new();
        self.entries.iter().filter(move |entry| {
            entry.is_manifest() && !entry.is_attestation() && seen.insert(&entry.digest)
        })
    }
}

/// What a reference points to. There are few of them at a time, so their size is no matter.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Manifest {
    /// One image or artifact.
    Image(ImageManifest),
    /// Several platforms.
    Index(Index),
}

impl Manifest {
    /// Reads the bytes of a manifest or index. `declared` is what a descriptor says that it is.
    pub fn read(attempt: &str, declared: Option<&str>, bytes: &[u8]) -> Result<Manifest, Error> {
        read(attempt, declared, bytes).map(|(_, manifest)| manifest)
    }
}

/// A manifest as it came, checked against its digest.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Its digest.
    pub digest: Digest,
    /// Its media type.
    pub media_type: String,
    /// The bytes.
    pub bytes: Bytes,
    /// What they mean.
    pub manifest: Manifest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    platform: Option<RawPlatform>,
    artifact_type: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct RawPlatform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    variant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDocument {
    schema_version: u64,
    media_type: Option<String>,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    manifests: Option<Vec<RawDescriptor>>,
    artifact_type: Option<String>,
    subject: Option<RawDescriptor>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Reads a manifest. `declared` is the media type that the registry gave; the document's own must
/// agree with it, and so must what it holds: one digest with two meanings is how images are
/// smuggled past inspection.
pub(crate) fn read(
    attempt: &str,
    declared: Option<&str>,
    bytes: &[u8],
) -> Result<(String, Manifest), Error> {
    let first = |kind: &str| kind.starts_with(media::DOCKER_FIRST);
    if declared.is_some_and(first) {
        return Err(schema_one(attempt));
    }
    let raw: RawDocument = match serde_json::from_slice(bytes) {
        Ok(raw) => raw,
        Err(error) => return Err(Error::malformed(attempt, format!("no manifest: {error}"))),
    };
    match raw.schema_version {
        1 => return Err(schema_one(attempt)),
        2 => {}
        other => {
            let reason = format!("manifests of schema version {other}");
            return Err(Error::Unsupported {
                attempt: attempt.into(),
                reason,
            });
        }
    }
    let media_type = agreed_type(attempt, declared, &raw)?;
    let annotations = raw.annotations.unwrap_or_default();
    match (raw.manifests, raw.config) {
        (Some(manifests), None) if raw.layers.is_none() && is_index(&media_type) => {
            bounded(attempt, "entries", manifests.len(), MOST_ENTRIES)?;
            let entries = descriptors(attempt, manifests)?;
            Ok((
                media_type,
                Manifest::Index(Index {
                    entries,
                    annotations,
                }),
            ))
        }
        (None, Some(config)) if !is_index(&media_type) => {
            let layers = raw.layers.unwrap_or_default();
            bounded(attempt, "layers", layers.len(), MOST_LAYERS)?;
            let subject = raw
                .subject
                .map(|subject| descriptor(attempt, subject))
                .transpose()?;
            let manifest = ImageManifest {
                config: descriptor(attempt, config)?,
                layers: descriptors(attempt, layers)?,
                artifact_type: raw.artifact_type,
                subject: subject.map(|subject| subject.digest),
                annotations,
            };
            Ok((media_type, Manifest::Image(manifest)))
        }
        _ => Err(Error::malformed(
            attempt,
            format!("the document does not have the fields of its media type {media_type}"),
        )),
    }
}

fn schema_one(attempt: &str) -> Error {
    Error::Unsupported {
        attempt: attempt.into(),
        reason: "Docker manifest schema 1, which has no configuration and no layer digests to \
                 verify; push the image again with a current tool"
            .into(),
    }
}

fn is_index(media_type: &str) -> bool {
    [media::OCI_INDEX, media::DOCKER_INDEX].contains(&media_type)
}

fn agreed_type(attempt: &str, declared: Option<&str>, raw: &RawDocument) -> Result<String, Error> {
    let known = [
        media::OCI_MANIFEST,
        media::OCI_INDEX,
        media::DOCKER_MANIFEST,
        media::DOCKER_INDEX,
    ];
    // Registries in front of plain storage answer with types that say nothing.
    let declared = declared.filter(|declared| known.contains(declared));
    match (declared, raw.media_type.as_deref()) {
        (Some(declared), Some(own)) if declared != own => Err(Error::malformed(
            attempt,
            format!("the registry says {declared:?} and the document itself {own:?}"),
        )),
        (_, Some(own)) if !known.contains(&own) => Err(Error::Unsupported {
            attempt: attempt.into(),
            reason: format!("manifests of media type {own:?}"),
        }),
        (_, Some(kind)) | (Some(kind), None) => Ok(kind.into()),
        (None, None) if raw.manifests.is_some() => Ok(media::OCI_INDEX.into()),
        (None, None) => Ok(media::OCI_MANIFEST.into()),
    }
}

fn bounded(attempt: &str, what: &str, count: usize, limit: usize) -> Result<(), Error> {
    match count > limit {
        true => Err(Error::too_large(
            attempt,
            format!("{count} {what}, at most {limit} are read"),
        )),
        false => Ok(()),
    }
}

fn descriptors(attempt: &str, raw: Vec<RawDescriptor>) -> Result<Vec<Descriptor>, Error> {
    raw.into_iter()
        .map(|raw| descriptor(attempt, raw))
        .collect()
}

fn descriptor(attempt: &str, raw: RawDescriptor) -> Result<Descriptor, Error> {
    let digest = Digest::parse(&raw.digest)
        .ok_or_else(|| Error::malformed(attempt, format!("{:?} is no digest", raw.digest)))?;
    let platform = raw
        .platform
        .filter(|p| !p.os.is_empty() && !p.architecture.is_empty());
    Ok(Descriptor {
        media_type: raw.media_type,
        digest,
        size: raw.size,
        platform: platform.map(|p| Platform {
            os: p.os,
            architecture: p.architecture,
            variant: p.variant.filter(|variant| !variant.is_empty()),
        }),
        artifact_type: raw.artifact_type.filter(|kind| !kind.is_empty()),
        annotations: raw.annotations.unwrap_or_default(),
    })
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
