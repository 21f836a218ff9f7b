//! Quantities as Kubernetes writes them: `500m`, `1.5Gi`, `1e3`. They are exact, in units of a
//! thousand-millionth, which is the smallest that there is; what is smaller is rounded away from zero.

use super::{Function, global, member, mismatch};
use crate::cel::evaluate::Answer;
use crate::cel::meter::failed;
use crate::cel::value::{Text, Value};

/// The longest text that is a quantity.
const LENGTH: usize = 128;
/// How many of the smallest units one is.
const ONE: i128 = 1_000_000_000;

/// A quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cel) struct Quantity(i128);

impl Quantity {
    fn parse(text: &str) -> Option<Quantity> {
        if text.len() > LENGTH {
            return None;
        }
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, suffix) = digits.split_at(end.unwrap_or(digits.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return None;
        }
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        let (factor, exponent) = scale(suffix)?;
        let exponent = exponent - i32::try_from(fraction.len()).ok()?;
        let units = mantissa.checked_mul(factor)?.checked_mul(ONE)?;
        let units = match exponent {
            0.. => units.checked_mul(10_i128.checked_pow(exponent.unsigned_abs())?)?,
            _ => {
                // What is divided by more than it can be large is still more than nothing.
                let by = 10_i128.checked_pow(exponent.unsigned_abs());
                let by = by.unwrap_or(i128::MAX);
                units / by + i128::from(units % by > 0)
            }
        };
        Some(Quantity(match negative {
            true => -units,
            false => units,
        }))
    }

    fn integer(self) -> Option<i64> {
        let whole = self.0 % ONE == 0;
        i64::try_from(self.0 / ONE).ok().filter(|_| whole)
    }
}

/// What a suffix stands for: a factor, and a power of ten.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    Some(match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let exponent: i32 = digits.parse().ok()?;
            (1, (-100..=100).contains(&exponent).then_some(exponent)?)
        }
    })
}

pub(super) static FUNCTIONS: [Function; 8] = [
    global("quantity", 1, |_, values| match values {
        [Value::Text(text)] => match Quantity::parse(text.as_str()) {
            Some(quantity) => Ok(Value::Quantity(quantity)),
            None => failed(format!("{:?} is no quantity", short(text))),
        },
        _ => mismatch("quantity", values),
    }),
    global("isQuantity", 1, |_, values| match values {
        [Value::Text(text)] => Ok(Value::Bool(Quantity::parse(text.as_str()).is_some())),
        _ => mismatch("isQuantity", values),
    }),
    member("add", 1, 1, |_, values| {
        together("add", values, i128::checked_add)
    }),
    member("sub", 1, 1, |_, values| {
        together("sub", values, i128::checked_sub)
    }),
    member("sign", 0, 0, |_, values| match values {
        [Value::Quantity(quantity)] => Ok(Value::Int(quantity.0.signum() as i64)),
        _ => mismatch("sign", values),
    }),
    member("isInteger", 0, 0, |_, values| match values {
        [Value::Quantity(quantity)] => Ok(Value::Bool(quantity.integer().is_some())),
        _ => mismatch("isInteger", values),
    }),
    member("asInteger", 0, 0, |_, values| match values {
        [Value::Quantity(quantity)] => match quantity.integer() {
            Some(value) => Ok(Value::Int(value)),
            None => failed("the quantity is no integer"),
        },
        _ => mismatch("asInteger", values),
    }),
    member("asApproximateFloat", 0, 0, |_, values| match values {
        [Value::Quantity(quantity)] => Ok(Value::Double(quantity.0 as f64 / ONE as f64)),
        _ => mismatch("asApproximateFloat", values),
    }),
];

/// As much of a text as a message needs.
pub(super) fn short(text: &Text) -> String {
    text.as_str().chars().take(128).collect()
}

fn together<'a>(
    name: &str,
    values: &[Value<'a>],
    operation: fn(i128, i128) -> Option<i128>,
) -> Answer<'a> {
    let (left, right) = match values {
        [Value::Quantity(left), Value::Quantity(right)] => (left.0, Some(right.0)),
        [Value::Quantity(left), Value::Int(right)] => (left.0, i128::from(*right).checked_mul(ONE)),
        _ => return mismatch(name, values),
    };
    match right.and_then(|right| operation(left, right)) {
        Some(sum) => Ok(Value::Quantity(Quantity(sum))),
        None => failed("a quantity is too large"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_writes_them() {
        for (text, units) in [
            ("0", Some(0)),
            ("1", Some(ONE)),
            ("500m", Some(ONE / 2)),
            ("1.5Gi", Some(1_610_612_736 * ONE)),
            (".5", Some(ONE / 2)),
            ("5.", Some(5 * ONE)),
            ("-1k", Some(-1000 * ONE)),
            ("+1Ki", Some(1024 * ONE)),
            ("1e3", Some(1000 * ONE)),
            ("1E-3", Some(ONE / 1000)),
            ("1E", Some(1_000_000_000_000_000_000 * ONE)),
            ("0.1n", Some(1)),
            ("-0.1n", Some(-1)),
            ("1e-90", Some(1)),
            ("1e90", None),
            ("", None),
            (".", None),
            ("-", None),
            ("1.2.3", None),
            ("1 Gi", None),
            ("1GB", None),
            ("1e", None),
            ("1e+-3", None),
            ("\u{e4}", None),
            ("-\u{e4}", None),
        ] {
            assert_eq!(Quantity::parse(text).map(|found| found.0), units, "{text}");
        }
    }
}
