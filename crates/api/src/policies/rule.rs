//! The fields that every sort of policy shares: which requests it judges, and what follows.

use crate::{condition, selector};
use muster_kind::schema::{Schema, boolean, int32, int64, list, object, string, timestamp};

/// Adds the shared fields to a policy's spec.
pub(crate) fn matching(spec: Schema) -> Schema {
    spec.field(
        "policyServer",
        string()
            .length(1, 253)
            .default("default")
            .describe("Name of the PolicyServer that runs the policy; it cannot be changed."),
    )
    .field(
        "mode",
        string()
            .one_of(["protect", "monitor"])
            .default("protect")
            .describe("Whether a violation is refused or only recorded."),
    )
    .required(
        "rules",
        list(rule())
            .min_items(1)
            .describe("Requests that the policy judges: any of these."),
    )
    .field(
        "failurePolicy",
        string()
            .one_of(["Ignore", "Fail"])
            .default("Fail")
            .describe("What becomes of a request when the policy cannot be asked."),
    )
    .field(
        "matchPolicy",
        string()
            .one_of(["Exact", "Equivalent"])
            .default("Equivalent")
            .describe("Whether other versions of a named resource are meant too."),
    )
    .field(
        "matchConditions",
        list(match_condition())
            .keyed_by(["name"])
            .at_most(64)
            .describe("Further conditions; a request is judged only if all of them hold."),
    )
    .field(
        "objectSelector",
        selector::label_selector("Objects that are judged, by their labels; all when absent."),
    )
    .field(
        "sideEffects",
        string()
            .one_of(["None", "NoneOnDryRun", "Some", "Unknown"])
            .describe("What the policy does besides judging."),
    )
    .field(
        "timeoutSeconds",
        int32()
            .range(2.0, 30.0)
            .default(10)
            .describe("How long a request waits for the verdict."),
    )
    .field(
        "backgroundAudit",
        boolean()
            .default(true)
            .describe("Judge existing resources too; false leaves them out."),
    )
    // No default: absent already means true, and nobody should wonder who wrote it.
    .field(
        "background",
        boolean().describe("Older name of `backgroundAudit`; false in either leaves them out."),
    )
}

/// Adds the fields that only policies for the whole cluster have.
pub(crate) fn cluster_wide(spec: Schema) -> Schema {
    spec.field(
        "namespaceSelector",
        selector::label_selector("Namespaces whose objects are judged; all when absent."),
    )
    .field(
        "allowInsideAdmissionControllerNamespace",
        boolean().describe("Judge the namespace of the admission controller as well."),
    )
}

/// Resources a policy may read while it judges.
pub(crate) fn context_aware_resources() -> Schema {
    let resource = object()
        .describe("A sort of resource.")
        .required(
            "apiVersion",
            string().length(1, 317).describe("Group and version."),
        )
        .required("kind", string().length(1, 63).describe("Kind."));
    list(resource).describe("Resources of the cluster that the policy may read.")
}

/// How long one evaluation may take.
pub(crate) fn evaluation_timeout() -> Schema {
    int32()
        .range(2.0, 30.0)
        .describe("How long the evaluation may take, in seconds.")
}

/// Where the code of a policy lies.
pub(crate) fn module() -> Schema {
    string().length(1, 2048).describe(
        "Where the policy's code is: registry://, http(s)://, file://, a reference; or \
             builtin:cel and builtin:rego, whose code is in the settings.",
    )
}

/// The status of every sort of policy. Nothing in it is required, because we add a condition of
/// our own beside whoever writes the rest.
pub(crate) fn status() -> Schema {
    object()
        .describe("Whether the policy is at work.")
        .field(
            "policyStatus",
            string()
                .one_of(["unscheduled", "scheduled", "pending", "active"])
                .describe("How far the policy is set up."),
        )
        .field(
            "mode",
            string()
                .one_of(["protect", "monitor", "unknown"])
                .describe("The mode in force."),
        )
        .field(
            "conditions",
            condition::conditions(
                "PolicyActive, PolicyServerConfigurationUpToDate, PolicyUniquelyReachable, \
                 and AuditReady of ours.",
            ),
        )
        .field("audit", audit())
}

/// What the audit came to, so that two settings of a policy can be compared.
fn audit() -> Schema {
    let shard = counts(object().describe("What one shard of the audit counts.")).required(
        "shard",
        string()
            .length(1, 63)
            .describe("Which of how many, as 1/3."),
    );
    counts(object().describe("What the policy says of the resources that are there."))
        .field(
            "lastVerified",
            timestamp().describe("When all of them were last looked at."),
        )
        .field(
            "shards",
            list(shard)
                .keyed_by(["shard"])
                .describe("The parts of the sums, if several replicas audit."),
        )
}

fn counts(of: Schema) -> Schema {
    let count = |about: &str| int64().at_least(0.0).describe(about);
    of.field("pass", count("Resources that keep the policy."))
        .field("fail", count("Resources that break it."))
        .field("error", count("Resources it could not judge."))
        .field("mutated", count("Resources it would change; they pass."))
        .field("skip", count("Resources it is not asked about."))
}

fn rule() -> Schema {
    let names = |about: &str| list(string()).min_items(1).describe(about);
    object()
        .describe("A sort of request.")
        .required(
            "apiGroups",
            names("API groups; * for all, the empty name for the core group."),
        )
        .required("apiVersions", names("Versions; * for all."))
        .required(
            "resources",
            names("Plural resource names, with /subresource; * for all."),
        )
        .required(
            "operations",
            list(string().one_of(["CREATE", "UPDATE", "DELETE", "CONNECT", "*"]))
                .min_items(1)
                .describe("What is done to the resource; * for everything."),
        )
        .field(
            "scope",
            string()
                .one_of(["Cluster", "Namespaced", "*"])
                .describe("Only resources inside or only outside of namespaces; * for both."),
        )
}

fn match_condition() -> Schema {
    object()
        .describe("A condition on the request.")
        .required(
            "name",
            string().length(1, 317).describe("Name of the condition."),
        )
        .required(
            "expression",
            string()
                .length(1, 65536)
                .describe("CEL over the request that yields true or false."),
        )
}
