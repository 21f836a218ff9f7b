//! Reading JSON bodies that strangers send: one pass that builds the tree, notes every duplicate
//! key with its path (a strict client wants to hear of it), bounds the depth and the memory of the
//! tree, turns opaque fields into blobs without ever building them, and skips computed fields.

use crate::cost::{Budget, TooLarge};
use crate::{Digest, FieldPath, Kind, Object, sound};
use bytes::Bytes;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

/// Objects nest no deeper than this.
pub const DEPTH_LIMIT: usize = 100;

/// The paths of repeated keys that are kept: more would help no reader.
pub const MAX_DUPLICATES: usize = 100;

/// What a body holds.
#[derive(Debug, Default)]
pub struct Parsed {
    /// The object.
    pub object: Object,
    /// Paths of keys that stand twice in one object, in reading order; the first [`MAX_DUPLICATES`] of them.
    pub duplicates: Vec<String>,
    /// The computed fields that were sent and skipped, each once.
    pub skipped: Vec<String>,
}

/// The fields that a parser does not build.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields<'a> {
    /// Fields that become blobs.
    pub opaque: &'a [FieldPath],
    /// Fields at the root that are skipped.
    pub computed: &'a [String],
}

impl<'a> Fields<'a> {
    /// The opaque and the computed fields of a kind.
    pub fn of(kind: &'a Kind) -> Self {
        Fields {
            opaque: &kind.opaque,
            computed: &kind.computed,
        }
    }
}

/// Why a document cannot be read.
#[derive(Debug)]
pub enum ParseError {
    /// The document is not JSON, or nests too deeply.
    Json(serde_json::Error),
    /// The tree would take too much memory.
    TooLarge(TooLarge),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::Json(error) => error.fmt(f),
            ParseError::TooLarge(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ParseError {}

/// Reads one JSON document with the default budget.
pub fn parse(bytes: &[u8], opaque: &[FieldPath]) -> Result<Parsed, ParseError> {
    let fields = Fields {
        opaque,
        computed: &[],
    };
    read(bytes, fields, &Budget::default())
}

/// Reads one JSON document and counts what its tree takes.
pub fn read(bytes: &[u8], fields: Fields<'_>, budget: &Budget) -> Result<Parsed, ParseError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = read_from(&mut deserializer, fields, budget).and_then(|parsed| {
        deserializer.end()?;
        Ok(parsed)
    });
    read.map_err(|error| match budget.exceeded() {
        Some(too_large) => ParseError::TooLarge(too_large),
        None => ParseError::Json(error),
    })
}

/// Reads a document of any format and counts what its tree takes. Only JSON can have opaque fields.
pub fn read_from<'de, D: Deserializer<'de>>(
    deserializer: D,
    fields: Fields<'_>,
    budget: &Budget,
) -> Result<Parsed, D::Error> {
    let found = RefCell::new(Found::default());
    let paths: Vec<&[String]> = fields.opaque.iter().map(FieldPath::names).collect();
    let seed = Seed {
        found: &found,
        budget,
        path: None,
        opaque: &paths,
        computed: fields.computed,
        depth: 0,
    };
    let tree = seed.deserialize(deserializer)?;
    let found = found.into_inner();
    Ok(Parsed {
        object: Object {
            tree,
            blobs: found.blobs,
        },
        duplicates: found.duplicates,
        skipped: found.skipped,
    })
}

#[derive(Default)]
struct Found {
    duplicates: Vec<String>,
    skipped: Vec<String>,
    blobs: BTreeMap<Digest, Bytes>,
}

