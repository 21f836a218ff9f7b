//! Named files of a layout or an archive that can be read in any order and by many at once. In a
//! directory only names are opened that were built from parsed digests.

use crate::archive::{Index, Section};
use crate::error::Error;
use muster_scan::layer::{LayerError, TarError};
use muster_scan::limits::Limits;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the files are.
pub(crate) enum Files {
    /// Below a directory.
    Directory(PathBuf),
    /// In a plain archive.
    Archive {
        path: PathBuf,
        file: Arc<File>,
        index: Index,
    },
}

impl Files {
    /// Looks where an archive has its files.
    pub(crate) fn of_archive(path: &Path, limits: &Limits) -> Result<Files, Error> {
        let attempt = || format!("reading the archive {}", path.display());
        let opened = open_regular(path).and_then(|file| {
            let length = file.metadata()?.len();
            Ok((file, length))
        });
        let (file, length) = opened.map_err(|error| Error::file(attempt(), error))?;
        let index = Index::read(BufReader::new(&file), length, limits);
        Ok(Files::Archive {
            path: path.into(),
            index: index.map_err(|error| broken(attempt(), error))?,
            file: Arc::new(file),
        })
    }

    /// Where they are, for messages.
    pub(crate) fn place(&self) -> String {
        match self {
            Files::Directory(path) | Files::Archive { path, .. } => path.display().to_string(),
        }
    }

    /// Whether there is a file of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Files::Directory(root) => root.join(name).is_file(),
            Files::Archive { index, .. } => index.find(name).is_some(),
        }
    }

    /// Opens a file, and says its size.
    pub(crate) fn open(&self, name: &str) -> Result<(Box<dyn Read + Send>, u64), Error> {
        let attempt = || format!("reading {name} of {}", self.place());
        match self {
            Files::Directory(root) => {
                let file = open_regular(&root.join(name))
                    .map_err(|error| Error::file(attempt(), error))?;
                let about = file.metadata();
                let size = about.map_err(|error| Error::file(attempt(), error))?.len();
                Ok((Box::new(file), size))
            }
            Files::Archive { file, index, .. } => {
                let section = index
                    .find(name)
                    .ok_or_else(|| Error::malformed(attempt(), "it is not there"))?;
                let file = file.clone();
                Ok((Box::new(Part { file, section }), section.size))
            }
        }
    }

    /// A small file as a whole.
    pub(crate) fn small(&self, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let attempt = || format!("reading {name} of {}", self.place());
        let (file, _) = self.open(name)?;
        whole(file, limit, attempt)
    }
}

/// Everything that a reader yields, if it is not too much.
pub(crate) fn whole(
    reader: impl Read,
    limit: u64,
    attempt: impl Fn() -> String,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = reader.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Error::file(attempt(), error))?;
    match bytes.len() as u64 > limit {
        true => Err(Error::TooLarge {
            attempt: attempt(),
            what: "bytes",
            limit,
        }),
        false => Ok(bytes),
    }
}

/// Opens a regular file, and nothing that would keep us waiting or do something when opened.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let refused = || io::Error::other("it is no regular file");
    if !fs::metadata(path)?.is_file() {
        return Err(refused());
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused()),
    }
}

/// What is wrong with an archive of images, in the words for one of a layer.
pub(crate) fn broken(attempt: String, error: TarError) -> Error {
    match LayerError::from(error) {
        LayerError::Read(source) => Error::File { attempt, source },
        LayerError::Limit(exceeded) => Error::malformed(attempt, exceeded),
        LayerError::Archive(error) => Error::malformed(attempt, error),
    }
}

/// A part of a file, read without moving anybody else's place in it.
struct Part {
    file: Arc<File>,
    section: Section,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.section.size).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self
            .file
            .read_at(&mut buffer[..wanted], self.section.start)?;
        if read == 0 && wanted > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.section.start += read as u64;
        self.section.size -= read as u64;
        Ok(read)
    }
}
