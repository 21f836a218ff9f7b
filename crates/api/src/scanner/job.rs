//! ScanJob and RegistryDiscovery: one run over a Registry. Both go through the same pipeline; a
//! discovery stops once every image has its SBOM. Each keeps the status its readers know.

use super::{CATEGORY, GROUP, VERSION, registry};
use crate::{condition, validate};
use muster_kind::schema::{Schema, boolean, int64, list, object, string, timestamp};
use muster_kind::{Column, Kind};

/// A run over all three stages.
pub fn scan_job() -> Kind {
    Kind::namespaced(GROUP, VERSION, "ScanJob")
        .short("sj")
        .category(crate::CATEGORY)
        .category(CATEGORY)
        .describe("One scan of a Registry: images are found, listed and matched.")
        .schema(
            object()
                .required("spec", scan_job_spec())
                .field("status", scan_job_status()),
        )
        .with_status()
        .selectable(".spec.registry")
        .column(Column::string("Registry", ".spec.registry"))
        .column(Column::string(
            "Status",
            r#".status.conditions[?(@.status=="True")].type"#,
        ))
        .column(Column::string(
            "Reason",
            r#".status.conditions[?(@.status=="True")].reason"#,
        ))
        .column(Column::integer("Scanned", ".status.scannedImagesCount"))
        .column(Column::integer("Total", ".status.imagesCount"))
        .column(Column::age())
        .validated_by(validate::job::scan_job)
}

/// A run that stops after the SBOMs.
pub fn registry_discovery() -> Kind {
    Kind::namespaced(GROUP, VERSION, "RegistryDiscovery")
        .plural("registrydiscoveries")
        .short("rd")
        .category(crate::CATEGORY)
        .category(CATEGORY)
        .describe("One discovery of a Registry: images are found and listed, not matched.")
        .schema(
            object()
                .required("spec", discovery_spec())
                .field("status", discovery_status()),
        )
        .with_status()
        .selectable(".spec.registry")
        .column(Column::string("Registry", ".spec.registry"))
        .column(Column::string("Status", ".status.currentStatus"))
        .column(Column::date("Started", ".status.startedAt"))
        .column(Column::date("Finished", ".status.finishedAt"))
        .column(Column::age())
        .validated_by(validate::job::registry_discovery)
}

fn registry_name() -> Schema {
    string()
        .length(1, 253)
        .describe("Name of the Registry, in the same namespace.")
}

fn scan_job_spec() -> Schema {
    let target = object()
        .describe("A repository of the Registry to scan.")
        .required(
            "name",
            string()
                .length(1, 255)
                .describe("The repository as the Registry names it."),
        )
        .field(
            "matchConditions",
            list(string())
                .set()
                .describe("Names of the repository's conditions to scan for; all when empty."),
        );
    object()
        .describe("What to scan; it cannot be changed later.")
        .required("registry", registry_name())
        .field(
            "repositories",
            list(target).keyed_by(["name"]).describe(
                "Restricts the scan to these repositories; the whole Registry when empty.",
            ),
        )
}

fn scan_job_status() -> Schema {
    let count = |about: &str| int64().at_least(0.0).describe(about);
    object()
        .describe("How far the scan has come.")
        .field(
            "conditions",
            condition::conditions("Scheduled, InProgress, Complete and Failed; one of them holds."),
        )
        .field("imagesCount", count("How many images there are to scan."))
        .field(
            "scannedImagesCount",
            count("How many images have their findings."),
        )
        .field(
            "failedImagesCount",
            count("How many images could not be scanned."),
        )
        .field(
            "readImagesCount",
            count("How many images had to be read from the registry, because nothing was known of them."),
        )
        .field(
            "matchedImagesCount",
            count("How many had to be matched with the vulnerability data, because they or the data are new."),
        )
        .field(
            "errors",
            list(string()).describe("Why images could not be scanned: the first few reasons."),
        )
        .field(
            "startTime",
            timestamp().describe("When work on the job began."),
        )
        .field(
            "completionTime",
            timestamp().describe("When the job ended, well or not."),
        )
}

fn discovery_spec() -> Schema {
    object()
        .describe("What to discover; it cannot be changed later, only called off.")
        .required("registry", registry_name())
        .field(
            "registrySpec",
            registry::spec().describe("The Registry's spec as it was when the discovery began."),
        )
        .field(
            "cancel",
            boolean().describe("Calls the discovery off; it ends with the status Cancel."),
        )
}

fn discovery_status() -> Schema {
    let count = |about: &str| int64().at_least(0.0).describe(about);
    object()
        .describe("How far the discovery has come.")
        .field(
            "canceled",
            boolean().describe("The discovery was called off."),
        )
        .field(
            "conditions",
            condition::conditions("Discovering and Discovered."),
        )
        .field(
            "currentStatus",
            string()
                .one_of(["Pending", "Running", "FailStopped", "Cancel", "Succeeded"])
                .describe("The state in one word."),
        )
        .field(
            "startedAt",
            timestamp().describe("When the discovery began."),
        )
        .field(
            "finishedAt",
            timestamp().describe("When the discovery ended, well or not."),
        )
        .field(
            "completedAt",
            timestamp().describe("When no image waited for its SBOM any more."),
        )
        .field("imagesCount", count("How many images were found."))
        .field("sbomsCount", count("How many of them have their SBOM."))
        .field(
            "failedImagesCount",
            count("How many images could not be listed, or have no SBOM."),
        )
}
