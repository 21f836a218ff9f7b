//! Zip archives, as far as Java and Python use them: the directory at the end, entries that are
//! stored or deflated, more entries than the first form could count, and something else in front,
//! such as the script that starts the program.

use flate2::read::DeflateDecoder;
use std::io::Read;

const END: &[u8] = b"PK\x05\x06";
const END_LENGTH: usize = 22;
const MAX_COMMENT: usize = 65_535;
const DIRECTORY: &[u8] = b"PK\x01\x02";
const DIRECTORY_LENGTH: usize = 46;
const LOCAL: &[u8] = b"PK\x03\x04";
const LOCAL_LENGTH: usize = 30;
const LARGE_END: &[u8] = b"PK\x06\x06";
const LARGE_END_LENGTH: usize = 56;
const LARGE_LOCATOR: &[u8] = b"PK\x06\x07";
const LARGE_LOCATOR_LENGTH: usize = 20;

/// An archive in memory.
pub(crate) struct Archive<'a> {
    bytes: &'a [u8],
    directory: usize,
    count: usize,
    /// Bytes in front of the archive.
    shift: usize,
}

/// One entry of the directory.
pub(crate) struct Entry<'a> {
    pub name: &'a [u8],
    method: usize,
    compressed: usize,
    local: usize,
}

fn half(bytes: &[u8], offset: usize) -> Option<usize> {
    let bytes: [u8; 2] = bytes.get(offset..offset + 2)?.try_into().ok()?;
    Some(usize::from(u16::from_le_bytes(bytes)))
}

