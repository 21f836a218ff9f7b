//! The differences that are known: where ours does on purpose what Trivy does not. Each has its
//! paragraph in `docs/accuracy.md`.

use super::Row;
use super::images::Image;

/// Why a finding is on one side only; `notes` are what ours says that it did not match.
pub(super) fn reason(image: &Image, notes: &[String], row: &Row) -> Option<&'static str> {
    let marked = |version: &String| version.contains(['~', '^']) || !version.contains('-');
    if image.name == "amazon" && (marked(&row.fixed) || marked(&row.installed)) {
        return Some("Amazon's versions are compared as rpm compares them, not as Debian does");
    }
    let foreign = format!("{} is not of the distribution", row.package);
    if notes.iter().any(|note| note.starts_with(&foreign)) {
        return Some("the package is of a maker whom Trivy takes for the distribution");
    }
    None
}

/// Why a package is on one side only.
pub(super) fn package(_image: &Image, _package: &str) -> Option<&'static str> {
    None
}
