//! Images under one name in the form of OCI: an index leads to indexes and manifests, of which those
//! for the wanted platforms are chosen, with as few requests as it takes. One that is broken does not
//! stop the others where all are wanted.

use crate::content::{Content, Place};
use crate::error::Error;
use crate::image::Image;
use crate::options::Options;
use crate::platform::Platforms;
use muster_api::Platform;
use muster_registry::{Descriptor, Digest, ImageConfig, ImageManifest, Index, Manifest, media};
use std::collections::VecDeque;

/// An index of indexes is unusual, and more is mischief.
const DEPTH: usize = 3;
/// Images under one name.
const IMAGES: usize = 4096;

/// An image that may be wanted, and what is known of it yet.
struct Candidate {
    digest: Digest,
    platform: Option<Platform>,
    known: Known,
}

enum Known {
    /// Where it is.
    Place(Descriptor),
    /// What it is.
    Image(ImageManifest, Box<ImageConfig>),
    /// Why it will never be known.
    Broken(Error),
}

/// One image that is wanted, or why it cannot be had.
pub(crate) type Wanted = Result<Image, Error>;

/// The image of a single manifest.
pub(crate) async fn single(
    content: &Content,
    name: &str,
    digest: Digest,
    manifest: ImageManifest,
    options: &Options,
) -> Result<Vec<Wanted>, Error> {
    let config = content.config(&checked(name, &manifest)?.config).await?;
    let candidate = Candidate {
        digest,
        platform: config.platform.clone(),
        known: Known::Image(manifest, Box::new(config)),
    };
    chosen(content, name, vec![candidate], options).await
}

/// The images of an index.
pub(crate) async fn several(
    content: &Content,
    name: &str,
    index: &Index,
    options: &Options,
) -> Result<Vec<Wanted>, Error> {
    let mut candidates = expanded(content, name, index).await?;
    if options.platforms != Platforms::All {
        // Whoever wants one is not concerned by what is not there of the others.
        let is_there = |candidate: &Candidate| match &candidate.known {
            Known::Place(descriptor) => content.has(&descriptor.digest),
            Known::Image(..) => true,
            Known::Broken(_) => false,
        };
        if candidates.iter().any(is_there) {
            candidates.retain(is_there);
        }
    }
    let alone = candidates.len() == 1 && !matches!(options.platforms, Platforms::One(_));
    let mut known = Vec::new();
    for candidate in candidates {
        if alone || candidate.platform.is_some() {
            known.push(candidate);
        } else if let Some(candidate) = learnt(content, name, candidate).await {
            known.push(candidate);
        }
    }
    chosen(content, name, known, options).await
}

/// Everything that an index leads to and that is not an index itself.
async fn expanded(content: &Content, name: &str, index: &Index) -> Result<Vec<Candidate>, Error> {
    let mut waiting: VecDeque<(Descriptor, usize)> =
        index.images().map(|entry| (entry.clone(), 1)).collect();
    let mut candidates: Vec<Candidate> = Vec::new();
    while let Some((entry, depth)) = waiting.pop_front() {
        if candidates.len() + waiting.len() > IMAGES {
            return Err(Error::TooLarge {
                attempt: format!("reading the index of {name}"),
                what: "images",
                limit: IMAGES as u64,
            });
        }
        let is_index = [media::OCI_INDEX, media::DOCKER_INDEX].contains(&entry.media_type.as_str());
        let known = if !is_index {
            Known::Place(entry.clone())
        } else if depth >= DEPTH {
            let attempt = format!("reading the index {} of {name}", entry.digest);
            Known::Broken(Error::malformed(attempt, "indexes lead to indexes, and on"))
        } else {
            match content.manifest(&entry).await {
                Ok(Manifest::Index(index)) => {
                    waiting.extend(index.images().map(|entry| (entry.clone(), depth + 1)));
                    continue;
                }
                Ok(Manifest::Image(_)) => Known::Place(entry.clone()),
                Err(error) => Known::Broken(error),
            }
        };
        if !candidates.iter().any(|other| other.digest == entry.digest) {
            candidates.push(Candidate {
                digest: entry.digest,
                platform: entry.platform,
                known,
            });
        }
    }
    Ok(candidates)
}

