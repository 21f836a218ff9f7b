//! The directory as its readers see it: what is there, opened as one database, and whether that is
//! still what is there.

use crate::error::Error;
use crate::origins::{self, OriginInfo};
use crate::part::{Kind, Note, Part, Stamp};
use muster_scan::digest::Digest;
use muster_scan::vulnerability::exploitation::{ExploitationData, Table};
use muster_scan::vulnerability::osv::OsvSet;
use muster_scan::vulnerability::trivy_db::{METADATA, TrivyDatabase};
use muster_scan::vulnerability::{Combined, Database, Summary};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file beside a plain Trivy database is a few lines.
const MAX_METADATA: u64 = 1024 * 1024;

/// A directory of vulnerability data.
#[derive(Clone, Debug)]
pub struct DataDirectory {
    path: PathBuf,
}

/// The data of a directory, as it was when it was opened.
#[derive(Clone)]
pub struct Opened {
    /// Advisories and vulnerabilities of all parts, the Trivy database first.
    pub database: Arc<dyn Database>,
    /// How likely vulnerabilities are used; empty where there is no such data.
    pub exploitation: ExploitationData,
    /// Which parts there are.
    pub parts: Vec<Kind>,
    /// Identifies all of it.
    pub revision: String,
    stamps: [Option<Stamp>; 4],
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Opened({}, {:?})", self.revision, self.parts)
    }
}

/// What a directory holds, for people to look at.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// Where it is.
    pub path: PathBuf,
    /// Its parts.
    pub parts: Vec<PartInfo>,
}

/// What one part holds.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartInfo {
    /// What it is.
    pub kind: Kind,
    /// Identifies the data.
    pub revision: String,
    /// When its makers last changed it, in RFC 3339.
    pub updated_at: Option<String>,
    /// When they will change it again.
    pub next_update: Option<String>,
    /// When it came here.
    pub downloaded_at: Option<String>,
    /// Where it came from.
    pub origin: Option<String>,
    /// The origins of OSV records, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<OriginInfo>,
    /// Bytes on disk.
    pub size: u64,
    /// Streams, sources and counts; of EPSS and known exploits the number of vulnerabilities.
    pub summary: Summary,
}

/// One part, opened.
enum Open {
    Database(Arc<dyn Database>),
    Records(OsvSet, Vec<OriginInfo>),
    Table(Table),
}

impl PartInfo {
    fn describe(&mut self, database: &dyn Database, place: &Path) -> Result<(), Error> {
        let metadata = database.metadata();
        self.revision = metadata.revision.clone();
        self.updated_at = metadata.updated_at.clone();
        self.next_update = metadata.next_update.clone();
        self.summary = database.summary().map_err(Error::database(place))?;
        Ok(())
    }
}

impl Opened {
    /// Whether its makers have said that there would be newer data by now.
    pub fn is_due(&self) -> bool {
        let next = self.database.metadata().next_update.as_deref();
        let next = next.and_then(|time| time.parse::<jiff::Timestamp>().ok());
        next.is_some_and(|next| next <= jiff::Timestamp::now())
    }
}

