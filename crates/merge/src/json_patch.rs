//! JSON patch (RFC 6902) as kube-apiserver does it, with the wording of its errors and its
//! liberties: an absent value is null, a replaced field need not exist, indexes may count from
//! the end, and what stands before the first slash of a path is ignored.

use crate::MAX_DEPTH;
use crate::printed::json_kind;
use serde_json::{Map, Value};
use std::fmt;

/// The greatest number of operations kube-apiserver takes in one patch (else 413).
pub const MAX_OPERATIONS: usize = 10_000;
/// What the copies of one patch may add to a document, in bytes of JSON.
pub const COPY_LIMIT: usize = 3 * 1024 * 1024;
/// What shifting items and measuring moved values may cost in one patch, in values touched; far
/// beyond honest patches, and short of what a hostile one could make of the limits above.
const WORK_LIMIT: usize = 64 * 1024 * 1024;

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// The patch is not one (400).
    Undecodable(String),
    /// A `test` operation failed (422).
    TestFailed(String),
    /// An operation does not fit the document (422).
    Inapplicable(String),
    /// The patch would cost too much (422).
    TooLarge(String),
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::Undecodable(message)
            | PatchError::TestFailed(message)
            | PatchError::Inapplicable(message)
            | PatchError::TooLarge(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for PatchError {}

fn inapplicable(message: String) -> PatchError {
    PatchError::Inapplicable(message)
}

/// One operation of a patch. Its parts are judged when its turn comes, as kube-apiserver does.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    kind: String,
    path: Pointer,
    from: Pointer,
    value: Option<Value>,
    depth: usize,
}

/// A member of an operation that should be a string.
#[derive(Clone, Debug, PartialEq)]
enum Pointer {
    Absent,
    Not(&'static str),
    Text(String),
}

impl Pointer {
    fn read(value: Option<Value>) -> Self {
        match value {
            None | Some(Value::Null) => Pointer::Absent,
            Some(Value::String(text)) => Pointer::Text(text),
            Some(other) => Pointer::Not(json_kind(&other)),
        }
    }

    fn text(&self, absent: &str) -> Result<&str, String> {
        match self {
            Pointer::Text(text) => Ok(text),
            Pointer::Absent => Err(format!("{absent}: missing value")),
            Pointer::Not(kind) => Err(format!(
                "json: cannot unmarshal {kind} into Go value of type string"
            )),
        }
    }
}

impl Operation {
    fn read(mut fields: Map<String, Value>) -> Self {
        let kind = match fields.remove("op") {
            Some(Value::String(kind)) => kind,
            _ => "unknown".into(),
        };
        let value = fields.remove("value");
        Operation {
            kind,
            path: Pointer::read(fields.remove("path")),
            from: Pointer::read(fields.remove("from")),
            depth: value
                .as_ref()
                .map_or(1, |value| measure(value, MAX_DEPTH).depth),
            value,
        }
    }

    fn path(&self) -> Result<&str, PatchError> {
        let bare = matches!(self.kind.as_str(), "add" | "remove" | "copy");
        self.path
            .text("operation missing path field")
            .map_err(|problem| {
                let problem = if bare { "missing value" } else { &problem };
                inapplicable(format!(
                    "{} operation failed to decode path: {problem}",
                    self.kind
                ))
            })
    }

    fn from(&self) -> Result<&str, PatchError> {
        self.from
            .text("operation, missing from field")
            .map_err(|problem| {
                inapplicable(format!(
                    "{} operation failed to decode from: {problem}",
                    self.kind
                ))
            })
    }

    fn value(&self) -> Value {
        self.value.clone().unwrap_or_default()
    }
}

/// Parses a patch.
pub fn parse(bytes: &[u8]) -> Result<Vec<Operation>, PatchError> {
    let patch = serde_json::from_slice(bytes)
        .map_err(|problem| PatchError::Undecodable(problem.to_string()))?;
    read(patch)
}

/// Takes a patch that has been parsed.
pub fn read(patch: Value) -> Result<Vec<Operation>, PatchError> {
    let undecodable = |kind: &str, into: &str| {
        let message =
            format!("json: cannot unmarshal {kind} into Go value of type jsonpatch.{into}");
        PatchError::Undecodable(message)
    };
    let operations = match patch {
        Value::Array(operations) => operations,
        Value::Null => Vec::new(),
        other => return Err(undecodable(json_kind(&other), "Patch")),
    };
    operations
        .into_iter()
        .map(|operation| match operation {
            Value::Object(fields) => Ok(Operation::read(fields)),
            Value::Null => Ok(Operation::read(Map::new())),
            other => Err(undecodable(json_kind(&other), "Operation")),
        })
        .collect()
}

/// Applies a patch. A document whose patch fails is left somewhere on the way.
pub fn apply(document: &mut Value, operations: &[Operation]) -> Result<(), PatchError> {
    let mut patching = Patching {
        document,
        copied: 0,
        work: 0,
    };
    for operation in operations {
        match operation.kind.as_str() {
            "add" => patching.add(operation)?,
            "remove" => patching.remove(operation)?,
            "replace" => patching.replace(operation)?,
            "move" => patching.relocate(operation)?,
            "copy" => patching.copy(operation)?,
            "test" => patching.test(operation)?,
            kind => return Err(inapplicable(format!("Unexpected kind: {kind}"))),
        }
    }
    Ok(())
}

struct Patching<'d> {
    document: &'d mut Value,
    copied: usize,
    work: usize,
}

