//! A schema with everything that patches and applies tell apart.

use muster_kind::Schema;
use muster_kind::schema::{any, int64, list, map, object, string};

pub fn schema() -> Schema {
    let mut items = list(
        object()
            .required("name", string())
            .field("value", string())
            .field("free", any()),
    )
    .keyed_by(["name"]);
    items.strategic.merge = true;
    items.strategic.merge_key = Some("name".into());
    let mut set = list(string()).set();
    set.strategic.merge = true;
    object()
        .field("apiVersion", string())
        .field("kind", string())
        .field("metadata", any())
        .field(
            "spec",
            object()
                .field("replicas", int64())
                .field("items", items)
                .field("set", set)
                .field("map", map(string()))
                .field("whole", map(string()).atomic())
                .field("free", any()),
        )
}
