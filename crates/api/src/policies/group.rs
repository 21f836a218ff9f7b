//! ClusterAdmissionPolicyGroup and AdmissionPolicyGroup: several policies and one expression that
//! makes a verdict of theirs.

use super::{CATEGORY, GROUP, VERSION, policy::settings, policy_columns, rule};
use crate::{expression, validate};
use muster_kind::schema::{Schema, map, object, string};
use muster_kind::{Column, Kind};

/// A group for the whole cluster.
pub fn cluster_admission_policy_group() -> Kind {
    let member = member().field("contextAwareResources", rule::context_aware_resources());
    let spec = rule::cluster_wide(spec(member));
    describe(
        Kind::cluster(GROUP, VERSION, "ClusterAdmissionPolicyGroup"),
        spec,
    )
    .short("capg")
    .describe("Policies combined by an expression, for resources of the whole cluster.")
    .validated_by(validate::group::cluster_admission_policy_group)
}

/// A group for one namespace.
pub fn admission_policy_group() -> Kind {
    describe(
        Kind::namespaced(GROUP, VERSION, "AdmissionPolicyGroup"),
        spec(member()),
    )
    .short("apg")
    .describe("Policies combined by an expression, for resources of their own namespace.")
    .validated_by(validate::group::admission_policy_group)
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
        .column(Column::string("Policy Server", ".spec.policyServer"));
    policy_columns(kind)
}

fn member() -> Schema {
    object()
        .describe("One policy of the group; it cannot change what it judges.")
        .required("module", rule::module())
        .field("settings", settings())
        .field("timeoutEvalSeconds", rule::evaluation_timeout())
}

fn spec(member: Schema) -> Schema {
    rule::matching(object().describe("What is judged, by which policies, and what follows."))
        .required(
            "expression",
            string().length(1, expression::LENGTH).describe(
                "The verdict: calls of the policies by name, such as `a() && !b()`, combined with \
                 &&, ||, !, ==, != and parentheses.",
            ),
        )
        .required(
            "message",
            string()
                .length(1, 32768)
                .describe("What a refused request is told."),
        )
        .required(
            "policies",
            map(member).describe("The policies by the name they are called by."),
        )
}
