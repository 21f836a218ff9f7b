//! VEXHub: where statements are found that a vulnerability does no harm.

use super::{CATEGORY, GROUP, VERSION};
use crate::{condition, validate};
use muster_kind::schema::{boolean, object, string, timestamp};
use muster_kind::{Column, Kind};

/// The kind.
pub fn vex_hub() -> Kind {
    let spec = object()
        .describe("Where the statements are, and whether they count.")
        .required(
            "url",
            string()
                .length(1, 2048)
                .describe("Address of the hub, http or https."),
        )
        .field(
            "enabled",
            boolean()
                .default(true)
                .describe("Let statements of this hub suppress findings."),
        );
    let status = condition::status("Whether the hub could be read.").field(
        "lastUpdateTime",
        timestamp().describe("When the hub was last read in full."),
    );
    Kind::cluster(GROUP, VERSION, "VEXHub")
        .category(crate::CATEGORY)
        .category(CATEGORY)
        .describe("A repository of VEX documents by which findings are suppressed.")
        .schema(object().required("spec", spec).field("status", status))
        .with_status()
        .column(Column::string("URL", ".spec.url"))
        .column(Column::at("Enabled", "boolean", ".spec.enabled"))
        .column(Column::date("Updated", ".status.lastUpdateTime"))
        .column(Column::age())
        .validated_by(validate::configuration::vex_hub)
}
