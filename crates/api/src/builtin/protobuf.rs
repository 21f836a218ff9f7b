//! Request bodies in Kubernetes' protobuf form, which typed clients send (`kubectl create
//! configmap`), as the JSON they would have sent otherwise. One table says which number is which
//! field; this walks the bytes with it. The bytes are a stranger's: every read is checked and the
//! depth is bounded.

use super::wire::{Reader, Wire};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use muster_kind::Budget;
use muster_kind::cost::TooLarge;
use muster_kind::parse::{self, Fields};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What a protobuf body begins with.
pub const MAGIC: &[u8] = b"k8s\0";

/// Messages within messages; a pod template in a cron job is 12 deep.
const MAX_DEPTH: usize = 100;

/// Number, JSON name, type, and how: `?` omitted when zero, `!` kept, `*` repeated, `%` a map.
type Field = (u32, &'static str, &'static str, &'static str);

#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct Table {
    kinds: BTreeMap<&'static str, &'static str>,
    messages: BTreeMap<&'static str, Vec<Field>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/protobuf.json")).unwrap_or_default()
});

/// Reads a body within a budget; the tree has its `apiVersion` and `kind`.
pub fn decode(bytes: &[u8], budget: &Budget) -> Result<Value, String> {
    let body = bytes.strip_prefix(MAGIC).ok_or_else(|| {
        format!("provided data does not appear to be a protobuf message, expected prefix {MAGIC:?}")
    })?;
    let (mut version, mut kind, mut raw) = ("", "", [].as_slice());
    let mut envelope = Reader::new(body);
    while let Some((number, wire)) = envelope.next()? {
        match number {
            1 => {
                let mut names = Reader::new(wire.bytes()?);
                while let Some((number, wire)) = names.next()? {
                    match number {
                        1 => version = wire.text()?,
                        2 => kind = wire.text()?,
                        _ => {}
                    }
                }
            }
            2 => raw = wire.bytes()?,
            3 if !wire.bytes()?.is_empty() => return Err("encoded content is not supported".into()),
            _ => {}
        }
    }
    let of = [format!("{version}/{kind}"), format!("*/{kind}")]
        .iter()
        .find_map(|key| TABLE.kinds.get(key.as_str()))
        .ok_or_else(|| format!("no kind {kind:?} is registered for version {version:?}"))?;
    let mut tree = message(of, raw, 0, budget)?;
    tree["apiVersion"] = version.into();
    tree["kind"] = kind.into();
    Ok(tree)
}

/// Reads a message of a type. `Null` stands for a value that JSON would not show.
fn message(of: &str, bytes: &[u8], depth: usize, budget: &Budget) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("message is nested too deeply".into());
    }
    if let Some(value) = special(of, bytes, budget) {
        return value;
    }
    let fields = TABLE
        .messages
        .get(of)
        .ok_or_else(|| format!("unknown message {of}"))?;
    let mut object = Map::new();
    // A message that is one value in JSON: a list with a name of its own, or one form of a union.
    let mut whole = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        let Some((_, name, of, how)) = fields.iter().find(|field| field.0 == number) else {
            continue;
        };
        if name.is_empty() {
            match (*how, single(of, wire, depth, budget)?) {
                ("*", value) => match &mut whole {
                    Some(Value::Array(items)) => {
                        budget.item(items.len()).map_err(refused)?;
                        items.push(value);
                    }
                    _ => {
                        budget.item(0).map_err(refused)?;
                        whole = Some(json!([value]));
                    }
                },
                (_, Value::Object(fields)) => {
                    budget.entry(0, 0).map_err(refused)?;
                    object.extend(fields);
                    whole = None;
                }
                (_, value) => whole = Some(value),
            }
            continue;
        }
        match *how {
            "*" => {
                let list = list_in(&mut object, name, budget)?;
                repeated(of, wire, depth, budget, list)?;
            }
            "%" => {
                let (key, value) = entry(of, wire.bytes()?, depth, budget)?;
                match object.get_mut(*name) {
                    Some(Value::Object(map)) => {
                        budget.entry(map.len(), 0).map_err(refused)?;
                        map.insert(key, value);
                    }
                    _ => {
                        budget.entry(object.len(), name.len()).map_err(refused)?;
                        budget.entry(0, 0).map_err(refused)?;
                        object.insert((*name).into(), json!({key: value}));
                    }
                }
            }
            how => {
                let value = single(of, wire, depth, budget)?;
                if value.is_null() || (how == "?" && is_zero(&value)) {
                    object.remove(*name);
                } else {
                    budget.entry(object.len(), name.len()).map_err(refused)?;
                    object.insert((*name).into(), value);
                }
            }
        }
    }
    Ok(whole.unwrap_or(Value::Object(object)))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The tree would take too much memory; the budget knows it.
fn refused(error: TooLarge) -> String {
    error.to_string()
}

