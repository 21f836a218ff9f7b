//! From a source to its bills: one for each platform that is wanted, and one for what has none.

use crate::content::Content;
use crate::error::Error;
use crate::files::{Files, open_regular};
use crate::image;
use crate::oci::Wanted;
use crate::options::{Options, Progress};
use crate::source::Source;
use crate::{daemon, directory, docker, document, layout, oci, root, stream};
use futures::StreamExt;
use futures::future::BoxFuture;
use muster_api::Platform;
use muster_registry::{Manifest, Reference};
use muster_scan::limits::Limits;
use muster_scan::sbom::Bill;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the list of images of a layout or archive.
const LIST: u64 = 4 << 20;
/// How many platforms are read at once; the layers of each are read in parallel.
const PLATFORMS: usize = 2;

/// Something that was scanned.
#[derive(Clone, Debug, PartialEq)]
pub struct Scanned {
    /// What is in it.
    pub bill: Bill,
    /// Its platform; none for what is no image, or does not say.
    pub platform: Option<Platform>,
}

/// Scans a source. An image of several platforms has a bill, or an error that names the platform, for
/// each of those that are wanted; there is an error in place of them all where nothing could even be
/// begun. (Boxed, it is compiled once and not with every binary that awaits it.)
pub fn bills<'a>(
    source: &'a Source,
    options: &'a Options,
) -> BoxFuture<'a, Result<Vec<Result<Scanned, Error>>, Error>> {
    Box::pin(read(source, options))
}

async fn read(source: &Source, options: &Options) -> Result<Vec<Result<Scanned, Error>>, Error> {
    match source {
        Source::Registry(reference) => registry(reference, options).await,
        Source::Layout(path, selector) | Source::Archive(path, selector) => {
            file(path, selector.as_deref(), options).await
        }
        Source::Daemon { engine, reference } => {
            let scanned = daemon::scan(*engine, reference, options).await?;
            Ok(vec![Ok(scanned)])
        }
        Source::RootFilesystem(path) => bill(root::bill(path, options).await?),
        Source::Directory(path) => bill(directory::bill(path, options).await?),
        Source::Document(path) => bill(document::bill(path).await?),
    }
}

fn bill(bill: Bill) -> Result<Vec<Result<Scanned, Error>>, Error> {
    let platform = None;
    Ok(vec![Ok(Scanned { bill, platform })])
}

async fn registry(
    reference: &Reference,
    options: &Options,
) -> Result<Vec<Result<Scanned, Error>>, Error> {
    let name = reference.to_string();
    let fetched = options.client.manifest(reference).await?;
    let content = Content::Registry {
        client: options.client.clone(),
        repository: reference.repository().clone(),
    };
    let wanted = match fetched.manifest {
        Manifest::Image(manifest) => {
            oci::single(&content, &name, fetched.digest, manifest, options).await?
        }
        Manifest::Index(index) => oci::several(&content, &name, &index, options).await?,
    };
    Ok(scan(&content, wanted, options).await)
}

/// Scans the images that are wanted; what is wrong with one of them is its own.
async fn scan(
    content: &Content,
    wanted: Vec<Wanted>,
    options: &Options,
) -> Vec<Result<Scanned, Error>> {
    let several = wanted.len() > 1;
    let scan_one = |wanted: Wanted| async move {
        let image = wanted?;
        let platform = image.platform.clone().filter(|_| several);
        let scanned = image::scan(content, image, options).await;
        scanned.map_err(|error| match platform {
            Some(platform) => Error::OfPlatform {
                platform,
                source: Box::new(error),
            },
            None => error,
        })
    };
    let scanned = futures::stream::iter(wanted).map(scan_one);
    scanned.buffered(PLATFORMS).collect().await
}

/// A layout in a directory, or an archive of either form.
async fn file(
    path: &Path,
    selector: Option<&str>,
    options: &Options,
) -> Result<Vec<Result<Scanned, Error>>, Error> {
    let (opened, limits) = (path.to_owned(), options.limits);
    let progress = options.progress.clone();
    let content = tokio::task::spawn_blocking(move || open(&opened, &limits, &progress)).await??;
    let place = path.display().to_string();
    let wanted = if let Some(list) = content.document(layout::LIST, LIST).await? {
        layout::images(&content, &place, &list, selector, options).await?
    } else if let Some(list) = content.document(docker::LIST, LIST).await? {
        docker::images(&content, &place, &list, selector, options).await?
    } else {
        return Err(Error::Unrecognised {
            path: path.into(),
            reason: "there is no index.json and no manifest.json in it, so it is no OCI layout and no archive of docker save",
        });
    };
    Ok(scan(&content, wanted, options).await)
}

fn open(path: &Path, limits: &Limits, progress: &Arc<dyn Progress>) -> Result<Content, Error> {
    if path.is_dir() {
        return Ok(Content::Files(Arc::new(Files::Directory(path.into()))));
    }
    let attempt = || format!("reading the archive {}", path.display());
    let failed = |error| Error::file(attempt(), error);
    let mut start = Vec::new();
    let file = open_regular(path).map_err(failed)?;
    (&file).take(4).read_to_end(&mut start).map_err(failed)?;
    if !stream::is_compressed(&start) {
        return Ok(Content::Files(Arc::new(Files::of_archive(path, limits)?)));
    }
    let file = open_regular(path).map_err(failed)?;
    let plain = stream::decompressed(file, limits).map_err(failed)?;
    let place = path.display().to_string();
    Ok(Content::Streamed(stream::read(
        plain, &place, limits, progress,
    )?))
}
