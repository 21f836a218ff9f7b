//! What is borne of an image. Memory is bounded by these numbers and not by the image: a stream is
//! read in chunks, a file is kept only while it is read, and what is remembered is counted. Beyond
//! a limit of the whole layer the layer is refused; beyond one of a file, that file is left out and
//! the result says so.

use std::io;

/// The limits of reading one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the layer as the registry keeps it.
    pub compressed_bytes: u64,
    /// Bytes of the layer once decompressed.
    pub layer_bytes: u64,
    /// From here on a layer must not be `expansion` times larger than its compressed form.
    pub expansion_from: u64,
    /// How many times larger a large layer may be than its compressed form.
    pub expansion: u64,
    /// The memory that decompressing zstd may take, as a power of two.
    pub window_log: u32,
    /// Entries of the archive.
    pub entries: u64,
    /// Bytes of an extended header, such as a long name.
    pub header_bytes: u64,
    /// Bytes of a path.
    pub path_bytes: usize,
    /// Bytes of all paths that are remembered: deleted files, links, files with packages.
    pub remembered_bytes: usize,
    /// Bytes of a text file that is read whole, such as a package database.
    pub file_bytes: u64,
    /// Bytes of a binary package database.
    pub database_bytes: u64,
    /// Bytes of an archive of code that is read whole, such as a jar.
    pub archive_bytes: u64,
    /// Packages that one layer may declare.
    pub packages: usize,
    /// Files that could not be understood and are spoken of one by one; the rest are counted.
    pub incomplete: usize,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

impl Limits {
    /// What a scan bears unless told otherwise.
    pub const DEFAULT: Limits = Limits {
        compressed_bytes: 16 * GIB,
        layer_bytes: 64 * GIB,
        expansion_from: GIB,
        expansion: 200,
        window_log: 27,
        entries: 4_000_000,
        header_bytes: MIB,
        path_bytes: 4096,
        remembered_bytes: 64 * MIB as usize,
        file_bytes: 64 * MIB,
        database_bytes: 192 * MIB,
        archive_bytes: 192 * MIB,
        packages: 200_000,
        incomplete: 100,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {limit} {what}")]
pub struct Exceeded {
    /// What there is too much of.
    pub what: &'static str,
    /// How much is borne.
    pub limit: u64,
}

impl Exceeded {
    pub(crate) fn new(what: &'static str, limit: u64) -> Self {
        Exceeded { what, limit }
    }
}

impl From<Exceeded> for io::Error {
    fn from(exceeded: Exceeded) -> Self {
        io::Error::other(exceeded)
    }
}
