//! Archives written byte by byte, with whatever lies in their headers.

use std::io::{self, Read};

/// The kinds of entries, as archives name them.
pub(super) const FILE: u8 = b'0';
pub(super) const HARD_LINK: u8 = b'1';
pub(super) const SYMBOLIC_LINK: u8 = b'2';
pub(super) const DIRECTORY: u8 = b'5';
pub(super) const LONG_NAME: u8 = b'L';
pub(super) const EXTENDED: u8 = b'x';
pub(super) const SPARSE: u8 = b'S';

/// A header that claims a size, which need not be true.
pub(super) fn header(name: &str, kind: u8, size: u64, link: &str) -> Vec<u8> {
    let mut block = vec![0; 512];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name.as_bytes()[..name.len().min(100)]);
    put(100, b"0000755\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    match size < 1 << 33 {
        true => put(124, format!("{size:011o}\0").as_bytes()),
        false => {
            put(124, &[0x80, 0, 0, 0]);
            put(128, &size.to_be_bytes());
        }
    }
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(157, &link.as_bytes()[..link.len().min(100)]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// A file with its contents.
pub(super) fn file(name: &str, contents: &[u8]) -> Vec<u8> {
    entry(name, FILE, contents)
}

/// An entry of some kind with contents.
pub(super) fn entry(name: &str, kind: u8, contents: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, kind, contents.len() as u64, "");
    bytes.extend_from_slice(contents);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// The end of an archive.
pub(super) const END: [u8; 1024] = [0; 1024];

/// Pieces that are made when they are read, so that a large archive never is as a whole.
pub(super) struct Pieces<I> {
    pieces: I,
    current: io::Cursor<Vec<u8>>,
}

pub(super) fn pieces<I: Iterator<Item = Vec<u8>>>(pieces: I) -> Pieces<I> {
    Pieces {
        pieces,
        current: io::Cursor::default(),
    }
}

impl<I: Iterator<Item = Vec<u8>>> Read for Pieces<I> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.current.read(buffer)? {
                0 => match self.pieces.next() {
                    Some(piece) => self.current = io::Cursor::new(piece),
                    None => return Ok(0),
                },
                read => return Ok(read),
            }
        }
    }
}
