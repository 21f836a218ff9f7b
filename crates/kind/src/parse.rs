//! Reading JSON bodies that strangers send: one pass that builds the tree, notes every duplicate
//! key with its path (a strict client wants to hear of it), bounds the depth, and turns opaque
//! fields into blobs without ever building them.

use crate::{Digest, FieldPath, Object, sound};
use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

/// Objects nest no deeper than this.
pub const DEPTH_LIMIT: usize = 100;

/// What a body holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The object.
    pub object: Object,
    /// Paths of keys that stand twice in one object, in reading order.
    pub duplicates: Vec<String>,
}

/// Reads one JSON document.
pub fn parse(bytes: &[u8], opaque: &[FieldPath]) -> Result<Parsed, serde_json::Error> {
    let found = RefCell::new(Found::default());
    let paths: Vec<&[String]> = opaque.iter().map(FieldPath::names).collect();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed {
        found: &found,
        path: None,
        opaque: &paths,
        depth: 0,
    };
    let tree = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    let found = found.into_inner();
    Ok(Parsed {
        object: Object {
            tree,
            blobs: found.blobs,
        },
        duplicates: found.duplicates,
    })
}

#[derive(Default)]
struct Found {
    duplicates: Vec<String>,
    blobs: BTreeMap<Digest, Bytes>,
}

/// Where we are, as a list from the leaf to the root that lives on the stack.
struct Step<'a> {
    before: Option<&'a Step<'a>>,
    name: StepName<'a>,
}

enum StepName<'a> {
    Field(&'a str),
    Index(usize),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match self.name {
            StepName::Field(name) if self.before.is_some() => write!(f, ".{name}"),
            StepName::Field(name) => f.write_str(name),
            StepName::Index(index) => write!(f, "[{index}]"),
        }
    }
}

struct Seed<'a> {
    found: &'a RefCell<Found>,
    path: Option<&'a Step<'a>>,
    opaque: &'a [&'a [String]],
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > DEPTH_LIMIT {
            return Err(D::Error::custom("exceeded max depth"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let step = Step {
                before: self.path,
                name: StepName::Index(list.len()),
            };
            let seed = Seed {
                found: self.found,
                path: Some(&step),
                opaque: &[],
                depth: self.depth + 1,
            };
            match items.next_element_seed(seed)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let step = Step {
                before: self.path,
                name: StepName::Field(&key),
            };
            let below: Vec<&[String]> = self
                .opaque
                .iter()
                .filter(|path| path.first() == Some(&key))
                .map(|path| &path[1..])
                .collect();
            let value = if below.iter().any(|path| path.is_empty()) {
                let raw: Box<RawValue> = entries.next_value()?;
                sound::check(raw.get()).map_err(A::Error::custom)?;
                seal(&raw, &mut self.found.borrow_mut())
            } else {
                let seed = Seed {
                    found: self.found,
                    path: Some(&step),
                    opaque: &below,
                    depth: self.depth + 1,
                };
                entries.next_value_seed(seed)?
            };
            if map.contains_key(&key) {
                self.found.borrow_mut().duplicates.push(step.to_string());
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn seal(raw: &RawValue, found: &mut Found) -> Value {
    if raw.get() == "null" {
        return Value::Null;
    }
    let bytes = Bytes::copy_from_slice(raw.get().as_bytes());
    let digest = Digest::of(&bytes);
    found.blobs.insert(digest, bytes);
    Value::from(digest.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn duplicate_keys_are_named_by_their_path_and_the_last_one_counts() {
        let text = br#"{"a":1,"b":{"c":[{"d":1,"d":2}]},"a":3}"#;
        let parsed = parse(text, &[]).unwrap();
        assert_eq!(parsed.duplicates, ["b.c[0].d", "a"]);
        assert_eq!(parsed.object.tree, json!({"a": 3, "b": {"c": [{"d": 2}]}}));
    }

    #[test]
    fn an_opaque_field_becomes_a_digest_and_keeps_its_bytes() {
        let text = br#"{"spdx": {"z": 1,  "a": 2}, "report":{"results":[ 1 ],"summary":{}}}"#;
        let opaque = [FieldPath::parse("spdx"), FieldPath::parse("report.results")];
        let parsed = parse(text, &opaque).unwrap();
        let bytes: &[u8] = br#"{"z": 1,  "a": 2}"#;
        assert_eq!(parsed.object.tree["spdx"], Digest::of(bytes).to_string());
        assert_eq!(parsed.object.blobs[&Digest::of(bytes)], bytes);
        assert_eq!(parsed.object.tree["report"]["summary"], json!({}));
        assert_eq!(parsed.object.blobs.len(), 2);
    }

    #[test]
    fn an_opaque_field_that_nobody_could_read_is_an_error() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        for bad in ["1e999", r#""\ud800""#, &deep] {
            let text = format!(r#"{{"spdx":{bad}}}"#);
            assert!(parse(text.as_bytes(), &[FieldPath::parse("spdx")]).is_err());
        }
    }

    #[test]
    fn nesting_is_bounded_and_garbage_is_an_error() {
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        for bad in [deep.as_bytes(), b"{", b"{} x", b"\xff", b"{\"a\":\"\xff\"}"] {
            assert!(parse(bad, &[]).is_err());
        }
    }
}
