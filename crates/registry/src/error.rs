//! What can go wrong with a registry. Every message says what was attempted, with the host and
//! the reference; the kind says whether the same attempt could succeed later.

use crate::digest::Digest;
use std::time::Duration;

/// Why a registry's content could not be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The registry has no such thing.
    #[error("{attempt}: not found: {reason}")]
    NotFound {
        /// What was being done, to what, where.
        attempt: String,
        /// What the registry said.
        reason: String,
    },
    /// The registry wants a login that was not given, or refused the one that was.
    #[error("{attempt}: unauthorized: {reason}")]
    Unauthorized {
        /// What was being done, to what, where.
        attempt: String,
        /// What the registry said, and which login was used.
        reason: String,
    },
    /// The registry knows who is asking and does not allow it.
    #[error("{attempt}: denied: {reason}")]
    Denied {
        /// What was being done, to what, where.
        attempt: String,
        /// What the registry said.
        reason: String,
    },
    /// The answer makes no sense.
    #[error("{attempt}: malformed answer: {reason}")]
    Malformed {
        /// What was being done, to what, where.
        attempt: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The registry does not do this, or answers in a form that is not read.
    #[error("{attempt}: unsupported: {reason}")]
    Unsupported {
        /// What was being done, to what, where.
        attempt: String,
        /// What is not supported.
        reason: String,
    },
    /// The answer is over a limit.
    #[error("{attempt}: too large: {reason}")]
    TooLarge {
        /// What was being done, to what, where.
        attempt: String,
        /// What is over which limit.
        reason: String,
    },
    /// The content is not what its digest promises.
    #[error("{attempt}: the digest is {actual}, and {expected} was expected")]
    DigestMismatch {
        /// What was being done, to what, where.
        attempt: String,
        /// The digest that was asked for.
        expected: Digest,
        /// The digest of what came.
        actual: Digest,
    },
    /// The server's certificate is not trusted.
    #[error("{attempt}: untrusted certificate: {reason}")]
    Untrusted {
        /// What was being done, to what, where.
        attempt: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What we were given to work with is unusable: a certificate bundle, a docker config, a
    /// credential helper.
    #[error("{attempt}: {reason}")]
    Configuration {
        /// What was being done.
        attempt: String,
        /// What is wrong.
        reason: String,
    },
    /// The registry wants fewer requests.
    #[error("{attempt}: rate limited: {reason}")]
    RateLimited {
        /// What was being done, to what, where.
        attempt: String,
        /// What the registry said.
        reason: String,
        /// After which time it may be tried again, where the registry said so.
        retry_after: Option<Duration>,
    },
    /// The registry could not be reached, broke off, or has trouble of its own.
    #[error("{attempt}: unavailable: {reason}")]
    Unavailable {
        /// What was being done, to what, where.
        attempt: String,
        /// What happened.
        reason: String,
    },
}

impl Error {
    /// Whether the same attempt may succeed later with nothing changed on our side.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::RateLimited { .. } | Error::Unavailable { .. })
    }

    /// When the registry said that it may be tried again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::RateLimited { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub(crate) fn malformed(attempt: &str, reason: impl ToString) -> Error {
        Error::Malformed {
            attempt: attempt.into(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn too_large(attempt: &str, reason: impl ToString) -> Error {
        Error::TooLarge {
            attempt: attempt.into(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn unavailable(attempt: &str, reason: impl ToString) -> Error {
        Error::Unavailable {
            attempt: attempt.into(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn configuration(attempt: &str, reason: impl ToString) -> Error {
        Error::Configuration {
            attempt: attempt.into(),
            reason: reason.to_string(),
        }
    }
}
