//! `policies.kubewarden.io`: the rules that resources are to keep, and where they are evaluated.

pub mod group;
pub mod policy;
pub mod rule;
pub mod server;

use muster_kind::{Column, Kind};

/// The API group.
pub const GROUP: &str = "policies.kubewarden.io";
/// The served version.
pub const VERSION: &str = "v1";
/// The category of this group.
pub const CATEGORY: &str = "kubewarden";

/// The kinds of this group.
pub fn kinds() -> Vec<Kind> {
    vec![
        policy::cluster_admission_policy(),
        policy::admission_policy(),
        group::cluster_admission_policy_group(),
        group::admission_policy_group(),
        server::policy_server(),
    ]
}

/// The columns of all four sorts of policy, from the background flag on.
fn policy_columns(kind: Kind) -> Kind {
    let annotation = |name: &str| format!(r".metadata.annotations.io\.kubewarden\.policy\.{name}");
    kind.column(Column::at(
        "BackgroundAudit",
        "boolean",
        ".spec.backgroundAudit",
    ))
    .column(Column::string("Mode", ".spec.mode"))
    .column(Column::string("Observed mode", ".status.mode"))
    .column(Column::string("Status", ".status.policyStatus"))
    .column(Column::string("Severity", &annotation("severity")).wide())
    .column(Column::string("Category", &annotation("category")).wide())
    .column(Column::age())
}
