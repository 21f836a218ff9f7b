//! One kind of data is one file: the data, and behind it a note that says which data it is and where
//! it came from. One rename replaces both, so they never disagree. The note is untrusted like the
//! data; a file without one is a plain file that somebody put there.

use crate::error::Error;
use muster_bolt::Mapped;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"MSTRNOTE";
/// The magic and the note's length, at the very end of the file.
const TAIL: usize = 16;
const MAX_NOTE: usize = 1024 * 1024;
/// What nobody finished in that time, nobody will.
const ABANDONED: Duration = Duration::from_secs(7 * 24 * 3600);
const UNFINISHED: &str = ".unfinished";

/// A kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The database that Trivy publishes.
    Trivy,
    /// OSV records.
    Osv,
    /// The scores of EPSS.
    Epss,
    /// The catalogue of known exploits.
    Kev,
}

impl Kind {
    /// All, in the order of preference.
    pub const ALL: [Kind; 4] = [Kind::Trivy, Kind::Osv, Kind::Epss, Kind::Kev];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Trivy => "Trivy database",
            Kind::Osv => "OSV records",
            Kind::Epss => "EPSS scores",
            Kind::Kev => "known exploited vulnerabilities",
        }
    }

    pub(crate) fn file(self) -> &'static str {
        match self {
            Kind::Trivy => "trivy.db",
            Kind::Osv => "osv.index",
            Kind::Epss => "epss.table",
            Kind::Kev => "kev.table",
        }
    }
}

/// What stands behind the data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Note {
    /// Identifies the data.
    pub revision: String,
    /// When it came here.
    pub downloaded_at: Option<String>,
    /// Where it came from.
    pub origin: String,
    /// What a Trivy database has beside it.
    pub metadata: Option<String>,
    /// The compiled files of OSV records in the file, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<Piece>,
}

/// The compiled file of one origin within a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Piece {
    /// Name of the origin.
    pub origin: String,
    /// The path that was imported.
    pub path: String,
    /// When it was imported.
    pub imported_at: Option<String>,
    /// Bytes of the compiled file.
    pub length: u64,
    /// Whether a version before origins imported it: no ecosystem is in its name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_legacy: bool,
}

/// Tells one state of a file from another, without reading it. While a file is mapped, no other can
/// have its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The state of the file at a path; nothing where there is none.
    pub fn at(path: &Path) -> Result<Option<Self>, Error> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Stamp::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::file("looking at", path)(error)),
        }
    }
}

/// A part that is mapped.
#[derive(Debug)]
pub(crate) struct Part {
    pub path: PathBuf,
    pub stamp: Stamp,
    pub note: Option<Note>,
    map: Mapped,
    /// How much of it is data.
    length: usize,
}

/// The data of a part alone, or a piece of it.
#[derive(Clone)]
pub(crate) struct Data(Arc<Part>, Range<usize>);

impl AsRef<[u8]> for Data {
    fn as_ref(&self) -> &[u8] {
        self.0.map.get(self.1.clone()).unwrap_or_default()
    }
}

impl Part {
    /// Maps the part at a path; nothing where there is none.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("opening", path)(error)),
        };
        let metadata = file.metadata().map_err(Error::file("looking at", path))?;
        if metadata.len() == 0 {
            return Err(Error::damaged(path, "it is empty"));
        }
        let map = Mapped::of(&file).map_err(Error::file("mapping", path))?;
        let (note, length) = match note(&map) {
            Some((note, length)) => (Some(note), length),
            None => (None, map.len()),
        };
        Ok(Some(Part {
            path: path.to_owned(),
            stamp: Stamp::of(&metadata),
            note,
            map,
            length,
        }))
    }

    /// The data.
    pub fn data(self: &Arc<Self>) -> Data {
        self.slice(0..self.length)
    }

    /// A piece of the data.
    pub fn slice(self: &Arc<Self>, range: Range<usize>) -> Data {
        Data(self.clone(), range.start..range.end.min(self.length))
    }

    /// The whole map, for a reader to whom what follows the data is no matter.
    pub fn into_map(self) -> Mapped {
        self.map
    }
}

/// The note at the end of a file, and where the data ends.
fn note(bytes: &[u8]) -> Option<(Note, usize)> {
    let end = bytes.len().checked_sub(TAIL)?;
    let (body, tail) = bytes.split_at(end);
    let length = u64::from_le_bytes(tail.get(..8)?.try_into().ok()?);
    if tail.get(8..)? != MAGIC {
        return None;
    }
    let length = usize::try_from(length)
        .ok()
        .filter(|length| *length <= MAX_NOTE)?;
    let start = end.checked_sub(length)?;
    let note = serde_json::from_slice(body.get(start..)?).ok()?;
    Some((note, start))
}

/// A file under way to its place. Dropped before it got there, it is removed.
pub(crate) struct Unfinished {
    file: BufWriter<File>,
    path: PathBuf,
    is_placed: bool,
}

impl Unfinished {
    /// Begins a file beside its place, under a name of its own.
    pub fn begin(directory: &Path, name: &str) -> Result<Self, Error> {
        let random: u64 = rand::random();
        let path = directory.join(format!("{name}-{random:016x}{UNFINISHED}"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        Ok(Unfinished {
            file: BufWriter::with_capacity(
                256 * 1024,
                file.map_err(Error::file("creating", &path))?,
            ),
            path,
            is_placed: false,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the data with its note, and puts it on disk.
    pub fn seal(&mut self, note: &Note) -> Result<(), Error> {
        let text = serde_json::to_vec(note).unwrap_or_default();
        let mut write = || {
            self.file.seek(SeekFrom::End(0))?;
            self.file.write_all(&text)?;
            self.file.write_all(&(text.len() as u64).to_le_bytes())?;
            self.file.write_all(MAGIC)?;
            self.file.flush()?;
            self.file.get_ref().sync_all()
        };
        write().map_err(Error::file("writing", &self.path))
    }

    /// Puts a small file without a note on disk.
    pub fn seal_plain(&mut self) -> Result<(), Error> {
        let flushed = self
            .file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(Error::file("writing", &self.path))
    }

    /// Renames it into its place, over whatever is there.
    pub fn place(mut self, place: &Path) -> Result<(), Error> {
        fs::rename(&self.path, place).map_err(Error::file("replacing", place))?;
        self.is_placed = true;
        sync_directory(place)
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Unfinished {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_placed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A rename is on disk when its directory is.
pub(crate) fn sync_directory(file: &Path) -> Result<(), Error> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(Error::file("writing", directory))
}

/// Removes what was begun long ago. Somebody who still works on it after that time only has to
/// begin again.
pub(crate) fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.map(|time| SystemTime::now().duration_since(time).unwrap_or_default());
        let is_ours = name.ends_with(UNFINISHED) || name.ends_with(crate::pull::PARTIAL);
        if is_ours && age.is_ok_and(|age| age > ABANDONED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Now, to the second.
pub(crate) fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
