//! Kinds that are partly computed: the store keeps what clients may write and adds the rest when an
//! object is shown. What clients send of the rest is dropped with a warning, so that an object can
//! be replaced with what was read.

use crate::catalog::Served;
use crate::negotiate::View;
use crate::render::{Form, Include};
use crate::store::{Detail, Event, Store, StoreError, Stored};
use muster_kind::Kind;
use serde_json::{Value, json};

/// How much of an object a client sees; nothing computed is in its metadata.
fn detail(form: Form) -> Option<Detail> {
    match (form.view, form.include) {
        (View::Metadata, _) => None,
        (View::Object, _) if form.brief => Some(Detail::Brief),
        (View::Table(_), Include::Metadata | Include::None) => Some(Detail::Brief),
        (View::Table(_), Include::Object) | (View::Object, _) => Some(Detail::Full),
    }
}

/// How many bytes of stored text are completed at once: what they quote may be much more.
const PORTION: usize = 256 * 1024;

/// Whether objects are completed in portions while they are sent, because they may become large.
pub(crate) fn in_portions(served: &Served, form: Form) -> bool {
    !served.kind.computed.is_empty() && detail(form) == Some(Detail::Full)
}

/// Completes the first of some objects for a client, at least one, and returns how many: all of them unless
/// they are completed in portions.
pub(crate) async fn complete(
    store: &dyn Store,
    served: &Served,
    form: Form,
    objects: &mut [Stored],
) -> Result<usize, StoreError> {
    let Some(detail) = detail(form).filter(|_| !served.kind.computed.is_empty()) else {
        return Ok(objects.len());
    };
    let sizes = objects.iter().map(|stored| stored.body.text.len());
    let portion = match detail {
        Detail::Brief => objects.len(),
        Detail::Full => portion(sizes),
    };
    let bodies = objects.iter().take(portion);
    let bodies = bodies.map(|stored| stored.body.clone()).collect();
    let computed = store.compute(&served.resource, bodies, detail).await?;
    let count = computed.len();
    for (stored, body) in objects.iter_mut().zip(computed) {
        stored.body = body;
    }
    Ok(count)
}

/// How many bodies of these sizes are completed at once.
fn portion(sizes: impl Iterator<Item = usize>) -> usize {
    let mut sum = 0_usize;
    let fits = sizes.take_while(|size| {
        let before = sum;
        sum = sum.saturating_add(*size);
        before == 0 || sum <= PORTION
    });
    fits.count()
}

/// Completes events for all watchers at once: the first ones, at least one. The others are dropped, to be read
/// again.
pub(crate) async fn complete_events(
    store: &dyn Store,
    served: &Served,
    events: &mut Vec<Event>,
) -> Result<(), StoreError> {
    if served.kind.computed.is_empty() || events.is_empty() {
        return Ok(());
    }
    let size = |event: &Event| {
        let before = event.before.as_ref().map_or(0, |body| body.text.len());
        event.body.text.len().saturating_add(before)
    };
    events.truncate(portion(events.iter().map(size)));
    let compute = |bodies| store.compute(&served.resource, bodies, Detail::Full);
    let bodies = events
        .iter()
        .flat_map(|event| [Some(&event.body), event.before.as_ref()])
        .flatten();
    let mut computed = compute(bodies.cloned().collect()).await?.into_iter();
    let mut complete = 0;
    for event in events.iter_mut() {
        if complete > 0 && computed.len() < 1 + usize::from(event.before.is_some()) {
            break;
        }
        for place in std::iter::once(&mut event.body).chain(event.before.as_mut()) {
            let body = match computed.next() {
                Some(body) => Some(body),
                None => compute(vec![place.clone()]).await?.pop(),
            };
            *place = body.unwrap_or_else(|| place.clone());
        }
        complete += 1;
    }
    events.truncate(complete);
    Ok(())
}

/// The warning that computed fields were sent and skipped; they are named in the order of the kind.
pub(crate) fn skipped(kind: &Kind, sent: &[String]) -> Option<String> {
    let computed = kind.computed.iter().filter(|field| sent.contains(field));
    let sent: Vec<&str> = computed.map(String::as_str).collect();
    ignored(kind, &sent)
}

