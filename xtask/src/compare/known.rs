//! The differences that are known: where ours does on purpose what Trivy does not. Each has its
//! paragraph in `docs/accuracy.md`.

use super::Row;
use super::images::Image;

struct Known {
    applies: fn(&Image, &Row) -> bool,
    reason: &'static str,
}

const FINDINGS: [Known; 1] = [Known {
    applies: |image, row| {
        let marked = |version: &String| version.contains(['~', '^']) || !version.contains('-');
        image.name == "amazon" && (marked(&row.fixed) || marked(&row.installed))
    },
    reason: "Amazon's versions are compared as rpm compares them, not as Debian does",
}];

/// Why a finding is on one side only.
pub(super) fn reason(image: &Image, row: &Row) -> Option<&'static str> {
    let known = FINDINGS.iter().find(|known| (known.applies)(image, row));
    known.map(|known| known.reason)
}

/// Why a package is on one side only.
pub(super) fn package(_image: &Image, _package: &str) -> Option<&'static str> {
    None
}
