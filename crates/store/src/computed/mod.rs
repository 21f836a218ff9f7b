//! WorkloadScanReport, of which only `spec` is stored. The rest is computed when it is read, from
//! the Images and VulnerabilityReports that its containers' links lead to. What the database has to
//! do for that is each engine's; what is decided is here: which resources belong together, how
//! findings are counted ([`findings`]), what a report says ([`report`]) and what it quotes ([`quotes`]).

pub(crate) mod findings;
pub(crate) mod quotes;
pub(crate) mod report;

use crate::facts::Facts;
use crate::prepare::Prepared;
use std::collections::BTreeSet;

/// The resource that is computed.
pub(crate) const WORKLOADS: &str = "workloadscanreports.storage.sbomscanner.kubewarden.io";
/// The images its containers run.
pub(crate) const IMAGES: &str = "images.storage.sbomscanner.kubewarden.io";
/// What was found in them.
pub(crate) const REPORTS: &str = "vulnerabilityreports.storage.sbomscanner.kubewarden.io";

/// Whether a change of this resource changes what is computed.
pub(crate) fn is_source(resource: &str) -> bool {
    resource == IMAGES || resource == REPORTS
}

/// The links whose reports a write concerns. Of an Image only its name counts, so what it answered
/// to before and still does is left alone: noting who uses it, or which job saw it last, is no news.
pub(crate) fn concerned<'a>(write: &'a Prepared, old: &'a Facts) -> BTreeSet<&'a str> {
    let none = BTreeSet::new();
    let new = write.next.as_ref().map_or(&none, |(_, facts)| &facts.links);
    let is_concerned = |link: &&'a String| {
        let stays = old.links.contains(*link) && new.contains(*link);
        !stays || &*write.resource != IMAGES
    };
    let links = old.links.iter();
    let links = links.chain(write.next.iter().flat_map(|(_, facts)| &facts.links));
    links.filter(is_concerned).map(String::as_str).collect()
}

/// How many workloads' reports one transaction tells of a change.
pub(crate) const PORTION: i64 = 500;

/// What was done about the workloads' reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Touched {
    /// The last revision that one of them was given.
    pub(crate) last: Option<u64>,
    /// Some are still to follow.
    pub(crate) unfinished: bool,
}