impl DataDirectory {
    /// The directory at a path. Nothing is touched before it is asked for.
    pub fn new(path: PathBuf) -> Self {
        DataDirectory { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn place(&self, kind: Kind) -> PathBuf {
        self.path.join(kind.file())
    }

    pub(crate) fn create(&self) -> Result<(), Error> {
        let created = fs::create_dir_all(&self.path);
        created.map_err(Error::file("creating the directory", &self.path))
    }

    /// Opens what is there. That there is no database at all is an error.
    pub fn open(&self) -> Result<Opened, Error> {
        let mut databases = Vec::new();
        let mut exploitation = ExploitationData::default();
        let (mut parts, mut stamps, mut revisions) = (Vec::new(), [None; 4], String::new());
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            let Some((stamp, note, open)) = self.part(kind)? else {
                continue;
            };
            stamps[place] = Some(stamp);
            parts.push(kind);
            let mut database = |database: Arc<dyn Database>| {
                revisions += &format!("{kind:?} {}\n", database.metadata().revision);
                databases.push(database);
            };
            match open {
                Open::Database(one) => database(one),
                Open::Records(records, _) => database(Arc::new(records)),
                Open::Table(table) => {
                    let revision = note.map(|note| note.revision).unwrap_or_default();
                    revisions += &format!("{kind:?} {revision}\n");
                    match kind {
                        Kind::Kev => exploitation.catalogue = Some(table),
                        _ => exploitation.scores = Some(table),
                    }
                }
            }
        }
        let database: Arc<dyn Database> = match databases.len() {
            0 => return Err(Error::Empty(self.path.clone())),
            1 => databases.remove(0),
            _ => Arc::new(Combined::new(databases)),
        };
        Ok(Opened {
            database,
            exploitation,
            parts,
            revision: Digest::of(revisions.as_bytes()).to_string(),
            stamps,
        })
    }

    /// Whether the directory holds something else by now. It takes a look at four files and reads
    /// none of them.
    pub fn is_stale(&self, opened: &Opened) -> Result<bool, Error> {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            if Stamp::at(&self.place(kind))? != opened.stamps[place] {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What there is. It may walk through all of it.
    pub fn info(&self) -> Result<Info, Error> {
        let mut parts = Vec::new();
        for kind in Kind::ALL {
            let place = self.place(kind);
            let Some((stamp, note, open)) = self.part(kind)? else {
                continue;
            };
            let note = note.unwrap_or_default();
            let mut info = PartInfo {
                kind,
                revision: note.revision,
                updated_at: None,
                next_update: None,
                downloaded_at: note.downloaded_at,
                origin: Some(note.origin).filter(|origin| !origin.is_empty()),
                origins: Vec::new(),
                size: stamp.length(),
                summary: Summary::default(),
            };
            match open {
                Open::Database(database) => info.describe(&*database, &place)?,
                Open::Records(records, mut origins) => {
                    origins.sort_by(|left, right| {
                        (&left.name, &left.path).cmp(&(&right.name, &right.path))
                    });
                    info.origins = origins;
                    info.describe(&records, &place)?;
                }
                Open::Table(table) => {
                    let date = table.date();
                    info.updated_at = date.map(|date| format!("{date}T00:00:00Z"));
                    info.summary.vulnerabilities = table.len() as u64;
                }
            }
            parts.push(info);
        }
        Ok(Info {
            path: self.path.clone(),
            parts,
        })
    }

    /// The note of a part that is there.
    pub(crate) fn note(&self, kind: Kind) -> Result<Option<Note>, Error> {
        Ok(Part::open(&self.place(kind))?.and_then(|part| part.note))
    }

    fn part(&self, kind: Kind) -> Result<Option<(Stamp, Option<Note>, Open)>, Error> {
        let place = self.place(kind);
        let Some(part) = Part::open(&place)? else {
            return Ok(None);
        };
        let (stamp, note) = (part.stamp, part.note.clone());
        Ok(Some((stamp, note, open(kind, part)?)))
    }
}

/// Opens a part, whether it is in its place already or not.
fn open(kind: Kind, part: Part) -> Result<Open, Error> {
    let path = part.path.clone();
    match kind {
        Kind::Trivy => {
            let note = part.note.clone();
            let revision = note.as_ref().map(|note| note.revision.as_str());
            let metadata = match note.as_ref().and_then(|note| note.metadata.as_deref()) {
                Some(text) => text.as_bytes().to_vec(),
                // A plain database, as it was unpacked, has a file beside it.
                None => beside(&path)?,
            };
            let database = TrivyDatabase::from_mapped(part.into_map(), &metadata, revision);
            Ok(Open::Database(Arc::new(
                database.map_err(Error::database(&path))?,
            )))
        }
        Kind::Osv => {
            let origins = origins::read(&Arc::new(part))?;
            let records = origins::combine(&origins, &path)?;
            let origins = origins.into_iter().map(|origin| origin.info);
            Ok(Open::Records(records, origins.collect()))
        }
        Kind::Epss | Kind::Kev => {
            let table = Table::open(Arc::new(part).data());
            Ok(Open::Table(table.map_err(Error::exploitation(&path))?))
        }
    }
}

/// Opens a file that is about to be put in its place, as its readers will.
pub(crate) fn check(kind: Kind, path: &Path) -> Result<(), Error> {
    match Part::open(path)? {
        Some(part) => open(kind, part).map(drop),
        None => Err(Error::damaged(path, "it is gone")),
    }
}

fn beside(database: &Path) -> Result<Vec<u8>, Error> {
    let path = database.with_file_name(METADATA);
    let length = fs::metadata(&path).map(|metadata| metadata.len());
    if length.map_err(Error::file("looking at", &path))? > MAX_METADATA {
        return Err(Error::damaged(&path, "it is too large"));
    }
    fs::read(&path).map_err(Error::file("reading", &path))
}
