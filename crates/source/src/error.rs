//! Why something could not be scanned. A message says what was attempted, and where a person can do
//! something about it, what.

use crate::daemon::Engine;
use muster_api::Platform;
use muster_registry::ReferenceError;
use muster_scan::layer::LayerError;
use muster_scan::sbom::BillError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why something could not be scanned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A registry did not give what was asked, or something in its form is malformed.
    #[error(transparent)]
    Registry(#[from] muster_registry::Error),
    /// What was typed is neither a path nor an image.
    #[error("{0}; a file or directory of that name does not exist either")]
    Reference(#[from] ReferenceError),
    /// What was typed is a path, and nothing is there.
    #[error("there is nothing at {}", .0.display())]
    NothingThere(PathBuf),
    /// What is there is nothing that can be scanned.
    #[error("{} cannot be scanned: {reason}", path.display())]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// What was expected.
        reason: &'static str,
    },
    /// A directory holds nothing that is recognised.
    #[error(
        "{} cannot be scanned: no packages found; recognised are lockfiles ({}), the root file system of a Linux distribution and OCI layouts", .0.display(), muster_scan::lockfile::NAMES.join(", ")
    )]
    NothingRecognised(PathBuf),
    /// A file could not be read.
    #[error("{attempt}: {source}")]
    File {
        /// What was being done, to which file.
        attempt: String,
        /// What happened.
        source: io::Error,
    },
    /// An archive, a layout or an answer makes no sense.
    #[error("{attempt}: {reason}")]
    Malformed {
        /// What was being done, to what.
        attempt: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There are several images, and nobody said which.
    #[error("{place} holds several images; choose one of them: {}", choices.join(", "))]
    Ambiguous {
        /// The archive or layout.
        place: String,
        /// What to type for each.
        choices: Vec<String>,
    },
    /// There is no image of that name in an archive or layout.
    #[error("{place} holds no image {wanted}; it has: {}", listed(names))]
    NoSuchImage {
        /// The archive or layout.
        place: String,
        /// What was asked for.
        wanted: String,
        /// What there is.
        names: Vec<String>,
    },
    /// An image has no such platform.
    #[error(
        "{image} is not there for {wanted}; choose one of its platforms: {}",
        listed(available)
    )]
    NoPlatform {
        /// The image.
        image: String,
        /// The platform that is wanted.
        wanted: Platform,
        /// Those that it has.
        available: Vec<Platform>,
    },
    /// It is an artifact of another sort.
    #[error("{name} is no container image but {kind}")]
    NotAnImage {
        /// What was asked for.
        name: String,
        /// What it says it is.
        kind: String,
    },
    /// A layer could not be read.
    #[error("layer {layer} of {image}: {source}")]
    Layer {
        /// The layer.
        layer: String,
        /// The image.
        image: String,
        /// What happened.
        source: LayerError,
    },
    /// Content is not what its image says it is.
    #[error("{what} of {image} is {actual}, and {expected} was expected")]
    Mismatch {
        /// Which content, and what of it.
        what: String,
        /// The image.
        image: String,
        /// What was promised.
        expected: String,
        /// What there is.
        actual: String,
    },
    /// There is more of something than is borne.
    #[error("{attempt}: more than {limit} {what}")]
    TooLarge {
        /// What was being done, to what.
        attempt: String,
        /// What there is too much of.
        what: &'static str,
        /// How much is borne.
        limit: u64,
    },
    /// No daemon answers.
    #[error(
        "asking {engine} for an image: no socket answers ({}); start it, or name its socket in {}",
        tried.join("; "), engine.variable()
    )]
    NoDaemon {
        /// Which daemon.
        engine: Engine,
        /// The sockets that were tried, and what happened.
        tried: Vec<String>,
    },
    /// A daemon has no such image.
    #[error("{engine} has no image {image}; pull it first, or write registry:{image}")]
    NotInDaemon {
        /// Which daemon.
        engine: Engine,
        /// The image.
        image: String,
    },
    /// A daemon broke off or refused.
    #[error("{attempt}: {reason}")]
    Daemon {
        /// What was asked.
        attempt: String,
        /// What happened.
        reason: String,
    },
    /// A document could not be understood.
    #[error("{}: {source}", path.display())]
    Document {
        /// The document.
        path: PathBuf,
        /// What is wrong with it.
        source: BillError,
    },
    /// One platform of an image could not be scanned.
    #[error("{platform}: {source}")]
    OfPlatform {
        /// The platform.
        platform: Platform,
        /// Why not.
        source: Box<Error>,
    },
    /// A part of this process ended early.
    #[error("scanning broke off: {0}")]
    Stopped(String),
}

impl Error {
    /// Whether the same attempt may succeed later with nothing changed on our side.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Registry(error) => error.is_transient(),
            Error::OfPlatform { source, .. } => source.is_transient(),
            Error::NoDaemon { .. } | Error::Daemon { .. } | Error::Stopped(_) => true,
            _ => false,
        }
    }

    /// When a registry said that it may be tried again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Registry(error) => error.retry_after(),
            Error::OfPlatform { source, .. } => source.retry_after(),
            _ => None,
        }
    }

    pub(crate) fn file(attempt: impl Into<String>, source: io::Error) -> Self {
        let attempt = attempt.into();
        Error::File { attempt, source }
    }

    /// Says what to type for each of these.
    pub(crate) fn ambiguous(place: &str, names: &[String]) -> Self {
        let choices = names.iter().take(SHOWN);
        Error::Ambiguous {
            place: place.into(),
            choices: choices.map(|name| format!("{place}:{name}")).collect(),
        }
    }

    pub(crate) fn malformed(attempt: impl Into<String>, reason: impl ToString) -> Self {
        Error::Malformed {
            attempt: attempt.into(),
            reason: reason.to_string(),
        }
    }
}

/// Enough to choose from; the rest would only be scrolled past.
const SHOWN: usize = 20;

fn listed<T: ToString>(items: &[T]) -> String {
    let mut text: Vec<_> = items.iter().take(SHOWN).map(T::to_string).collect();
    if items.len() > SHOWN {
        text.push(format!("{} more", items.len() - SHOWN));
    }
    match text.is_empty() {
        true => "nothing".into(),
        false => text.join(", "),
    }
}

impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        Error::Stopped(error.to_string())
    }
}
