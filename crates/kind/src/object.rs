//! Objects as trees while they are worked on, and as bytes while they rest. A [`Body`] is the
//! object's JSON with holes: one for `metadata.resourceVersion`, which only the store knows, and
//! one for every opaque field, whose bytes live once in a blob. Rendering fills the holes; it
//! never parses. In a tree an opaque field is the digest of its bytes, so patches move, compare
//! and drop it without ever reading it.

use crate::segments::{Quote, Segment, Segments};
use crate::{FieldPath, Kind, scan};
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The SHA-256 of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }
    /// Reads the form [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text
            .strip_prefix("sha256:")
            .filter(|h| h.len() == 64 && h.is_ascii())?;
        let mut bytes = [0; 32];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An object being worked on: a tree, and the bytes of opaque fields that came with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// The tree; opaque fields are digests in it.
    pub tree: Value,
    /// The bytes behind digests that the store may not have yet.
    pub blobs: BTreeMap<Digest, Bytes>,
}

/// An object at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// JSON without the resource version and without opaque fields.
    pub text: Bytes,
    /// Where in `text` the resource version's digits belong.
    pub revision_at: usize,
    /// Where in `text` the bytes of which blob belong, in ascending order.
    pub blobs: Vec<(usize, Digest)>,
    /// Where in `text` which shared value belongs, in ascending order; only computed bodies have any.
    pub quotes: Vec<(usize, Arc<Quote>)>,
}

impl Body {
    /// Writes a tree down. `metadata.resourceVersion` of the tree is ignored, and so are
    /// `apiVersion` and `kind`: every reader knows them, and one body serves all versions.
    pub fn encode(tree: &Value, opaque: &[FieldPath]) -> Body {
        let mut writer = Writer {
            text: Vec::with_capacity(512),
            revision_at: 0,
            blobs: Vec::new(),
        };
        let empty = Map::new();
        writer.root(tree.as_object().unwrap_or(&empty), opaque);
        Body {
            text: writer.text.into(),
            revision_at: writer.revision_at,
            blobs: writer.blobs,
            quotes: Vec::new(),
        }
    }

    /// Reads the tree back, with its resource version and with digests for opaque fields.
    pub fn tree(&self, revision: u64) -> Value {
        let digest = |digest: &Digest, out: &mut BytesMut| {
            out.put_slice(format!("\"{digest}\"").as_bytes());
        };
        let mut out = BytesMut::with_capacity(self.text.len() + 24);
        self.pieces(0, revision, &mut out, digest);
        // What `encode` wrote is JSON; a database that gives other bytes is corrupt and shows
        // as an object without fields rather than as a panic.
        serde_json::from_slice(&out).unwrap_or_default()
    }

    /// Fills the holes: the JSON a client sees. `blob` finds an opaque field's bytes.
    pub fn render(&self, revision: u64, out: &mut BytesMut, blob: impl Fn(&Digest) -> Bytes) {
        self.pieces(0, revision, out, |digest, out| out.put_slice(&blob(digest)));
    }

    /// The pieces of the JSON a client sees.
    pub fn segments(&self, revision: u64) -> Segments {
        Segments::of(self, revision, 0)
    }

    /// Like [`Body::segments`], but without the opening brace.
    pub fn segments_rest(&self, revision: u64) -> Segments {
        Segments::of(self, revision, 1)
    }

    /// Whether all of it is text: no opaque field and nothing shared.
    pub fn is_plain(&self) -> bool {
        self.blobs.is_empty() && self.quotes.is_empty()
    }

    /// The length of all text, that of shared values wherever they stand.
    pub fn text_len(&self) -> usize {
        let quotes = self.quotes.iter().map(|(_, quote)| quote.text.len());
        quotes.fold(self.text.len(), usize::saturating_add)
    }

    /// The blobs in the order in which they stand.
    pub fn digests(&self) -> Box<dyn Iterator<Item = Digest> + Send> {
        if self.quotes.is_empty() {
            return Box::new(self.blobs.clone().into_iter().map(|(_, digest)| digest));
        }
        let digest = |segment| match segment {
            Segment::Text(_) => None,
            Segment::Blob(digest) => Some(digest),
        };
        Box::new(self.segments(0).filter_map(digest))
    }

