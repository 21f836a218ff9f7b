//! A size in bytes, as Kubernetes writes quantities: `512Mi`, `1.5G`, `1e9`. What is not a whole number
//! of bytes is rounded up.

use std::str::FromStr;

/// So many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let bytes = bytes(text).ok_or("give a size such as 512Mi, 1Gi or 1.5G")?;
        Ok(Size(bytes))
    }
}

fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // An empty text is no number, nor is one with two points in it.
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (times, parts) = scale(suffix)?;
    let parts = 10_u128
        .checked_pow(u32::try_from(fraction.len()).ok()?)?
        .checked_mul(parts)?;
    u64::try_from(digits.checked_mul(times)?.div_ceil(parts)).ok()
}

/// What a suffix stands for: how many times as much, or which part of it.
fn scale(suffix: &str) -> Option<(u128, u128)> {
    let times = match suffix {
        "" => 1,
        "m" => return Some((1, 1000)),
        "k" => 1000,
        "M" => 1000_u128.pow(2),
        "G" => 1000_u128.pow(3),
        "T" => 1000_u128.pow(4),
        "P" => 1000_u128.pow(5),
        "E" => 1000_u128.pow(6),
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        "Ei" => 1 << 60,
        exponent => {
            let exponent = exponent.strip_prefix(['e', 'E'])?;
            10_u128.checked_pow(exponent.parse().ok()?)?
        }
    };
    Some((times, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_written_as_kubernetes_writes_quantities() {
        for (text, expected) in [
            ("0", Some(0)),
            ("1024", Some(1024)),
            ("1Ki", Some(1024)),
            ("512Mi", Some(512 << 20)),
            ("1Gi", Some(1 << 30)),
            ("1.5Gi", Some(3 << 29)),
            (".5k", Some(500)),
            ("2.k", Some(2000)),
            ("3M", Some(3_000_000)),
            ("1e9", Some(1_000_000_000)),
            ("1E3", Some(1000)),
            ("1E", Some(1_000_000_000_000_000_000)),
            ("1500m", Some(2)),
            ("15Ei", Some(15 << 60)),
            ("16Ei", None),
            ("1e99", None),
            ("", None),
            (".", None),
            ("Gi", None),
            ("-1", None),
            ("1.2.3", None),
            ("1 Gi", None),
            ("1gi", None),
            ("1GiB", None),
            ("1e-3", None),
            ("viel", None),
        ] {
            let parsed: Result<Size, String> = text.parse();
            assert_eq!(parsed.ok(), expected.map(Size), "{text:?}");
        }
    }
}
