//! Digests of content: the algorithm and its value, and the check of bytes against them. A digest
//! that was parsed is lower-case and of the right length, so equal digests are equal texts.

use sha2::{Digest as _, Sha256, Sha512};
use std::fmt;
use std::str::FromStr;

/// A digest such as `sha256:e3b0…`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(String);

/// The algorithms in use, and how many hexadecimal digits each has.
const ALGORITHMS: [(&str, usize); 2] = [("sha256", 64), ("sha512", 128)];

impl Digest {
    /// Reads a digest; `None` if it is malformed or of an algorithm that nobody uses.
    pub fn parse(text: &str) -> Option<Digest> {
        let (algorithm, value) = text.split_once(':')?;
        let (_, length) = ALGORITHMS.iter().find(|(name, _)| *name == algorithm)?;
        let digits = value
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (digits && value.len() == *length).then(|| Digest(text.into()))
    }

    /// The SHA-256 digest of bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(format!("sha256:{}", hexadecimal(&Sha256::digest(bytes))))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the bytes are the ones meant; otherwise their own digest.
    pub fn check(&self, bytes: &[u8]) -> Result<(), Digest> {
        let mut verifier = self.verifier();
        verifier.update(bytes);
        verifier.finish()
    }

    /// A check that is fed piece by piece.
    pub fn verifier(&self) -> Verifier {
        let state = match self.0.starts_with("sha512:") {
            true => State::Sha512(Sha512::new()),
            false => State::Sha256(Sha256::new()),
        };
        Verifier {
            expected: self.clone(),
            state,
        }
    }
}

impl FromStr for Digest {
    type Err = String;

    fn from_str(text: &str) -> Result<Digest, String> {
        Digest::parse(text).ok_or_else(|| format!("{text:?} is no sha256 or sha512 digest"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A running check of content against its digest.
#[derive(Clone, Debug)]
pub struct Verifier {
    expected: Digest,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Verifier {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Sha256(hash) => hash.update(bytes),
            State::Sha512(hash) => hash.update(bytes),
        }
    }

    /// Whether everything taken is what was expected; otherwise what it was.
    pub fn finish(self) -> Result<(), Digest> {
        let actual = match self.state {
            State::Sha256(hash) => format!("sha256:{}", hexadecimal(&hash.finalize())),
            State::Sha512(hash) => format!("sha512:{}", hexadecimal(&hash.finalize())),
        };
        match actual == self.expected.0 {
            true => Ok(()),
            false => Err(Digest(actual)),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_digests_are_read() {
        let f64 = "f".repeat(64);
        for (text, valid) in [
            (format!("sha256:{f64}"), true),
            (format!("sha512:{f64}{f64}"), true),
            (format!("sha512:{f64}"), false),
            (format!("sha256:{}", "F".repeat(64)), false),
            (format!("sha256:{}", "g".repeat(64)), false),
            (format!("sha384:{f64}"), false),
            (format!("md5:{}", "f".repeat(32)), false),
            (f64.clone(), false),
            (String::new(), false),
            ("sha256:".into(), false),
            (format!("sha256:{f64}/../x"), false),
        ] {
            assert_eq!(Digest::parse(&text).is_some(), valid, "{text}");
        }
    }

    #[test]
    fn bytes_are_checked_with_the_algorithm_of_the_digest() {
        let empty = Digest::of(b"");
        assert_eq!(
            empty.as_str(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(empty.check(b""), Ok(()));
        assert_eq!(empty.check(b"a"), Err(Digest::of(b"a")));
        let long = format!("sha512:{}", hexadecimal(&Sha512::digest(b"abc")));
        let long = Digest::parse(&long).expect("a digest");
        assert_eq!(long.check(b"abc"), Ok(()));
        assert!(long.check(b"abd").is_err());
    }
}
