//! A directory tree as the bytes of an archive, made while they are read: every path, and the
//! contents of those files that matter. Nothing outside of the tree is met: links are told and not
//! followed, and only what was a regular file when it was listed, and is the same file when it is
//! opened, is read. Devices and pipes are never opened.

use muster_scan::layer::{Incomplete, is_read};
use muster_scan::limits::Limits;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const BLOCK: usize = 512;
/// Directories within each other; a listing of each is kept.
const DEPTH: usize = 512;
/// What the kernel makes up, and never ends.
const MADE_UP: [&str; 3] = ["proc", "sys", "dev"];

/// A tree that is being read as an archive.
pub(crate) struct Tree {
    root: PathBuf,
    limits: Limits,
    /// The directories on the way to the present place, each with what is still to come of it.
    listings: Vec<Listing>,
    /// Bytes of headers and padding that come next, and how many of them are read.
    head: Vec<u8>,
    read: usize,
    body: Option<Body>,
    ended: bool,
    incomplete: Vec<Incomplete>,
}

struct Listing {
    /// The path of the directory in the tree, with a slash at the end; empty for the root.
    prefix: Vec<u8>,
    /// Names, the last first.
    names: Vec<OsString>,
}

struct Body {
    file: File,
    left: u64,
    padding: usize,
    path: String,
}

impl Tree {
    /// The tree below a directory.
    pub(crate) fn new(root: &Path, limits: Limits) -> io::Result<Self> {
        // The root itself may be a link; what is in it may not lead out of it.
        let root = root.canonicalize()?;
        let mut tree = Tree {
            root,
            limits,
            listings: Vec::new(),
            head: Vec::new(),
            read: 0,
            body: None,
            ended: false,
            incomplete: Vec::new(),
        };
        let names = tree.list(&tree.root.clone())?;
        tree.listings.push(Listing {
            prefix: Vec::new(),
            names,
        });
        Ok(tree)
    }

    /// What could not be read.
    pub(crate) fn into_incomplete(self) -> Vec<Incomplete> {
        self.incomplete
    }

    /// The names in a directory, the last first: the same tree is the same archive.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.push(entry?.file_name());
            if names.len() as u64 > self.limits.entries {
                let limit = self.limits.entries;
                return Err(io::Error::other(format!("more than {limit} entries")));
            }
        }
        names.sort_unstable_by(|one, other| other.cmp(one));
        Ok(names)
    }

    fn note(&mut self, path: &str, reason: impl ToString) {
        if self.incomplete.len() < self.limits.incomplete {
            self.incomplete.push(Incomplete {
                path: path.into(),
                reason: reason.to_string(),
            });
        }
    }

    /// Goes on to the next entry; false at the end.
    fn advance(&mut self) -> bool {
        self.head.clear();
        self.read = 0;
        loop {
            let Some(listing) = self.listings.last_mut() else {
                return false;
            };
            let Some(name) = listing.names.pop() else {
                self.listings.pop();
                continue;
            };
            let path = [listing.prefix.as_slice(), name.as_bytes()].concat();
            let text = String::from_utf8_lossy(&path).into_owned();
            match self.entry(path, &text) {
                Ok(()) => return true,
                // What is gone since it was listed need not be spoken of.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.note(&text, error),
            }
            if !self.head.is_empty() {
                return true;
            }
        }
    }

    fn entry(&mut self, path: Vec<u8>, text: &str) -> io::Result<()> {
        if path.len() > self.limits.path_bytes {
            return Err(io::Error::other("its path is too long"));
        }
        let place = self.root.join(OsString::from_vec(path.clone()));
        let about = place.symlink_metadata()?;
        let mode = about.mode() & 0o7777;
        let kind = about.file_type();
        if kind.is_dir() {
            header(&mut self.head, &path, b'5', mode, 0, b"");
            if MADE_UP.contains(&text) {
                return Ok(());
            }
            if self.listings.len() >= DEPTH {
                return Err(io::Error::other("its directories are too deep"));
            }
            let names = self.list(&place)?;
            let prefix = [path.as_slice(), b"/"].concat();
            self.listings.push(Listing { prefix, names });
        } else if kind.is_symlink() {
            let target = fs::read_link(&place)?.into_os_string();
            header(&mut self.head, &path, b'2', mode, 0, target.as_bytes());
        } else if kind.is_file() {
            self.file(&path, text, &place, &about)?;
        } else {
            // That it is there matters, and what sort of thing it is does not.
            header(&mut self.head, &path, b'6', mode, 0, b"");
        }
        Ok(())
    }

    /// A regular file; one whose contents do not matter is told as if it were empty.
    fn file(&mut self, path: &[u8], text: &str, place: &Path, about: &Metadata) -> io::Result<()> {
        let mode = about.mode() & 0o7777;
        if about.len() == 0 || !is_read(text, mode) {
            header(&mut self.head, path, b'0', mode, 0, b"");
            return Ok(());
        }
        match open(place, about) {
            Ok(file) => {
                let size = about.len();
                header(&mut self.head, path, b'0', mode, size, b"");
                self.body = Some(Body {
                    file,
                    left: size,
                    padding: (size.wrapping_neg() % BLOCK as u64) as usize,
                    path: text.into(),
                });
                Ok(())
            }
            Err(error) => {
                // It is there all the same.
                header(&mut self.head, path, b'6', mode, 0, b"");
                Err(error)
            }
        }
    }

    /// Bytes of the present file. One that became shorter meanwhile is filled up, and noted.
    fn body(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(body) = &mut self.body else {
            return Ok(0);
        };
        if body.left == 0 {
            self.head = vec![0; body.padding];
            self.read = 0;
            self.body = None;
            return Ok(0);
        }
        let wanted = buffer
            .len()
            .min(usize::try_from(body.left).unwrap_or(usize::MAX));
        let (length, problem) = match body.file.read(&mut buffer[..wanted]) {
            Ok(0) => (0, "it became shorter while it was read".to_owned()),
            Ok(length) => (length, String::new()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
            Err(error) => (0, error.to_string()),
        };
        if length > 0 {
            body.left -= length as u64;
            return Ok(length);
        }
        body.left -= wanted as u64;
        buffer[..wanted].fill(0);
        let path = body.path.clone();
        if !self.incomplete.iter().any(|noted| noted.path == path) {
            self.note(&path, problem);
        }
        Ok(wanted)
    }
}

