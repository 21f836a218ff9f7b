//! What cannot be beaten: inflating the same layers and hashing what went in and what came out, on
//! one core, with nothing else done.

use super::images;
use anyhow::Result;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// The limit of one image.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limit {
    /// Bytes as the registry keeps them.
    pub(super) compressed: u64,
    /// Bytes once inflated.
    pub(super) inflated: u64,
    /// How long one core takes.
    pub(super) time: Duration,
}

struct Hashing<R> {
    inner: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

fn hashing<R>(inner: R) -> Hashing<R> {
    Hashing {
        inner,
        hash: Sha256::new(),
        bytes: 0,
    }
}

/// Measures the limit of a layout. Its files are read once before, so that the disk counts for
/// nobody.
pub(super) fn limit(layout: &Path) -> Result<Limit> {
    let mut limit = Limit::default();
    let mut buffer = vec![0; 128 * 1024];
    for layer in images::layers(layout)? {
        io::copy(&mut File::open(&layer)?, &mut io::sink())?;
        let begun = Instant::now();
        let mut archive = hashing(GzDecoder::new(hashing(File::open(&layer)?)));
        while archive.read(&mut buffer)? > 0 {}
        std::hint::black_box(archive.hash.clone().finalize());
        let blob = archive.inner.into_inner();
        std::hint::black_box(blob.hash.finalize());
        limit.time += begun.elapsed();
        limit.compressed += blob.bytes;
        limit.inflated += archive.bytes;
    }
    Ok(limit)
}
