//! What can be wrong with a file.

use std::io;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be opened or mapped.
    #[error("opening the database file: {0}")]
    Open(#[from] io::Error),
    /// Neither of the two meta pages is valid.
    #[error("reading the database file: no valid meta page, so it is no bbolt file or is damaged")]
    NoMeta,
    /// A page lies outside the file, or says something impossible.
    #[error("reading page {page} of the database file: {problem}")]
    Page {
        /// The page's number.
        page: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A bucket's own record is damaged.
    #[error("reading a bucket of the database file: {0}")]
    Bucket(&'static str),
}
