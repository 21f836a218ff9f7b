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

/// The columns of all four sorts of policy, from the mode on.
fn policy_columns(kind: Kind) -> Kind {
    let annotation = |name: &str| format!(r".metadata.annotations.io\.kubewarden\.policy\.{name}");
    let count = |name: &str| {
        let path = format!(".status.audit.{}", name.to_lowercase());
        Column::integer(name, &path)
    };
    let ready = r#".status.conditions[?(@.type=="AuditReady")].status"#;
    kind.column(Column::string("Mode", ".spec.mode"))
        .column(Column::string("Status", ".status.policyStatus"))
        .column(
            Column::string("Audit", ready).describe("Whether existing resources can be judged."),
        )
        .column(count("Pass").describe("Resources that keep the policy."))
        .column(count("Fail").describe("Resources that break it."))
        .column(count("Error").describe("Resources it could not judge."))
        .column(count("Mutated").describe("Resources it would change."))
        .column(Column::at("BackgroundAudit", "boolean", ".spec.backgroundAudit").wide())
        .column(Column::string("Observed mode", ".status.mode").wide())
        .column(Column::string("Severity", &annotation("severity")).wide())
        .column(Column::string("Category", &annotation("category")).wide())
        .column(Column::age())
}
