//! Images as a registry has them: layers, a configuration and a manifest, each named by its own digest,
//! and an index where there is one for several platforms.

use crate::archive::{self, File};
use crate::error::Error;
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// An OCI image manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// An OCI image index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// When all of them were made.
const CREATED: &str = "2024-06-03T08:00:00Z";

/// The digest of bytes.
pub fn digest(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{digits}")
}

/// Bytes, what they are, and what they are called by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The digest of the bytes.
    pub digest: String,
    /// What they are.
    pub media_type: &'static str,
    /// The bytes.
    pub bytes: Bytes,
}

impl Blob {
    fn new(media_type: &'static str, bytes: Vec<u8>) -> Blob {
        Blob {
            digest: digest(&bytes),
            media_type,
            bytes: bytes.into(),
        }
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.bytes.len()})
    }
}

/// A layer, and the command that would have made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    blob: Blob,
    diff_id: String,
    command: &'static str,
}

impl Layer {
    /// The layer with these files.
    pub fn new(command: &'static str, files: &[File]) -> Result<Layer, Error> {
        let archive = archive::tar(files)?;
        Ok(Layer {
            diff_id: digest(&archive),
            blob: Blob::new(LAYER, archive::gzip(&archive)?),
            command,
        })
    }

    /// As it is transferred.
    pub fn blob(&self) -> &Blob {
        &self.blob
    }
}

/// An image for one kind of processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The processor, as Go calls it.
    pub architecture: &'static str,
    /// Its layers, the lowest first.
    pub layers: Vec<Layer>,
}

/// An image under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// `shop/cart`
    pub repository: &'static str,
    /// `1.8.0`
    pub tag: &'static str,
    /// For each kind of processor.
    pub builds: Vec<Build>,
    /// What the tag points to comes first.
    manifests: Vec<Blob>,
    configurations: Vec<Blob>,
}

impl Image {
    /// The image with these builds; several are put under an index.
    pub fn new(repository: &'static str, tag: &'static str, builds: Vec<Build>) -> Image {
        let (mut manifests, mut configurations) = (Vec::new(), Vec::new());
        for build in &builds {
            let configuration = Blob::new(CONFIG, configuration(build).to_string().into());
            let layers: Vec<Value> = build
                .layers
                .iter()
                .map(|layer| layer.blob.descriptor())
                .collect();
            let manifest = json!({
                "schemaVersion": 2, "mediaType": MANIFEST,
                "config": configuration.descriptor(), "layers": layers,
            });
            manifests.push(Blob::new(MANIFEST, manifest.to_string().into()));
            configurations.push(configuration);
        }
        if builds.len() > 1 {
            let entries = builds.iter().zip(&manifests).map(|(build, manifest)| {
                let mut entry = manifest.descriptor();
                entry["platform"] = json!({"os": "linux", "architecture": build.architecture});
                entry
            });
            let entries: Vec<Value> = entries.collect();
            let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
            manifests.insert(0, Blob::new(INDEX, index.to_string().into()));
        }
        Image {
            repository,
            tag,
            builds,
            manifests,
            configurations,
        }
    }

    /// The digest that its tag means: what a container runtime says it runs.
    pub fn digest(&self) -> &str {
        self.manifests.first().map_or("", |root| &root.digest)
    }

    /// A manifest by tag or digest.
    pub fn manifest(&self, reference: &str) -> Option<&Blob> {
        if reference == self.tag {
            return self.manifests.first();
        }
        self.manifests.iter().find(|one| one.digest == reference)
    }

    /// A layer or configuration by its digest.
    pub fn blob(&self, digest: &str) -> Option<&Blob> {
        let layers = self.builds.iter().flat_map(|build| &build.layers);
        let mut blobs = layers
            .map(|layer| &layer.blob)
            .chain(self.configurations.iter());
        blobs.find(|blob| blob.digest == digest)
    }
}

fn configuration(build: &Build) -> Value {
    let diff_ids: Vec<&str> = build
        .layers
        .iter()
        .map(|layer| layer.diff_id.as_str())
        .collect();
    let history: Vec<Value> = build
        .layers
        .iter()
        .map(|layer| json!({"created": CREATED, "created_by": layer.command}))
        .collect();
    json!({
        "os": "linux", "architecture": build.architecture, "created": CREATED, "config": {},
        "rootfs": {"type": "layers", "diff_ids": diff_ids}, "history": history,
    })
}
