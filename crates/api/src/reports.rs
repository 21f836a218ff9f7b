//! Policy reports: which policies a resource breaks. The same content in two groups: the one of the
//! policy working group, which most readers know, and the one of OpenReports, its successor.

use crate::{selector, validate};
use muster_kind::schema::{Schema, boolean, int32, int64, list, map, object, string};
use muster_kind::{Column, Kind};

/// The API group of the policy working group.
pub const GROUP: &str = "wgpolicyk8s.io";
/// The API group of OpenReports.
pub const OPEN_GROUP: &str = "openreports.io";
/// The category of everything an audit writes.
pub const CATEGORY: &str = "audit";

const RESULTS: [&str; 5] = ["pass", "fail", "warn", "error", "skip"];

/// The kinds of both groups.
pub fn kinds() -> Vec<Kind> {
    // v1beta1 differs from v1alpha2 only by optional fields, so one schema serves both.
    let working_group = |kind: Kind| describe(kind.also("v1alpha2"));
    vec![
        working_group(Kind::namespaced(GROUP, "v1beta1", "PolicyReport").short("polr"))
            .describe("Verdicts of policies about one resource of the namespace."),
        working_group(Kind::cluster(GROUP, "v1beta1", "ClusterPolicyReport").short("cpolr"))
            .describe("Verdicts of policies about one resource outside of namespaces."),
        describe(Kind::namespaced(OPEN_GROUP, "v1alpha1", "Report").short("reps"))
            .describe("Verdicts of policies about one resource of the namespace."),
        describe(Kind::cluster(OPEN_GROUP, "v1alpha1", "ClusterReport").short("creps"))
            .describe("Verdicts of policies about one resource outside of namespaces."),
    ]
}

fn describe(kind: Kind) -> Kind {
    let column = |name: &str| Column::integer(name, &format!(".summary.{}", name.to_lowercase()));
    kind.category(crate::CATEGORY)
        .category(CATEGORY)
        .schema(report())
        .column(Column::string("Kind", ".scope.kind"))
        .column(Column::string("Resource", ".scope.name"))
        .column(column("Pass"))
        .column(column("Fail"))
        .column(column("Warn"))
        .column(column("Error"))
        .column(column("Skip"))
        .column(Column::age())
        .validated_by(validate::report::report)
}

fn report() -> Schema {
    object()
        .field(
            "source",
            string().describe("Who judged, unless a result says otherwise."),
        )
        .field(
            "scope",
            selector::object_reference("The resource the report is about."),
        )
        .field(
            "scopeSelector",
            selector::label_selector("The resources the report is about, if there is no `scope`."),
        )
        .field("configuration", configuration())
        .field("summary", summary())
        .field(
            "results",
            list(result()).describe("One verdict for each policy."),
        )
}

fn configuration() -> Schema {
    let limits = object()
        .describe("What is left out.")
        .field(
            "maxResults",
            int64()
                .at_least(0.0)
                .describe("Most results that are kept."),
        )
        .field(
            "statusFilter",
            list(string().one_of(RESULTS))
                .set()
                .describe("Only these verdicts are kept."),
        );
    object()
        .describe("How the report was limited.")
        .required("limits", limits)
}

fn summary() -> Schema {
    let count = |about: &str| int64().at_least(0.0).describe(about);
    object()
        .describe("How many policies came to which verdict.")
        .field("pass", count("Policies that are kept."))
        .field("fail", count("Policies that are broken."))
        .field("warn", count("Policies that are broken and do not count."))
        .field("error", count("Policies that could not be evaluated."))
        .field("skip", count("Policies that were left out."))
}

fn result() -> Schema {
    object()
        .describe("The verdict of one policy.")
        .required(
            "policy",
            string().describe("The policy, by a name that is unique here."),
        )
        .field(
            "source",
            string().describe("Who judged, if not the source of the report."),
        )
        .field(
            "rule",
            string().describe("The rule of the policy that decided."),
        )
        .field(
            "category",
            string().describe("What sort of concern the policy is about."),
        )
        .field(
            "severity",
            string()
                .one_of(["critical", "high", "medium", "low", "info"])
                .describe("How bad a violation is."),
        )
        .field("result", string().one_of(RESULTS).describe("The verdict."))
        .field(
            "scored",
            boolean().describe("A violation counts against the resource."),
        )
        .field("timestamp", timestamp())
        .field(
            "resources",
            list(selector::object_reference("A resource."))
                .describe("The resources judged, if not the report's own."),
        )
        .field(
            "resourceSelector",
            selector::label_selector("The resources judged, if not the report's own."),
        )
        .field("message", string().describe("What the policy had to say."))
        .field(
            "properties",
            map(string()).describe("More about the policy and its verdict."),
        )
}

fn timestamp() -> Schema {
    object()
        .describe("When the verdict was reached.")
        .required("seconds", int64().describe("Seconds since 1970."))
        .required(
            "nanos",
            int32()
                .range(0.0, 999_999_999.0)
                .describe("Nanoseconds of the second."),
        )
}
