//! What a file is, by what is in it and not by its name.

use crate::error::Error;
use crate::origins::MAGIC;
use flate2::read::MultiGzDecoder;
use muster_scan::archive::is_archive;
use std::fs::File;
use std::io::Read;
use std::path::Path;

const GZIP: &[u8] = &[0x1f, 0x8b];
const BOLT: [u8; 4] = 0xED0C_DAED_u32.to_le_bytes();
/// As much of a file as tells what it is.
const START: u64 = 64 * 1024;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A bbolt file.
    Bolt,
    /// Files in one: a Trivy database, or OSV records.
    Archive,
    /// Compiled OSV records, of one origin or several.
    Index,
    /// A compiled list of scores or of known exploits.
    Table,
    /// EPSS scores, compressed or not.
    Scores { compressed: bool },
    /// A catalogue of known exploits.
    Catalogue,
    /// One OSV record, or something else in JSON.
    Json,
}

/// What the file at a path is; nothing where it is nothing that is known.
pub(crate) fn shape(path: &Path) -> Result<Option<Shape>, Error> {
    let file = File::open(path).map_err(Error::file("opening", path))?;
    let mut start = Vec::new();
    let read = file.take(START).read_to_end(&mut start);
    read.map_err(Error::file("reading", path))?;
    Ok(of_start(&start))
}

fn of_start(start: &[u8]) -> Option<Shape> {
    if start.get(16..20) == Some(&BOLT) {
        return Some(Shape::Bolt);
    }
    if start.starts_with(b"MSTROSV1") || start.starts_with(MAGIC) {
        return Some(Shape::Index);
    }
    if start.starts_with(b"MSTREXP1") {
        return Some(Shape::Table);
    }
    if start.starts_with(GZIP) {
        let mut inner = Vec::new();
        // The end of what we have is not the end of the file.
        let _ = MultiGzDecoder::new(start)
            .take(4096)
            .read_to_end(&mut inner);
        return match of_text(&inner) {
            Some(Shape::Scores { .. }) => Some(Shape::Scores { compressed: true }),
            _ => Some(Shape::Archive),
        };
    }
    if is_archive(start) {
        return Some(Shape::Archive);
    }
    of_text(start)
}

fn of_text(start: &[u8]) -> Option<Shape> {
    if start.starts_with(b"#model_version") || start.starts_with(b"cve,epss") {
        return Some(Shape::Scores { compressed: false });
    }
    let text = start.trim_ascii_start();
    if !text.starts_with(b"{") {
        return None;
    }
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    match has(b"\"catalogVersion\"") || has(b"\"cveID\"") {
        true => Some(Shape::Catalogue),
        false => Some(Shape::Json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn files_are_known_by_their_contents() {
        let mut bolt = vec![0; 16];
        bolt.extend(BOLT);
        let scores = b"#model_version:v1,score_date:2026-01-01T00:00:00Z\ncve,epss,percentile\n";
        for (bytes, shape) in [
            (bolt, Some(Shape::Bolt)),
            (b"PK\x03\x04".to_vec(), Some(Shape::Archive)),
            (scores.to_vec(), Some(Shape::Scores { compressed: false })),
            (gzip(scores), Some(Shape::Scores { compressed: true })),
            (gzip(b"some tar"), Some(Shape::Archive)),
            (
                b"\n {\"title\": 1, \"catalogVersion\": \"x\"}".to_vec(),
                Some(Shape::Catalogue),
            ),
            (b"{\"id\": \"CVE-1\"}".to_vec(), Some(Shape::Json)),
            (b"hello".to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(of_start(&bytes), shape);
        }
    }
}
