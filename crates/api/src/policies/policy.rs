//! ClusterAdmissionPolicy and AdmissionPolicy: one policy, for all namespaces or for its own.

use super::{CATEGORY, GROUP, VERSION, policy_columns, rule};
use crate::validate;
use muster_kind::schema::{Schema, any_object, boolean, object, string};
use muster_kind::{Column, Kind};

/// A policy for the whole cluster.
pub fn cluster_admission_policy() -> Kind {
    let spec =
        rule::cluster_wide(spec()).field("contextAwareResources", rule::context_aware_resources());
    describe(
        Kind::cluster(GROUP, VERSION, "ClusterAdmissionPolicy"),
        spec,
    )
    .plural("clusteradmissionpolicies")
    .short("cap")
    .describe("A policy for resources of the whole cluster.")
    .validated_by(validate::policy::cluster_admission_policy)
}

/// A policy for one namespace.
pub fn admission_policy() -> Kind {
    describe(Kind::namespaced(GROUP, VERSION, "AdmissionPolicy"), spec())
        .plural("admissionpolicies")
        .short("ap")
        .describe("A policy for resources of its own namespace.")
        .validated_by(validate::policy::admission_policy)
}

fn describe(kind: Kind, spec: Schema) -> Kind {
    let kind = kind
        .category(crate::CATEGORY)
        .category(CATEGORY)
        .schema(
            object()
                .required("spec", spec)
                .field("status", rule::status()),
        )
        .with_status()
        .column(Column::string("Policy Server", ".spec.policyServer"))
        .column(Column::at("Mutating", "boolean", ".spec.mutating"));
    policy_columns(kind)
}

fn spec() -> Schema {
    rule::matching(object().describe("What is judged, by which code, and what follows."))
        .required("module", rule::module())
        .field("settings", settings())
        .required(
            "mutating",
            boolean().describe("The policy may change what it judges."),
        )
        .field("timeoutEvalSeconds", rule::evaluation_timeout())
        .field(
            "message",
            string().describe("What a refused request is told instead of the policy's own words."),
        )
}

/// Settings are the policy's own business.
pub(super) fn settings() -> Schema {
    any_object()
        .nullable()
        .describe("Settings that are handed to the policy.")
}
