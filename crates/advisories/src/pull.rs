//! The Trivy database from a registry. Repositories are asked one after the other until one gives
//! it; what is here already is not transferred again, and a transfer that broke off, in this
//! process or an earlier one, is taken up where it ended. Nothing goes live that was not opened
//! once as its readers will.

use crate::directory::{DataDirectory, check};
use crate::error::{Error, Failure};
use crate::part::{Kind, Note, Unfinished, now, sweep};
use crate::progress::Progress;
use muster_bolt::Mapped;
use muster_registry::{Client, Descriptor, Digest, Layer, Manifest, Reference, Repository};
use muster_scan::archive::{ArchiveLimits, each_file};
use muster_scan::vulnerability::trivy_db::{FILE, METADATA};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where the database is published.
pub const DEFAULT_REPOSITORIES: [&str; 2] = [
    "mirror.gcr.io/aquasec/trivy-db:2",
    "ghcr.io/aquasecurity/trivy-db:2",
];
const LAYER: &str = "application/vnd.aquasec.trivy.db.layer.v1.tar+gzip";
/// What was transferred so far of a layer, named by its digest.
pub(crate) const PARTIAL: &str = ".partial";
const GIB: u64 = 1 << 30;
const MAX_DOWNLOAD: u64 = 4 * GIB;
const MAX_METADATA: u64 = 1 << 20;
/// What the archive of a database may hold.
const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 64,
    file_bytes: 16 * GIB,
    bytes: 16 * GIB,
};
const CHUNK: usize = 1 << 20;

/// How to update.
#[derive(Clone, Debug)]
pub struct Update {
    /// Where to ask, in this order; the usual places where there are none.
    pub repositories: Vec<String>,
    /// Who asks.
    pub client: Client,
    /// Transfer it even if it is here already.
    pub force: bool,
}

/// What an update came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is another database now.
    Updated {
        /// Where it came from.
        repository: String,
        /// The digest of its manifest.
        revision: String,
        /// Bytes that were transferred.
        transferred: u64,
        /// Why repositories before did not give it.
        failures: Vec<Failure>,
    },
    /// What is there is the newest.
    Current {
        /// Who says so.
        repository: String,
        /// The digest of its manifest.
        revision: String,
        /// Why repositories before did not say.
        failures: Vec<Failure>,
    },
}

/// Why a repository did not give it, or why no repository could.
enum Trouble {
    Repository(String),
    Here(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Here(error)
    }
}

impl From<muster_registry::Error> for Trouble {
    fn from(error: muster_registry::Error) -> Self {
        Trouble::Repository(error.to_string())
    }
}

impl DataDirectory {
    /// Brings the Trivy database up to date. Any number of processes may do so at once, and be
    /// killed at any time.
    pub async fn update(
        &self,
        options: &Update,
        progress: &dyn Progress,
    ) -> Result<Outcome, Error> {
        self.create()?;
        sweep(self.path());
        let usual = DEFAULT_REPOSITORIES.map(String::from);
        let repositories = match options.repositories.as_slice() {
            [] => &usual[..],
            named => named,
        };
        let mut failures = Vec::new();
        for repository in repositories {
            match self.update_from(repository, options, progress).await {
                Ok((revision, Some(transferred))) => {
                    return Ok(Outcome::Updated {
                        repository: repository.clone(),
                        revision,
                        transferred,
                        failures,
                    });
                }
                Ok((revision, None)) => {
                    return Ok(Outcome::Current {
                        repository: repository.clone(),
                        revision,
                        failures,
                    });
                }
                Err(Trouble::Here(error)) => return Err(error),
                Err(Trouble::Repository(reason)) => {
                    tracing::debug!(repository, reason, "no vulnerability database");
                    failures.push(Failure {
                        repository: repository.clone(),
                        reason,
                    });
                }
            }
        }
        Err(Error::Repositories(failures))
    }

