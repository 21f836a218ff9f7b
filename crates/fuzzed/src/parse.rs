//! JSON bodies with opaque fields: what is read, written down and read back is the same object.

use bytes_of::render;
use muster_kind::{Body, FieldPath, parse};
use serde_json::Value;

mod bytes_of {
    use muster_kind::{Body, Object};

    /// The object as a client sees it.
    pub fn render(body: &Body, object: &Object) -> Vec<u8> {
        let mut out = Default::default();
        let blob = |digest: &_| object.blobs.get(digest).cloned().unwrap_or_default();
        body.render(7, &mut out, blob);
        out.to_vec()
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let opaque = [FieldPath::parse("spdx"), FieldPath::parse("report.results")];
    let Ok(parsed) = parse::parse(bytes, &opaque) else {
        return;
    };
    let object = parsed.object;
    if !object.tree.is_object() {
        return;
    }
    let body = Body::encode(&object.tree, &opaque);
    let tree = body.tree(7);
    assert_eq!(tree["metadata"]["resourceVersion"], "7");
    assert_eq!(Body::encode(&tree, &opaque), body, "written down again");
    // A digest that a client made up has no bytes; whoever stores an object must refuse it.
    if body
        .blobs
        .iter()
        .all(|(_, digest)| object.blobs.contains_key(digest))
    {
        let seen: Result<Value, _> = serde_json::from_slice(&render(&body, &object));
        assert!(seen.is_ok(), "a client cannot read it: {:?}", seen.err());
    }
}