impl Read for Tree {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.read < self.head.len() {
                let ready = &self.head[self.read..];
                let length = ready.len().min(buffer.len());
                buffer[..length].copy_from_slice(&ready[..length]);
                self.read += length;
                return Ok(length);
            }
            if self.body.is_some() {
                match self.body(buffer)? {
                    0 => continue,
                    length => return Ok(length),
                }
            }
            if self.ended {
                return Ok(0);
            }
            if !self.advance() {
                self.ended = true;
                self.head = vec![0; 2 * BLOCK];
                self.read = 0;
            }
        }
    }
}

/// Opens the file that was listed, and no other that took its place.
fn open(place: &Path, listed: &Metadata) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(place)?;
    let about = file.metadata()?;
    let is_same = about.is_file() && about.dev() == listed.dev() && about.ino() == listed.ino();
    match is_same {
        true => Ok(file),
        false => Err(io::Error::other("it was replaced while it was read")),
    }
}

/// Writes the header of an entry; names that do not fit come before it, in entries of their own.
fn header(head: &mut Vec<u8>, path: &[u8], flag: u8, mode: u32, size: u64, link: &[u8]) {
    for (name, flag) in [(path, b'L'), (link, b'K')] {
        if name.len() > 100 {
            block(head, b"././@LongLink", flag, 0, name.len() as u64, b"");
            head.extend_from_slice(name);
            head.resize(head.len().next_multiple_of(BLOCK), 0);
        }
    }
    block(head, path, flag, mode, size, link);
}

fn block(head: &mut Vec<u8>, path: &[u8], flag: u8, mode: u32, size: u64, link: &[u8]) {
    let mut block = [0; BLOCK];
    let mut put = |start: usize, bytes: &[u8]| {
        block[start..start + bytes.len()].copy_from_slice(bytes);
    };
    put(0, &path[..path.len().min(100)]);
    put(100, format!("{mode:07o}\0").as_bytes());
    match size < 1 << 33 {
        true => put(124, format!("{size:011o}\0").as_bytes()),
        // In binary, where octal digits do not suffice.
        false => {
            put(124, &[0x80]);
            put(128, &size.to_be_bytes());
        }
    }
    put(148, b"        ");
    put(156, &[flag]);
    put(157, &link[..link.len().min(100)]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    head.extend_from_slice(&block);
}
