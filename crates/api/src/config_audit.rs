//! `aquasecurity.github.io`: which checks the configuration of a resource fails. One report for each
//! resource, with everything at the root under `report`.

use crate::reports::CATEGORY;
use muster_kind::schema::{Schema, boolean, int64, list, object, string, timestamp};
use muster_kind::{Column, Kind};

/// The API group.
pub const GROUP: &str = "aquasecurity.github.io";
/// The served version.
pub const VERSION: &str = "v1alpha1";

/// The kinds of this group.
pub fn kinds() -> Vec<Kind> {
    vec![
        describe(Kind::namespaced(GROUP, VERSION, "ConfigAuditReport"))
            .short("configaudit")
            .short("configaudits")
            .describe("Checks of one resource of the namespace."),
        describe(Kind::cluster(GROUP, VERSION, "ClusterConfigAuditReport"))
            .short("clusterconfigaudit")
            .describe("Checks of one resource outside of namespaces."),
    ]
}

fn describe(kind: Kind) -> Kind {
    let column = |name: &str| {
        let field = name.to_lowercase();
        Column::integer(name, &format!(".report.summary.{field}Count"))
    };
    kind.category(crate::CATEGORY)
        .category(CATEGORY)
        .schema(object().required("report", report()))
        .column(Column::string("Scanner", ".report.scanner.name"))
        .column(column("Critical"))
        .column(column("High"))
        .column(column("Medium"))
        .column(column("Low"))
        .column(column("Unknown").wide())
        .column(Column::integer("Errors", ".report.summary.errorCount").wide())
        .column(Column::age())
}

fn report() -> Schema {
    let count = |about: &str| int64().at_least(0.0).describe(about);
    object()
        .describe("What was checked, and what came of it.")
        .field(
            "updateTimestamp",
            timestamp().describe("When the checks were last run."),
        )
        .field(
            "scanner",
            object()
                .describe("What ran the checks.")
                .field("name", string().describe("Name of the scanner."))
                .field("vendor", string().describe("Maker of the scanner."))
                .field("version", string().describe("Version of the scanner.")),
        )
        .field(
            "summary",
            object()
                .describe("Failed checks by severity.")
                .field(
                    "criticalCount",
                    count("Failed checks of critical severity."),
                )
                .field("highCount", count("Failed checks of high severity."))
                .field("mediumCount", count("Failed checks of medium severity."))
                .field("lowCount", count("Failed checks of low severity."))
                .field("unknownCount", count("Failed checks of no known severity."))
                .field(
                    "exemptCount",
                    count("Failed checks that somebody answers for."),
                )
                .field("errorCount", count("Checks that could not be run.")),
        )
        .field(
            "checks",
            list(check()).describe("One entry for each check and place."),
        )
}

fn check() -> Schema {
    object()
        .describe("What came of one check.")
        .required("checkID", string().describe("Identifier of the check."))
        .field("title", string().describe("The check in a line."))
        .field("description", string().describe("What the check is about."))
        .required(
            "severity",
            string()
                .one_of(["CRITICAL", "HIGH", "MEDIUM", "LOW", "UNKNOWN"])
                .describe("How bad it is to fail the check."),
        )
        .field(
            "category",
            string().describe("What sort of concern the check is about."),
        )
        .field(
            "messages",
            list(string()).describe("What exactly is wrong."),
        )
        .field("remediation", string().describe("How to mend it."))
        .required("success", boolean().describe("The check was passed."))
        .field(
            "error",
            boolean().describe("The check could not be run, and nobody knows."),
        )
        .field(
            "exception",
            object()
                .describe("Why the check need not be passed.")
                .field("reason", string().describe("Why."))
                .field(
                    "until",
                    string().describe("The last day or moment, if it ends."),
                )
                .field(
                    "by",
                    string().describe("Who says so: the `annotation` or the `policy`."),
                ),
        )
        .field(
            "scope",
            object()
                .describe("The part of the resource that was checked, if not all of it.")
                .field(
                    "type",
                    string()
                        .one_of(["Container", "ConfigMapKey", "JSONPath"])
                        .describe("What sort of part it is."),
                )
                .field("value", string().describe("Which one it is.")),
        )
}
