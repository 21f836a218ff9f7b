//! Archives of data files that nobody vouches for: zip, tar, and tar compressed with gzip, told
//! apart by their first bytes. Files are handed over one after the other as readers; nothing is
//! unpacked to disk here, and the limits hold whatever the archive says of itself.

use crate::layer::path;
use crate::layer::tar::{Kind, Tar, TarError};
use crate::limits::{Exceeded, Limits};
use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Cursor, Read};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZIP: &[u8] = b"PK";
const BUFFER: usize = 64 * 1024;

/// What an archive may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Files in it, and whatever else.
    pub entries: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Why an archive could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is damaged, or something else.
    #[error("reading the archive: {0}")]
    Malformed(String),
    /// It holds more than is borne.
    #[error("reading the archive: {0}")]
    Limit(#[from] Exceeded),
    /// Whoever took a file could not.
    #[error(transparent)]
    Visit(io::Error),
}

/// Whether the first bytes are those of an archive that is read here.
pub fn is_archive(start: &[u8]) -> bool {
    start.starts_with(ZIP) || start.starts_with(GZIP) || start.get(257..262) == Some(b"ustar")
}

/// Hands over every file with its path, which leads nowhere outside. What the visitor leaves of a
/// file is skipped.
pub fn each_file(
    bytes: &[u8],
    limits: &ArchiveLimits,
    mut visit: impl FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> Result<(), ArchiveError> {
    let mut total = limits.bytes;
    if bytes.starts_with(ZIP) {
        return zipped(bytes, limits, &mut total, &mut visit);
    }
    if bytes.starts_with(GZIP) {
        // Padding and skipped files are inflated as well, so the whole is bounded, too.
        let whole = limits
            .bytes
            .saturating_add(limits.entries.saturating_mul(1024));
        let inflated = MultiGzDecoder::new(bytes).take(whole);
        let reader = BufReader::with_capacity(BUFFER, inflated);
        return tarred(reader, limits, &mut total, &mut visit);
    }
    tarred(bytes, limits, &mut total, &mut visit)
}

type Visit<'a> = dyn FnMut(&str, &mut dyn Read) -> io::Result<()> + 'a;

fn tarred(
    reader: impl BufRead,
    limits: &ArchiveLimits,
    total: &mut u64,
    visit: &mut Visit,
) -> Result<(), ArchiveError> {
    let of_tar = Limits {
        entries: limits.entries,
        layer_bytes: limits.bytes,
        ..Limits::DEFAULT
    };
    let mut tar = Tar::new(reader, &of_tar);
    while let Some(entry) = tar.next().map_err(of_tar_error)? {
        let (Some(path), Kind::File, false) = (&entry.path, entry.kind, entry.sparse) else {
            continue;
        };
        bounded(path, tar.body(), limits, total, visit)?;
    }
    Ok(())
}

fn of_tar_error(error: TarError) -> ArchiveError {
    match error {
        TarError::Read(error) => match error.downcast::<Exceeded>() {
            Ok(exceeded) => ArchiveError::Limit(exceeded),
            Err(error) => ArchiveError::Malformed(error.to_string()),
        },
        error => ArchiveError::Malformed(error.to_string()),
    }
}

fn zipped(
    bytes: &[u8],
    limits: &ArchiveLimits,
    total: &mut u64,
    visit: &mut Visit,
) -> Result<(), ArchiveError> {
    let malformed = |error: zip::result::ZipError| ArchiveError::Malformed(error.to_string());
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(malformed)?;
    if archive.len() as u64 > limits.entries {
        return Err(Exceeded::new("entries in the archive", limits.entries).into());
    }
    for place in 0..archive.len() {
        let file = archive.by_index(place).map_err(malformed)?;
        let name = file.name().map(|name| name.replace('\\', "/"));
        let path = name.ok().and_then(|name| path::normal(&name));
        let Some(path) = path.filter(|path| file.is_file() && !path.is_empty()) else {
            continue;
        };
        bounded(&path, file, limits, total, visit)?;
    }
    Ok(())
}

/// A file within the limits of its own and of the whole.
struct Bounded<'a, R> {
    inner: R,
    left: u64,
    total: &'a mut u64,
    exceeded: Option<Exceeded>,
    damage: Option<String>,
    limits: &'a ArchiveLimits,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // One byte more than is borne tells a file that is too large from one that just fits.
        let borne = self.left.min(*self.total);
        let most = usize::try_from(borne.saturating_add(1)).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        let length = match self.inner.read(&mut buffer[..most]) {
            Ok(length) => length,
            Err(error) => {
                self.damage = Some(error.to_string());
                return Err(error);
            }
        };
        if length as u64 > borne {
            let exceeded = match self.left < *self.total {
                true => Exceeded::new("bytes in one file", self.limits.file_bytes),
                false => Exceeded::new("bytes in the archive", self.limits.bytes),
            };
            self.exceeded = Some(exceeded.clone());
            return Err(exceeded.into());
        }
        self.left -= length as u64;
        *self.total -= length as u64;
        Ok(length)
    }
}