impl Found {
    /// Notes a repeated key by its path, which counts like any other text.
    fn repeat(&mut self, path: impl fmt::Display, budget: &Budget) -> Result<(), TooLarge> {
        if self.duplicates.len() < MAX_DUPLICATES {
            let path = path.to_string();
            budget.text(path.len())?;
            self.duplicates.push(path);
        }
        Ok(())
    }
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
    budget: &'a Budget,
    path: Option<&'a Step<'a>>,
    opaque: &'a [&'a [String]],
    computed: &'a [String],
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
    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.budget.text(value.len()).map_err(E::custom)?;
        Ok(value.into())
    }
    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.budget.text(value.len()).map_err(E::custom)?;
        Ok(value.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
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
                budget: self.budget,
                path: Some(&step),
                opaque: &[],
                computed: &[],
                depth: self.depth + 1,
            };
            match items.next_element_seed(seed)? {
                Some(item) => {
                    self.budget.item(list.len()).map_err(A::Error::custom)?;
                    list.push(item);
                }
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
            if self.computed.contains(&key) {
                entries.next_value::<IgnoredAny>()?;
                let mut found = self.found.borrow_mut();
                match found.skipped.contains(&key) {
                    true => found.repeat(key, self.budget).map_err(A::Error::custom)?,
                    false => found.skipped.push(key),
                }
                continue;
            }
            // Before the value: what is refused is not built.
            self.budget
                .entry(map.len(), key.len())
                .map_err(A::Error::custom)?;
            let below: Vec<&[String]> = self
                .opaque
                .iter()
                .filter(|path| path.first() == Some(&key))
                .map(|path| &path[1..])
                .collect();
            let value = if below.iter().any(|path| path.is_empty()) {
                let raw: &'de RawValue = entries.next_value()?;
                sound::check(raw.get()).map_err(A::Error::custom)?;
                seal(raw, &mut self.found.borrow_mut())
            } else {
                let seed = Seed {
                    found: self.found,
                    budget: self.budget,
                    path: Some(&step),
                    opaque: &below,
                    computed: &[],
                    depth: self.depth + 1,
                };
                entries.next_value_seed(seed)?
            };
            if map.contains_key(&key) {
                let repeated = self.found.borrow_mut().repeat(&step, self.budget);
                repeated.map_err(A::Error::custom)?;
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
    fn repeated_keys_take_a_bounded_memory() {
        let many = format!("{{{}\"a\":1}}", "\"a\":0,".repeat(1000));
        let parsed = parse(many.as_bytes(), &[]).unwrap();
        assert_eq!(parsed.duplicates.len(), MAX_DUPLICATES);
        // Below a long key each path is long.
        let key = "k".repeat(1024 * 1024);
        let long = format!("{{\"{key}\":{many}}}");
        assert!(parse(long.as_bytes(), &[]).is_err());
        let computed = ["status".to_owned()];
        let many = format!("{{{}\"status\":1}}", "\"status\":0,".repeat(1000));
        let fields = Fields {
            opaque: &[],
            computed: &computed,
        };
        let parsed = read(many.as_bytes(), fields, &Budget::default()).unwrap();
        assert_eq!(parsed.duplicates.len(), MAX_DUPLICATES);
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

    /// The bytes that were counted, and whether the document was refused.
    fn count(text: &str, limit: usize) -> (usize, bool) {
        let budget = Budget::new(limit);
        let read = read(text.as_bytes(), Fields::default(), &budget);
        let refused = matches!(read, Err(ParseError::TooLarge(_)));
        (budget.spent(), refused)
    }

    #[test]
    fn a_document_that_would_be_a_large_tree_is_refused_while_it_is_read() {
        const LIMIT: usize = 100_000;
        let list = |item: &str, times: usize| format!("[{}0]", format!("{item},").repeat(times));
        let map = |entry: &str, times: usize| {
            let entries = (0..times).map(|number| format!("\"{number}\":{entry}"));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        };
        let deep = format!("{}1{}", "{\"a\":".repeat(90), "}".repeat(90));
        for (what, text) in [
            ("numbers", list("0", 100_000)),
            ("lists", list("[0]", 100_000)),
            ("empty lists", list("[]", 100_000)),
            ("maps", list("{\"a\":0}", 10_000)),
            ("entries", map("0", 10_000)),
            ("deep maps", list(&deep, 10)),
            ("strings", list("\"aaaaaaaa\"", 10_000)),
            ("a string", format!("\"{}\"", "a".repeat(LIMIT + 1))),
            ("a key", format!("{{\"{}\":0}}", "a".repeat(LIMIT + 1))),
        ] {
            let (spent, refused) = count(&text, LIMIT);
            assert!(refused, "{what}");
            // It stopped at the value that was too much.
            assert!(
                spent <= LIMIT + text.len().min(LIMIT) + 1024,
                "{what}: {spent}"
            );
            let (whole, refused) = count(&text, usize::MAX);
            assert!(!refused && whole > LIMIT, "{what}: {whole}");
        }
    }

    #[test]
    fn an_ordinary_object_costs_a_few_times_its_text() {
        let container = r#"{"name":"app","image":"docker.io/library/nginx:1.27","ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}]}"#;
        let text = format!("[{}]", [container; 100].join(","));
        let (spent, _) = count(&text, usize::MAX);
        let times = spent / text.len();
        assert!((5..40).contains(&times), "{times}");
        let (spent, _) = count(&format!("\"{}\"", "a".repeat(100_000)), usize::MAX);
        assert!(spent < 101_000, "{spent}");
    }

    #[test]
    fn computed_fields_are_skipped_and_cost_nothing() {
        let computed = ["status".to_owned(), "containers".to_owned()];
        let fields = Fields {
            opaque: &[],
            computed: &computed,
        };
        let zeros = format!("[{}0]", "0,".repeat(100_000));
        let text = format!(
            r#"{{"containers":{zeros},"spec":{{"status":1}},"containers":{{"a":[{zeros}]}},"status":null}}"#
        );
        let budget = Budget::new(10_000);
        let parsed = read(text.as_bytes(), fields, &budget).unwrap();
        assert_eq!(parsed.object.tree, json!({"spec": {"status": 1}}));
        assert_eq!(parsed.skipped, ["containers", "status"]);
        assert_eq!(parsed.duplicates, ["containers"]);
        assert!(budget.spent() < 2_000, "{}", budget.spent());
        let text = format!(r#"{{"spec":{{"containers":{zeros}}}}}"#);
        assert!(read(text.as_bytes(), fields, &Budget::new(10_000)).is_err());
    }

    #[test]
    fn opaque_fields_are_not_counted() {
        let opaque = [FieldPath::parse("spdx")];
        let text = format!(r#"{{"spdx":[{}0]}}"#, "0,".repeat(100_000));
        let budget = Budget::new(10_000);
        let fields = Fields {
            opaque: &opaque,
            computed: &[],
        };
        assert!(read(text.as_bytes(), fields, &budget).is_ok());
        assert!(budget.spent() < 2_000, "{}", budget.spent());
    }
}
