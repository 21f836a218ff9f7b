//! SPDX 2.3 in JSON: written for the SBOM kind, read back for matching, and read from other tools
//! by the package URLs in it. What SPDX has no field for (layer, path, detector) stands in
//! annotations of the form `Key: value`, which others use as well.

mod read;
#[cfg(test)]
pub(crate) mod tests;
mod write;

pub use read::read;
pub use write::write;

const NO_ASSERTION: &str = "NOASSERTION";
/// How the source package is introduced; other tools look for the same words.
const BUILT_FROM: &str = "built package from: ";