impl Patching<'_> {
    fn add(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path = operation.path()?;
        let missing = || {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        };
        let (parent, key) = find(self.document, path).ok_or_else(|| inapplicable(missing()))?;
        check_depth(path, operation.depth)?;
        let shifted = insert(parent, &key, operation.value()).map_err(|problem| {
            inapplicable(format!("error in add for path: '{path}': {problem}"))
        })?;
        self.charge(shifted)
    }

    fn remove(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path = operation.path()?;
        let missing = || {
            format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            )
        };
        let (parent, key) = find(self.document, path).ok_or_else(|| inapplicable(missing()))?;
        let (_, shifted) = take(parent, &key).map_err(|problem| {
            inapplicable(format!("error in remove for path: '{path}': {problem}"))
        })?;
        self.charge(shifted)
    }

    fn replace(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path = operation.path()?;
        if path.is_empty() {
            check_depth(path, operation.depth)?;
            let value = operation.value();
            if !value.is_object() && !value.is_array() {
                // The tail is a slip of the library whose wording this is.
                let message = "replace operation value must be object or array: %!w(<nil>)";
                return Err(inapplicable(message.into()));
            }
            *self.document = value;
            return Ok(());
        }
        let missing = |what| {
            inapplicable(format!(
                "replace operation does not apply: doc is missing {what}: {path}: missing value"
            ))
        };
        let (parent, key) = find(self.document, path).ok_or_else(|| missing("path"))?;
        check_depth(path, operation.depth)?;
        match parent {
            Value::Array(items) => {
                let place = index(&key, items.len()).map_err(|_| missing("key"))?;
                items[place] = operation.value();
            }
            Value::Object(fields) => {
                fields.insert(key, operation.value());
            }
            _ => return Err(missing("path")),
        }
        Ok(())
    }

    fn relocate(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let from = operation.from()?;
        let missing = |which, path: &str| {
            inapplicable(format!(
                "move operation does not apply: doc is missing {which} path: {path}: missing value"
            ))
        };
        let (parent, key) = find(self.document, from).ok_or_else(|| missing("from", from))?;
        let (value, shifted) = take(parent, &key).map_err(|problem| {
            inapplicable(format!("error in move for path: '{key}': {problem}"))
        })?;
        self.charge(shifted)?;
        let path = operation.path()?;
        let (parent, key) =
            find(self.document, path).ok_or_else(|| missing("destination", path))?;
        let mut touched = 0;
        if length(path) > length(from) {
            let measure = measure(&value, MAX_DEPTH);
            check_depth(path, measure.depth)?;
            touched = measure.values;
        }
        let shifted = insert(parent, &key, value).map_err(|problem| {
            inapplicable(format!("error in move for path: '{path}': {problem}"))
        })?;
        self.charge(shifted + touched)
    }

    fn copy(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let from = operation.from()?;
        let missing = |which, path: &str| {
            inapplicable(format!(
                "copy operation does not apply: doc is missing {which} path: {path}: missing value"
            ))
        };
        let (parent, key) = find(self.document, from).ok_or_else(|| missing("from", from))?;
        let value = get(parent, &key).map_err(|problem| {
            inapplicable(format!("error in copy for from: '{from}': {problem}"))
        })?;
        let size = value.map_or(0, json_size);
        self.copied += size;
        if self.copied > COPY_LIMIT {
            return Err(PatchError::TooLarge(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {COPY_LIMIT}",
                self.copied,
            )));
        }
        let value = value.cloned().unwrap_or_default();
        let path = operation.path()?;
        let (parent, key) =
            find(self.document, path).ok_or_else(|| missing("destination", path))?;
        check_depth(path, measure(&value, MAX_DEPTH).depth)?;
        let shifted = insert(parent, &key, value).map_err(|problem| {
            inapplicable(format!("error while adding value during copy: {problem}"))
        })?;
        self.charge(shifted)
    }

    fn test(&mut self, operation: &Operation) -> Result<(), PatchError> {
        let path = operation.path()?;
        let expected = operation.value.as_ref().unwrap_or(&Value::Null);
        let found = if path.is_empty() {
            Some(&*self.document)
        } else {
            let missing =
                || format!("test operation does not apply: is missing path: {path}: missing value");
            let (parent, key) = find(self.document, path).ok_or_else(|| inapplicable(missing()))?;
            get(parent, &key).map_err(|problem| {
                inapplicable(format!("error in test for path: '{path}': {problem}"))
            })?
        };
        if found.unwrap_or(&Value::Null) == expected {
            return Ok(());
        }
        Err(PatchError::TestFailed(format!(
            "testing value {path} failed: test failed"
        )))
    }

    fn charge(&mut self, work: usize) -> Result<(), PatchError> {
        self.work += work;
        if self.work > WORK_LIMIT {
            return Err(PatchError::TooLarge(
                "The patch moves too many values".into(),
            ));
        }
        Ok(())
    }
}

