//! The file as a whole: mapped or in memory.

use crate::meta::{self, Meta};
use crate::page::Page;
use crate::{Bucket, Error};
use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// An open database.
#[derive(Debug)]
pub struct Bolt {
    bytes: Bytes,
    meta: Meta,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bolt {
    /// Maps a file. Whoever replaces the file must do so by renaming a new one over it: a mapped
    /// file that is cut short ends its readers.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Bolt::new(Bytes::Mapped(map(&File::open(path)?)?))
    }

    /// Reads a database that is in memory already.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Bolt::new(Bytes::Owned(bytes))
    }

    fn new(bytes: Bytes) -> Result<Self, Error> {
        let meta = meta::newest(bytes.as_slice()).ok_or(Error::NoMeta)?;
        Ok(Bolt { bytes, meta })
    }

    /// The bucket that holds all others.
    pub fn root(&self) -> Bucket<'_> {
        Bucket::root(self, self.meta.root)
    }

    /// The bucket at the end of a path of names, if it is there.
    pub fn bucket(&self, path: &[&[u8]]) -> Result<Option<Bucket<'_>>, Error> {
        let mut bucket = self.root();
        for name in path {
            match bucket.bucket(name)? {
                Some(inner) => bucket = inner,
                None => return Ok(None),
            }
        }
        Ok(Some(bucket))
    }

    pub(crate) fn page(&self, number: u64) -> Result<Page<'_>, Error> {
        Page::of_file(self.bytes.as_slice(), self.meta.page_size, number)
    }

    /// How many pages the file has room for, which is more than any walk can visit.
    pub(crate) fn pages(&self) -> usize {
        self.bytes
            .as_slice()
            .len()
            .checked_div(self.meta.page_size)
            .unwrap_or(0)
    }
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> Result<Mmap, std::io::Error> {
    // SAFETY: the map is read only and private to us. Another process could still change the file
    // under it; our databases are replaced by rename and never written in place, and bytes that did
    // change are read as plain `u8`, each bound checked against the length of the map.
    unsafe { Mmap::map(file) }
}
