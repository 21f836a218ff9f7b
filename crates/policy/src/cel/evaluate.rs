//! Evaluation of one expression on one request. Whatever is done is counted first ([`Meter`]). What an
//! expression cannot say of an object is a failure, which `||`, `&&`, `all` and `exists` may do
//! without; that it may not go on is final.

use super::compile::Variable;
use super::meter::{Meter, Stop, failed};
use super::node::{Access, Comparison, Loop, Macro, Node, Operation};
use super::value::{Key, List, Map, PLACE, Text, Value, whole};
use crate::request::Request;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

pub(super) type Answer<'a> = Result<Value<'a>, Stop>;

/// One evaluation: what is known so far, and what it may still do.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    request: &'a Request,
    variables: &'a [Variable],
    known: Vec<Option<Answer<'a>>>,
    asked: Option<Value<'a>>,
    locals: Vec<Value<'a>>,
    meter: Meter,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(request: &'a Request, variables: &'a [Variable], meter: Meter) -> Self {
        Evaluation {
            request,
            variables,
            known: variables.iter().map(|_| None).collect(),
            asked: None,
            locals: Vec::new(),
            meter,
        }
    }

    /// Whether an expression holds.
    pub(super) fn holds(&mut self, node: &'a Node) -> Result<bool, Stop> {
        match self.value(node)? {
            Value::Bool(holds) => Ok(holds),
            other => failed(format!("it must yield bool, and yields {}", other.kind())),
        }
    }

    /// The value of an expression.
    pub(super) fn value(&mut self, node: &'a Node) -> Answer<'a> {
        self.meter.work(1)?;
        match node {
            Node::Null => Ok(Value::Null),
            Node::Bool(value) => Ok(Value::Bool(*value)),
            Node::Int(value) => Ok(Value::Int(*value)),
            Node::Uint(value) => Ok(Value::Uint(*value)),
            Node::Double(value) => Ok(Value::Double(*value)),
            Node::Text(text) => Ok(Value::Text(Text::Borrowed(text))),
            Node::Bytes(bytes) => {
                self.meter.take(bytes.len() + PLACE)?;
                Ok(Value::Bytes(bytes.as_slice().into()))
            }
            Node::Type(name) => Ok(Value::Type(name)),
            Node::Pattern(pattern) => Ok(Value::Pattern(pattern)),
            Node::Object => Ok((&self.request.object).into()),
            Node::Request => Ok(self.request()),
            Node::Variable(place) => self.variable(*place),
            Node::Local(place) => match self.locals.get(*place) {
                Some(value) => Ok(value.clone()),
                None => failed("a name is not bound"),
            },
            Node::Select(of, field, access) => {
                let of = self.value(of)?;
                self.part(of, &Value::Text(Text::Borrowed(field)), *access)
            }
            Node::Index(both, access) => {
                let (of, key) = self.both(both)?;
                self.part(of, &key, *access)
            }
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::And(both) => self.logical(both, false),
            Node::Or(both) => self.logical(both, true),
            Node::Not(part) => Ok(Value::Bool(!self.holds(part)?)),
            Node::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                match self.holds(condition)? {
                    true => self.value(yes),
                    false => self.value(no),
                }
            }
            Node::Equal(both, expected) => {
                let (left, right) = self.both(both)?;
                let equal = left.equals(&right, &self.meter)?;
                Ok(Value::Bool(equal == *expected))
            }
            Node::Compare(both, comparison) => {
                let (left, right) = self.both(both)?;
                let order = left.order(&right, &self.meter)?;
                Ok(Value::Bool(order.is_some_and(|order| match comparison {
                    Comparison::Less => order == Ordering::Less,
                    Comparison::LessOrEqual => order != Ordering::Greater,
                    Comparison::Greater => order == Ordering::Greater,
                    Comparison::GreaterOrEqual => order != Ordering::Less,
                })))
            }
            Node::Arithmetic(both, operation) => {
                let (left, right) = self.both(both)?;
                arithmetic(&left, &right, *operation, &self.meter)
            }
            Node::Negate(part) => match self.value(part)? {
                Value::Int(value) => value.checked_neg().map_or_else(overflow, int),
                Value::Double(value) => Ok(Value::Double(-value)),
                other => failed(format!("{} has no negative", other.kind())),
            },
            Node::In(both) => {
                let (item, of) = self.both(both)?;
                self.is_in(&item, &of).map(Value::Bool)
            }
            Node::Call(function, arguments) => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    values.push(self.value(argument)?);
                }
                (function.run)(&self.meter, &values)
            }
            Node::Loop(of) => self.repeat(of),
            Node::Bind(both) => {
                let [value, body] = both.as_ref();
                let value = self.value(value)?;
                self.bound([value], body)
            }
            Node::OptionalMap(both, flat) => {
                let [of, body] = both.as_ref();
                match self.value(of)? {
                    Value::Optional(None) => Ok(Value::Optional(None)),
                    Value::Optional(Some(value)) => {
                        let value = self.bound([(*value).clone()], body)?;
                        match (flat, value) {
                            (false, value) => Ok(Value::Optional(Some(Rc::new(value)))),
                            (true, Value::Optional(value)) => Ok(Value::Optional(value)),
                            (true, other) => failed(format!(
                                "`optFlatMap` yields an optional, not {}",
                                other.kind()
                            )),
                        }
                    }
                    other => failed(format!("{} is no optional", other.kind())),
                }
            }
        }
    }

    fn both(&mut self, both: &'a [Node; 2]) -> Result<(Value<'a>, Value<'a>), Stop> {
        let [left, right] = both;
        Ok((self.value(left)?, self.value(right)?))
    }

    /// The value of a part in which some more names are bound.
    fn bound<const N: usize>(&mut self, values: [Value<'a>; N], body: &'a Node) -> Answer<'a> {
        let before = self.locals.len();
        self.locals.extend(values);
        let value = self.value(body);
        self.locals.truncate(before);
        value
    }

    /// Variables are evaluated when they are first asked for, and never twice.
    fn variable(&mut self, place: usize) -> Answer<'a> {
        if let Some(Some(known)) = self.known.get(place) {
            return known.clone();
        }
        let Some(variable) = self.variables.get(place) else {
            return failed("a variable is not known");
        };
        let locals = std::mem::take(&mut self.locals);
        let value = self.value(&variable.node).map_err(|stop| match stop {
            Stop::Failed(why) => Stop::Failed(format!("variable {:?}: {why}", variable.name)),
            stop => stop,
        });
        self.locals = locals;
        if let Some(known) = self.known.get_mut(place) {
            *known = Some(value.clone());
        }
        value
    }

    /// The request. Nobody made it, so the user has no name and no groups: whoever is exempt by a
    /// condition on the user is not meant here.
    fn request(&mut self) -> Value<'a> {
        let request = self.request;
        let asked = self.asked.get_or_insert_with(|| {
            let text = |text: &'a str| Value::Text(Text::Borrowed(text));
            let of = &request.kind;
            let kind = fields([
                ("group", text(&of.group)),
                ("version", text(&of.version)),
                ("kind", text(&of.kind)),
            ]);
            let resource = fields([
                ("group", text(&of.group)),
                ("version", text(&of.version)),
                ("resource", text(&request.resource)),
            ]);
            let user = fields([
                ("username", text("")),
                ("uid", text("")),
                ("groups", Value::List(List::Json(&[]))),
                ("extra", fields([])),
            ]);
            let namespace = request.namespace.as_deref();
            let namespace = namespace.map(|name| ("namespace", text(name)));
            let all = [
                ("uid", text(&request.uid)),
                ("kind", kind.clone()),
                ("resource", resource.clone()),
                ("requestKind", kind),
                ("requestResource", resource),
                ("name", text(&request.name)),
                ("operation", text("CREATE")),
                ("userInfo", user),
                ("dryRun", Value::Bool(false)),
                ("object", (&request.object).into()),
                ("oldObject", Value::Null),
            ];
            fields(all.into_iter().chain(namespace))
        });
        asked.clone()
    }

    /// A part of a value: a field, an item.
    fn part(&self, of: Value<'a>, key: &Value, access: Access) -> Answer<'a> {
        let (of, access) = match (of, access) {
            (Value::Optional(None), Access::Presence) => return Ok(Value::Bool(false)),
            (Value::Optional(None), _) => return Ok(Value::Optional(None)),
            // What is asked of an optional is optional too.
            (Value::Optional(Some(of)), Access::Value) => ((*of).clone(), Access::Optional),
            (Value::Optional(Some(of)), access) => ((*of).clone(), access),
            (of, access) => (of, access),
        };
        self.meter.read(length(key))?;
        let found = match (&of, key) {
            (Value::Map(map), key) => match map.get(key) {
                None if Key::of(key).is_none() && !matches!(key, Value::Double(_)) => {
                    return failed(format!("a map has no keys of type {}", key.kind()));
                }
                found => found,
            },
            (Value::List(list), Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
                let index = match key {
                    Value::Int(index) => usize::try_from(*index).ok(),
                    Value::Uint(index) => usize::try_from(*index).ok(),
                    Value::Double(index) => whole(*index).and_then(|i| usize::try_from(i).ok()),
                    _ => None,
                };
                index.and_then(|index| list.get(index))
            }
            // It is no map, so it has no fields; the question itself is in order.
            _ if access == Access::Presence => None,
            _ => {
                let (of, shown) = (of.kind(), shown(key));
                return failed(format!("{of} has no part {shown}"));
            }
        };
        match (access, found) {
            (Access::Presence, found) => Ok(Value::Bool(found.is_some())),
            (Access::Optional, found) => Ok(Value::Optional(found.map(Rc::new))),
            (Access::Value, Some(found)) => Ok(found),
            (Access::Value, None) => match of {
                Value::List(_) => failed(format!("index out of bounds: {}", shown(key))),
                _ => failed(format!("no such key: {}", shown(key))),
            },
        }
    }

    fn list(&mut self, items: &'a [(Node, bool)]) -> Answer<'a> {
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.value(item)?, optional) {
                (value, false) => values.push(value),
                (Value::Optional(value), true) => values.extend(value.map(|v| (*v).clone())),
                (other, true) => return failed(format!("{} is no optional", other.kind())),
            }
        }
        Value::list(&self.meter, values)
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Answer<'a> {
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.value(key)?;
            let value = match (self.value(value)?, optional) {
                (value, false) => value,
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(value)), true) => (*value).clone(),
                (other, true) => return failed(format!("{} is no optional", other.kind())),
            };
            self.insert(&mut map, &key, value)?;
        }
        Ok(Value::Map(Map::Owned(Rc::new(map))))
    }

    fn insert(
        &self,
        map: &mut BTreeMap<Key, Value<'a>>,
        key: &Value,
        value: Value<'a>,
    ) -> Result<(), Stop> {
        self.meter.take(2 * PLACE + length(key))?;
        let Some(found) = Key::of(key) else {
            return failed(format!("a map has no keys of type {}", key.kind()));
        };
        match map.entry(found) {
            Entry::Vacant(entry) => {
                entry.insert(value);
                Ok(())
            }
            Entry::Occupied(_) => failed(format!("the key {} is there twice", shown(key))),
        }
    }

    /// `&&` and `||`: `decides` is the value that decides alone, whatever the other side is.
    fn logical(&mut self, both: &'a [Node; 2], decides: bool) -> Answer<'a> {
        let [left, right] = both;
        let left = self.holds(left);
        match &left {
            Ok(value) if *value == decides => return Ok(Value::Bool(decides)),
            Ok(_) | Err(Stop::Failed(_)) => {}
            Err(stop) => return Err(stop.clone()),
        }
        match (left, self.holds(right)) {
            (_, Err(stop)) if !matches!(stop, Stop::Failed(_)) => Err(stop),
            (_, Ok(value)) if value == decides => Ok(Value::Bool(decides)),
            (Err(stop), _) | (_, Err(stop)) => Err(stop),
            (Ok(_), Ok(_)) => Ok(Value::Bool(!decides)),
        }
    }

    fn is_in(&self, item: &Value, of: &Value) -> Result<bool, Stop> {
        match of {
            Value::List(list) => {
                for other in list.iter() {
                    if item.equals(&other, &self.meter)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Map(map) => {
                self.meter.read(length(item))?;
                Ok(map.get(item).is_some())
            }
            other => failed(format!("nothing is in a {}", other.kind())),
        }
    }

    fn repeat(&mut self, of: &'a Loop) -> Answer<'a> {
        let pairs: Vec<(Value<'a>, Value<'a>)> = match self.value(&of.range)? {
            Value::List(list) => {
                self.meter.take(list.len() * 2 * PLACE)?;
                let indexes = (0..).map(Value::Int);
                indexes.zip(list.iter()).collect()
            }
            Value::Map(map) => {
                self.meter.take(map.len() * 2 * PLACE)?;
                let entries = map.entries().into_iter();
                match of.pairs {
                    true => entries.collect(),
                    // With one name, it is the key.
                    false => entries.map(|(key, _)| (Value::Null, key)).collect(),
                }
            }
            other => return failed(format!("there are no items in a {}", other.kind())),
        };
        let before = self.locals.len();
        let result = self.items(of, pairs, before);
        self.locals.truncate(before);
        result
    }

    fn items(
        &mut self,
        of: &'a Loop,
        pairs: Vec<(Value<'a>, Value<'a>)>,
        before: usize,
    ) -> Answer<'a> {
        let mut failure: Option<Stop> = None;
        let mut count = 0_usize;
        let mut taken = Vec::new();
        let mut map = BTreeMap::new();
        for (key, value) in pairs {
            self.locals.truncate(before);
            match of.pairs {
                true => self.locals.extend([key.clone(), value.clone()]),
                false => self.locals.push(value.clone()),
            }
            if let Some(filter) = &of.filter
                && !self.holds(filter)?
            {
                continue;
            }
            match of.what {
                Macro::All | Macro::Exists => match self.holds(&of.body) {
                    Ok(holds) if holds == (of.what == Macro::Exists) => {
                        return Ok(Value::Bool(holds));
                    }
                    Ok(_) => {}
                    // A later item may decide.
                    Err(stop @ Stop::Failed(_)) => failure = failure.or(Some(stop)),
                    Err(stop) => return Err(stop),
                },
                Macro::ExistsOne => count += usize::from(self.holds(&of.body)?),
                Macro::Filter => {
                    if self.holds(&of.body)? {
                        taken.push(value);
                    }
                }
                Macro::Map => {
                    let made = self.value(&of.body)?;
                    self.meter.take(PLACE)?;
                    taken.push(made);
                }
                Macro::Entries => {
                    let made = self.value(&of.body)?;
                    self.insert(&mut map, &key, made)?;
                }
            }
        }
        match (of.what, failure) {
            (_, Some(stop)) => Err(stop),
            (Macro::All, None) => Ok(Value::Bool(true)),
            (Macro::Exists, None) => Ok(Value::Bool(false)),
            (Macro::ExistsOne, None) => Ok(Value::Bool(count == 1)),
            (Macro::Map | Macro::Filter, None) => Value::list(&self.meter, taken),
            (Macro::Entries, None) => Ok(Value::Map(Map::Owned(Rc::new(map)))),
        }
    }
}

fn fields<'a>(all: impl IntoIterator<Item = (&'static str, Value<'a>)>) -> Value<'a> {
    let all = all.into_iter();
    let all = all.map(|(name, value)| (Key::Text(name.into()), value));
    Value::Map(Map::Owned(Rc::new(all.collect())))
}

/// How long a key is.
fn length(key: &Value) -> usize {
    match key {
        Value::Text(text) => text.as_str().len(),
        _ => 0,
    }
}

/// A key as messages show it.
fn shown(key: &Value) -> String {
    match key {
        // A long one would cost each of many failures.
        Value::Text(text) => text.as_str().chars().take(128).collect(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        other => other.kind().to_owned(),
    }
}

fn int<'a>(value: i64) -> Answer<'a> {
    Ok(Value::Int(value))
}

fn uint<'a>(value: u64) -> Answer<'a> {
    Ok(Value::Uint(value))
}

fn overflow<'a>() -> Answer<'a> {
    failed("a number is too large")
}

fn arithmetic<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    operation: Operation,
    meter: &Meter,
) -> Answer<'a> {
    use Operation::{Add, Divide, Multiply, Remainder, Subtract};
    match (left, right, operation) {
        (Value::Int(_), Value::Int(0), Divide | Remainder)
        | (Value::Uint(_), Value::Uint(0), Divide | Remainder) => failed("division by zero"),
        (Value::Int(left), Value::Int(right), _) => match operation {
            Add => left.checked_add(*right),
            Subtract => left.checked_sub(*right),
            Multiply => left.checked_mul(*right),
            Divide => left.checked_div(*right),
            Remainder => left.checked_rem(*right),
        }
        .map_or_else(overflow, int),
        (Value::Uint(left), Value::Uint(right), _) => match operation {
            Add => left.checked_add(*right),
            Subtract => left.checked_sub(*right),
            Multiply => left.checked_mul(*right),
            Divide => left.checked_div(*right),
            Remainder => left.checked_rem(*right),
        }
        .map_or_else(overflow, uint),
        (Value::Double(left), Value::Double(right), Add) => Ok(Value::Double(left + right)),
        (Value::Double(left), Value::Double(right), Subtract) => Ok(Value::Double(left - right)),
        (Value::Double(left), Value::Double(right), Multiply) => Ok(Value::Double(left * right)),
        (Value::Double(left), Value::Double(right), Divide) => Ok(Value::Double(left / right)),
        (Value::Text(left), Value::Text(right), Add) => {
            let (left, right) = (left.as_str(), right.as_str());
            meter.take(left.len() + right.len() + PLACE)?;
            Ok(Value::Text(Text::Owned([left, right].concat().into())))
        }
        (Value::Bytes(left), Value::Bytes(right), Add) => {
            meter.take(left.len() + right.len() + PLACE)?;
            Ok(Value::Bytes([&left[..], &right[..]].concat().into()))
        }
        (Value::List(left), Value::List(right), Add) => {
            meter.take((left.len() + right.len()) * PLACE)?;
            let items = left.iter().chain(right.iter()).collect();
            Value::list(meter, items)
        }
        (left, right, _) => {
            let sign = match operation {
                Add => '+',
                Subtract => '-',
                Multiply => '*',
                Divide => '/',
                Remainder => '%',
            };
            let (left, right) = (left.kind(), right.kind());
            failed(format!("there is no {left} {sign} {right}"))
        }
    }
}
