//! The file as a whole: mapped or in memory.

use crate::meta::{self, Meta};
use crate::page::Page;
use crate::{Bucket, Error, Mapped};
use std::path::Path;

/// An open database.
#[derive(Debug)]
pub struct Bolt {
    bytes: Bytes,
    meta: Meta,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mapped),
    Owned(Vec<u8>),
}

impl Bolt {
    /// Maps a file. Whoever replaces the file must do so by renaming a new one over it: a mapped
    /// file that is cut short ends its readers.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Bolt::from_mapped(Mapped::open(path)?)
    }

    /// Reads a file that is mapped already. What follows the last page is no matter.
    pub fn from_mapped(file: Mapped) -> Result<Self, Error> {
        Bolt::new(Bytes::Mapped(file))
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