/// A candidate whose platform is known, or why it is not; none where it is no image at all.
async fn learnt(content: &Content, name: &str, candidate: Candidate) -> Option<Candidate> {
    let Known::Place(descriptor) = &candidate.known else {
        return Some(candidate);
    };
    match read(content, name, descriptor).await {
        Ok((manifest, config)) => Some(Candidate {
            digest: candidate.digest,
            platform: config.platform.clone(),
            known: Known::Image(manifest, Box::new(config)),
        }),
        Err(Error::NotAnImage { .. }) => None,
        Err(error) => Some(Candidate {
            known: Known::Broken(error),
            ..candidate
        }),
    }
}

/// The candidates that are wanted.
async fn chosen(
    content: &Content,
    name: &str,
    mut candidates: Vec<Candidate>,
    options: &Options,
) -> Result<Vec<Wanted>, Error> {
    if candidates.is_empty() {
        let attempt = format!("reading the index of {name}");
        return Err(Error::malformed(attempt, "there is no image in it"));
    }
    let have: Vec<_> = candidates.iter().map(|one| one.platform.clone()).collect();
    let places = match options.platforms.choose(&have) {
        Ok(places) => places,
        Err(wanted) => {
            // What could not be read may be what was looked for.
            let broken = candidates.iter().position(|candidate| {
                candidate.platform.is_none() && matches!(candidate.known, Known::Broken(_))
            });
            if let Some(place) = broken
                && let Known::Broken(error) = candidates.swap_remove(place).known
            {
                return Err(error);
            }
            return Err(Error::NoPlatform {
                image: name.into(),
                wanted,
                available: have.into_iter().flatten().collect(),
            });
        }
    };
    let mut images = Vec::new();
    for (place, candidate) in candidates.into_iter().enumerate() {
        if places.contains(&place) {
            let platform = candidate.platform.clone();
            let image = image(content, name, candidate).await;
            images.push(image.map_err(|error| match platform {
                Some(platform) => Error::OfPlatform {
                    platform,
                    source: Box::new(error),
                },
                None => error,
            }));
        }
    }
    Ok(images)
}

async fn image(content: &Content, name: &str, candidate: Candidate) -> Wanted {
    let (manifest, config) = match candidate.known {
        Known::Image(manifest, config) => (manifest, *config),
        Known::Place(descriptor) => read(content, name, &descriptor).await?,
        Known::Broken(error) => return Err(error),
    };
    let places = manifest.layers.into_iter().map(Place::Blob).collect();
    let mut image = Image::new(name, &candidate.digest, config, places)?;
    image.platform = candidate.platform.or(image.platform);
    Ok(image)
}

/// The manifest and the configuration of an image.
async fn read(
    content: &Content,
    name: &str,
    descriptor: &Descriptor,
) -> Result<(ImageManifest, ImageConfig), Error> {
    let Manifest::Image(manifest) = content.manifest(descriptor).await? else {
        let attempt = format!("reading the manifest {} of {name}", descriptor.digest);
        return Err(Error::malformed(
            attempt,
            "it is an index and says otherwise",
        ));
    };
    let config = content.config(&checked(name, &manifest)?.config).await?;
    Ok((manifest, config))
}

fn checked<'a>(name: &str, manifest: &'a ImageManifest) -> Result<&'a ImageManifest, Error> {
    if manifest.is_image() {
        return Ok(manifest);
    }
    let kind = manifest.artifact_type.as_deref();
    Err(Error::NotAnImage {
        name: name.into(),
        kind: kind.unwrap_or(&manifest.config.media_type).into(),
    })
}
