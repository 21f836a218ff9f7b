//! Bookkeeping of ownership for every write that is not an apply: whoever changes a field owns
//! it, alone.

use crate::compare::compare;
use crate::managed::{self, Entry, MAX_ENTRIES, Managed, Operation, TooManyEntries};
use crate::set::Set;
use muster_kind::Schema;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Fields the server sets or that say which object it is; nobody owns them.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields([
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});

/// A write that is not an apply.
#[derive(Debug)]
pub struct UpdateRequest<'a> {
    /// The object before, if there was one.
    pub live: Option<&'a Value>,
    /// The object after, with the `managedFields` the client sent.
    pub new: Value,
    /// The schema of the whole object, `apiVersion`, `kind` and `metadata` included.
    pub schema: &'a Schema,
    /// Who writes.
    pub manager: &'a str,
    /// The version it writes in.
    pub api_version: &'a str,
    /// The subresource it writes through.
    pub subresource: Option<&'a str>,
    /// The time, RFC 3339.
    pub now: &'a str,
    /// Fields such writes do not reach, and therefore do not own: `status` for the object itself,
    /// `spec` and `metadata` for its status.
    pub reset: &'a Set,
}

/// Returns the new object with `metadata.managedFields` brought up to date. A client may send back
/// as many entries as are stored, and otherwise no more than [`MAX_ENTRIES`].
pub fn update(request: UpdateRequest<'_>) -> Result<Value, TooManyEntries> {
    let UpdateRequest {
        live,
        new: mut object,
        subresource,
        ..
    } = request;
    let count = managed::count(&object);
    if subresource.is_none() && count > MAX_ENTRIES.max(live.map_or(0, managed::count)) {
        return Err(TooManyEntries { count });
    }
    let sent = managed::take_from(&mut object);
    let mut managed = match sent {
        _ if subresource.is_some() => of_live(live),
        Some(sent) if is_reset(&sent) => Managed::default(),
        sent => match Managed::decode(sent.as_ref()) {
            Ok(managed) if !managed.entries.is_empty() => managed,
            // Clients that know nothing of managed fields must not lose them.
            _ => of_live(live),
        },
    };
    // Once forgotten, ownership is tracked again only from the first apply on.
    let exists = live.is_some_and(|live| {
        live["metadata"]["uid"]
            .as_str()
            .is_some_and(|uid| !uid.is_empty())
    });
    if managed.entries.is_empty() && exists {
        return Ok(object);
    }
    let writer = Entry {
        manager: request.manager.into(),
        operation: Operation::Update,
        api_version: request.api_version.into(),
        time: Some(request.now.into()),
        subresource: subresource.unwrap_or_default().into(),
        fields: Set::default(),
    };
    managed.drop_oldest(&writer);
    record(
        &mut managed,
        writer.clone(),
        live,
        &object,
        request.schema,
        request.reset,
    );
    managed.fold_ancient();
    managed.drop_oldest(&writer);
    managed.store(&mut object);
    Ok(object)
}

/// Gives what changed to the writer, and to nobody else.
pub(crate) fn record(
    managed: &mut Managed,
    mut writer: Entry,
    live: Option<&Value>,
    new: &Value,
    schema: &Schema,
    reset: &Set,
) {
    for entry in &mut managed.entries {
        entry.fields = std::mem::take(&mut entry.fields).reconciled(schema);
    }
    let nothing = Value::Object(Map::new());
    let comparison = compare(live.unwrap_or(&nothing), new, schema).excluding(reset);
    managed.disown(&comparison);
    let changed = without_unowned(comparison.modified.union(comparison.added));
    if changed.is_empty() {
        return;
    }
    if writer.manager.is_empty() {
        writer.manager = "unknown".into();
    }
    let before = managed
        .take(&writer)
        .map(|entry| entry.fields)
        .unwrap_or_default();
    writer.fields = changed.union(before);
    managed.entries.push(writer);
}

pub(crate) fn without_unowned(set: Set) -> Set {
    set.difference(&UNOWNED)
}

/// What an unreadable record says is lost, as if there had been none.
fn of_live(live: Option<&Value>) -> Managed {
    live.and_then(|live| Managed::of(live).ok())
        .unwrap_or_default()
}

/// A client asks to forget all ownership with an empty list or one empty entry.
fn is_reset(sent: &Value) -> bool {
    *sent == json!([]) || *sent == json!([{}])
}

/// Keeps the former `managedFields` where the object as it is to be stored differs from the live
/// one in their times alone, so that a write that changed nothing is seen to be one. To be called
/// last, after defaulting, pruning and admission.
pub fn keep_times(live: &Value, new: &mut Value) {
    if !same_but_managed(live, new) {
        return;
    }
    let (Ok(before), Ok(after)) = (Managed::of(live), Managed::of(new)) else {
        return;
    };
    if after.same_but_times(&before)
        && let Some(fields) = live["metadata"].get("managedFields")
        && let Some(metadata) = new.get_mut("metadata")
        && let Some(kept) = metadata.get_mut("managedFields")
    {
        *kept = fields.clone();
    }
}

fn same_but_managed(left: &Value, right: &Value) -> bool {
    fn others<'a>(
        value: &'a Value,
        but: &str,
    ) -> Option<impl Iterator<Item = (&'a String, &'a Value)>> {
        Some(
            value
                .as_object()?
                .iter()
                .filter(move |(name, _)| *name != but),
        )
    }
    let same = |left: &Value, right: &Value, but: &'static str| match (
        others(left, but),
        others(right, but),
    ) {
        (Some(left), Some(right)) => left.eq(right),
        _ => false,
    };
    same(left, right, "metadata") && same(&left["metadata"], &right["metadata"], "managedFields")
}