/// The list of a field, made if absent.
fn list_in<'a>(
    object: &'a mut Map<String, Value>,
    name: &str,
    budget: &Budget,
) -> Result<&'a mut Vec<Value>, String> {
    if !object.get(name).is_some_and(Value::is_array) {
        budget.entry(object.len(), name.len()).map_err(refused)?;
        object.insert(name.into(), Value::Array(Vec::new()));
    }
    let list = object.get_mut(name).and_then(Value::as_array_mut);
    list.ok_or_else(|| format!("{name} is not a list"))
}

fn single(of: &str, wire: Wire<'_>, depth: usize, budget: &Budget) -> Result<Value, String> {
    Ok(match of {
        "string" => {
            let text = wire.text()?;
            budget.text(text.len()).map_err(refused)?;
            text.into()
        }
        "bytes" => {
            let bytes = wire.bytes()?;
            budget.text(bytes.len().div_ceil(3) * 4).map_err(refused)?;
            STANDARD.encode(bytes).into()
        }
        "bool" => (wire.varint()? != 0).into(),
        // Negative numbers of 32 bits are written with 64: the upper half is their sign.
        "int32" => (wire.varint()? as i32).into(),
        "int64" => (wire.varint()? as i64).into(),
        "double" => json!(f64::from_bits(wire.fixed64()?)),
        of => message(of, wire.bytes()?, depth + 1, budget)?,
    })
}

/// Adds one item, or several numbers in the packed form.
fn repeated(
    of: &str,
    wire: Wire<'_>,
    depth: usize,
    budget: &Budget,
    items: &mut Vec<Value>,
) -> Result<(), String> {
    if let (Wire::Bytes(bytes), "bool" | "int32" | "int64") = (&wire, of) {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let item = single(of, Wire::Varint(reader.varint()?), depth, budget)?;
            budget.item(items.len()).map_err(refused)?;
            items.push(item);
        }
        return Ok(());
    }
    budget.item(items.len()).map_err(refused)?;
    items.push(single(of, wire, depth, budget)?);
    Ok(())
}

fn entry(of: &str, bytes: &[u8], depth: usize, budget: &Budget) -> Result<(String, Value), String> {
    let (mut key, mut value) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => {
                let text = wire.text()?;
                budget.text(text.len()).map_err(refused)?;
                key = text.to_owned();
            }
            2 => value = Some(single(of, wire, depth, budget)?),
            _ => {}
        }
    }
    match value {
        Some(value) => Ok((key, value)),
        None => Ok((key, single(of, Wire::Bytes(&[]), depth, budget)?)),
    }
}

/// Messages whose JSON is not that of their fields.
fn special(of: &str, bytes: &[u8], budget: &Budget) -> Option<Result<Value, String>> {
    Some(match of.rsplit_once('.').map_or("", |(_, name)| name) {
        "Time" => time(bytes, "%Y-%m-%dT%H:%M:%SZ"),
        "MicroTime" => time(bytes, "%Y-%m-%dT%H:%M:%S%.6fZ"),
        "Quantity" => first_bytes(bytes, |text| match text {
            b"" => Ok("0".into()),
            text => single("string", Wire::Bytes(text), 0, budget),
        }),
        "RawExtension" | "FieldsV1" | "JSON" => first_bytes(bytes, |text| match text {
            b"" => Ok(Value::Null),
            text => {
                let read = parse::read(text, Fields::default(), budget);
                let read = read.map_err(|error| format!("embedded JSON: {error}"))?;
                Ok(read.object.tree)
            }
        }),
        "IntOrString" => int_or_string(bytes, budget),
        _ => return None,
    })
}

fn first_bytes(
    bytes: &[u8],
    read: impl Fn(&[u8]) -> Result<Value, String>,
) -> Result<Value, String> {
    let mut found = [].as_slice();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        if number == 1 {
            found = wire.bytes()?;
        }
    }
    read(found)
}

/// A time; the zero time is written as an empty message.
fn time(bytes: &[u8], form: &str) -> Result<Value, String> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match number {
            1 => seconds = wire.varint()? as i64,
            2 => nanos = wire.varint()? as i32,
            _ => {}
        }
    }
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds, nanos).map_err(|e| format!("time out of range: {e}"))?;
    Ok(time.strftime(form).to_string().into())
}

fn int_or_string(bytes: &[u8], budget: &Budget) -> Result<Value, String> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    let mut reader = Reader::new(bytes);
    while let Some((field, wire)) = reader.next()? {
        match field {
            1 => is_text = wire.varint()? == 1,
            2 => number = wire.varint()? as i32,
            3 => text = wire.text()?,
            _ => {}
        }
    }
    if is_text {
        budget.text(text.len()).map_err(refused)?;
        return Ok(text.into());
    }
    Ok(number.into())
}

#[cfg(test)]
mod tests;
