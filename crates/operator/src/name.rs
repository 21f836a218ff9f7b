//! The name of an Image, which its SBOM and its VulnerabilityReport share: readable, and made
//! unique by a hash over everything that tells two images apart.

use sha2::{Digest, Sha256};

/// What of a name is for people; the hash comes behind it.
const READABLE: usize = 200;
const HASH_BYTES: usize = 5;

/// The name of one platform of an image.
pub(crate) fn image(registry: &str, reference: &str, platform: &str, digest: &str) -> String {
    let mut readable: String = format!("{registry}-{reference}-{platform}")
        .chars()
        .map(|c| match c.to_ascii_lowercase() {
            c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
            _ => '-',
        })
        .collect();
    readable.truncate(READABLE);
    let readable = readable.trim_matches('-');
    let mut hash = Sha256::new();
    for part in [registry, reference, platform, digest] {
        // With its length, or two neighbours could trade letters.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    let hash: String = hash
        .iter()
        .take(HASH_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{readable}-{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_readable_valid_and_its_own() {
        let name = image("hub", "library/nginx:1.25", "linux/amd64", "sha256:a");
        assert!(
            name.starts_with("hub-library-nginx-1-25-linux-amd64-"),
            "{name}"
        );
        let mut names = vec![name];
        for (registry, reference, platform, digest) in [
            ("hub", "library/nginx:1.25", "linux/amd64", "sha256:b"),
            ("hub", "library/nginx:1.25", "linux/arm64", "sha256:a"),
            ("hub", "library/nginx-1.25", "linux/amd64", "sha256:a"),
            ("hub-library", "nginx:1.25", "linux/amd64", "sha256:a"),
            ("hub", "Ünix:_", "", "sha256:a"),
        ] {
            names.push(image(registry, reference, platform, digest));
        }
        names.push(image("r", &"x".repeat(500), "linux/amd64", "sha256:a"));
        for name in &names {
            assert!(name.len() <= 253, "{name}");
            let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(fine) && !name.starts_with('-'), "{name}");
        }
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
