//! How much a value stands for. Values share their parts, so a few doublings of a small one are, written
//! out, larger than any machine; and whoever compares, shows or drops a value goes as deep as it is. So
//! modules are rewritten to have everything weighed where it is put together: whatever a rule or function
//! yields has a size that can be compared and shown, and a depth that any stack has room for.

use super::{LEFT, MEMORY, TooMuch};
use regorus::Value;

/// How deep a value may be.
pub(super) const DEEPEST: usize = 256;
/// What every value is counted as, in bytes.
const EACH: usize = 16;

/// Refuses a value that is too deep or too large when it is written out.
pub(super) fn check(value: &Value) -> Result<(), TooMuch> {
    bytes(value).map(|_| ())
}

/// The size of a value when it is written out.
pub(super) fn bytes(value: &Value) -> Result<usize, TooMuch> {
    let mut left = MEMORY;
    match weigh(value, DEEPEST, &mut left) {
        Some(()) => Ok(MEMORY - left),
        None => {
            LEFT.set(None);
            Err(TooMuch)
        }
    }
}

/// The size of all of these.
pub(super) fn all(values: &[Value]) -> Result<usize, TooMuch> {
    values.iter().map(bytes).sum()
}

fn weigh(value: &Value, levels: usize, left: &mut usize) -> Option<()> {
    let text = match value {
        Value::String(text) => text.len(),
        _ => 0,
    };
    *left = left.checked_sub(EACH.checked_add(text)?)?;
    match value {
        Value::Array(items) => {
            let levels = levels.checked_sub(1)?;
            items.iter().try_for_each(|item| weigh(item, levels, left))
        }
        Value::Set(items) => {
            let levels = levels.checked_sub(1)?;
            items.iter().try_for_each(|item| weigh(item, levels, left))
        }
        Value::Object(fields) => {
            let levels = levels.checked_sub(1)?;
            fields.iter().try_for_each(|(key, value)| {
                weigh(key, levels, left)?;
                weigh(value, levels, left)
            })
        }
        _ => Some(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shares_its_parts_weighs_what_it_would_without() {
        let doubled = |times: usize| {
            (0..times).fold(Value::from("x"), |value, _| {
                vec![value.clone(), value].into()
            })
        };
        let nested =
            |times: usize| (0..times).fold(Value::from("x"), |value, _| Value::from(vec![value]));
        for (value, fits) in [
            (Value::Null, true),
            (doubled(10), true),
            (doubled(40), false),
            (nested(DEEPEST), true),
            (nested(DEEPEST + 1), false),
            ("x".repeat(MEMORY / 2).into(), true),
            (vec![Value::from("x".repeat(MEMORY / 2)); 2].into(), false),
        ] {
            super::super::begin();
            assert_eq!(check(&value).is_ok(), fits);
            assert_eq!(super::super::end().is_ok(), fits);
        }
    }
}