    /// The revision, and how much was transferred; nothing where it is here already.
    async fn update_from(
        &self,
        name: &str,
        options: &Update,
        progress: &dyn Progress,
    ) -> Result<(String, Option<u64>), Trouble> {
        let client = &options.client;
        let reference =
            Reference::parse(name).map_err(|error| Trouble::Repository(error.to_string()))?;
        let digest = client.resolve(&reference).await?.digest;
        let revision = digest.to_string();
        if !options.force && self.has(&revision) {
            return Ok((revision, None));
        }
        let repository = reference.repository();
        let layer = layer_of(client, &repository.at(&digest)).await?;
        let download = Download {
            directory: self.path(),
            client,
            repository,
            layer: &layer,
            progress,
        };
        let (file, partial, transferred) = download.run().await?;
        // Somebody else may have been quicker.
        if !options.force && self.has(&revision) {
            let _ = fs::remove_file(&partial);
            return Ok((revision, None));
        }
        progress.begins("unpacking the vulnerability database", None);
        let (directory, origin) = (self.clone(), name.to_owned());
        let (digest, note) = (
            layer.digest.clone(),
            Note {
                revision: revision.clone(),
                downloaded_at: Some(now()),
                origin,
                metadata: None,
                pieces: Vec::new(),
            },
        );
        let installed = tokio::task::spawn_blocking(move || {
            let outcome = directory.install_layer(&file, &partial, &digest, note);
            let _ = fs::remove_file(&partial);
            outcome
        });
        let installed = installed.await;
        progress.ends();
        match installed {
            Ok(outcome) => outcome?,
            Err(error) => return Err(Trouble::Repository(error.to_string())),
        }
        Ok((revision, Some(transferred)))
    }

    /// Whether that very database is here. One that cannot be read is not.
    fn has(&self, revision: &str) -> bool {
        let note = self.note(Kind::Trivy).ok().flatten();
        note.is_some_and(|note| note.revision == revision)
            && check(Kind::Trivy, &self.place(Kind::Trivy)).is_ok()
    }

    fn install_layer(
        &self,
        file: &File,
        path: &Path,
        digest: &Digest,
        note: Note,
    ) -> Result<(), Trouble> {
        let archive = Mapped::of(file).map_err(Error::file("mapping", path))?;
        // What is unpacked is what was checked, whoever else writes to the same file.
        if digest.check(&archive).is_err() {
            return Err(Trouble::Repository(
                "what was transferred has changed on disk".into(),
            ));
        }
        // A damaged archive is the repository's fault: it has the digest that the manifest says.
        match self.install_archive(&archive, path, note) {
            Err(Error::Damaged { problem, .. }) => Err(Trouble::Repository(problem)),
            outcome => Ok(outcome?),
        }
    }

    /// Puts the database of an archive in its place.
    pub(crate) fn install_archive(
        &self,
        archive: &[u8],
        path: &Path,
        mut note: Note,
    ) -> Result<(), Error> {
        let mut unfinished = Unfinished::begin(self.path(), FILE)?;
        let (mut database, mut metadata) = (false, None);
        each_file(archive, &LIMITS, |name, file| {
            match name {
                FILE if !database => {
                    io::copy(file, &mut unfinished)?;
                    database = true;
                }
                METADATA if metadata.is_none() => {
                    let mut text = String::new();
                    file.take(MAX_METADATA).read_to_string(&mut text)?;
                    metadata = Some(text);
                }
                _ => {}
            }
            Ok(())
        })
        .map_err(Error::archive(path))?;
        let (true, Some(metadata)) = (database, metadata) else {
            let problem = format!("no archive with {FILE} and {METADATA}");
            return Err(Error::damaged(path, problem));
        };
        note.metadata = Some(metadata);
        self.install_trivy(unfinished, &note)
    }

    /// Puts a database in its place that was written already, after opening it.
    pub(crate) fn install_trivy(
        &self,
        mut unfinished: Unfinished,
        note: &Note,
    ) -> Result<(), Error> {
        unfinished.seal(note)?;
        check(Kind::Trivy, unfinished.path())?;
        unfinished.place(&self.place(Kind::Trivy))?;
        // The note counts here; this is for others who read such directories.
        let text = note.metadata.as_deref().unwrap_or_default();
        let mut beside = Unfinished::begin(self.path(), METADATA)?;
        let path = beside.path().to_owned();
        beside
            .write_all(text.as_bytes())
            .map_err(Error::file("writing", &path))?;
        beside.seal_plain()?;
        beside.place(&self.path().join(METADATA))
    }
}

async fn layer_of(client: &Client, reference: &Reference) -> Result<Descriptor, Trouble> {
    let wrong = |problem: &str| Trouble::Repository(format!("{reference} {problem}"));
    let fetched = client.manifest(reference).await?;
    let Manifest::Image(manifest) = fetched.manifest else {
        return Err(wrong("is an index and no vulnerability database"));
    };
    let mut layers = manifest.layers.into_iter();
    match (layers.next(), layers.next()) {
        (Some(layer), None) if layer.media_type == LAYER && layer.size <= MAX_DOWNLOAD => Ok(layer),
        (Some(layer), None) if layer.media_type == LAYER => Err(wrong("is too large")),
        _ => Err(wrong("is no vulnerability database")),
    }
}

