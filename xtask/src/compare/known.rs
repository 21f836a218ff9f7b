//! The differences that are known: where ours does on purpose what Trivy does not. Each has its
//! paragraph in `docs/accuracy.md`.

use super::Row;
use super::images::Image;
use muster_scan::matching::{Reason, Unmatched};

/// Why a finding is on one side only; `unmatched` are the packages that ours did not match.
pub(super) fn reason(image: &Image, unmatched: &[Unmatched], row: &Row) -> Option<&'static str> {
    let marked = |version: &String| version.contains(['~', '^']) || !version.contains('-');
    if image.name == "amazon" && (marked(&row.fixed) || marked(&row.installed)) {
        return Some("Amazon's versions are compared as rpm compares them, not as Debian does");
    }
    let no_rules = unmatched.iter().filter(|one| one.reason == Reason::NoRules);
    if no_rules
        .flat_map(|one| &one.packages)
        .any(|one| one.name == row.package)
    {
        return Some("the package is of a maker whom Trivy takes for the distribution");
    }
    None
}

/// Why a package is on one side only.
pub(super) fn package(_image: &Image, _package: &str) -> Option<&'static str> {
    None
}
