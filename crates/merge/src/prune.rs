//! Pruning: a field that a manager applied before and does not apply now goes, unless somebody
//! else owns it.

use crate::remove::remove;
use crate::set::Set;
use crate::typed::to_set;
use muster_kind::Schema;
use serde_json::Value;

/// Takes out of a merged object what its applier owned `last` time and nobody in `managed`, the
/// applier's present set included, owns now.
pub(crate) fn prune(merged: Value, last: Set, managed: Set, schema: &Schema) -> Value {
    let fields = |value: &Value| to_set(value, schema).with_declared_parents(schema);
    let without = |set: &Set| {
        let mut rest = merged.clone();
        remove(&mut rest, set, schema);
        rest
    };
    let last = last.with_declared_parents(schema);
    let present = fields(&merged);

    // Everything of the last time goes at first, with all that stands below it; then comes back
    // what is owned, with all that leads to it; and of what is still missing only that goes
    // which the applier had owned itself.
    let bare = fields(&without(&last));
    let kept = bare.union(managed.with_declared_parents(schema));
    let restored = fields(&without(&present.clone().difference(&kept)));
    let gone = present.difference(&restored).intersection(&last);
    let mut pruned = merged;
    remove(&mut pruned, &gone, schema);
    pruned
}
