//! SHA-256 digests in the form that registries use, and the reader that computes one while the
//! bytes pass.

use crate::limits::Exceeded;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, BufRead, Read};

/// How much is read and hashed at a time.
const CHUNK: usize = 128 * 1024;

/// A digest, as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Digest::from_hash(Sha256::digest(bytes).as_slice())
    }

    fn from_hash(hash: &[u8]) -> Self {
        Digest(format!("sha256:{}", hexadecimal(hash)))
    }

    /// Takes a digest that somebody else states; nothing where it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:")?;
        let is_hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (digits.len() == 64 && digits.bytes().all(is_hexadecimal)).then(|| Digest(text.into()))
    }

    /// The whole digest, with its algorithm.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hexadecimal digits alone.
    pub fn digits(&self) -> &str {
        self.0.trim_start_matches("sha256:")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A reader that counts and hashes what passes, and stops at a limit.
pub(crate) struct Hashing<R> {
    inner: R,
    hash: Sha256,
    count: u64,
    limit: u64,
    limited: &'static str,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl<R: Read> Hashing<R> {
    /// `limited` names what must not be larger than `limit`.
    pub fn new(inner: R, limited: &'static str, limit: u64) -> Self {
        Hashing {
            inner,
            hash: Sha256::new(),
            count: 0,
            limit,
            limited,
            buffer: vec![0; CHUNK].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }

    /// How many bytes were read so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Reads to the end, and says the digest and the length of all there was.
    pub fn finish(mut self) -> io::Result<(Digest, u64, R)> {
        loop {
            let length = self.fill_buf()?.len();
            if length == 0 {
                break;
            }
            self.consume(length);
        }
        let digest = Digest::from_hash(self.hash.finalize().as_slice());
        Ok((digest, self.count, self.inner))
    }
}

impl<R: Read> BufRead for Hashing<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            let read = loop {
                match self.inner.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            };
            self.hash.update(&self.buffer[..read]);
            self.count += read as u64;
            if self.count > self.limit {
                return Err(Exceeded::new(self.limited, self.limit).into());
            }
            (self.start, self.end) = (0, read);
        }
        Ok(&self.buffer[self.start..self.end])
    }

    fn consume(&mut self, amount: usize) {
        self.start = (self.start + amount).min(self.end);
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let length = ready.len().min(buffer.len());
        buffer[..length].copy_from_slice(&ready[..length]);
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_hashed_and_counted_while_they_pass() {
        let bytes = vec![7; 300_000];
        let mut reader = Hashing::new(bytes.as_slice(), "bytes", 1 << 20);
        let mut start = [0; 10];
        reader.read_exact(&mut start).unwrap();
        let (digest, count, _) = reader.finish().unwrap();
        assert_eq!((digest, count), (Digest::of(&bytes), 300_000));
    }

    #[test]
    fn a_limit_is_an_error_that_names_it() {
        let reader = Hashing::new(&b"four"[..], "compressed bytes of a layer", 3);
        let error = reader.finish().map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "more than 3 compressed bytes of a layer");
    }

    #[test]
    fn a_digest_has_one_form() {
        let digest = Digest::of(b"");
        assert_eq!(Digest::parse(digest.as_str()), Some(digest.clone()));
        for wrong in ["", "sha256:", "sha512:00", &digest.as_str().to_uppercase()] {
            assert_eq!(Digest::parse(wrong), None);
        }
    }
}
