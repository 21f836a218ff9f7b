//! What can go wrong.

use muster_scan::archive::ArchiveError;
use muster_scan::vulnerability::DatabaseError;
use muster_scan::vulnerability::exploitation::ExploitationError;
use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{attempt} {path}: {source}")]
    File {
        /// What was attempted.
        attempt: &'static str,
        /// With which file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// There is no data in the directory yet.
    #[error("there is no vulnerability data in {0}")]
    Empty(PathBuf),
    /// A file is not what it should be.
    #[error("reading {path}: {problem}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file is nothing that can be imported.
    #[error(
        "{0} is nothing that is known here: neither a Trivy database, nor OSV records, EPSS scores or a catalogue of known exploits"
    )]
    Unrecognised(PathBuf),
    /// No repository gave a database.
    #[error("no repository gave a vulnerability database: {}", told(.0))]
    Repositories(Vec<Failure>),
    /// A hub of VEX documents could not be read.
    #[error("reading the VEX hub {hub}: {problem}")]
    Hub {
        /// Its address.
        hub: String,
        /// What is wrong.
        problem: String,
    },
}

/// Why one repository did not give a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The repository, as it was given.
    pub repository: String,
    /// Why not.
    pub reason: String,
}

fn told(failures: &[Failure]) -> String {
    if failures.is_empty() {
        return "none was named".into();
    }
    let one = |failure: &Failure| format!("{}: {}", failure.repository, failure.reason);
    failures.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Error {
    pub(crate) fn file(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::File {
            attempt,
            path,
            source,
        }
    }

    pub(crate) fn damaged(path: &Path, problem: impl ToString) -> Error {
        Error::Damaged {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }

    pub(crate) fn archive(path: &Path) -> impl FnOnce(ArchiveError) -> Error {
        let path = path.to_owned();
        move |error| Error::damaged(&path, error)
    }

    pub(crate) fn database(path: &Path) -> impl FnOnce(DatabaseError) -> Error {
        let path = path.to_owned();
        move |error| Error::damaged(&path, error)
    }

    pub(crate) fn exploitation(path: &Path) -> impl FnOnce(ExploitationError) -> Error {
        let path = path.to_owned();
        move |error| Error::damaged(&path, error)
    }
}
