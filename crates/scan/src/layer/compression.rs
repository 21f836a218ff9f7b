//! Decompression, chosen by the first bytes and not by what a manifest says.

use crate::digest::Hashing;
use crate::limits::{Exceeded, Limits};
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, Cursor, Read};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Frames that carry no data, which zstd:chunked starts or ends with.
const ZSTD_SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];

/// The blob, with the first bytes put back before it.
type Source<R> = io::Chain<Cursor<Vec<u8>>, Hashing<R>>;

/// The decompressed bytes of a blob.
pub(crate) enum Decompressed<R: Read> {
    Plain(Source<R>),
    Gzip(Box<MultiGzDecoder<Source<R>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Source<R>>>),
}

impl<R: Read> Decompressed<R> {
    pub fn new(mut blob: Hashing<R>, limits: &Limits) -> io::Result<Self> {
        let mut start = Vec::with_capacity(4);
        (&mut blob).take(4).read_to_end(&mut start)?;
        let source = |start: Vec<u8>| Cursor::new(start).chain(blob);
        if start.starts_with(GZIP) {
            return Ok(Decompressed::Gzip(Box::new(MultiGzDecoder::new(source(
                start,
            )))));
        }
        let skippable =
            start.len() == 4 && start[0] & 0xf0 == 0x50 && start[1..] == *ZSTD_SKIPPABLE;
        if start == ZSTD || skippable {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(source(start))?;
            decoder.window_log_max(limits.window_log)?;
            return Ok(Decompressed::Zstd(Box::new(decoder)));
        }
        Ok(Decompressed::Plain(source(start)))
    }

    fn source(&self) -> &Source<R> {
        match self {
            Decompressed::Plain(source) => source,
            Decompressed::Gzip(decoder) => decoder.get_ref(),
            Decompressed::Zstd(decoder) => decoder.get_ref(),
        }
    }

    /// Bytes of the blob that were read so far.
    pub fn compressed(&self) -> u64 {
        self.source().get_ref().1.count()
    }

    /// The blob.
    pub fn into_blob(self) -> Hashing<R> {
        match self {
            Decompressed::Plain(source) => source,
            Decompressed::Gzip(decoder) => decoder.into_inner(),
            Decompressed::Zstd(decoder) => decoder.finish(),
        }
        .into_inner()
        .1
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Decompressed::Plain(source) => source.read(buffer),
            Decompressed::Gzip(decoder) => decoder.read(buffer),
            Decompressed::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

/// Refuses bytes that grow out of nearly nothing.
pub(crate) struct Expanding<R: Read> {
    inner: Decompressed<R>,
    produced: u64,
    from: u64,
    factor: u64,
}

impl<R: Read> Expanding<R> {
    pub fn new(inner: Decompressed<R>, limits: &Limits) -> Self {
        Expanding {
            inner,
            produced: 0,
            from: limits.expansion_from,
            factor: limits.expansion,
        }
    }

    pub fn into_inner(self) -> Decompressed<R> {
        self.inner
    }
}

impl<R: Read> Read for Expanding<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.produced += read as u64;
        let borne = self.inner.compressed().saturating_mul(self.factor);
        if self.produced > self.from.max(borne) {
            let what = "times the size of the compressed layer";
            return Err(Exceeded::new(what, self.factor).into());
        }
        Ok(read)
    }
}

/// Reads what is left, so that nothing hides behind the end.
pub(crate) fn drain(mut reader: impl BufRead) -> io::Result<()> {
    loop {
        let length = reader.fill_buf()?.len();
        if length == 0 {
            return Ok(());
        }
        reader.consume(length);
    }
}