/// The number of steps a path takes.
fn length(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

fn check_depth(path: &str, depth: usize) -> Result<(), PatchError> {
    if length(path) + depth > MAX_DEPTH {
        return Err(PatchError::TooLarge(format!(
            "The patch nests values more than {MAX_DEPTH} levels deep"
        )));
    }
    Ok(())
}

/// The array or object that holds what a path leads to, and the last step of the path.
fn find<'d>(document: &'d mut Value, path: &str) -> Option<(&'d mut Value, String)> {
    let mut parts = path.split('/').skip(1).peekable();
    let mut parent = document;
    loop {
        let key = unescape(parts.next()?);
        if parts.peek().is_none() {
            return (parent.is_object() || parent.is_array()).then_some((parent, key));
        }
        parent = match parent {
            Value::Object(fields) => fields.get_mut(&key)?,
            Value::Array(items) => {
                let place = index(&key, items.len()).ok()?;
                items.get_mut(place)?
            }
            _ => return None,
        };
    }
}

fn unescape(part: &str) -> String {
    if part.contains('~') {
        part.replace("~1", "/").replace("~0", "~")
    } else {
        part.into()
    }
}

fn get<'d>(parent: &'d Value, key: &str) -> Result<Option<&'d Value>, String> {
    match parent {
        Value::Array(items) => Ok(items.get(index(key, items.len())?)),
        other => Ok(other.get(key)),
    }
}

/// Adds a value; says how many items had to make room.
fn insert(parent: &mut Value, key: &str, value: Value) -> Result<usize, String> {
    match parent {
        Value::Object(fields) => {
            fields.insert(key.into(), value);
            Ok(0)
        }
        Value::Array(items) if key == "-" => {
            items.push(value);
            Ok(0)
        }
        Value::Array(items) => {
            number(key).map_err(|e| format!("value was not a proper array index: '{key}': {e}"))?;
            let place = index(key, items.len() + 1)?;
            let shifted = items.len() - place;
            items.insert(place, value);
            Ok(shifted)
        }
        _ => Err("unknown object type".into()),
    }
}

/// Takes a value out; says how many items closed the gap.
fn take(parent: &mut Value, key: &str) -> Result<(Value, usize), String> {
    match parent {
        Value::Object(fields) => match fields.remove(key) {
            Some(value) => Ok((value, 0)),
            None => Err(format!(
                "Unable to remove nonexistent key: {key}: missing value"
            )),
        },
        Value::Array(items) => {
            let place = index(key, items.len())?;
            let value = items.remove(place);
            Ok((value, items.len() - place))
        }
        _ => Err("unknown object type".into()),
    }
}

fn number(key: &str) -> Result<i64, String> {
    key.parse().map_err(|_| {
        let digits = key.trim_start_matches(['+', '-']);
        let long = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let problem = if long {
            "value out of range"
        } else {
            "invalid syntax"
        };
        format!("strconv.Atoi: parsing {key:?}: {problem}")
    })
}

/// The place in an array of this length; negative numbers count from its end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let number = number(key)?;
    let place = match usize::try_from(number) {
        Ok(place) => Some(place),
        Err(_) => usize::try_from(number.unsigned_abs())
            .ok()
            .and_then(|n| length.checked_sub(n)),
    };
    place.filter(|place| *place < length).ok_or_else(|| {
        format!("Unable to access invalid index: {number}: invalid index referenced")
    })
}

struct Measure {
    depth: usize,
    values: usize,
}

/// How deep a value nests and how many values it is, not looking much deeper than `limit`.
fn measure(value: &Value, limit: usize) -> Measure {
    let below: &mut dyn Iterator<Item = &Value> = match value {
        _ if limit == 0 => &mut std::iter::empty(),
        Value::Array(items) => &mut items.iter(),
        Value::Object(fields) => &mut fields.values(),
        _ => &mut std::iter::empty(),
    };
    let whole = below.fold(
        Measure {
            depth: 0,
            values: 0,
        },
        |whole, part| {
            let part = measure(part, limit - 1);
            Measure {
                depth: whole.depth.max(part.depth),
                values: whole.values + part.values,
            }
        },
    );
    Measure {
        depth: whole.depth + 1,
        values: whole.values + 1,
    }
}

fn json_size(value: &Value) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX / 2,
    }
}
