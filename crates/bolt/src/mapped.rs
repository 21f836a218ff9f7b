//! A file as bytes, mapped. This is the one place where a file is mapped, for every format whose
//! reader takes nothing on trust.

use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;

/// A mapped file, read only. Whoever replaces the file must do so by renaming a new one over it: a
/// mapped file that is cut short ends its readers.
#[derive(Debug)]
pub struct Mapped(Mmap);

impl Mapped {
    /// Maps the file at a path.
    pub fn open(path: &Path) -> io::Result<Self> {
        Mapped::of(&File::open(path)?)
    }

    /// Maps an open file, as long as it is now.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Mapped(map(file)?))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read only and private to us. Another process could still change the file
    // under it; our databases are replaced by rename and never written in place, and bytes that did
    // change are read as plain `u8`, each bound checked against the length of the map.
    unsafe { Mmap::map(file) }
}