    /// The tree with null in the place of shared values: what selectors and columns need, which may be
    /// very much smaller.
    pub fn outline(&self, revision: u64) -> Value {
        if self.quotes.is_empty() {
            return self.tree(revision);
        }
        let null = Arc::new(Quote {
            text: Bytes::from_static(b"null"),
            blobs: Vec::new(),
        });
        let quotes = self.quotes.iter().map(|(at, _)| (*at, null.clone()));
        let outline = Body {
            quotes: quotes.collect(),
            ..self.clone()
        };
        outline.tree(revision)
    }

    /// Like [`Body::render`], but without the opening brace: for whoever has put fields in front.
    pub fn render_rest(&self, revision: u64, out: &mut BytesMut, blob: impl Fn(&Digest) -> Bytes) {
        self.pieces(1, revision, out, |digest, out| out.put_slice(&blob(digest)));
    }

    /// A body from its parts; `None` if its holes are out of order or outside of the text.
    pub fn checked(text: Bytes, revision_at: usize, blobs: Vec<(usize, Digest)>) -> Option<Self> {
        let ends = blobs.iter().map(|(at, _)| *at).chain([revision_at]);
        let fits = blobs.is_sorted_by_key(|(at, _)| *at) && ends.max() <= Some(text.len());
        fits.then_some(Body {
            text,
            revision_at,
            blobs,
            quotes: Vec::new(),
        })
    }

    /// The tree without `metadata.managedFields`, which no column shows and which is the larger
    /// part of many objects.
    pub fn tree_for_columns(&self, revision: u64) -> Value {
        let managed = scan::field(&self.text, 0, "metadata")
            .and_then(|metadata| scan::field(&self.text, metadata.value.start, "managedFields"))
            .map(|field| field.whole)
            // Something always follows: an object has a name. Bodies with blobs are read whole.
            .filter(|whole| self.text.get(whole.end) == Some(&b',') && self.is_plain());
        let Some(managed) = managed else {
            return self.outline(revision);
        };
        let mut text = BytesMut::with_capacity(self.text.len());
        text.put_slice(&self.text[..managed.start]);
        text.put_slice(&self.text[managed.end + 1..]);
        let mut tree: Value = serde_json::from_slice(&text).unwrap_or_default();
        metadata_mut(&mut tree).insert("resourceVersion".into(), Value::from(revision.to_string()));
        tree
    }

    /// Writes `metadata` as it lies there; `None` where it has to be read.
    pub fn render_metadata(&self, revision: u64, out: &mut BytesMut) -> Option<()> {
        let range = scan::field(&self.text, 0, "metadata")?.value;
        if !range.contains(&self.revision_at) {
            return None;
        }
        out.put_slice(&self.text[range.start..self.revision_at]);
        out.put_slice(revision.to_string().as_bytes());
        out.put_slice(&self.text[self.revision_at..range.end]);
        Some(())
    }

    /// Adds a field of this object, with the comma before it, to other text, and its opaque fields to
    /// those of that text. Says whether there is such a field.
    pub fn quote(&self, name: &str, out: &mut BytesMut, blobs: &mut Vec<(usize, Digest)>) -> bool {
        let Some(field) = scan::field(&self.text, 0, name) else {
            return false;
        };
        out.put_u8(b',');
        let start = out.len();
        let inside = self.blobs.iter().filter(|(at, _)| field.whole.contains(at));
        blobs.extend(inside.map(|(at, digest)| (at - field.whole.start + start, *digest)));
        out.put_slice(&self.text[field.whole]);
        true
    }