fn word(bytes: &[u8], offset: usize) -> Option<usize> {
    let bytes: [u8; 4] = bytes.get(offset..offset + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

fn long(bytes: &[u8], offset: usize) -> Option<usize> {
    let bytes: [u8; 8] = bytes.get(offset..offset + 8)?.try_into().ok()?;
    usize::try_from(u64::from_le_bytes(bytes)).ok()
}

/// What the end of an archive says of its directory, and where that end begins.
struct Ending {
    count: usize,
    size: usize,
    offset: usize,
    place: usize,
}

impl Ending {
    fn small(bytes: &[u8], place: usize) -> Option<Self> {
        let rest = bytes.get(place..)?;
        Some(Ending {
            count: half(rest, 10)?,
            size: word(rest, 12)?,
            offset: word(rest, 16)?,
            place,
        })
    }

    /// The second form, for a directory that is too large for the first, stands before that.
    fn large(bytes: &[u8], end: usize) -> Option<Self> {
        let locator = end.checked_sub(LARGE_LOCATOR_LENGTH)?;
        let place = locator.checked_sub(LARGE_END_LENGTH)?;
        let rest = &bytes[place..];
        if !bytes[locator..].starts_with(LARGE_LOCATOR) || !rest.starts_with(LARGE_END) {
            return None;
        }
        Some(Ending {
            count: long(rest, 32)?,
            size: long(rest, 40)?,
            offset: long(rest, 48)?,
            place,
        })
    }
}

impl<'a> Archive<'a> {
    /// Finds the directory, which the end of the file leads to.
    pub fn open(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let last = bytes
            .len()
            .checked_sub(END_LENGTH)
            .ok_or("no zip archive")?;
        let first = last.saturating_sub(MAX_COMMENT);
        let end = (first..=last)
            .rev()
            .find(|place| bytes[*place..].starts_with(END))
            .ok_or("no zip archive")?;
        let Ending {
            count,
            size,
            offset,
            place,
        } = Ending::large(bytes, end)
            .or_else(|| Ending::small(bytes, end))
            .ok_or("the zip archive is cut off")?;
        // The directory ends where its end begins; offsets may count from behind what is in front.
        let is_there = |place: &usize| bytes[*place..].starts_with(DIRECTORY);
        let directory = place.checked_sub(size).filter(is_there).unwrap_or(offset);
        let Some(shift) = directory.checked_sub(offset) else {
            return Err("the zip archive's directory is damaged");
        };
        Ok(Archive {
            bytes,
            directory,
            count,
            shift,
        })
    }

    /// The entries, of which there are no more than the directory has room for.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, &'static str>> {
        let (bytes, mut place, shift) = (self.bytes, self.directory, self.shift);
        let most = (bytes.len() / DIRECTORY_LENGTH).saturating_add(1);
        (0..self.count.min(most)).map(move |_| {
            let entry = bytes.get(place..).and_then(|rest| {
                let name = half(rest, 28)?;
                let length = DIRECTORY_LENGTH + name + half(rest, 30)? + half(rest, 32)?;
                let entry = Entry {
                    name: rest.get(DIRECTORY_LENGTH..DIRECTORY_LENGTH + name)?,
                    method: half(rest, 10)?,
                    compressed: word(rest, 20)?,
                    local: word(rest, 42)?.checked_add(shift)?,
                };
                place += length;
                rest.starts_with(DIRECTORY).then_some(entry)
            });
            entry.ok_or("the zip archive's directory is damaged")
        })
    }

    /// What an entry holds, if that is no more than `limit` bytes, whatever the directory says.
    pub fn contents(&self, entry: &Entry, limit: u64) -> Result<Vec<u8>, String> {
        let damaged = || "the entry is damaged".to_owned();
        let local = self.bytes.get(entry.local..).ok_or_else(damaged)?;
        let lengths = half(local, 26).zip(half(local, 28));
        let (name, extra) = lengths
            .filter(|_| local.starts_with(LOCAL))
            .ok_or_else(damaged)?;
        let start = LOCAL_LENGTH + name + extra;
        let body = local
            .get(start..start.saturating_add(entry.compressed))
            .ok_or_else(damaged)?;
        let mut contents = Vec::new();
        match entry.method {
            0 => body.take(limit + 1).read_to_end(&mut contents),
            8 => DeflateDecoder::new(body)
                .take(limit + 1)
                .read_to_end(&mut contents),
            method => return Err(format!("the compression {method} is not known")),
        }
        .map_err(|_| damaged())?;
        if contents.len() as u64 > limit {
            return Err(format!("more than {limit} bytes"));
        }
        Ok(contents)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use std::io::Write;

    #[derive(Clone, Copy, PartialEq)]
    pub(crate) enum Method {
        Stored,
        Deflated,
    }

    pub(crate) fn archive(entries: &[(&str, &[u8], Method)]) -> Vec<u8> {
        let (mut bytes, mut directory) = (Vec::new(), Vec::new());
        for (name, contents, method) in entries {
            let body = match method {
                Method::Stored => contents.to_vec(),
                Method::Deflated => {
                    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
                    encoder.write_all(contents).unwrap();
                    encoder.finish().unwrap()
                }
            };
            let start = bytes.len() as u32;
            let number = if *method == Method::Stored { 0_u16 } else { 8 };
            let mut local = LOCAL.to_vec();
            local.extend([20, 0, 0, 0]);
            local.extend(number.to_le_bytes());
            local.extend([0; 8]);
            local.extend((body.len() as u32).to_le_bytes());
            local.extend((contents.len() as u32).to_le_bytes());
            local.extend((name.len() as u16).to_le_bytes());
            local.extend([0; 2]);
            directory.extend(DIRECTORY);
            directory.extend([20, 0]);
            directory.extend(&local[4..30]);
            directory.extend([0; 10]);
            directory.extend(start.to_le_bytes());
            directory.extend(name.as_bytes());
            bytes.extend(local);
            bytes.extend(name.as_bytes());
            bytes.extend(body);
        }
        let (start, length) = (bytes.len() as u32, directory.len() as u32);
        bytes.extend(directory);
        bytes.extend(END);
        bytes.extend([0; 4]);
        for _ in 0..2 {
            bytes.extend((entries.len() as u16).to_le_bytes());
        }
        bytes.extend(length.to_le_bytes());
        bytes.extend(start.to_le_bytes());
        bytes.extend([0; 2]);
        bytes
    }
}
