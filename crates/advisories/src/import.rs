//! Data from files: for machines without a network, and for sources of one's own. Files are known by
//! what is in them. An import replaces the data of the same kind, and of OSV records only those of the
//! same origin.

use crate::directory::{DataDirectory, check};
use crate::error::Error;
use crate::origins::{self, Origin, OriginInfo};
use crate::part::{Kind, Note, Part, Piece, Unfinished, now, sweep};
use crate::progress::Progress;
use crate::recognise::{Shape, shape};
use flate2::read::MultiGzDecoder;
use muster_bolt::Mapped;
use muster_scan::archive::{ArchiveLimits, each_file};
use muster_scan::digest::Digest;
use muster_scan::vulnerability::exploitation::Table;
use muster_scan::vulnerability::osv::Compiler;
use muster_scan::vulnerability::trivy_db::{FILE, METADATA};
use muster_scan::vulnerability::{Database, Summary};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MIB: u64 = 1 << 20;
/// What an archive of records may hold.
const RECORDS: ArchiveLimits = ArchiveLimits {
    entries: 8_000_000,
    file_bytes: 32 * MIB,
    bytes: 256 << 30,
};
const MAX_CATALOGUE: u64 = 64 * MIB;
const MAX_SCORES: u64 = 1 << 30;
/// Directories within directories.
const MAX_DEPTH: usize = 16;

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// What it is.
    pub kind: Kind,
    /// Identifies the data.
    pub revision: String,
    /// How many records went in, where it is made of such.
    pub records: Option<u64>,
    /// The origins of the records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<OriginInfo>,
    /// Origins that these records replaced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<OriginInfo>,
    /// Streams and counts of OSV records, and what was left out of them, by reason; of scores and
    /// known exploits their number.
    pub summary: Summary,
}

/// What an import of several paths did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Import {
    /// What was imported, in the order of the paths.
    pub imported: Vec<Imported>,
    /// Origins of OSV records that did not change.
    pub kept: Vec<OriginInfo>,
    /// Origins of OSV records that were removed and not replaced by others.
    pub removed: Vec<OriginInfo>,
}

/// A path that is read: data in its place already, or OSV records that are not yet.
enum Ready {
    Placed(Imported),
    Records(Imported, Vec<Origin>),
}

impl DataDirectory {
    /// Imports one file or directory. See [`DataDirectory::import_all`].
    pub fn import(&self, path: &Path, progress: &dyn Progress) -> Result<Imported, Error> {
        let import = self.import_all(&[path.to_owned()], false, progress)?;
        let imported = import.imported.into_iter().next();
        imported.ok_or_else(|| Error::Unrecognised(path.to_owned()))
    }

    /// Imports files and directories: Trivy databases (`trivy.db` with `metadata.json`, or their
    /// archive), OSV records (a directory of them, an archive, or directories with an `all.zip`
    /// each), EPSS scores, a catalogue of known exploits, or the parts of another directory like
    /// this one.
    ///
    /// Each path is an origin of OSV records. All of them are replaced in one step, after the last path
    /// was read, so an error changes none. Records of other origins are kept unless `replace_all`.
    pub fn import_all(
        &self,
        paths: &[PathBuf],
        replace_all: bool,
        progress: &dyn Progress,
    ) -> Result<Import, Error> {
        self.create()?;
        sweep(self.path());
        let mut ready = Vec::new();
        for path in paths {
            ready.push(self.prepare(path, progress)?);
        }
        let of_path = |one: &Ready| match one {
            Ready::Placed(_) => Vec::new(),
            Ready::Records(_, origins) => origins.clone(),
        };
        let fresh: Vec<Origin> = ready.iter().flat_map(of_path).collect();
        let (mut import, mut replaced) = (Import::default(), Vec::new());
        if !fresh.is_empty() {
            let replacement = origins::replace(self, &fresh, replace_all, progress)?;
            (import.kept, import.removed) = (replacement.kept, replacement.removed);
            replaced = replacement.replaced;
        }
        let mut first = 0;
        for one in ready {
            let imported = match one {
                Ready::Placed(imported) => imported,
                Ready::Records(mut imported, origins) => {
                    imported.origins = origins.into_iter().map(|origin| origin.info).collect();
                    let places = first..first + imported.origins.len();
                    let by_these = replaced.iter().filter(|(by, _)| places.contains(by));
                    imported.replaced = by_these.map(|(_, info)| info.clone()).collect();
                    first = places.end;
                    imported
                }
            };
            import.imported.push(imported);
        }
        Ok(import)
    }

