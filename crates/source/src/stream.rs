//! An archive of images that comes as a stream and only once: from a daemon, or compressed. Which of
//! its files are layers is said by a list that may come last, so everything that could be one is
//! read as one when it passes, and what is small and JSON is kept. What is left at the end is what
//! the images are put together from.

use crate::archive;
use crate::error::Error;
use crate::files::broken;
use crate::image::weight;
use crate::options::Progress;
use flate2::bufread::MultiGzDecoder;
use muster_scan::layer::tar::{Kind, Tar};
use muster_scan::layer::{self, Layer, TarError};
use muster_scan::limits::{Exceeded, Limits};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;
use std::sync::Arc;

/// A document that is larger is taken for something else.
const DOCUMENT: u64 = 8 << 20;
/// Bytes of all documents.
const DOCUMENTS: u64 = 64 << 20;
/// Bytes of all that was found in layers.
const FOUND: u64 = 512 << 20;
/// Files that might be layers.
const CANDIDATES: usize = 4096;
const CHUNK: usize = 128 * 1024;

/// What has passed.
#[derive(Default)]
pub(crate) struct Streamed {
    place: String,
    documents: BTreeMap<String, Vec<u8>>,
    layers: BTreeMap<String, Result<Layer, String>>,
    links: BTreeMap<String, String>,
}

impl Streamed {
    /// Where it came from, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// A document by its file's name.
    pub(crate) fn document(&self, name: &str) -> Option<&[u8]> {
        let name = archive::followed(&self.links, name)?;
        self.documents.get(name).map(Vec::as_slice)
    }

    /// A layer by its file's name; why it could not be read, where it could not.
    pub(crate) fn layer(&self, name: &str) -> Option<Result<&Layer, &str>> {
        let name = archive::followed(&self.links, name)?;
        let layer = self.layers.get(name)?;
        Some(layer.as_ref().map_err(String::as_str))
    }

    /// All layers that could be read.
    pub(crate) fn layers(&self) -> impl Iterator<Item = &Layer> {
        self.layers.values().filter_map(|layer| layer.as_ref().ok())
    }
}

/// Reads an archive to its end. `place` says where it comes from.
pub(crate) fn read(
    archive: impl Read,
    place: &str,
    limits: &Limits,
    progress: &Arc<dyn Progress>,
) -> Result<Streamed, Error> {
    let outer = archive::limits(limits);
    let mut tar = Tar::new(BufReader::with_capacity(CHUNK, archive), &outer);
    let mut streamed = Streamed {
        place: place.into(),
        ..Streamed::default()
    };
    let attempt = || format!("reading the archive {place}");
    let (mut kept, mut found) = (0, 0);
    while let Some(entry) = tar.next().map_err(|error| broken(attempt(), error))? {
        let Some(path) = entry.path.filter(|path| !path.is_empty()) else {
            continue;
        };
        if matches!(entry.kind, Kind::SymbolicLink | Kind::HardLink) {
            if let Some(target) = archive::target(&path, entry.kind, &entry.link) {
                streamed.links.insert(path, target);
            }
            continue;
        }
        if entry.kind != Kind::File || entry.sparse {
            continue;
        }
        let mut start = Vec::new();
        let read = tar.body().take(64).read_to_end(&mut start);
        read.map_err(|error| broken(attempt(), TarError::Read(error)))?;
        let is_document = start.trim_ascii_start().first();
        if matches!(is_document, Some(b'{' | b'[')) && entry.size <= DOCUMENT {
            kept += entry.size;
            bounded(attempt, "bytes of documents", kept, DOCUMENTS)?;
            let read = tar.body().read_to_end(&mut start);
            read.map_err(|error| broken(attempt(), TarError::Read(error)))?;
            streamed.documents.insert(path, start);
            continue;
        }
        // The smallest archive is a block, unless it is compressed.
        if entry.size < 512 && !is_compressed(&start) {
            continue;
        }
        progress.layer_started(&path, Some(entry.size));
        let body = Counted {
            inner: Cursor::new(start).chain(tar.body()),
            name: &path,
            progress,
        };
        // A stream that breaks here breaks again when the next file is looked for.
        let layer = layer::read(body, limits).map_err(|error| error.to_string());
        if let Ok(layer) = &layer {
            progress.layer_done(&path, false);
            found += weight(&layer.inventory);
        }
        bounded(attempt, "bytes of names to remember", found, FOUND)?;
        let count = streamed.layers.len();
        bounded(attempt, "layers", count as u64, CANDIDATES as u64)?;
        streamed.layers.insert(path, layer);
    }
    // A compressed stream is checked at its end, and a daemon's answer has one.
    let mut rest = tar.into_inner();
    loop {
        let length = rest
            .fill_buf()
            .map_err(|error| broken(attempt(), TarError::Read(error)))?
            .len();
        if length == 0 {
            return Ok(streamed);
        }
        rest.consume(length);
    }
}

fn bounded(
    attempt: impl Fn() -> String,
    what: &'static str,
    count: u64,
    limit: u64,
) -> Result<(), Error> {
    match count > limit {
        true => Err(Error::TooLarge {
            attempt: attempt(),
            what,
            limit,
        }),
        false => Ok(()),
    }
}

struct Counted<'a, R> {
    inner: R,
    name: &'a str,
    progress: &'a Arc<dyn Progress>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.layer_advanced(self.name, read as u64);
        Ok(read)
    }
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Whether a file that begins like this is compressed.
pub(crate) fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(GZIP) || start.starts_with(ZSTD)
}

/// What a compressed file holds, as long as it is borne.
pub(crate) fn decompressed<'a>(
    file: impl Read + 'a,
    limits: &Limits,
) -> io::Result<Box<dyn Read + 'a>> {
    let compressed = Rc::new(Cell::new(0));
    let file = Counting {
        inner: file,
        count: compressed.clone(),
    };
    let mut file = BufReader::with_capacity(CHUNK, file);
    let is_gzip = file.fill_buf()?.starts_with(GZIP);
    let plain: Box<dyn Read + 'a> = if is_gzip {
        Box::new(MultiGzDecoder::new(file))
    } else {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(file)?;
        decoder.window_log_max(limits.window_log)?;
        Box::new(decoder)
    };
    Ok(Box::new(Limited {
        inner: plain,
        compressed,
        produced: 0,
        limits: *limits,
    }))
}

struct Counting<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// Refuses what is over a limit, where an end would look like the archive's own, and what grows out
/// of nearly nothing.
struct Limited<R> {
    inner: R,
    compressed: Rc<Cell<u64>>,
    produced: u64,
    limits: Limits,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.produced += read as u64;
        let Limits {
            layer_bytes: most,
            expansion,
            expansion_from,
            ..
        } = self.limits;
        let borne = self.compressed.get().saturating_mul(expansion);
        let exceeded = if self.produced > most {
            Exceeded {
                what: "bytes in the archive",
                limit: most,
            }
        } else if self.produced > borne.max(expansion_from) {
            Exceeded {
                what: "times the size of the compressed archive",
                limit: expansion,
            }
        } else {
            return Ok(read);
        };
        Err(io::Error::other(exceeded))
    }
}
