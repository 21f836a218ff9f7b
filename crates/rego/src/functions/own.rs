//! Functions of the interpreter that are good enough, if only they counted: what they make is no larger
//! than what they are given. They are counted by that, and then called as they are.

use super::{MEMORY, PLACE, TooMuch, take, weight};
use regorus::unstable::{BUILTINS, Expr, Ref, Span};
use regorus::{Source, Value};

/// What a call may cost, in bytes.
pub(super) type Cost = fn(&[Value]) -> Result<usize, TooMuch>;

/// The functions, with what a call of each may cost.
pub(super) const COUNTED: &[(&str, Cost)] = &[
    ("__builtin_sets.intersection", shallow),
    ("__builtin_sets.union", shallow),
    ("array.reverse", shallow),
    ("array.slice", shallow),
    ("base64.decode", shallow),
    ("base64url.decode", shallow),
    // A pattern is compiled and kept for a while.
    ("glob.match", |values| {
        Ok(shallow(values)?.saturating_mul(PLACE))
    }),
    ("glob.quote_meta", |values| {
        Ok(shallow(values)?.saturating_mul(PLACE))
    }),
    ("graph.reachable", weight::all),
    ("hex.decode", shallow),
    ("indexof_n", |values| {
        Ok(shallow(values)?.saturating_mul(PLACE))
    }),
    ("intersection", weight::all),
    ("json.filter", paths),
    ("json.remove", paths),
    ("object.filter", shallow),
    ("object.keys", shallow),
    ("object.remove", shallow),
    ("sort", shallow),
    ("strings.any_prefix_match", comparisons),
    ("strings.any_suffix_match", comparisons),
    ("strings.reverse", shallow),
    ("substring", shallow),
    ("trim", shallow),
    ("trim_left", shallow),
    ("trim_prefix", shallow),
    ("trim_right", shallow),
    ("trim_space", shallow),
    ("trim_suffix", shallow),
    ("union", weight::all),
    ("urlquery.decode", shallow),
    ("urlquery.decode_object", |values| {
        Ok(shallow(values)?.saturating_mul(PLACE))
    }),
];

/// The functions of the interpreter that make little, whatever they are given.
#[cfg(test)]
pub(super) const SMALL: &[&str] = &[
    "abs",
    "base64.is_valid",
    "bits.and",
    "bits.negate",
    "bits.or",
    "bits.rsh",
    "bits.xor",
    "ceil",
    "contains",
    "count",
    "endswith",
    "floor",
    "indexof",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "max",
    "min",
    "net.cidr_contains",
    "net.cidr_is_valid",
    "object.get",
    "round",
    "semver.compare",
    "semver.is_valid",
    "startswith",
    "sum",
    "trace",
    "type_name",
];

/// A function of the interpreter, with a place to be called from.
#[derive(Debug)]
pub(super) struct Original {
    name: &'static str,
    span: Span,
    params: Vec<Ref<Expr>>,
}

impl Original {
    pub(super) fn find(name: &'static str) -> Result<Original, String> {
        let source = Source::from_contents(String::new(), String::new());
        let span = Span {
            source: source.map_err(|error| error.to_string())?,
            line: 1,
            col: 1,
            start: 0,
            end: 0,
        };
        let (_, count) = BUILTINS.get(name).ok_or("there is no such function")?;
        let param = Ref::new(Expr::Null {
            span: span.clone(),
            value: Value::Null,
            eidx: 0,
        });
        Ok(Original {
            name,
            params: vec![param; usize::from(*count)],
            span,
        })
    }

    /// How many arguments it takes.
    pub(super) fn count(&self) -> u8 {
        u8::try_from(self.params.len()).unwrap_or_default()
    }

    /// Calls it; an error is an undefined value.
    pub(super) fn call(&self, values: &[Value]) -> Value {
        let (Some((run, _)), true) = (BUILTINS.get(self.name), values.len() == self.params.len())
        else {
            return Value::Undefined;
        };
        run(&self.span, &self.params, values, false).unwrap_or(Value::Undefined)
    }
}

/// The sizes of texts and collections, without what is in them.
pub(super) fn shallow(values: &[Value]) -> Result<usize, TooMuch> {
    let size = |value: &Value| match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len() * PLACE,
        Value::Set(items) => items.len() * PLACE,
        Value::Object(fields) => fields.len() * PLACE,
        _ => 0,
    };
    Ok(values.iter().map(size).sum())
}

/// Each text of the first collection is compared with each of the second. They make little, but all of that
/// is one step of the interpreter, which cannot be stopped; so it is counted like what others make.
fn comparisons(values: &[Value]) -> Result<usize, TooMuch> {
    let [texts, parts] = values else {
        return Ok(0);
    };
    let bytes = |part: &Value| match part {
        Value::String(text) => text.len() + 1,
        _ => 1,
    };
    let count = match texts {
        Value::Array(items) => items.len(),
        Value::Set(items) => items.len(),
        _ => 1,
    };
    let size: usize = match parts {
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Set(items) => items.iter().map(bytes).sum(),
        part => bytes(part),
    };
    Ok(shallow(values)?.saturating_add(count.saturating_mul(size)))
}

/// Paths are made into objects that are as deep as they are long.
fn paths(values: &[Value]) -> Result<usize, TooMuch> {
    let [object, paths] = values else {
        return Ok(0);
    };
    let length = |path: &Value| match path {
        Value::String(path) => path.matches('/').count() + 1,
        Value::Array(path) => path.len(),
        _ => 0,
    };
    let lengths: Vec<usize> = match paths {
        Value::Array(paths) => paths.iter().map(length).collect(),
        Value::Set(paths) => paths.iter().map(length).collect(),
        _ => Vec::new(),
    };
    if lengths.iter().any(|length| *length > weight::DEEPEST) {
        take(MEMORY + 1)?;
    }
    let paths: usize = lengths.iter().sum();
    Ok(weight::bytes(object)?.saturating_add(paths.saturating_mul(PLACE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparing_two_lists_costs_as_much_as_each_pair_of_them() {
        let texts = |count: usize| Value::from(vec![Value::from("ab"); count]);
        let cost = |texts: Value, parts: Value| comparisons(&[texts, parts]).unwrap() / 1_000;
        // Three for each pair, and the places in both lists.
        for (left, right, expected) in [
            (1_000, 1_000, 3_096),
            (2_000, 1_000, 6_144),
            (2_000, 2_000, 12_192),
        ] {
            assert_eq!(cost(texts(left), texts(right)), expected);
        }
        assert_eq!(cost("ab".into(), texts(1_000)), 51);
        assert_eq!(cost(texts(1_000), "ab".into()), 51);
    }
}
