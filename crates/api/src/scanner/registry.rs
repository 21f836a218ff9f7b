//! Registry: a place where images lie, what to scan of it and how often.

use super::{CATEGORY, GROUP, VERSION};
use crate::{condition, platform, validate};
use muster_kind::schema::{Schema, boolean, int32, int64, list, map, object, string, timestamp};
use muster_kind::{Column, Kind};

/// The kind.
pub fn registry() -> Kind {
    Kind::namespaced(GROUP, VERSION, "Registry")
        .plural("registries")
        .short("reg")
        .category(crate::CATEGORY)
        .category(CATEGORY)
        .describe("A container registry whose images are scanned.")
        .schema(object().required("spec", spec()).field("status", status()))
        .with_status()
        .column(Column::string("URI", ".spec.uri"))
        .column(Column::string("Interval", ".spec.scanInterval"))
        .column(Column::string("Catalog", ".spec.catalogType").wide())
        .column(Column::string(
            "Reachable",
            r#".status.conditions[?(@.type=="Reachable")].status"#,
        ))
        .column(Column::date("Last scan", ".status.lastScan.completionTime"))
        .column(Column::integer("Images", ".status.imagesCount").wide())
        .column(Column::date("Last scheduled", ".status.lastScheduledTime").wide())
        .column(Column::age())
        .validated_by(validate::registry::registry)
}

/// The fields of a Registry's spec; a RegistryDiscovery carries a copy of them.
pub(crate) fn spec() -> Schema {
    connection(object().describe("What to scan, and how to reach it."))
        .required(
            "uri",
            string()
                .length(1, 512)
                .describe("Host of the registry, with a port or an http(s) scheme where needed."),
        )
        .field(
            "catalogType",
            string()
                .one_of(["OCIDistribution", "NoCatalog"])
                .default("OCIDistribution")
                .describe(
                    "How repositories are found: by asking the registry for its catalog, or only \
                 those listed here because it has none.",
                ),
        )
        .field(
            "repositories",
            list(repository())
                .keyed_by(["name"])
                .describe("Repositories to scan; all of the catalog's when empty."),
        )
        .field(
            "authSecret",
            string().length(0, 253).describe(
                "Name of a Secret of type kubernetes.io/dockerconfigjson in the same namespace.",
            ),
        )
        .field(
            "scanOnChange",
            boolean()
                .default(true)
                .describe("Scan at once what a new or grown Registry adds, whatever the interval."),
        )
        .field(
            "scanJobsHistoryLimit",
            int32()
                .at_least(0.0)
                .default(10)
                .describe("How many ended ScanJobs of this Registry are kept."),
        )
        .field("discoveryJob", discovery_job())
}

/// The fields that say how to talk to a registry, shared with workload scanning.
pub(crate) fn connection(schema: Schema) -> Schema {
    schema
        .field(
            "scanInterval",
            string().describe(
                "Time between two scans as a Go duration, at least 1m; never by itself when empty.",
            ),
        )
        .field(
            "caBundle",
            string().describe("Certificates in PEM, trusted in addition to those of the system."),
        )
        .field(
            "insecure",
            boolean()
                .default(false)
                .describe("Accept any certificate, and plain HTTP where TLS is not spoken."),
        )
        .field("platforms", platform::platforms())
}

fn repository() -> Schema {
    object()
        .describe("A repository and which of its tags to scan.")
        .required(
            "name",
            string()
                .length(1, 255)
                .describe("Path of the repository, without the host."),
        )
        .field(
            "matchConditions",
            list(match_condition())
                .keyed_by(["name"])
                .describe("Conditions on tags; every tag is scanned when empty."),
        )
        .field(
            "matchOperator",
            string()
                .one_of(["And", "Or"])
                .default("And")
                .describe("Whether a tag must meet all conditions or just one."),
        )
}

fn match_condition() -> Schema {
    object()
        .describe("A condition on a tag.")
        .required(
            "name",
            string()
                .length(1, 253)
                .describe("Name by which jobs refer to the condition."),
        )
        .required(
            "expression",
            string()
                .length(1, 4096)
                .describe("CEL over `tag` and `digest` that yields true for what is wanted."),
        )
        .field(
            "labels",
            map(string())
                .describe("Who asked for the condition; workload scanning notes namespaces here."),
        )
}

fn discovery_job() -> Schema {
    object()
        .describe("When to look for new images without matching vulnerabilities.")
        .field("cron", cron())
        .field(
            "suspend",
            boolean()
                .default(false)
                .describe("Pause scheduled discovery, the daily one too."),
        )
        .field(
            "failedJobsHistoryLimit",
            int32()
                .at_least(0.0)
                .default(2)
                .describe("How many failed RegistryDiscoveries are kept."),
        )
        .field(
            "successfulJobsHistoryLimit",
            int32()
                .at_least(0.0)
                .default(1)
                .describe("How many succeeded RegistryDiscoveries are kept."),
        )
}

/// Parts may be written with nothing after the colon, which YAML reads as null.
fn cron() -> Schema {
    let part =
        |least, greatest, about: &str| int32().range(least, greatest).nullable().describe(about);
    object()
        .describe("The times of discovery; a part left out means every one.")
        .field("dayOfWeek", part(0.0, 6.0, "Day of the week; 0 is Sunday."))
        .field("month", part(1.0, 12.0, "Month of the year."))
        .field("dayOfMonth", part(1.0, 31.0, "Day of the month."))
        .field("hour", part(0.0, 23.0, "Hour of the day, in UTC."))
}

fn status() -> Schema {
    condition::status("Whether the registry answers, and whether its findings are up to date.")
        .field(
            "lastScheduledTime",
            timestamp().describe("When a discovery was last started by schedule."),
        )
        .field(
            "nextScheduledTime",
            timestamp().describe("When the next one is due, if there is a schedule."),
        )
        .field(
            "nextScanTime",
            timestamp().describe("When the next scan is due, if there is an interval."),
        )
        .field(
            "lastProbeTime",
            timestamp().describe("When the registry was last asked whether it answers."),
        )
        .field("lastScan", last_scan())
        .field("lastDiscovery", last_discovery())
        .field(
            "imagesCount",
            count("How many images were there when it was last looked through."),
        )
        .field(
            "covered",
            list(string())
                .describe("Hashes of those parts of the spec that a scan was started for."),
        )
}

fn count(about: &str) -> Schema {
    int64().at_least(0.0).describe(about)
}

fn last_scan() -> Schema {
    object()
        .describe("The last scan of everything that ended.")
        .field("name", string().describe("Name of the ScanJob."))
        .field("result", result())
        .field("message", string().describe("What it said at the end."))
        .field("startTime", timestamp().describe("When work on it began."))
        .field("completionTime", timestamp().describe("When it ended."))
        .field("imagesCount", count("How many images there were to scan."))
        .field(
            "scannedImagesCount",
            count("How many images have their findings."),
        )
        .field(
            "failedImagesCount",
            count("How many images could not be scanned."),
        )
}

fn last_discovery() -> Schema {
    object()
        .describe("The last discovery that ended.")
        .field("name", string().describe("Name of the RegistryDiscovery."))
        .field("result", result())
        .field("message", string().describe("What it said at the end."))
        .field("startedAt", timestamp().describe("When it began."))
        .field("finishedAt", timestamp().describe("When it ended."))
        .field("imagesCount", count("How many images it found."))
        .field("sbomsCount", count("How many of them have their SBOM."))
}

fn result() -> Schema {
    string()
        .one_of(["Succeeded", "Failed", "Canceled"])
        .describe("How it ended.")
}
