//! Ways to point at other objects: by their labels, or by name.

use muster_kind::schema::{Schema, list, map, object, string};

/// A label selector, replaced whole: half of one selector and half of another select nothing sane.
pub fn label_selector(about: &str) -> Schema {
    object()
        .atomic()
        .describe(about)
        .field(
            "matchLabels",
            map(string()).describe("Labels an object must carry with exactly these values."),
        )
        .field(
            "matchExpressions",
            list(requirement()).describe("Requirements on labels; all of them must hold."),
        )
}

fn requirement() -> Schema {
    object()
        .describe("One requirement on one label.")
        .required("key", string().describe("The label's key."))
        .required(
            "operator",
            string()
                .one_of(["In", "NotIn", "Exists", "DoesNotExist"])
                .describe("How the label relates to the values."),
        )
        .field(
            "values",
            list(string())
                .describe("The values to compare with; needed by In and NotIn, absent otherwise."),
        )
}

/// A reference to any object, as reports use it for what they speak about.
pub fn object_reference(about: &str) -> Schema {
    object()
        .atomic()
        .describe(about)
        .field(
            "apiVersion",
            string().describe("Group and version of the object."),
        )
        .field("kind", string().describe("Kind of the object."))
        .field(
            "namespace",
            string().describe("Namespace of the object, if it has one."),
        )
        .field("name", string().describe("Name of the object."))
        .field(
            "uid",
            string().describe("UID of the object: which one of that name it was."),
        )
        .field(
            "resourceVersion",
            string().describe("The revision of the object that was looked at."),
        )
        .field(
            "fieldPath",
            string().describe("A part of the object, if not all of it is meant."),
        )
}
