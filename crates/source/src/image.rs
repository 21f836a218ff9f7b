//! An image put together, wherever its parts come from: its layers are recalled or read, several at
//! once and the largest first, held to what manifest and configuration promise, and laid over one
//! another.

use crate::DiffId;
use crate::bills::Scanned;
use crate::content::{Content, Part, Place};
use crate::error::Error;
use crate::options::Options;
use futures::{StreamExt, TryStreamExt};
use muster_api::Platform;
use muster_registry::{Digest, ImageConfig};
use muster_scan::image::merge;
use muster_scan::layer::{Layer, LayerInventory};
use muster_scan::limits::Exceeded;
use muster_scan::sbom::{Bill, Subject};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

/// Bytes of all that was found in an image's layers.
const FOUND: u64 = 512 << 20;

/// What an image is made of.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) subject: Subject,
    pub(crate) platform: Option<Platform>,
    /// The layers, the lowest first.
    pub(crate) parts: Vec<Part>,
}

impl Image {
    /// An image of these layers, if its configuration speaks of as many.
    pub(crate) fn new(
        name: &str,
        digest: &Digest,
        config: ImageConfig,
        places: Vec<Place>,
    ) -> Result<Self, Error> {
        let attempt = || format!("reading {name}");
        if places.len() != config.diff_ids.len() {
            let (layers, promised) = (places.len(), config.diff_ids.len());
            let reason = format!("it has {layers} layers, and its configuration says {promised}");
            return Err(Error::malformed(attempt(), reason));
        }
        let mut parts = Vec::new();
        for (place, diff_id) in places.into_iter().zip(&config.diff_ids) {
            let diff_id = DiffId::parse(diff_id.as_str()).ok_or_else(|| {
                Error::malformed(
                    attempt(),
                    format!("the diff ID {diff_id} is not of SHA-256"),
                )
            })?;
            parts.push(Part { place, diff_id });
        }
        Ok(Image {
            subject: Subject {
                name: name.into(),
                digest: digest.to_string(),
                created: config.created,
            },
            platform: config.platform,
            parts,
        })
    }
}

/// Reads an image and writes its bill.
pub(crate) async fn scan(
    content: &Content,
    image: Image,
    options: &Options,
) -> Result<Scanned, Error> {
    let name = &image.subject.name;
    let mut parts: Vec<Part> = Vec::new();
    for part in &image.parts {
        // The same layer may occur twice, and the empty one often does.
        if !parts.iter().any(|known| known.diff_id == part.diff_id) {
            parts.push(part.clone());
        }
    }
    parts.sort_by_key(|part| Reverse(part.size()));
    let read = futures::stream::iter(parts)
        .map(|part| async move {
            let found = inventory(content, name, &part, options).await?;
            Ok::<_, Error>((part.diff_id, found))
        })
        .buffer_unordered(options.parallel.max(1));
    let start = (HashMap::new(), 0);
    let add = async |(mut found, mut total): (HashMap<_, _>, u64), (diff_id, layer)| {
        total += weight(&layer);
        if total > FOUND {
            return Err(Error::TooLarge {
                attempt: format!("reading {name}"),
                what: "bytes of names to remember from all layers",
                limit: FOUND,
            });
        }
        found.insert(diff_id, layer);
        Ok((found, total))
    };
    let (found, _) = read.try_fold(start, add).await?;
    let Image {
        subject,
        platform,
        parts,
    } = image;
    let attempt = format!("reading {}", subject.name);
    let merged = move || {
        let layers = parts
            .iter()
            .filter_map(|part| found.get_key_value(&part.diff_id));
        Ok(Bill::new(subject, merge(layers)?))
    };
    let bill: Result<Bill, Exceeded> = tokio::task::spawn_blocking(merged).await?;
    let bill = bill.map_err(|Exceeded { what, limit }| Error::TooLarge {
        attempt,
        what,
        limit,
    })?;
    Ok(Scanned { bill, platform })
}

/// What is in a layer: what was found before, else what is found now, for others to recall.
async fn inventory(
    content: &Content,
    image: &str,
    part: &Part,
    options: &Options,
) -> Result<LayerInventory, Error> {
    let (cache, progress) = (&options.cache, &options.progress);
    let (diff_id, name) = (&part.diff_id, part.name());
    let recalled = |found| {
        progress.layer_started(name, part.size());
        progress.layer_done(name, true);
        Ok(found)
    };
    if let Some(found) = cache.recall(diff_id).await {
        return recalled(found);
    }
    // Somebody may be reading it just now.
    let turn = cache.turn(diff_id).await;
    if turn.is_some()
        && let Some(found) = cache.recall(diff_id).await
    {
        return recalled(found);
    }
    // Of what has passed already, everybody was told when it did.
    let is_news = !matches!(content, Content::Streamed(_));
    if is_news {
        progress.layer_started(name, part.size());
    }
    let layer = content.layer(image, part, options).await?;
    verify(image, part, &layer)?;
    cache.keep(diff_id, &layer.inventory).await;
    if is_news {
        progress.layer_done(name, false);
    }
    Ok(layer.inventory)
}

/// Holds a layer to what was promised. Where the manifest's digest is of another algorithm, the
/// diff ID vouches for the layer.
fn verify(image: &str, part: &Part, layer: &Layer) -> Result<(), Error> {
    let promised = match &part.place {
        Place::Blob(descriptor) if descriptor.digest.as_str().starts_with("sha256:") => vec![
            (
                "digest",
                descriptor.digest.to_string(),
                layer.digest.to_string(),
            ),
            (
                "size",
                descriptor.size.to_string(),
                layer.compressed_size.to_string(),
            ),
        ],
        _ => vec![],
    };
    let diff_id = (
        "diff ID",
        part.diff_id.to_string(),
        layer.diff_id.to_string(),
    );
    for (what, expected, actual) in promised.into_iter().chain([diff_id]) {
        if expected != actual {
            return Err(Error::Mismatch {
                what: format!("the {what} of layer {}", part.name()),
                image: image.into(),
                expected,
                actual,
            });
        }
    }
    Ok(())
}

/// How much memory an inventory takes, more or less: as many bytes as it is written in.
pub(crate) fn weight(found: &LayerInventory) -> u64 {
    struct Weighing(u64);
    impl io::Write for Weighing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut weighing = Weighing(0);
    match serde_json::to_writer(&mut weighing, found) {
        Ok(()) => weighing.0,
        Err(_) => u64::MAX,
    }
}
