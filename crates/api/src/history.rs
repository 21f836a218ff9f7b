//! How findings came and went: of each workload, and of all workloads of a namespace together. A
//! point says what there was from its time on, so that nothing is written while nothing changes.

use crate::{finding, scanner, storage};
use muster_kind::schema::{int64, list, object, timestamp};
use muster_kind::{Column, Kind};
use serde_json::Value;

/// The label that says of whom a history is.
pub const LABEL: &str = "sbomscanner.kubewarden.io/history";
/// Its value on the history of a workload, which is named like the workload's report.
pub const OF_WORKLOAD: &str = "workload";
/// Its value on the history of a namespace, and the name of that history. No workload has it: the
/// names of their reports begin with a kind and a hyphen.
pub const OF_NAMESPACE: &str = "namespace";

/// The most points that a history has.
pub const MOST: usize = 200;

/// A FindingHistory.
pub(crate) fn kind() -> Kind {
    let point = object()
        .describe("What there was from a time on, until the next point.")
        .required("time", timestamp().describe("Since when."))
        .field(
            "workloads",
            int64()
                .at_least(0.0)
                .describe("How many workloads were counted; only in the history of a namespace."),
        )
        .field("summary", finding::summary("Findings by severity."));
    Kind::namespaced(storage::GROUP, storage::VERSION, "FindingHistory")
        .plural("findinghistories")
        .short("fh")
        .category(crate::CATEGORY)
        .category(scanner::CATEGORY)
        .describe("How the findings of a workload, or of a namespace, came and went.")
        .schema(
            object().field(
                "points",
                list(point)
                    .at_most(MOST)
                    .describe("What changed and when, oldest first; of older days only the last."),
            ),
        )
        .column(
            Column::computed("Critical", "integer", |history| count(history, "critical"))
                .describe("Findings since the last change."),
        )
        .column(Column::computed("High", "integer", |history| {
            count(history, "high")
        }))
        .column(Column::computed("Medium", "integer", |history| {
            count(history, "medium")
        }))
        .column(Column::computed("Low", "integer", |history| {
            count(history, "low")
        }))
        .column(Column::computed("Unknown", "integer", |history| {
            count(history, "unknown")
        }))
        .column(
            Column::computed("Since", "string", |history| last(history)["time"].clone())
                .describe("When that changed last."),
        )
        .column(
            Column::computed("Points", "integer", |history| {
                let points = history["points"].as_array();
                points.map_or(0, Vec::len).into()
            })
            .wide(),
        )
        .column(Column::age())
}

fn last(history: &Value) -> &Value {
    let points = history["points"].as_array();
    points.and_then(|all| all.last()).unwrap_or(&Value::Null)
}

fn count(history: &Value, severity: &str) -> Value {
    last(history)["summary"][severity].clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_history_is_shown_with_what_there_is_now() {
        let history = json!({"points": [
            {"time": "2026-01-01T00:00:00Z", "summary": {"critical": 3}},
            {"time": "2026-01-02T00:00:00Z", "summary": {"critical": 1}},
        ]});
        assert_eq!(count(&history, "critical"), 1);
        assert_eq!(last(&history)["time"], "2026-01-02T00:00:00Z");
        assert_eq!(count(&json!({}), "critical"), Value::Null);
    }
}