/// A transfer into a file that outlives this process. Two that write the same file write the same
/// bytes to the same places.
struct Download<'a> {
    directory: &'a Path,
    client: &'a Client,
    repository: &'a Repository,
    layer: &'a Descriptor,
    progress: &'a dyn Progress,
}

impl Download<'_> {
    async fn run(&self) -> Result<(File, PathBuf, u64), Trouble> {
        let digits = self.layer.digest.to_string().replace(':', "-");
        let path = self.directory.join(format!("{digits}{PARTIAL}"));
        for again in [false, true] {
            let file = self.file(&path)?;
            let outcome = self.transfer(&file, &path).await;
            match outcome {
                Ok(transferred) => return Ok((file, path, transferred)),
                // What an earlier transfer left may be the wrong part of it.
                Err(Trouble::Repository(_)) if !again && self.is_wrong(&outcome) => {
                    let _ = fs::remove_file(&path);
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Err(Trouble::Repository("the digest is wrong".into()))
    }

    fn is_wrong(&self, outcome: &Result<u64, Trouble>) -> bool {
        matches!(outcome, Err(Trouble::Repository(reason)) if reason == WRONG)
    }

    fn file(&self, path: &Path) -> Result<File, Error> {
        let open = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
        };
        let file = open().map_err(Error::file("opening", path))?;
        let length = file.metadata().map(|metadata| metadata.len());
        if length.map_err(Error::file("looking at", path))? <= self.layer.size {
            return Ok(file);
        }
        fs::remove_file(path).map_err(Error::file("removing", path))?;
        open().map_err(Error::file("opening", path))
    }

    async fn transfer(&self, file: &File, path: &Path) -> Result<u64, Trouble> {
        let reading = Error::file("reading", path);
        let mut layer = self.client.layer(self.repository, self.layer)?;
        let copy = file.try_clone().map_err(Error::file("reading", path))?;
        let skipped = tokio::task::spawn_blocking(move || {
            let length = skip(&copy, &mut layer)?;
            Ok::<_, Skip>((layer, length))
        });
        let (mut layer, start) = match skipped.await {
            Ok(Ok(skipped)) => skipped,
            Ok(Err(Skip::Read(error))) => return Err(reading(error).into()),
            Ok(Err(Skip::Layer(error))) => return Err((*error).into()),
            Err(error) => return Err(Trouble::Repository(error.to_string())),
        };
        let mut offset = start;
        let what = format!(
            "downloading the vulnerability database from {}",
            self.repository
        );
        self.progress.begins(&what, Some(self.layer.size));
        self.progress.advances(start);
        let outcome = loop {
            match layer.chunk().await {
                Ok(None) => break Ok(offset - start),
                Ok(Some(chunk)) => {
                    if let Err(error) = file.write_all_at(&chunk, offset) {
                        break Err(Error::file("writing", path)(error).into());
                    }
                    offset += chunk.len() as u64;
                    self.progress.advances(chunk.len() as u64);
                }
                Err(muster_registry::Error::DigestMismatch { .. }) if start > 0 => {
                    break Err(Trouble::Repository(WRONG.into()));
                }
                Err(error) => {
                    // Bytes of the wrong digest are no beginning of the right ones.
                    if matches!(error, muster_registry::Error::DigestMismatch { .. }) {
                        let _ = fs::remove_file(path);
                    }
                    break Err(error.into());
                }
            }
        };
        self.progress.ends();
        outcome
    }
}

const WRONG: &str = "what was left of an earlier transfer is wrong";

enum Skip {
    Read(io::Error),
    Layer(Box<muster_registry::Error>),
}

/// Counts what is there already towards the layer.
fn skip(file: &File, layer: &mut Layer) -> Result<u64, Skip> {
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    while offset < layer.size() {
        let left = usize::try_from(layer.size() - offset)
            .unwrap_or(CHUNK)
            .min(CHUNK);
        let length = file
            .read_at(&mut buffer[..left], offset)
            .map_err(Skip::Read)?;
        if length == 0 {
            break;
        }
        let skipped = layer.skip(&buffer[..length]);
        skipped.map_err(|error| Skip::Layer(Box::new(error)))?;
        offset += length as u64;
    }
    Ok(offset)
}
