//! WorkloadScanReport, of which only `spec` is stored. The rest is computed when it is read, from
//! the Images and VulnerabilityReports that its containers' links lead to. What the database has to
//! do for that is each engine's; what is decided is here: which resources belong together, how
//! findings are counted ([`findings`]) and what a report says ([`report`]).

pub(crate) mod findings;
pub(crate) mod report;

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
