//! OCI image layouts in a directory, written as the specification has them: images for scanners
//! that need no registry.

use crate::push::{CONFIG, INDEX, LAYER, MANIFEST, digest};
use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// A layout that grows.
#[derive(Debug)]
pub struct Layout {
    directory: PathBuf,
}

/// A layer that is in a layout.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The digest of its blob.
    pub digest: String,
    /// Bytes of its blob.
    pub size: u64,
    /// Its media type.
    pub media_type: String,
    /// The digest of its archive.
    pub diff_id: String,
}

/// Hashes and counts what is written.
struct Hashed<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W> Hashed<W> {
    fn new(inner: W) -> Self {
        Hashed {
            inner,
            hash: Sha256::new(),
            size: 0,
        }
    }

    fn digest(&self) -> String {
        let hash = self.hash.clone().finalize();
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{digits}")
    }
}

impl Layout {
    /// An empty layout in a directory, which is made.
    pub fn create(directory: &Path) -> Result<Layout> {
        fs::create_dir_all(directory.join("blobs/sha256")).context("making a layout")?;
        let marker = json!({"imageLayoutVersion": "1.0.0"});
        fs::write(directory.join("oci-layout"), marker.to_string())?;
        let layout = Layout {
            directory: directory.into(),
        };
        layout.write_index(&[])?;
        Ok(layout)
    }

    /// Where a blob is.
    pub fn path(&self, digest: &str) -> PathBuf {
        let digits = digest.split_once(':').map_or(digest, |(_, digits)| digits);
        self.directory.join("blobs/sha256").join(digits)
    }

    /// Puts bytes in, whatever they are, and gives their digest.
    pub fn blob(&self, bytes: &[u8]) -> Result<String> {
        let digest = digest(bytes);
        fs::write(self.path(&digest), bytes)?;
        Ok(digest)
    }

    /// A layer from its archive, which is compressed with gzip on the way.
    pub fn layer(&self, mut archive: impl Read) -> Result<Layer> {
        let file = tempfile::NamedTempFile::new_in(&self.directory)?;
        let blob = Hashed::new(BufWriter::new(File::create(file.path())?));
        let mut plain = Hashed::new(GzEncoder::new(blob, Compression::new(6)));
        io::copy(&mut archive, &mut plain).context("compressing a layer")?;
        let diff_id = plain.digest();
        let mut blob = plain.inner.finish()?;
        blob.flush()?;
        let (digest, size) = (blob.digest(), blob.size);
        file.persist(self.path(&digest))
            .context("keeping a layer")?;
        Ok(Layer {
            digest,
            size,
            media_type: LAYER.into(),
            diff_id,
        })
    }

    /// A layer of bytes as they are, which may not be what they are said to be.
    pub fn raw_layer(&self, blob: &[u8], media_type: &str, diff_id: &str) -> Result<Layer> {
        Ok(Layer {
            digest: self.blob(blob)?,
            size: blob.len() as u64,
            media_type: media_type.into(),
            diff_id: diff_id.into(),
        })
    }

    /// An image of some layers, the lowest first, under a name; gives the digest of its manifest.
    pub fn image(&self, name: &str, layers: &[Layer]) -> Result<String> {
        let diff_ids: Vec<&str> = layers.iter().map(|layer| layer.diff_id.as_str()).collect();
        let config = json!({
            "os": "linux", "architecture": "amd64", "created": "2026-01-01T00:00:00Z",
            "config": {}, "rootfs": {"type": "layers", "diff_ids": diff_ids},
        })
        .to_string();
        let layers: Vec<Value> = layers
            .iter()
            .map(|layer| {
                json!({"mediaType": layer.media_type, "digest": layer.digest, "size": layer.size})
            })
            .collect();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "digest": self.blob(config.as_bytes())?, "size": config.len()},
            "layers": layers,
        })
        .to_string();
        let digest = self.blob(manifest.as_bytes())?;
        let index = fs::read(self.directory.join("index.json"))?;
        let index: Value = serde_json::from_slice(&index)?;
        let mut manifests = index["manifests"].as_array().cloned().unwrap_or_default();
        manifests.push(json!({
            "mediaType": MANIFEST, "digest": digest, "size": manifest.len(),
            "platform": {"os": "linux", "architecture": "amd64"},
            "annotations": {"org.opencontainers.image.ref.name": name},
        }));
        self.write_index(&manifests)?;
        Ok(digest)
    }

    fn write_index(&self, manifests: &[Value]) -> Result<()> {
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        fs::write(self.directory.join("index.json"), index.to_string()).context("writing the index")
    }
}

impl Layout {
    /// Takes a layer of another layout in, without copying its bytes.
    pub fn adopt(&self, other: &Layout, layer: &Layer) -> Result<Layer> {
        let place = self.path(&layer.digest);
        if !place.exists() {
            fs::hard_link(other.path(&layer.digest), place).context("taking a layer in")?;
        }
        Ok(layer.clone())
    }
}
