//! Kinds that are partly computed: the store keeps what clients may write and adds the rest when an
//! object is shown. What clients send of the rest is dropped with a warning, so that an object can
//! be replaced with what was read.

use crate::catalog::Served;
use crate::negotiate::View;
use crate::render::{Form, Include};
use crate::store::{Detail, Event, Store, StoreError, Stored};
use muster_kind::{Body, Kind};
use serde_json::Value;

/// How much of an object a client sees; nothing computed is in its metadata.
fn detail(form: Form) -> Option<Detail> {
    match (form.view, form.include) {
        (View::Metadata, _) => None,
        (View::Table(_), Include::Metadata | Include::None) => Some(Detail::Brief),
        (View::Table(_), Include::Object) | (View::Object, _) => Some(Detail::Full),
    }
}

/// Completes objects for a client.
pub(crate) async fn complete(
    store: &dyn Store,
    served: &Served,
    form: Form,
    objects: &mut [Stored],
) -> Result<(), StoreError> {
    let Some(detail) = detail(form) else {
        return Ok(());
    };
    let bodies = objects.iter_mut().map(|stored| &mut stored.body).collect();
    fill(store, served, detail, bodies).await
}

/// Completes events for all watchers at once.
pub(crate) async fn complete_events(
    store: &dyn Store,
    served: &Served,
    events: &mut [Event],
) -> Result<(), StoreError> {
    let bodies = events
        .iter_mut()
        .flat_map(|event| [Some(&mut event.body), event.before.as_mut()])
        .flatten()
        .collect();
    fill(store, served, Detail::Full, bodies).await
}

async fn fill(
    store: &dyn Store,
    served: &Served,
    detail: Detail,
    places: Vec<&mut Body>,
) -> Result<(), StoreError> {
    if served.kind.computed.is_empty() || places.is_empty() {
        return Ok(());
    }
    let stored = places.iter().map(|body| (**body).clone()).collect();
    let computed = store.compute(&served.resource, stored, detail).await?;
    for (place, body) in places.into_iter().zip(computed) {
        *place = body;
    }
    Ok(())
}

/// Drops what only the store may say; the warning names it.
pub(crate) fn strip(kind: &Kind, tree: &mut Value) -> Option<String> {
    let root = tree.as_object_mut()?;
    let sent = kind
        .computed
        .iter()
        .filter(|field| root.remove(*field).is_some());
    let sent: Vec<&str> = sent.map(String::as_str).collect();
    let (last, rest) = sent.split_last()?;
    let list = match rest.is_empty() {
        true => (*last).to_owned(),
        false => format!("{} and {last}", rest.join(", ")),
    };
    Some(format!(
        "a {} is computed in part when it is read; what was sent of {list} is ignored",
        kind.kind
    ))
}
