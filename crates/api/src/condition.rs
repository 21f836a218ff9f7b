//! Conditions: how an object's status says what holds, since when and why. One shape everywhere,
//! that of `metav1.Condition`, merged by `type` so that several controllers may each own one.

use muster_kind::schema::{Schema, int64, list, object, string, timestamp};

const TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const REASON: &str = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";

/// The list of conditions of a status; `about` says which condition types are to be expected.
pub fn conditions(about: &str) -> Schema {
    list(condition()).keyed_by(["type"]).describe(about)
}

/// A status that holds nothing but conditions.
pub fn status(about: &str) -> Schema {
    object()
        .describe("What was last observed.")
        .field("observedGeneration", observed_generation())
        .field("conditions", conditions(about))
}

/// The generation of the spec that a status speaks about.
pub fn observed_generation() -> Schema {
    int64()
        .at_least(0.0)
        .describe("The generation of the spec that this status speaks about.")
}

fn condition() -> Schema {
    object()
        .describe("One aspect of the object's state.")
        .required(
            "type",
            string()
                .length(1, 316)
                .pattern(TYPE)
                .describe("Which aspect this is, in CamelCase."),
        )
        .required(
            "status",
            string()
                .one_of(["True", "False", "Unknown"])
                .describe("Whether the aspect holds; Unknown when nobody could tell."),
        )
        .field(
            "observedGeneration",
            int64()
                .at_least(0.0)
                .describe("The generation of the spec this was judged on."),
        )
        .required(
            "lastTransitionTime",
            timestamp().describe("When `status` last became what it is."),
        )
        .required(
            "reason",
            string()
                .length(1, 1024)
                .pattern(REASON)
                .describe("The cause in one CamelCase word, for programs."),
        )
        .required(
            "message",
            string()
                .length(0, 32768)
                .describe("The cause in a sentence, for people."),
        )
}
