//! Archives whose bytes follow from what is put in and from nothing else: no clock, no owner, no order
//! but the one given. So the same files are the same layer, wherever and whenever it is made.

use crate::error::Error;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const BLOCK: usize = 512;
/// Where the fields of a header are, and how long: POSIX.1-1988.
const NAME: usize = 100;
const MODE: usize = 100;
const OWNERS: [usize; 2] = [108, 116];
const SIZE: usize = 124;
const TIME: usize = 136;
const CHECKSUM: usize = 148;
const TYPE: usize = 156;
const MAGIC: usize = 257;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    path: String,
    mode: u32,
    contents: Vec<u8>,
}

impl File {
    /// A file that is read.
    pub fn new(path: impl Into<String>, contents: impl Into<Vec<u8>>) -> File {
        File {
            path: path.into(),
            mode: 0o644,
            contents: contents.into(),
        }
    }

    /// A file that is run.
    pub fn program(path: impl Into<String>, contents: impl Into<Vec<u8>>) -> File {
        File {
            mode: 0o755,
            ..File::new(path, contents)
        }
    }

    /// A file of the layers below that is gone.
    pub fn removed(directory: &str, name: &str) -> File {
        File::new(format!("{directory}/.wh.{name}"), "")
    }
}

/// Files as an archive.
pub fn tar(files: &[File]) -> Result<Vec<u8>, Error> {
    let mut archive = Vec::new();
    for file in files {
        archive.extend(header(file)?);
        archive.extend(&file.contents);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

/// Bytes, compressed.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn header(file: &File) -> Result<[u8; BLOCK], Error> {
    let mut header = [0; BLOCK];
    if file.path.len() > NAME {
        return Err(Error::Path(file.path.clone()));
    }
    let mut put = |at: usize, bytes: &[u8]| {
        for (place, byte) in header.iter_mut().skip(at).zip(bytes) {
            *place = *byte;
        }
    };
    put(0, file.path.as_bytes());
    put(MODE, format!("{:07o}", file.mode).as_bytes());
    for owner in OWNERS {
        put(owner, b"0000000");
    }
    put(SIZE, format!("{:011o}", file.contents.len()).as_bytes());
    put(TIME, b"00000000000");
    put(TYPE, b"0");
    put(MAGIC, b"ustar\x0000");
    // The sum is taken with spaces where it will stand.
    put(CHECKSUM, b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    for (place, byte) in header.iter_mut().skip(CHECKSUM).zip(sum.bytes()) {
        *place = byte;
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        let long = File::new("a".repeat(101), "");
        assert!(matches!(tar(&[long]), Err(Error::Path(_))));
        assert!(tar(&[File::new("a".repeat(100), "")]).is_ok());
    }

    #[test]
    fn an_archive_is_whole_blocks_and_ends_with_two_empty_ones() {
        for (contents, blocks) in [("", 3), ("a", 4)] {
            let archive = tar(&[File::new("a", contents)]).expect("an archive");
            assert_eq!(archive.len(), blocks * BLOCK);
            assert!(archive.ends_with(&[0; 2 * BLOCK]));
        }
    }
}
