//! WorkloadScanConfiguration: the one object that turns workload scanning on and tunes it.

use super::{CATEGORY, GROUP, VERSION, registry};
use crate::{condition, selector, validate};
use muster_kind::schema::{Schema, boolean, object, string};
use muster_kind::{Column, Kind};
use serde_json::json;

/// The only name such an object may have.
pub const NAME: &str = "default";

/// The kind.
pub fn workload_scan_configuration() -> Kind {
    Kind::cluster(GROUP, VERSION, "WorkloadScanConfiguration")
        .short("wsc")
        .category(crate::CATEGORY)
        .category(CATEGORY)
        .describe("Whether and how the images of running workloads are scanned.")
        .schema(
            object()
                // An object without a spec is the configuration in which everything is default.
                .field("spec", spec().default(json!({})))
                .field(
                    "status",
                    condition::status("Whether workload scanning works."),
                ),
        )
        .with_status()
        .column(Column::at("Enabled", "boolean", ".spec.enabled"))
        .column(Column::string("Interval", ".spec.scanInterval"))
        .column(Column::string("Artifacts", ".spec.artifactsNamespace").wide())
        .column(Column::age())
        .validated_by(validate::configuration::workload_scan_configuration)
}

fn spec() -> Schema {
    registry::connection(object().describe("Which workloads are scanned, and how."))
        .field(
            "enabled",
            boolean().default(true).describe("Scan workloads at all."),
        )
        .field(
            "namespaceSelector",
            selector::label_selector("Namespaces whose workloads are scanned; all when absent."),
        )
        .field(
            "artifactsNamespace",
            string().length(0, 63).describe(
                "Namespace for the Registries, jobs, SBOMs and findings that workloads give rise \
                 to; that of the workload when empty. Workload reports stay with the workload.",
            ),
        )
        .field(
            "scanOnChange",
            boolean()
                .default(true)
                .describe("Scan at once when an image is seen for the first time."),
        )
        .field(
            "authSecret",
            string().length(0, 253).describe(
                "Name of a Secret of type kubernetes.io/dockerconfigjson in the namespace where \
                 Muster is installed, for every registry that workloads use.",
            ),
        )
}