    fn pieces(
        &self,
        mut from: usize,
        revision: u64,
        out: &mut BytesMut,
        mut fill: impl FnMut(&Digest, &mut BytesMut),
    ) {
        if !self.quotes.is_empty() {
            for segment in Segments::of(self, revision, from) {
                match segment {
                    Segment::Text(text) => out.put_slice(&text),
                    Segment::Blob(digest) => fill(&digest, out),
                }
            }
            return;
        }
        let mut revision_due = true;
        for (at, digest) in &self.blobs {
            if revision_due && self.revision_at <= *at {
                self.revision(revision, &mut from, out);
                revision_due = false;
            }
            out.put_slice(&self.text[from..*at]);
            fill(digest, out);
            from = *at;
        }
        if revision_due {
            self.revision(revision, &mut from, out);
        }
        out.put_slice(&self.text[from..]);
    }

    fn revision(&self, revision: u64, from: &mut usize, out: &mut BytesMut) {
        out.put_slice(&self.text[*from..self.revision_at]);
        out.put_slice(revision.to_string().as_bytes());
        *from = self.revision_at;
    }
}

struct Writer {
    text: Vec<u8>,
    revision_at: usize,
    blobs: Vec<(usize, Digest)>,
}

impl Writer {
    fn root(&mut self, root: &Map<String, Value>, opaque: &[FieldPath]) {
        let paths: Vec<&[String]> = opaque.iter().map(FieldPath::names).collect();
        self.text.push(b'{');
        let mut first = true;
        let mut metadata_due = true;
        let own = |key: &&String| !matches!(key.as_str(), "apiVersion" | "kind");
        for (key, value) in root.iter().filter(|(key, _)| own(key)) {
            if metadata_due && key.as_str() >= "metadata" {
                metadata_due = false;
                let metadata = root.get("metadata").and_then(Value::as_object);
                self.key("metadata", &mut first);
                self.metadata(metadata);
                if key == "metadata" {
                    continue;
                }
            }
            self.key(key, &mut first);
            self.field(key, value, &paths);
        }
        if metadata_due {
            self.key("metadata", &mut first);
            self.metadata(None);
        }
        self.text.push(b'}');
    }

    fn metadata(&mut self, metadata: Option<&Map<String, Value>>) {
        self.text.push(b'{');
        let mut first = true;
        let mut revision_due = true;
        for (key, value) in metadata.into_iter().flatten() {
            if revision_due && key.as_str() >= "resourceVersion" {
                revision_due = false;
                self.revision(&mut first);
            }
            if key != "resourceVersion" {
                self.key(key, &mut first);
                self.value(value);
            }
        }
        if revision_due {
            self.revision(&mut first);
        }
        self.text.push(b'}');
    }

    fn revision(&mut self, first: &mut bool) {
        self.key("resourceVersion", first);
        self.text.push(b'"');
        self.revision_at = self.text.len();
        self.text.push(b'"');
    }

    fn field(&mut self, key: &str, value: &Value, paths: &[&[String]]) {
        let below: Vec<&[String]> = paths
            .iter()
            .filter(|path| path.first().is_some_and(|name| name == key))
            .map(|path| &path[1..])
            .collect();
        if below.iter().any(|path| path.is_empty())
            && let Some(digest) = value.as_str().and_then(Digest::parse)
        {
            self.blobs.push((self.text.len(), digest));
            return;
        }
        match value {
            Value::Object(map) if !below.is_empty() => {
                self.text.push(b'{');
                let mut first = true;
                for (key, value) in map {
                    self.key(key, &mut first);
                    self.field(key, value, &below);
                }
                self.text.push(b'}');
            }
            value => self.value(value),
        }
    }

    fn key(&mut self, key: &str, first: &mut bool) {
        if !std::mem::take(first) {
            self.text.push(b',');
        }
        self.value(&Value::from(key));
        self.text.push(b':');
    }

    fn value(&mut self, value: &Value) {
        // Writing a `Value` into memory has no way to fail.
        let _ = serde_json::to_writer(&mut self.text, value);
    }
}

impl Object {
    /// An object without opaque fields.
    pub fn of(tree: Value) -> Self {
        Object {
            tree,
            blobs: BTreeMap::new(),
        }
    }

