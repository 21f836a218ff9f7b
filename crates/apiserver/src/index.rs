//! What the store indexes of an object: all that lists, watches and collectors look for.

use crate::catalog::Served;
use crate::metadata;
use crate::store::Index;
use muster_kind::object::meta;
use serde_json::Value;
use std::collections::BTreeMap;

/// The internal field by which objects that wait for their finalizers are found again.
pub(crate) const DELETING: &str = ".deleting";

/// What the store indexes of an object.
pub(crate) fn index(tree: &Value, served: &Served) -> Index {
    let mut fields: BTreeMap<String, String> = served
        .kind
        .selectable
        .iter()
        .filter_map(|path| Some((path.to_string(), served.field(tree, path)?)))
        .collect();
    if metadata::is_deleting(tree) {
        fields.insert(DELETING.into(), "true".into());
    }
    Index {
        uid: meta(tree, "uid").into(),
        labels: labels(tree),
        fields,
        // What is not indexed is never found dangling.
        owners: metadata::list(tree, "ownerReferences")
            .iter()
            .filter(|_| !served.kind.owners_elsewhere)
            .filter_map(|owner| owner.get("uid")?.as_str().map(Into::into))
            .collect(),
        links: served
            .kind
            .linker
            .map(|links| links(tree).into_iter().collect())
            .unwrap_or_default(),
    }
}

/// The labels of an object.
fn labels(tree: &Value) -> BTreeMap<String, String> {
    muster_kind::object::metadata(tree)
        .and_then(|m| m.get("labels"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}
