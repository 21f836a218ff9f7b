//! Walking a tar archive that nobody vouches for. Entries are read one after the other as Go's
//! reader takes them, since that is what unpacks images: the same sizes, the same long names, the
//! same end. Nothing is unpacked, and no header may take more memory than the limits allow.

use crate::layer::path;
use crate::limits::{Exceeded, Limits};
use std::io::{self, BufRead, Read, Seek};

const BLOCK: usize = 512;
type Block = [u8; BLOCK];

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    SymbolicLink,
    /// Another name of a file.
    HardLink,
    /// A device, a pipe, or something newer than we are.
    Other,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path below the root, without a leading slash; nothing where it leads out of the root.
    pub path: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// Where a link leads, as written.
    pub link: String,
    /// Its permissions.
    pub mode: u32,
    /// Bytes of its body.
    pub size: u64,
    /// The body is not the file's contents but some pieces of it.
    pub sparse: bool,
}

/// What is wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    /// The bytes could not be read, or a limit was reached.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A header is not one.
    #[error("entry {entry}: {problem}")]
    Header {
        /// The number of the entry, from 1.
        entry: u64,
        /// What is wrong.
        problem: &'static str,
    },
}

/// The walk.
pub struct Tar<'a, R> {
    reader: R,
    limits: &'a Limits,
    entries: u64,
    /// Bytes of the present entry's body that were not read, and of the padding behind it.
    body: u64,
    padding: u64,
}

/// What extended headers say of the entry that follows them.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    sparse: bool,
}

impl<'a, R: BufRead> Tar<'a, R> {
    /// A walk over the archive that this reader yields, plain.
    pub fn new(reader: R, limits: &'a Limits) -> Self {
        Tar {
            reader,
            limits,
            entries: 0,
            body: 0,
            padding: 0,
        }
    }

    /// The reader, wherever the walk is.
    pub fn into_inner(self) -> R {
        self.reader
    }

