//! Objects as clients see them: in the version they asked for, whole, as rows of a table, or
//! metadata only. Rendering never parses what it shows whole.

use crate::catalog::Served;
use crate::negotiate::View;
use crate::opaque::{Lost, Opaque};
use crate::outgoing::{Halt, Outgoing, WHOLE};
use crate::store::{Store, Stored};
use bytes::{BufMut, Bytes, BytesMut};
use muster_kind::object::metadata;
use muster_kind::{Body, Digest, Segment};
use serde_json::{Value, json};
use std::collections::HashMap;

/// What a table row carries of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Include {
    /// Metadata.
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    None,
}

/// How a client wants to see objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The form of the answer.
    pub view: View,
    /// What rows carry.
    pub include: Include,
    /// The version, as an index into the kind's versions.
    pub version: usize,
    /// Of what is computed, only what is small: `?computed=brief` on a get or a list.
    pub brief: bool,
}

impl Form {
    fn api_version(&self, served: &Served) -> String {
        served.kind.api_version(&served.kind.versions[self.version])
    }

    /// The content type of the answer.
    pub fn content_type(&self) -> &'static str {
        "application/json"
    }
}

/// Writes an object whole, in the version asked for.
pub(crate) fn whole(
    served: &Served,
    form: Form,
    revision: u64,
    body: &Body,
    blobs: &HashMap<Digest, Bytes>,
    out: &mut BytesMut,
) {
    head(served, form, out);
    let blob = |digest: &Digest| blobs.get(digest).cloned().unwrap_or_else(|| "null".into());
    body.render_rest(revision, out, blob);
}

fn head(served: &Served, form: Form, out: &mut BytesMut) {
    let (version, kind) = (form.api_version(served), &served.kind.kind);
    out.put_slice(format!("{{\"apiVersion\":\"{version}\",\"kind\":\"{kind}\",").as_bytes());
}

/// Writes an object without its version and kind, as lists of built-in kinds show their items.
pub(crate) fn bare(revision: u64, body: &Body, blobs: &HashMap<Digest, Bytes>, out: &mut BytesMut) {
    let blob = |digest: &Digest| blobs.get(digest).cloned().unwrap_or_else(|| "null".into());
    body.render(revision, out, blob);
}

/// Sends an object whole, like [`whole`], piece by piece: neither its opaque fields nor what it quotes are
/// ever in one buffer.
pub(crate) async fn send(
    store: &dyn Store,
    served: &Served,
    form: Form,
    (revision, body): (u64, &Body),
    opaque: &mut Opaque,
    out: &mut Outgoing,
) -> Result<(), Halt> {
    head(served, form, out.gathered());
    for segment in body.segments_rest(revision) {
        let bytes = match segment {
            Segment::Text(text) => text,
            Segment::Blob(digest) => opaque.next(store, &digest).await?,
        };
        out.put(bytes).await?;
    }
    Ok(())
}

/// Metadata only.
pub(crate) fn partial(tree: &Value) -> Value {
    partial_in("v1", tree)
}

fn partial_in(version: &str, tree: &Value) -> Value {
    json!({
        "apiVersion": format!("meta.k8s.io/{version}"), "kind": "PartialObjectMetadata",
        "metadata": metadata(tree).cloned().unwrap_or_default(),
    })
}

/// Writes an object's metadata and nothing else, as it lies there: whoever lists the metadata of large
/// objects does not pay for reading them.
pub(crate) fn write_partial(version: &str, revision: u64, body: &Body, out: &mut BytesMut) {
    let head = format!(
        "{{\"apiVersion\":\"meta.k8s.io/{version}\",\"kind\":\"PartialObjectMetadata\",\"metadata\":"
    );
    out.put_slice(head.as_bytes());
    if body.render_metadata(revision, out).is_none() {
        let whole = body.tree(revision);
        out.put_slice(whole["metadata"].to_string().as_bytes());
    }
    out.put_u8(b'}');
}

/// The columns of a kind's table.
pub(crate) fn columns(served: &Served) -> Value {
    let name = json!({
        "name": "Name", "type": "string", "format": "name",
        "description": "The object's name.", "priority": 0,
    });
    let mut columns = if named(served) {
        Vec::new()
    } else {
        vec![name]
    };
    columns.extend(served.kind.columns.iter().map(|column| {
        let description = if column.description.is_empty() {
            match &column.cell {
                muster_kind::Cell::Path(path) => {
                    format!("Custom resource definition column (in JSONPath format): {path}")
                }
                muster_kind::Cell::Computed(_) => String::new(),
            }
        } else {
            column.description.clone()
        };
        json!({
            "name": column.name, "type": column.of, "format": column.format,
            "description": description, "priority": column.priority,
        })
    }));
    Value::Array(columns)
}