    fn prepare(&self, path: &Path, progress: &dyn Progress) -> Result<Ready, Error> {
        let metadata = fs::metadata(path).map_err(Error::file("looking at", path))?;
        if metadata.is_dir() {
            return match path.join(FILE).is_file() {
                true => self.import_bolt(&path.join(FILE)).map(Ready::Placed),
                false => self.read_records(path, progress),
            };
        }
        let placed = match shape(path)?.ok_or_else(|| Error::Unrecognised(path.to_owned()))? {
            Shape::Bolt => self.import_bolt(path),
            Shape::Archive if has_database(path)? => self.import_archive(path),
            Shape::Archive | Shape::Json => return self.read_records(path, progress),
            Shape::Scores { compressed } => self.import_scores(path, compressed),
            Shape::Catalogue => self.import_catalogue(path),
            Shape::Index => return read_compiled(path),
            Shape::Table => {
                let is_catalogue = path
                    .file_name()
                    .is_some_and(|name| name == Kind::Kev.file());
                let kind = if is_catalogue { Kind::Kev } else { Kind::Epss };
                self.import_part(kind, path)
            }
        };
        placed.map(Ready::Placed)
    }

    fn import_bolt(&self, path: &Path) -> Result<Imported, Error> {
        let part = present(path)?;
        let note = part.note.clone();
        let part = Arc::new(part);
        let data = part.data();
        let mut note = note.unwrap_or_default();
        if note.metadata.is_none() {
            let beside = path.with_file_name(METADATA);
            let text = bounded(&beside, MIB)?;
            note.metadata = Some(String::from_utf8_lossy(&text).into_owned());
            note.revision = Digest::of(data.as_ref()).to_string();
        }
        (note.downloaded_at, note.origin) = (Some(now()), path.display().to_string());
        let mut unfinished = Unfinished::begin(self.path(), FILE)?;
        let written = unfinished.write_all(data.as_ref());
        written.map_err(Error::file("writing", unfinished.path()))?;
        self.install_trivy(unfinished, &note)?;
        Ok(imported(Kind::Trivy, note.revision))
    }

    fn import_archive(&self, path: &Path) -> Result<Imported, Error> {
        let archive = Mapped::open(path).map_err(Error::file("mapping", path))?;
        let note = Note {
            revision: Digest::of(&archive).to_string(),
            ..here(path)
        };
        self.install_archive(&archive, path, note.clone())?;
        Ok(imported(Kind::Trivy, note.revision))
    }

    /// A part of another directory, with its note.
    fn import_part(&self, kind: Kind, path: &Path) -> Result<Imported, Error> {
        let part = Arc::new(present(path)?);
        let data = part.data();
        let revision = match &part.note {
            Some(note) => note.revision.clone(),
            None => Digest::of(data.as_ref()).to_string(),
        };
        self.install(
            kind,
            data.as_ref(),
            Note {
                revision: revision.clone(),
                ..here(path)
            },
        )?;
        Ok(imported(kind, revision))
    }

    fn import_scores(&self, path: &Path, compressed: bool) -> Result<Imported, Error> {
        let file = File::open(path).map_err(Error::file("opening", path))?;
        let table = match compressed {
            true => Table::of_scores(MultiGzDecoder::new(file).take(MAX_SCORES)),
            false => Table::of_scores(file.take(MAX_SCORES)),
        };
        self.import_table(Kind::Epss, path, &table.map_err(Error::exploitation(path))?)
    }

    fn import_catalogue(&self, path: &Path) -> Result<Imported, Error> {
        let text = bounded(path, MAX_CATALOGUE)?;
        let table = Table::of_catalogue(&text).map_err(Error::exploitation(path))?;
        self.import_table(Kind::Kev, path, &table)
    }

    fn import_table(&self, kind: Kind, path: &Path, table: &Table) -> Result<Imported, Error> {
        if table.is_empty() {
            return Err(Error::damaged(path, "there is nothing in it"));
        }
        let revision = Digest::of(table.bytes()).to_string();
        let note = Note {
            revision: revision.clone(),
            ..here(path)
        };
        self.install(kind, table.bytes(), note)?;
        let mut imported = imported(kind, revision);
        imported.summary.vulnerabilities = table.len() as u64;
        Ok(imported)
    }

    fn install(&self, kind: Kind, data: &[u8], note: Note) -> Result<(), Error> {
        let mut unfinished = Unfinished::begin(self.path(), kind.file())?;
        let written = unfinished.write_all(data);
        written.map_err(Error::file("writing", unfinished.path()))?;
        unfinished.seal(&note)?;
        check(kind, unfinished.path())?;
        unfinished.place(&self.place(kind))
    }

    fn read_records(&self, path: &Path, progress: &dyn Progress) -> Result<Ready, Error> {
        progress.begins("compiling OSV records", None);
        let outcome = self.compile(path, progress);
        progress.ends();
        outcome
    }