    /// The next entry; nothing at the end of the archive.
    // No iterator: an entry's body is read from the walk itself.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Entry>, TarError> {
        let mut extended = Extended::default();
        loop {
            self.skip_body()?;
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(self.exceeded("entries in a layer", self.limits.entries));
            }
            let stated = self.number(&header[124..136], "its size is no number")?;
            match header[156] {
                b'x' => {
                    let records = self.extended_header(stated)?;
                    self.pax(&records, &mut extended)?;
                }
                b'g' => drop(self.extended_header(stated)?),
                b'L' => extended.path = Some(until_nul(&self.extended_header(stated)?).to_vec()),
                b'K' => extended.link = Some(until_nul(&self.extended_header(stated)?).to_vec()),
                flag => return self.entry(&header, flag, stated, extended).map(Some),
            }
        }
    }

    /// The body of the present entry.
    pub fn body(&mut self) -> Body<'_, 'a, R> {
        Body { tar: self }
    }

    fn entry(
        &mut self,
        header: &Block,
        flag: u8,
        stated: u64,
        extended: Extended,
    ) -> Result<Entry, TarError> {
        let name = extended.path.unwrap_or_else(|| name(header));
        let kind = match flag {
            b'0' | 0 if name.ends_with(b"/") => Kind::Directory,
            b'0' | 0 | b'7' | b'S' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::SymbolicLink,
            b'5' => Kind::Directory,
            _ => Kind::Other,
        };
        // These have no body, whatever their size says.
        let bodiless = matches!(flag, b'1'..=b'6') || kind == Kind::Directory;
        let size = if bodiless {
            0
        } else {
            extended.size.unwrap_or(stated)
        };
        if flag == b'S' {
            self.skip_sparse_map(header)?;
        }
        self.expect_body(size)?;
        let link = extended
            .link
            .unwrap_or_else(|| until_nul(&header[157..257]).to_vec());
        if name.len() > self.limits.path_bytes || link.len() > self.limits.path_bytes {
            return Err(self.exceeded("bytes in a path", self.limits.path_bytes as u64));
        }
        Ok(Entry {
            path: path::normal(&String::from_utf8_lossy(&name)),
            kind,
            link: String::from_utf8_lossy(&link).into_owned(),
            mode: u32::try_from(self.number(&header[100..108], "its mode is no number")?)
                .unwrap_or(0),
            size,
            sparse: flag == b'S' || extended.sparse,
        })
    }

    /// The next header; nothing at the two empty blocks that end an archive, or where it just ends.
    fn header(&mut self) -> Result<Option<Block>, TarError> {
        let Some(block) = self.block()? else {
            return Ok(None);
        };
        if block.iter().all(|byte| *byte == 0) {
            return match self.block()? {
                Some(second) if second.iter().any(|byte| *byte != 0) => {
                    Err(self.problem("an empty block stands before it"))
                }
                _ => Ok(None),
            };
        }
        let stated = self.number(&block[148..156], "its checksum is no number")?;
        let sum = |add: fn(u64, u8) -> u64| {
            let blank = [b' '; 8];
            block[..148]
                .iter()
                .chain(&blank)
                .chain(&block[156..])
                .fold(0, |sum, byte| add(sum, *byte))
        };
        let unsigned = sum(|sum, byte| sum + u64::from(byte));
        // Some old writers took bytes for signed.
        let signed = sum(|sum, byte| sum.wrapping_add_signed(i64::from(byte as i8)));
        if stated != unsigned && stated != signed {
            return Err(self.problem("its checksum is wrong"));
        }
        Ok(Some(block))
    }

    fn block(&mut self) -> Result<Option<Block>, TarError> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            let ready = self.reader.fill_buf()?;
            if ready.is_empty() {
                break;
            }
            let length = ready.len().min(BLOCK - filled);
            block[filled..filled + length].copy_from_slice(&ready[..length]);
            self.reader.consume(length);
            filled += length;
        }
        match filled {
            0 => Ok(None),
            BLOCK => Ok(Some(block)),
            _ => Err(self.problem("the archive ends inside a header")),
        }
    }

    /// A number in octal, or in binary where the first bit says so.
    fn number(&self, field: &[u8], problem: &'static str) -> Result<u64, TarError> {
        let wrong = || self.problem(problem);
        if field[0] & 0x80 != 0 {
            // Negative ones, and those above 64 bits, are no sizes.
            if field[0] & 0x40 != 0 {
                return Err(wrong());
            }
            let mut bytes = field.to_vec();
            bytes[0] &= 0x7f;
            return bytes
                .iter()
                .try_fold(0_u64, |sum, byte| {
                    sum.checked_mul(256)?.checked_add(u64::from(*byte))
                })
                .ok_or_else(wrong);
        }
        let text = until_nul(field);
        let text = std::str::from_utf8(text).map_err(|_| wrong())?;
        match text.trim_matches([' ', '\0']) {
            "" => Ok(0),
            text => u64::from_str_radix(text, 8).map_err(|_| wrong()),
        }
    }

    fn extended_header(&mut self, size: u64) -> Result<Vec<u8>, TarError> {
        if size > self.limits.header_bytes {
            return Err(self.exceeded("bytes in a header", self.limits.header_bytes));
        }
        self.expect_body(size)?;
        let mut bytes = Vec::with_capacity(size as usize);
        self.body().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Records of the form `LENGTH KEY=VALUE\n`, where the length counts itself.
    fn pax(&self, mut records: &[u8], extended: &mut Extended) -> Result<(), TarError> {
        let wrong = || self.problem("its extended header is malformed");
        while !records.is_empty() {
            let space = records.iter().take(20).position(|byte| *byte == b' ');
            let space = space.ok_or_else(wrong)?;
            let length: usize = std::str::from_utf8(&records[..space])
                .ok()
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(wrong)?;
            let record = records.get(space + 1..length).ok_or_else(wrong)?;
            records = &records[length..];
            let record = record.strip_suffix(b"\n").ok_or_else(wrong)?;
            let equals = record.iter().position(|byte| *byte == b'=');
            let equals = equals.ok_or_else(wrong)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                // The real name of a sparse file comes after the made-up one, and wins.
                b"path" if !extended.sparse => extended.path = Some(value.to_vec()),
                b"linkpath" => extended.link = Some(value.to_vec()),
                b"size" => {
                    let digits = std::str::from_utf8(value).map_err(|_| wrong())?;
                    extended.size = Some(digits.parse().map_err(|_| wrong())?);
                }
                b"GNU.sparse.name" => {
                    extended.path = Some(value.to_vec());
                    extended.sparse = true;
                }
                _ if key.starts_with(b"GNU.sparse.") => extended.sparse = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// The blocks that go on with a sparse file's map, each of which says whether one follows.
    fn skip_sparse_map(&mut self, header: &Block) -> Result<(), TarError> {
        let mut more = header[482] != 0;
        while more {
            let block = self.block()?;
            let block = block.ok_or_else(|| self.problem("the archive ends inside a header"))?;
            more = block[504] != 0;
        }
        Ok(())
    }

    fn expect_body(&mut self, size: u64) -> Result<(), TarError> {
        self.body = size;
        self.padding = size.wrapping_neg() % BLOCK as u64;
        if size > self.limits.layer_bytes {
            return Err(self.problem("its size is larger than a layer may be"));
        }
        Ok(())
    }

    fn skip_body(&mut self) -> Result<(), TarError> {
        let mut left = self.body + self.padding;
        // The last padding may be cut off.
        let optional = self.padding;
        (self.body, self.padding) = (0, 0);
        while left > 0 {
            let ready = self.reader.fill_buf()?.len();
            if ready == 0 {
                if left <= optional {
                    return Ok(());
                }
                return Err(self.problem("the archive ends inside its contents"));
            }
            let length = (ready as u64).min(left);
            self.reader.consume(length as usize);
            left -= length;
        }
        Ok(())
    }

    fn problem(&self, problem: &'static str) -> TarError {
        TarError::Header {
            entry: self.entries,
            problem,
        }
    }

    fn exceeded(&self, what: &'static str, limit: u64) -> TarError {
        TarError::Read(Exceeded::new(what, limit).into())
    }
}

impl<R: BufRead + Seek> Tar<'_, R> {
    /// Leaps over the present entry's body, and says where in the archive it begins. That it is
    /// there is for the caller to see: one can leap over the end.
    pub fn leap(&mut self) -> io::Result<u64> {
        let start = self.reader.stream_position()?;
        let rest = i64::try_from(self.body + self.padding).map_err(io::Error::other)?;
        self.reader.seek_relative(rest)?;
        (self.body, self.padding) = (0, 0);
        Ok(start)
    }
}

/// The body of an entry. Where the archive ends too early, it is an error and no shorter body.
pub struct Body<'b, 'a, R> {
    tar: &'b mut Tar<'a, R>,
}

impl<R: BufRead> Read for Body<'_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.tar.body == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let ready = self.tar.reader.fill_buf()?;
        if ready.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let left = usize::try_from(self.tar.body).unwrap_or(usize::MAX);
        let length = ready.len().min(buffer.len()).min(left);
        buffer[..length].copy_from_slice(&ready[..length]);
        self.tar.reader.consume(length);
        self.tar.body -= length as u64;
        Ok(length)
    }
}

fn until_nul(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

/// The name in a plain header, which POSIX splits in two.
fn name(header: &Block) -> Vec<u8> {
    let name = until_nul(&header[..100]);
    let prefix = until_nul(&header[345..500]);
    if &header[257..263] == b"ustar\0" && !prefix.is_empty() {
        [prefix, b"/", name].concat()
    } else {
        name.to_vec()
    }
}

#[cfg(test)]
pub(crate) mod tests;