/// Events show their name last, if at all; every other table starts with it.
fn named(served: &Served) -> bool {
    served
        .kind
        .columns
        .iter()
        .any(|column| column.name == "Name")
}

/// The cells of a row.
fn cells(served: &Served, tree: &Value) -> Vec<Value> {
    let name = json!(muster_kind::object::meta(tree, "name"));
    let mut cells = if named(served) {
        Vec::new()
    } else {
        vec![name]
    };
    cells.extend(served.kind.columns.iter().map(|column| column.value(tree)));
    cells
}

/// One row of a kind's table.
pub(crate) fn row(served: &Served, form: Form, tree: &Value) -> Value {
    let mut row = json!({"cells": cells(served, tree)});
    row["object"] = match (form.include, form.view) {
        (Include::Metadata, View::Table(version)) => partial_in(version, tree),
        (Include::Metadata, _) => partial(tree),
        (Include::Object, _) => tree.clone(),
        (Include::None, _) => Value::Null,
    };
    row
}

/// Writes one row of a stored object; its metadata is copied, not read.
pub(crate) fn write_row(served: &Served, form: Form, stored: &Stored, out: &mut BytesMut) {
    let View::Table(version) = form.view else {
        return;
    };
    if form.include != Include::Metadata {
        let mut tree = served.tree(&stored.body, stored.revision);
        tree["apiVersion"] = json!(form.api_version(served));
        return out.put_slice(row(served, form, &tree).to_string().as_bytes());
    }
    let tree = stored.body.tree_for_columns(stored.revision);
    out.put_slice(b"{\"cells\":");
    out.put_slice(Value::Array(cells(served, &tree)).to_string().as_bytes());
    out.put_slice(b",\"object\":");
    write_partial(version, stored.revision, &stored.body, out);
    out.put_slice(b"}");
}

/// A table around rows.
pub(crate) fn table(version: &str, columns: Value, rows: Vec<Value>, list: Value) -> Value {
    json!({
        "kind": "Table", "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": list, "columnDefinitions": columns, "rows": rows,
    })
}

/// An object in the form asked for, or what is needed to send it in pieces.
pub(crate) enum Shown {
    /// The object.
    Whole(Bytes),
    /// The opaque fields of an object that is too large for one piece.
    Large(Opaque),
}

/// Writes one object of a watch or a get between `before` and `after`, if it is not too large.
pub(crate) async fn one(
    store: &dyn Store,
    served: &Served,
    form: Form,
    (revision, body): (u64, &Body),
    with_columns: bool,
    (before, after): (&str, &str),
) -> Result<Shown, Lost> {
    let mut opaque = Opaque::new([body]);
    if form.view == View::Object && !body.is_plain() {
        let fields = opaque.start(store).await?;
        let size = fields.map(|fields| fields.saturating_add(body.text_len()));
        if size.is_none_or(|size| size > WHOLE) {
            return Ok(Shown::Large(opaque));
        }
    }
    let mut out = BytesMut::with_capacity(body.text.len() + 64);
    out.put_slice(before.as_bytes());
    object(
        served,
        form,
        (revision, body),
        opaque.read(),
        with_columns,
        &mut out,
    );
    out.put_slice(after.as_bytes());
    Ok(Shown::Whole(out.freeze()))
}

/// Writes one object; `columns` are left out of all but the first table of a watch.
fn object(
    served: &Served,
    form: Form,
    (revision, body): (u64, &Body),
    blobs: &HashMap<Digest, Bytes>,
    with_columns: bool,
    out: &mut BytesMut,
) {
    match form.view {
        View::Object => whole(served, form, revision, body, blobs, out),
        View::Metadata => write_partial("v1", revision, body, out),
        View::Table(version) => {
            let mut tree = served.tree(body, revision);
            tree["apiVersion"] = json!(form.api_version(served));
            let columns = if with_columns {
                columns(served)
            } else {
                Value::Null
            };
            let list = json!({"resourceVersion": revision.to_string()});
            let rows = vec![row(served, form, &tree)];
            out.put_slice(table(version, columns, rows, list).to_string().as_bytes());
        }
    }
}
