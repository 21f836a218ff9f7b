//! The pages. Each reads what it shows into a value of its own, and draws that value; the drawing is pure.

pub(crate) mod image;
pub(crate) mod images;
pub(crate) mod overview;
pub(crate) mod policies;
pub(crate) mod policy;
pub(crate) mod registries;
pub(crate) mod search;
pub(crate) mod vulnerabilities;
pub(crate) mod vulnerability;
pub(crate) mod workload;
pub(crate) mod workloads;
