//! The functions that expressions may call: those of CEL's standard library, and those that Kubernetes
//! adds. Each counts its work before it does it. What is not in the tables here does not exist, and an
//! expression that calls it does not load; times and durations are among that, since an audit has no
//! clock.

mod collection;
mod format;
mod network;
mod optional;
mod pattern;
mod quantity;
mod text;
mod url;
mod version;

pub(super) use network::Network;
pub(super) use pattern::pattern;
pub(super) use quantity::Quantity;
pub(super) use url::Url;

use super::evaluate::Answer;
use super::meter::{Meter, failed};
use super::value::{Text, Value, whole};

type Run = for<'a> fn(&Meter, &[Value<'a>]) -> Answer<'a>;

/// A function.
#[derive(Debug)]
pub(super) struct Function {
    name: &'static str,
    style: Style,
    /// How many arguments it takes, the target of a member included.
    counts: std::ops::RangeInclusive<usize>,
    /// What it does.
    pub(super) run: Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `f(x)`
    Global,
    /// `x.f()`
    Member,
    /// Both.
    Either,
}

const fn global(name: &'static str, count: usize, run: Run) -> Function {
    let (style, counts) = (Style::Global, count..=count);
    Function {
        name,
        style,
        counts,
        run,
    }
}

/// A member that takes so many arguments beside its target.
const fn member(name: &'static str, least: usize, most: usize, run: Run) -> Function {
    let (style, counts) = (Style::Member, least + 1..=most + 1);
    Function {
        name,
        style,
        counts,
        run,
    }
}

const fn either(name: &'static str, count: usize, run: Run) -> Function {
    let (style, counts) = (Style::Either, count..=count);
    Function {
        name,
        style,
        counts,
        run,
    }
}

/// Names that are no values, before functions.
pub(super) const SPACES: [&str; 8] = [
    "base64", "cel", "ip", "lists", "math", "optional", "sets", "strings",
];

static TABLES: [&[Function]; 9] = [
    &CONVERSIONS,
    &collection::FUNCTIONS,
    &network::FUNCTIONS,
    &optional::FUNCTIONS,
    &pattern::FUNCTIONS,
    &quantity::FUNCTIONS,
    &text::FUNCTIONS,
    &url::FUNCTIONS,
    &version::FUNCTIONS,
];

impl Function {
    /// Whether an argument is a pattern, which is compiled with the expression if it is a literal.
    pub(super) fn is_pattern(&self, argument: usize) -> bool {
        argument == 1 && matches!(self.name, "matches" | "find" | "findAll")
    }

    fn is_called(&self, name: &str, as_member: bool) -> bool {
        let style = match self.style {
            Style::Global => !as_member,
            Style::Member => as_member,
            Style::Either => true,
        };
        style && self.name == name
    }
}

/// The function that a call means, or why there is none.
pub(super) fn find(name: &str, as_member: bool, count: usize) -> Result<&'static Function, String> {
    let all = TABLES.iter().copied().flatten();
    let mut named = all.filter(|function| function.is_called(name, as_member));
    let Some(first) = named.next() else {
        return Err(match as_member {
            true => format!("there is no function `.{name}()`"),
            false => format!("there is no function `{name}()`"),
        });
    };
    let mut named = std::iter::once(first).chain(named);
    let found = named.find(|function| function.counts.contains(&count));
    found.ok_or_else(|| {
        let count = count - usize::from(as_member);
        format!("`{name}()` does not take {count} arguments")
    })
}

/// The call makes no sense for values of these types.
fn mismatch<'a>(name: &str, values: &[Value]) -> Answer<'a> {
    let kinds: Vec<&str> = values.iter().map(Value::kind).collect();
    failed(format!("there is no `{name}` for ({})", kinds.join(", ")))
}

static CONVERSIONS: [Function; 9] = [
    global("dyn", 1, |_, values| match values {
        [value] => Ok(value.clone()),
        _ => mismatch("dyn", values),
    }),
    global("type", 1, |_, values| match values {
        [value] => Ok(Value::Type(value.kind())),
        _ => mismatch("type", values),
    }),
    global("bool", 1, |_, values| match values {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::Text(text)] => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => failed("a text is no bool"),
        },
        _ => mismatch("bool", values),
    }),
    global("int", 1, |meter, values| {
        let value = match values {
            [Value::Int(value)] => Some(*value),
            [Value::Uint(value)] => i64::try_from(*value).ok(),
            [Value::Double(value)] => whole(value.trunc()),
            [Value::Text(text)] => {
                meter.read(text.as_str().len())?;
                text.as_str().parse().ok()
            }
            _ => return mismatch("int", values),
        };
        value.map_or_else(|| failed("it is no int"), |value| Ok(Value::Int(value)))
    }),
    global("uint", 1, |meter, values| {
        let value = match values {
            [Value::Uint(value)] => Some(*value),
            [Value::Int(value)] => u64::try_from(*value).ok(),
            [Value::Double(value)] => whole(value.trunc()).and_then(|i| u64::try_from(i).ok()),
            [Value::Text(text)] => {
                meter.read(text.as_str().len())?;
                text.as_str().parse().ok()
            }
            _ => return mismatch("uint", values),
        };
        value.map_or_else(|| failed("it is no uint"), |value| Ok(Value::Uint(value)))
    }),
    global("double", 1, |meter, values| match values {
        [Value::Double(value)] => Ok(Value::Double(*value)),
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::Text(text)] => {
            meter.read(text.as_str().len())?;
            match text.as_str().parse() {
                Ok(value) => Ok(Value::Double(value)),
                Err(_) => failed("it is no double"),
            }
        }
        _ => mismatch("double", values),
    }),
    global("string", 1, |meter, values| match values {
        [Value::Text(text)] => Ok(Value::Text(text.clone())),
        [Value::Bool(value)] => Value::text(meter, &value.to_string()),
        [Value::Int(value)] => Value::text(meter, &value.to_string()),
        [Value::Uint(value)] => Value::text(meter, &value.to_string()),
        [Value::Double(value)] => Value::text(meter, &value.to_string()),
        [Value::Address(value)] => Value::text(meter, &value.to_string()),
        [Value::Network(value)] => Value::text(meter, &value.to_string()),
        [Value::Bytes(bytes)] => {
            meter.read(bytes.len())?;
            match std::str::from_utf8(bytes) {
                Ok(text) => Value::text(meter, text),
                Err(_) => failed("the bytes are no text"),
            }
        }
        _ => mismatch("string", values),
    }),
    global("bytes", 1, |meter, values| match values {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(bytes.clone())),
        [Value::Text(text)] => {
            meter.take(text.as_str().len())?;
            Ok(Value::Bytes(text.as_str().as_bytes().into()))
        }
        _ => mismatch("bytes", values),
    }),
    either("size", 1, |meter, values| {
        let size = match values {
            [Value::Text(text)] => {
                meter.read(text.as_str().len())?;
                text.as_str().chars().count()
            }
            [Value::Bytes(bytes)] => bytes.len(),
            [Value::List(list)] => list.len(),
            [Value::Map(map)] => map.len(),
            _ => return mismatch("size", values),
        };
        Ok(Value::Int(size as i64))
    }),
];

/// A text that the function made.
fn made<'a>(text: String) -> Value<'a> {
    Value::Text(Text::Owned(text.into()))
}