    fn compile(&self, path: &Path, progress: &dyn Progress) -> Result<Ready, Error> {
        let failed = |error| Error::file("compiling the records of", path)(error);
        let mut records = Records {
            compiler: Compiler::new().map_err(failed)?,
            progress,
        };
        match path.is_dir() {
            true => records.directory(path, 0)?,
            false => records.file(path)?,
        }
        let mut unfinished = Unfinished::begin(self.path(), Kind::Osv.file())?;
        let compiled = records.compiler.finish(&mut unfinished);
        let compiled = compiled.map_err(Error::file("writing", unfinished.path()))?;
        if compiled.records == 0 {
            return Err(Error::Unrecognised(path.to_owned()));
        }
        let flushed = unfinished.flush();
        flushed.map_err(Error::file("writing", unfinished.path()))?;
        // What is mapped stays when its file is removed.
        let data = Arc::new(present(unfinished.path())?).data();
        let piece = Piece {
            origin: origins::name(path, compiled.ecosystem.as_deref()),
            path: origins::written(path),
            imported_at: Some(now()),
            length: data.as_ref().len() as u64,
            is_legacy: false,
        };
        let origin = Origin::new(piece, data, path)?;
        let imported = Imported {
            records: Some(compiled.records),
            summary: compiled.summary,
            ..imported(Kind::Osv, compiled.revision)
        };
        Ok(Ready::Records(imported, vec![origin]))
    }
}

/// The origins of another directory like this one.
fn read_compiled(path: &Path) -> Result<Ready, Error> {
    let part = Arc::new(present(path)?);
    let origins = origins::read(&part)?;
    for origin in &origins {
        origin.verify(path)?;
    }
    let revision = origins::combine(&origins, path)?
        .metadata()
        .revision
        .clone();
    let counts = origins.iter().map(|origin| origin.info.records);
    let imported = Imported {
        records: Some(counts.fold(0, u64::saturating_add)),
        ..imported(Kind::Osv, revision)
    };
    Ok(Ready::Records(imported, origins))
}

/// Records on their way from files.
struct Records<'a> {
    compiler: Compiler,
    progress: &'a dyn Progress,
}

impl Records<'_> {
    /// Every record below a directory. Links to directories are not followed.
    fn directory(&mut self, path: &Path, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            self.compiler.leave_out("directory that is too deep", 1);
            return Ok(());
        }
        let entries = fs::read_dir(path).map_err(Error::file("listing", path))?;
        let mut entries: Vec<(PathBuf, bool)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((entry.path(), entry.file_type().ok()?.is_dir()))
            })
            .collect();
        entries.sort();
        for (path, is_directory) in entries {
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending {
                _ if is_directory => self.directory(&path, depth + 1)?,
                Some("json" | "zip" | "gz" | "tgz" | "tar") => match self.file(&path) {
                    // One bad file spoils no others.
                    Err(Error::Damaged { .. }) => self.compiler.leave_out("damaged archive", 1),
                    outcome => outcome?,
                },
                _ => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<(), Error> {
        let length = fs::metadata(path).map(|metadata| metadata.len());
        if length.map_err(Error::file("looking at", path))? == 0 {
            self.compiler.leave_out("empty file", 1);
            return Ok(());
        }
        let bytes = Mapped::open(path).map_err(Error::file("mapping", path))?;
        if !muster_scan::archive::is_archive(&bytes) {
            self.progress.advances(1);
            let added = self.compiler.add(&bytes);
            return added.map_err(Error::file("compiling", path));
        }
        let mut text = Vec::new();
        let read = each_file(&bytes, &RECORDS, |name, file| {
            if !name.ends_with(".json") {
                return Ok(());
            }
            text.clear();
            file.read_to_end(&mut text)?;
            self.progress.advances(1);
            self.compiler.add(&text)
        });
        read.map_err(Error::archive(path))
    }
}

/// Whether an archive holds a Trivy database.
fn has_database(path: &Path) -> Result<bool, Error> {
    let archive = Mapped::open(path).map_err(Error::file("mapping", path))?;
    let mut found = false;
    // The database is the first or second file of two; nothing beyond matters.
    let _ = each_file(&archive, &RECORDS, |name, _| {
        found = matches!(name, FILE | METADATA);
        Err(io::Error::other("seen enough"))
    });
    Ok(found)
}

fn here(path: &Path) -> Note {
    Note {
        downloaded_at: Some(now()),
        origin: path.display().to_string(),
        ..Note::default()
    }
}

fn imported(kind: Kind, revision: String) -> Imported {
    Imported {
        kind,
        revision,
        records: None,
        origins: Vec::new(),
        replaced: Vec::new(),
        summary: Summary::default(),
    }
}

fn present(path: &Path) -> Result<Part, Error> {
    Part::open(path)?.ok_or_else(|| Error::damaged(path, "it is gone"))
}

fn bounded(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let file = File::open(path).map_err(Error::file("opening", path))?;
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(Error::file("reading", path))?;
    if bytes.len() as u64 > limit {
        return Err(Error::damaged(path, format!("more than {limit} bytes")));
    }
    Ok(bytes)
}
