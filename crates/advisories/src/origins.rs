//! The OSV records of a directory: one file that holds a compiled file for each origin, and a note that
//! names them. An import replaces the compiled files of its own origins and copies the others, so one
//! rename changes all of them. Older versions wrote a single compiled file; it is read as one origin.

use crate::directory::{DataDirectory, check};
use crate::error::Error;
use crate::part::{Data, Kind, Note, Part, Piece, Unfinished};
use crate::progress::Progress;
use muster_scan::vulnerability::Database;
use muster_scan::vulnerability::osv::{OsvIndex, OsvSet};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The start of a file with several compiled files. Older versions refuse it; they would read the first
/// compiled file only.
pub(crate) const MAGIC: &[u8] = b"MSTRSET1";
const MAX_ORIGINS: usize = 256;
const MAX_NAME: usize = 256;
const MAX_PATH: usize = 1024;
/// The name of every archive of one ecosystem at its publisher. Such an archive is named after its
/// ecosystem too.
const ANY_ECOSYSTEM: &str = "all.zip";
/// Held while an import reads the current origins and replaces the file, so that none is lost.
const LOCK: &str = "osv.lock";

/// OSV records of one origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginInfo {
    /// Its name: the name of the file or directory that was imported.
    pub name: String,
    /// The path that was imported.
    pub path: String,
    /// Identifies the data.
    pub revision: String,
    /// Number of records.
    pub records: u64,
    /// When the newest record was changed, in RFC 3339; none if no record has a date.
    pub updated_at: Option<String>,
    /// When it was imported.
    pub downloaded_at: Option<String>,
    /// Bytes on disk.
    pub size: u64,
}

/// A compiled file of one origin.
#[derive(Clone)]
pub(crate) struct Origin {
    piece: Piece,
    data: Data,
    pub info: OriginInfo,
}

/// What replacing origins did.
#[derive(Debug, Default)]
pub(crate) struct Replacement {
    /// Origins that were replaced, each with the index of the fresh one that replaced it.
    pub replaced: Vec<(usize, OriginInfo)>,
    /// Other origins that are no longer there.
    pub removed: Vec<OriginInfo>,
    /// Origins that did not change.
    pub kept: Vec<OriginInfo>,
}

impl Origin {
    /// A compiled file, opened once as its readers will open it.
    pub fn new(piece: Piece, data: Data, path: &Path) -> Result<Self, Error> {
        let index = open(&data, path)?;
        let metadata = index.metadata();
        let info = OriginInfo {
            name: piece.origin.clone(),
            path: piece.path.clone(),
            revision: metadata.revision.clone(),
            records: index.records(),
            updated_at: metadata.updated_at.clone(),
            downloaded_at: piece.imported_at.clone(),
            size: piece.length,
        };
        Ok(Origin { piece, data, info })
    }

    /// Whether the bytes are those that were written.
    pub fn verify(&self, path: &Path) -> Result<(), Error> {
        let verified = open(&self.data, path)?.verify();
        verified.map_err(|error| Error::damaged(path, error))
    }

    /// Whether this fresh origin replaces a current one. One of several with the same name must have the
    /// same path too.
    fn replaces(&self, current: &Origin, has_own_name: bool) -> bool {
        let (fresh, old) = (&self.info, &current.info);
        let is_same = fresh.name == old.name && (has_own_name || fresh.path == old.path);
        let is_archive = fresh.name.rsplit('/').next() == Some(ANY_ECOSYSTEM);
        is_same || (is_archive && current.piece.is_legacy && old.name == ANY_ECOSYSTEM)
    }
}

fn open(data: &Data, path: &Path) -> Result<OsvIndex, Error> {
    OsvIndex::open(data.clone()).map_err(|error| Error::damaged(path, error))
}

/// The origins in a file.
pub(crate) fn read(part: &Arc<Part>) -> Result<Vec<Origin>, Error> {
    let path = &part.path;
    let whole = part.data();
    if !whole.as_ref().starts_with(MAGIC) {
        let note = part.note.clone().unwrap_or_default();
        let from = Path::new(if note.origin.is_empty() {
            Kind::Osv.file()
        } else {
            note.origin.as_str()
        });
        let piece = Piece {
            origin: name(from, None),
            path: note.origin.clone(),
            imported_at: note.downloaded_at.clone(),
            length: whole.as_ref().len() as u64,
            is_legacy: true,
        };
        return Ok(vec![Origin::new(piece, whole, path)?]);
    }
    let pieces = part.note.as_ref().map(|note| note.pieces.as_slice());
    let pieces = pieces.filter(|pieces| (1..=MAX_ORIGINS).contains(&pieces.len()));
    let pieces = pieces.ok_or_else(|| Error::damaged(path, "its list of origins is damaged"))?;
    let mut start = MAGIC.len();
    let mut origins = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let length = usize::try_from(piece.length).ok();
        let end = length.and_then(|length| start.checked_add(length));
        let end = end.filter(|end| *end <= whole.as_ref().len());
        let end = end.ok_or_else(|| Error::damaged(path, "an origin is outside the file"))?;
        origins.push(Origin::new(piece.clone(), part.slice(start..end), path)?);
        start = end;
    }
    Ok(origins)
}

