//! `sbomscanner.kubewarden.io`: what is to be scanned, when, and how far it has come.

pub mod configuration;
pub mod job;
pub mod registry;
pub mod vex;

use muster_kind::Kind;

/// The API group.
pub const GROUP: &str = "sbomscanner.kubewarden.io";
/// The served version.
pub const VERSION: &str = "v1alpha1";
/// The category of this group and of the findings.
pub const CATEGORY: &str = "sbomscanner";

/// The kinds of this group.
pub fn kinds() -> Vec<Kind> {
    vec![
        registry::registry(),
        job::scan_job(),
        job::registry_discovery(),
        configuration::workload_scan_configuration(),
        vex::vex_hub(),
    ]
}
