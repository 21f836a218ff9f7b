//! A slice of what `cargo xtask fuzz` does, small enough for every run: selectors and bodies bent
//! at random from honest ones, with a fixed seed.

#![allow(clippy::unwrap_used)]

use muster_kind::selector::{FieldSelector, LabelSelector};
use muster_kind::{Body, FieldPath, parse};
use std::collections::BTreeMap;

const SEED: u64 = 0x5eed_0002;
const ROUNDS: usize = 20_000;

/// xorshift64: all the randomness that bending texts needs.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// Replaces, doubles, drops or swaps some pieces of a text.
    fn bend(&mut self, text: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
        let mut bent = text.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bent.len() + 1);
            let to = (at + self.below(6)).min(bent.len());
            let piece = match self.below(3) {
                0 => pieces[self.below(pieces.len())].to_vec(),
                1 => bent[at..to].repeat(2),
                _ => vec![self.below(256) as u8],
            };
            bent.splice(at..to, piece);
        }
        bent
    }
}

#[test]
fn no_selector_panics() {
    eprintln!("seed {SEED}");
    let honest: [&[u8]; 4] = [
        b"a=b,c!=d,e in (f,g),h notin (i),!j,k",
        b"app.kubernetes.io/name==x,tier>5",
        b"metadata.name=a,metadata.namespace!=b",
        b"spec.registry=a\\,b\\=c",
    ];
    let pieces: [&[u8]; 9] = [
        b",",
        b"=",
        b"!",
        b" in (",
        b" notin (",
        b")",
        b"\\",
        b"\xc3\xa9",
        b"\0",
    ];
    let labels: BTreeMap<String, String> = [("a".into(), "b".into())].into();
    let mut random = Random(SEED);
    let mut parsed = 0;
    for _ in 0..ROUNDS {
        let text = honest[random.below(honest.len())];
        let text = random.bend(text, &pieces);
        let text = String::from_utf8_lossy(&text);
        if let Ok(selector) = LabelSelector::parse(&text) {
            selector.matches(&labels);
            parsed += 1;
        }
        if let Ok(selector) = FieldSelector::parse(&text) {
            selector.matches(|_| Some("a"));
            selector.requires("metadata.name");
            parsed += 1;
        }
    }
    assert!(
        parsed > ROUNDS / 20,
        "bent too much to mean anything: {parsed}"
    );
}

#[test]
fn whatever_is_read_is_written_down_and_read_back_the_same() {
    eprintln!("seed {SEED}");
    let honest: [&[u8]; 2] = [
        br#"{"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5"},"spdx":{"a":[1,2]},"z":1.5e3}"#,
        br#"{"a":"\u00e9\n","report":{"results":[{"b":null}],"summary":{}},"metadata":{"labels":{}}}"#,
    ];
    let pieces: [&[u8]; 10] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b",",
        b"\\u0041",
        b"null",
        b"-0",
        b"\"metadata\":",
    ];
    let opaque = [FieldPath::parse("spdx"), FieldPath::parse("report.results")];
    let mut random = Random(SEED);
    let mut read = 0;
    for _ in 0..ROUNDS {
        let text = honest[random.below(honest.len())];
        let text = random.bend(text, &pieces);
        let Ok(parsed) = parse::parse(&text, &opaque) else {
            continue;
        };
        if !parsed.object.tree.is_object() {
            continue;
        }
        read += 1;
        let body = Body::encode(&parsed.object.tree, &opaque);
        let tree = body.tree(7);
        assert_eq!(tree["metadata"]["resourceVersion"], "7");
        assert_eq!(Body::encode(&tree, &opaque), body);
        let mut out = bytes::BytesMut::new();
        body.render(7, &mut out, |digest| parsed.object.blobs[digest].clone());
        let seen: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(seen["metadata"], tree["metadata"]);
    }
    assert!(read > ROUNDS / 20, "bent too much to mean anything: {read}");
}
