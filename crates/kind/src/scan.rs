//! Finding parts of JSON text without reading it: a table of ten thousand objects shows their
//! metadata as it lies there. Total on any bytes: what is not JSON is not found.

use memchr::memchr2;
use std::ops::Range;

/// The end of the value that starts at `at`.
fn value_end(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at)? {
        b'"' => string_end(text, at),
        b'{' | b'[' => {
            let mut depth = 0_usize;
            let mut at = at;
            loop {
                match text.get(at)? {
                    b'"' => {
                        at = string_end(text, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => {
            let rest = text.get(at..)?;
            let length = rest.iter().position(|b| matches!(b, b',' | b'}' | b']'))?;
            Some(at + length)
        }
    }
}

/// The end of the string whose opening quote stands at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr2(b'\\', b'"', text.get(at..)?)?;
        match text.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// A field of an object: from its key to the end of its value, and the value alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) whole: Range<usize>,
    pub(crate) value: Range<usize>,
}

/// Finds a field of the object that opens at `at`. The text is written without spaces.
pub(crate) fn field(text: &[u8], at: usize, name: &str) -> Option<Field> {
    let mut at = at + 1;
    while *text.get(at)? == b'"' {
        let key = at..string_end(text, at)?;
        if *text.get(key.end)? != b':' {
            return None;
        }
        let value = key.end + 1..value_end(text, key.end + 1)?;
        if &text[key.start + 1..key.end - 1] == name.as_bytes() {
            return Some(Field {
                whole: key.start..value.end,
                value,
            });
        }
        if *text.get(value.end)? != b',' {
            return None;
        }
        at = value.end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_whatever_stands_before_it() {
        let text = br#"{"a":"x\"},{","b":[1,{"c":2}],"m":{"n":true,"o":null},"z":3}"#;
        let found = |name: &str| field(text, 0, name).map(|field| &text[field.value]);
        assert_eq!(found("a"), Some(&br#""x\"},{""#[..]));
        assert_eq!(found("m"), Some(&br#"{"n":true,"o":null}"#[..]));
        assert_eq!(found("z"), Some(&b"3"[..]));
        assert_eq!(found("c"), None);
        let metadata = field(text, 0, "m").unwrap();
        let inner = field(text, metadata.value.start, "n").unwrap();
        assert_eq!(&text[inner.whole], br#""n":true"#);
    }

    #[test]
    fn what_is_no_json_has_no_fields() {
        for text in [
            &b""[..],
            b"{",
            b"{\"a",
            b"{\"a\"",
            b"{\"a\":",
            b"{\"a\":[",
            b"nonsense",
            b"{\"a\":1",
        ] {
            assert_eq!(field(text, 0, "a"), None);
        }
    }
}