    /// Turns the opaque fields of a whole tree (as a YAML body or a patch gives them) into
    /// digests, keeping their bytes.
    pub fn seal(tree: Value, kind: &Kind) -> Self {
        let mut object = Object::of(tree);
        for path in &kind.opaque {
            let mut value = Some(&mut object.tree);
            for name in path.names() {
                value = value.and_then(|value| value.get_mut(name));
            }
            if let Some(value) = value.filter(|value| !value.is_null()) {
                let bytes = Bytes::from(value.to_string());
                let digest = Digest::of(&bytes);
                *value = Value::from(digest.to_string());
                object.blobs.insert(digest, bytes);
            }
        }
        object
    }

    /// Writes the object down for the store.
    pub fn body(&self, kind: &Kind) -> Body {
        Body::encode(&self.tree, &kind.opaque)
    }
}

/// `metadata` of a tree.
pub fn metadata(tree: &Value) -> Option<&Map<String, Value>> {
    tree.get("metadata").and_then(Value::as_object)
}

/// A string of `metadata`, empty if absent.
pub fn meta<'a>(tree: &'a Value, field: &str) -> &'a str {
    metadata(tree)
        .and_then(|m| m.get(field))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// `metadata` of a tree, made if absent. A tree that is no object becomes one.
pub fn metadata_mut(tree: &mut Value) -> &mut Map<String, Value> {
    child_mut(object_mut(tree), "metadata")
}

fn object_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

fn child_mut<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    object_mut(map.entry(key).or_insert(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_gets_its_revision_and_blobs_back_where_they_were() {
        let blob = Bytes::from_static(b"{\"packages\": [1]}");
        let digest = Digest::of(&blob);
        let tree = json!({
            "apiVersion": "v1", "kind": "SBOM", "a": 1,
            "metadata": {"name": "x", "uid": "u", "annotations": {"k": "v"}, "resourceVersion": "7"},
            "report": {"results": digest.to_string(), "summary": {"high": 1}},
            "spdx": digest.to_string(), "z": [1],
        });
        let opaque = [FieldPath::parse("spdx"), FieldPath::parse("report.results")];
        let body = Body::encode(&tree, &opaque);
        assert_eq!(body.blobs.len(), 2);
        let mut out = BytesMut::new();
        body.render(41, &mut out, |_| blob.clone());
        let seen: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(seen["metadata"]["resourceVersion"], "41");
        assert_eq!(seen["spdx"], json!({"packages": [1]}));
        assert_eq!(
            seen["report"],
            json!({"results": {"packages": [1]}, "summary": {"high": 1}})
        );
        let mut again = tree.clone();
        again
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key != "apiVersion" && key != "kind");
        again["metadata"]["resourceVersion"] = json!("41");
        assert_eq!(body.tree(41), again);
    }

    #[test]
    fn a_float_is_read_back_as_it_was_written() {
        let tree = json!({"a": 4.4444444444444436e38, "metadata": {"resourceVersion": "3"}});
        let body = Body::encode(&tree, &[]);
        assert_eq!(body.tree(3), tree);
        assert_eq!(Body::encode(&body.tree(3), &[]), body);
    }

    #[test]
    fn what_columns_need_is_the_tree_without_its_managed_fields() {
        let tree = json!({
            "data": {"metadata": "no", "managedFields": "no"},
            "metadata": {
                "labels": {"managedFields": "no"},
                "managedFields": [{"fieldsV1": {"f:a": {"},": {}}}}],
                "name": "x",
            },
        });
        let body = Body::encode(&tree, &[]);
        let mut light = body.tree(9);
        let mut out = BytesMut::new();
        body.render_metadata(9, &mut out).unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&out).unwrap(),
            light["metadata"]
        );
        light["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(body.tree_for_columns(9), light);
        let plain = Body::encode(&json!({"metadata": {"name": "x"}}), &[]);
        assert_eq!(plain.tree_for_columns(2), plain.tree(2));
    }

    #[test]
    fn a_body_without_metadata_still_has_a_place_for_its_revision() {
        for tree in [
            json!({}),
            json!({"kind": "x"}),
            json!({"z": 1, "metadata": {}}),
        ] {
            let body = Body::encode(&tree, &[]);
            assert_eq!(body.tree(3)["metadata"]["resourceVersion"], "3");
        }
    }
}
