//! Where the parts of an image come from: a registry, files that are at hand, or a stream that has
//! passed. Manifests and configurations are checked against their digests here; layers where they
//! are read.

use crate::DiffId;
use crate::error::Error;
use crate::feed::{self, Watched};
use crate::files::Files;
use crate::options::Options;
use crate::stream::Streamed;
use bytes::Bytes;
use futures::StreamExt;
use muster_registry::{Client, Descriptor, Digest, ImageConfig, Manifest, Repository};
use muster_scan::layer::{self, Layer};
use std::sync::Arc;

/// The largest manifest or index, and the largest configuration.
const MANIFEST: u64 = 4 << 20;
const CONFIG: u64 = 8 << 20;

/// Where the parts of images are.
pub(crate) enum Content {
    /// In a repository of a registry.
    Registry {
        client: Client,
        repository: Repository,
    },
    /// In files.
    Files(Arc<Files>),
    /// They have passed already.
    Streamed(Streamed),
}

/// A layer, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) place: Place,
    /// What it must be once decompressed.
    pub(crate) diff_id: DiffId,
}

/// Where a layer is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Under its digest.
    Blob(Descriptor),
    /// In a file of an archive.
    File(String),
    /// Somewhere in what has passed.
    Somewhere,
}

impl Part {
    /// What to call it.
    pub(crate) fn name(&self) -> &str {
        match &self.place {
            Place::Blob(descriptor) => descriptor.digest.as_str(),
            Place::File(_) | Place::Somewhere => self.diff_id.as_str(),
        }
    }

    /// The file that it is in, where its image says so.
    fn file(&self) -> Option<String> {
        match &self.place {
            Place::Blob(descriptor) => Some(blob(&descriptor.digest)),
            Place::File(file) => Some(file.clone()),
            Place::Somewhere => None,
        }
    }

    /// How many bytes it has, where that is known.
    pub(crate) fn size(&self) -> Option<u64> {
        match &self.place {
            Place::Blob(descriptor) => Some(descriptor.size),
            Place::File(_) | Place::Somewhere => None,
        }
    }
}

/// The file of a blob in a layout. A digest that was parsed has nothing in it that leads anywhere.
fn blob(digest: &Digest) -> String {
    format!("blobs/{}", digest.as_str().replace(':', "/"))
}

impl Content {
    /// Where it is, for messages.
    pub(crate) fn place(&self) -> String {
        match self {
            Content::Registry { repository, .. } => repository.to_string(),
            Content::Files(files) => files.place(),
            Content::Streamed(streamed) => streamed.place().into(),
        }
    }

    /// Whether something may be there. A registry is not asked.
    pub(crate) fn has(&self, digest: &Digest) -> bool {
        match self {
            Content::Registry { .. } => true,
            Content::Files(files) => files.has(&blob(digest)),
            Content::Streamed(streamed) => streamed.document(&blob(digest)).is_some(),
        }
    }

    /// A small file as a whole; none where there is no such file.
    pub(crate) async fn document(&self, name: &str, limit: u64) -> Result<Option<Bytes>, Error> {
        match self {
            Content::Registry { .. } => Ok(None),
            Content::Files(files) => {
                let (files, name) = (files.clone(), name.to_owned());
                let read = move || match files.has(&name) {
                    true => files.small(&name, limit).map(|bytes| Some(bytes.into())),
                    false => Ok(None),
                };
                tokio::task::spawn_blocking(read).await?
            }
            Content::Streamed(streamed) => Ok(streamed.document(name).map(Bytes::copy_from_slice)),
        }
    }

    /// A manifest or index.
    pub(crate) async fn manifest(&self, descriptor: &Descriptor) -> Result<Manifest, Error> {
        if let Content::Registry { client, repository } = self {
            let fetched = client.manifest(&repository.at(&descriptor.digest)).await?;
            return Ok(fetched.manifest);
        }
        let attempt = format!(
            "reading the manifest {} of {}",
            descriptor.digest,
            self.place()
        );
        let bytes = self.verified(&attempt, descriptor, MANIFEST).await?;
        let declared = Some(descriptor.media_type.as_str());
        Ok(Manifest::read(&attempt, declared, &bytes)?)
    }

    /// An image's configuration.
    pub(crate) async fn config(&self, descriptor: &Descriptor) -> Result<ImageConfig, Error> {
        if let Content::Registry { client, repository } = self {
            return Ok(client.config(repository, descriptor).await?);
        }
        let place = self.place();
        let attempt = format!("reading the configuration {} of {place}", descriptor.digest);
        let bytes = self.verified(&attempt, descriptor, CONFIG).await?;
        Ok(ImageConfig::read(&attempt, bytes)?)
    }

    /// A blob that is what its digest says.
    async fn verified(
        &self,
        attempt: &str,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Bytes, Error> {
        let bytes = self.document(&blob(&descriptor.digest), limit).await?;
        let bytes = bytes.ok_or_else(|| Error::malformed(attempt, "it is not there"))?;
        match descriptor.digest.check(&bytes) {
            Ok(()) => Ok(bytes),
            Err(actual) => {
                let reason = format!("its digest is {actual}");
                Err(Error::malformed(attempt, reason))
            }
        }
    }

    /// Reads a layer of an image.
    pub(crate) async fn layer(
        &self,
        image: &str,
        part: &Part,
        options: &Options,
    ) -> Result<Layer, Error> {
        let failed = |source| Error::Layer {
            layer: part.name().into(),
            image: image.into(),
            source,
        };
        // Held until the layer is read, or nobody waits for it any more.
        let awaited = Arc::new(());
        let (name, progress) = (part.name().to_owned(), options.progress.clone());
        let (watch, limits) = (Arc::downgrade(&awaited), options.limits);
        match (self, &part.place) {
            (Content::Registry { client, repository }, Place::Blob(descriptor)) => {
                let pieces = client.layer(repository, descriptor)?.into_stream();
                let pieces = pieces.map(|piece| piece.map_err(Error::Registry));
                let work =
                    move |fed| layer::read(Watched::new(fed, name, progress, watch), &limits);
                feed::read(pieces, work).await?.map_err(failed)
            }
            (Content::Files(files), Place::Blob(_) | Place::File(_)) => {
                let (files, file) = (files.clone(), part.file().unwrap_or_default());
                let read = move || {
                    let (file, _) = files.open(&file)?;
                    let file = Watched::new(file, name, progress, watch);
                    Ok::<_, Error>(layer::read(file, &limits))
                };
                tokio::task::spawn_blocking(read).await??.map_err(failed)
            }
            (Content::Streamed(streamed), _) => {
                let found = match part.file() {
                    Some(file) => streamed.layer(&file),
                    None => {
                        let mut layers = streamed.layers();
                        layers.find(|layer| layer.diff_id == part.diff_id).map(Ok)
                    }
                };
                match found {
                    Some(Ok(layer)) => Ok(layer.clone()),
                    Some(Err(reason)) => {
                        let attempt = format!("layer {} of {image}", part.name());
                        Err(Error::malformed(attempt, reason))
                    }
                    None => Err(self.missing(part)),
                }
            }
            _ => Err(self.missing(part)),
        }
    }

    fn missing(&self, part: &Part) -> Error {
        let attempt = format!("reading layer {} of {}", part.name(), self.place());
        Error::malformed(attempt, "it is not there")
    }
}