/// Drops what only the store may say; the warning names it.
pub(crate) fn strip(kind: &Kind, tree: &mut Value) -> Option<String> {
    let root = tree.as_object_mut()?;
    let sent = kind
        .computed
        .iter()
        .filter(|field| root.remove(*field).is_some());
    let sent: Vec<&str> = sent.map(String::as_str).collect();
    ignored(kind, &sent)
}

/// Drops the operations of a JSON patch that write what only the store may say; the warning names
/// it. What is tested or copied from there is refused, as from any field that is not stored.
pub(crate) fn strip_operations(kind: &Kind, operations: &mut Vec<Value>) -> Option<String> {
    let mut sent: Vec<&str> = Vec::new();
    operations.retain_mut(|operation| {
        let text = |member: &str| operation.get(member).and_then(Value::as_str);
        let op = text("op");
        let Some(name) = text("path").and_then(|path| computed_field(kind, path)) else {
            return true;
        };
        if op == Some("test") {
            return true;
        }
        if !sent.contains(&name) {
            sent.push(name);
        }
        // What is moved there still goes from where it was, if it was stored.
        let from = text("from").filter(|from| computed_field(kind, from).is_none());
        let Some(from) = from.filter(|_| op == Some("move")) else {
            return false;
        };
        *operation = json!({"op": "remove", "path": from});
        true
    });
    sent.sort_by_key(|name| kind.computed.iter().position(|computed| computed == name));
    ignored(kind, &sent)
}

/// The computed field that a JSON pointer leads into. One that does not begin with a slash leads
/// nowhere, and is refused as anywhere else.
fn computed_field<'a>(kind: &'a Kind, pointer: &str) -> Option<&'a str> {
    let field = pointer.strip_prefix('/')?.split('/').next()?;
    let field = field.replace("~1", "/").replace("~0", "~");
    let found = kind.computed.iter().find(|name| **name == field);
    found.map(String::as_str)
}

/// The warning that some fields were sent in vain.
fn ignored(kind: &Kind, sent: &[&str]) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_bounded_and_holds_at_least_one() {
        for (sizes, expected) in [
            (vec![], 0),
            (vec![PORTION * 2, 1], 1),
            (vec![PORTION / 2; 5], 2),
            (vec![1; 100], 100),
        ] {
            assert_eq!(portion(sizes.into_iter()), expected);
        }
    }

    #[test]
    fn operations_on_what_is_computed_are_dropped_with_the_warning_of_other_writes() {
        let mut kind = Kind::namespaced("example.com", "v1", "Report");
        kind.computed = vec!["status".into(), "summary".into()];
        let kept = json!([
            {"op": "replace", "path": "/spec/status", "value": 1},
            {"op": "test", "path": "/status/x", "value": 1},
            {"op": "copy", "from": "/summary", "path": "/spec/summary"},
            {"op": "add", "path": "", "value": {}},
            {"op": "add", "path": "x/status/-", "value": null},
            {"op": "remove"},
            "strange",
        ]);
        let dropped = json!([
            {"op": "replace", "path": "/summary/high", "value": 0},
            {"op": "remove", "path": "/status"},
            {"op": "move", "from": "/status/x", "path": "/summary/x"},
        ]);
        let list = |value: &Value| value.as_array().unwrap().clone();
        let mut operations = [list(&dropped), list(&kept)].concat();
        let warning = strip_operations(&kind, &mut operations).unwrap();
        assert_eq!(operations, list(&kept));
        let mut moved = vec![json!({"op": "move", "from": "/spec/x", "path": "/status/x"})];
        strip_operations(&kind, &mut moved).unwrap();
        assert_eq!(moved, [json!({"op": "remove", "path": "/spec/x"})]);
        let mut tree = json!({"summary": {}, "status": {}, "spec": {}});
        assert_eq!(strip(&kind, &mut tree).unwrap(), warning);
        assert!(
            warning.contains("status and summary is ignored"),
            "{warning}"
        );
        assert_eq!(strip_operations(&kind, &mut operations), None);
        kind.computed.clear();
        let mut operations = list(&dropped);
        assert_eq!(strip_operations(&kind, &mut operations), None);
        assert_eq!(operations, list(&dropped));
    }
}