fn bounded(
    path: &str,
    inner: impl Read,
    limits: &ArchiveLimits,
    total: &mut u64,
    visit: &mut Visit,
) -> Result<(), ArchiveError> {
    let mut file = Bounded {
        inner,
        left: limits.file_bytes,
        total,
        exceeded: None,
        damage: None,
        limits,
    };
    let outcome = visit(path, &mut file);
    if let Some(exceeded) = file.exceeded {
        return Err(exceeded.into());
    }
    if let Some(damage) = file.damage {
        return Err(ArchiveError::Malformed(format!("{path}: {damage}")));
    }
    outcome.map_err(ArchiveError::Visit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    type Form = fn(&[(&str, &[u8])]) -> Vec<u8>;

    const LIMITS: ArchiveLimits = ArchiveLimits {
        entries: 4,
        file_bytes: 100,
        bytes: 150,
    };

    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, contents) in files {
            let mut header = [0_u8; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[100..107].copy_from_slice(b"0000644");
            header[124..135].copy_from_slice(format!("{:011o}", contents.len()).as_bytes());
            header[156] = b'0';
            header[257..265].copy_from_slice(b"ustar\x0000");
            header[148..156].copy_from_slice(b"        ");
            let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
            header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
            header[154] = 0;
            bytes.extend(header);
            bytes.extend(*contents);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, contents) in files {
            let options = zip::write::SimpleFileOptions::default();
            writer.start_file(*name, options).unwrap();
            writer.write_all(contents).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn read(bytes: &[u8]) -> Result<Vec<(String, usize)>, ArchiveError> {
        let mut files = Vec::new();
        each_file(bytes, &LIMITS, |path, file| {
            let mut contents = Vec::new();
            file.read_to_end(&mut contents)?;
            files.push((path.to_owned(), contents.len()));
            Ok(())
        })?;
        Ok(files)
    }

    #[test]
    fn every_form_is_read_alike_and_within_limits() {
        let forms: [Form; 3] = [tar, |files| gzip(&tar(files)), zipped];
        for (place, form) in forms.into_iter().enumerate() {
            let good = form(&[("a.json", b"one"), ("b/c.json", &[7; 100])]);
            assert!(is_archive(&good), "{place}");
            let found = read(&good).unwrap();
            assert_eq!(found, [("a.json".into(), 3), ("b/c.json".into(), 100)]);
            let large = form(&[("a", &[0; 101])]);
            assert!(
                matches!(read(&large), Err(ArchiveError::Limit(_))),
                "{place}"
            );
            let much = form(&[("a", &[0; 90]), ("b", &[0; 90])]);
            assert!(
                matches!(read(&much), Err(ArchiveError::Limit(_))),
                "{place}"
            );
            let many: Vec<(String, &[u8])> =
                (0..5).map(|one| (one.to_string(), &b""[..])).collect();
            let many: Vec<(&str, &[u8])> = many.iter().map(|one| (one.0.as_str(), one.1)).collect();
            assert!(
                matches!(read(&form(&many)), Err(ArchiveError::Limit(_))),
                "{place}"
            );
            // Damage anywhere is an error or goes unnoticed; it never ends the process.
            for cut in 0..good.len() {
                let _ = read(&good[..cut]);
                let mut changed = good.clone();
                changed[cut] ^= 0xff;
                let _ = read(&changed);
            }
            let mut taken = Vec::new();
            let outcome = each_file(&good, &LIMITS, |path, _| {
                taken.push(path.to_owned());
                Err(io::Error::other("no room"))
            });
            assert!(matches!(outcome, Err(ArchiveError::Visit(_))));
            assert_eq!(taken, ["a.json"]);
        }
        let outside = zipped(&[("../../etc/passwd", b"x"), ("ok", b"y")]);
        assert_eq!(read(&outside).unwrap(), [("ok".into(), 1)]);
        assert!(read(b"PK nothing").is_err());
        assert!(read(b"").unwrap().is_empty());
    }
}
