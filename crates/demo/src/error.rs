//! What can go wrong with content that comes with the program: only a mistake in it, which tests find.

/// Why something could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A path that does not fit into the header of an archive.
    #[error("packing {0}: the path is too long for an archive")]
    Path(String),
    /// Something could not be compressed.
    #[error("packing: {0}")]
    Packing(#[from] std::io::Error),
    /// The advisories are not what they should be.
    #[error("reading the advisories: {0}")]
    Advisories(#[from] serde_json::Error),
    /// A manifest is no YAML.
    #[error("reading the manifest {name}: {problem}")]
    Manifest {
        /// Its file.
        name: &'static str,
        /// What is wrong.
        problem: String,
    },
}