/// Origins as one body of data.
pub(crate) fn combine(origins: &[Origin], path: &Path) -> Result<OsvSet, Error> {
    let files = origins.iter().map(|origin| open(&origin.data, path));
    Ok(OsvSet::new(files.collect::<Result<Vec<_>, _>>()?))
}

/// The name of the origin at a path: that of the file or directory.
pub(crate) fn name(path: &Path, ecosystem: Option<&str>) -> String {
    let resolved = match path.file_name() {
        Some(_) => None,
        // Such as `.`, which has the name of the directory that it is.
        None => fs::canonicalize(path).ok(),
    };
    let path = resolved.as_deref().unwrap_or(path);
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = cut(&name.to_string_lossy(), MAX_NAME);
    match ecosystem {
        Some(ecosystem) if name == ANY_ECOSYSTEM => format!("{ecosystem}/{name}"),
        _ => name,
    }
}

/// A path as it is written down: the same from every working directory.
pub(crate) fn written(path: &Path) -> String {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    cut(&path.display().to_string(), MAX_PATH)
}

fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

/// Replaces the origins that the fresh ones replace, or all, by these.
pub(crate) fn replace(
    directory: &DataDirectory,
    fresh: &[Origin],
    replace_all: bool,
    progress: &dyn Progress,
) -> Result<Replacement, Error> {
    let _lock = lock(directory)?;
    let place = directory.place(Kind::Osv);
    let (mut kept, mut removed, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
    match current(&place) {
        Ok(origins) => {
            let mut names = BTreeMap::<String, usize>::new();
            for origin in &origins {
                *names.entry(origin.info.name.clone()).or_default() += 1;
            }
            for origin in origins {
                let has_own_name = names.get(&origin.info.name) == Some(&1);
                let mut by = fresh.iter();
                match by.position(|one| one.replaces(&origin, has_own_name)) {
                    Some(by) => replaced.push((by, origin.info)),
                    None if replace_all => removed.push(origin.info),
                    None => kept.push(origin),
                }
            }
        }
        // A damaged file holds no origin that could be kept.
        Err(_) if replace_all => {}
        Err(error) => return Err(error),
    }
    let all: Vec<Origin> = kept.iter().chain(fresh).cloned().collect();
    if all.len() > MAX_ORIGINS {
        let problem = format!("it would hold more than {MAX_ORIGINS} origins");
        return Err(Error::damaged(&place, problem));
    }
    let sizes = all.iter().map(|origin| origin.info.size);
    let total = sizes.fold(0_u64, u64::saturating_add);
    progress.begins("writing OSV records", Some(total));
    let written = write(directory, &all, &place, progress);
    progress.ends();
    written?.place(&place)?;
    Ok(Replacement {
        replaced,
        removed,
        kept: kept.into_iter().map(|origin| origin.info).collect(),
    })
}

fn current(place: &Path) -> Result<Vec<Origin>, Error> {
    match Part::open(place)? {
        Some(part) => read(&Arc::new(part)),
        None => Ok(Vec::new()),
    }
}

/// Writes a file that holds these origins, beside the place that it is for.
fn write(
    directory: &DataDirectory,
    origins: &[Origin],
    place: &Path,
    progress: &dyn Progress,
) -> Result<Unfinished, Error> {
    let mut unfinished = Unfinished::begin(directory.path(), Kind::Osv.file())?;
    let copied = copy(&mut unfinished, origins, progress);
    copied.map_err(Error::file("writing", unfinished.path()))?;
    let paths: Vec<&str> = origins.iter().map(|one| one.piece.path.as_str()).collect();
    let imported = origins.iter().map(|one| one.piece.imported_at.clone());
    unfinished.seal(&Note {
        revision: combine(origins, place)?.metadata().revision.clone(),
        downloaded_at: imported.max().flatten(),
        origin: cut(&paths.join(", "), MAX_PATH),
        metadata: None,
        pieces: origins.iter().map(|origin| origin.piece.clone()).collect(),
    })?;
    check(Kind::Osv, unfinished.path())?;
    Ok(unfinished)
}

fn copy(file: &mut Unfinished, origins: &[Origin], progress: &dyn Progress) -> io::Result<()> {
    file.write_all(MAGIC)?;
    for origin in origins {
        file.write_all(origin.data.as_ref())?;
        progress.advances(origin.info.size);
    }
    Ok(())
}

fn lock(directory: &DataDirectory) -> Result<File, Error> {
    let path = directory.path().join(LOCK);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = file.map_err(Error::file("opening", &path))?;
    // The system lets go of it when the process ends, however it ends.
    file.lock().map_err(Error::file("locking", &path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_the_name_of_its_file_or_directory() {
        for (path, ecosystem, expected) in [
            ("/tmp/PyPI.zip", Some("PyPI"), "PyPI.zip"),
            ("PyPI.zip", None, "PyPI.zip"),
            ("osv/", None, "osv"),
            ("PyPI/all.zip", Some("PyPI"), "PyPI/all.zip"),
            ("all.zip", Some("Go"), "Go/all.zip"),
            ("all.zip", None, "all.zip"),
            ("/", None, "/"),
        ] {
            assert_eq!(name(Path::new(path), ecosystem), expected, "{path}");
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            Some(name(Path::new("."), None).as_str()),
            here.file_name().and_then(|name| name.to_str())
        );
    }
}
