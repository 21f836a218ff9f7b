//! How deep brackets are nested in a module, before anybody reads it. Whether a bracket begins an array,
//! an object, a set or a comprehension the parser finds out by trying, one after the other; so what is
//! inside it is read twice, what is inside that four times, and thirty brackets never end.

/// How much trying a module may cost: a second or so of the parser's time.
const TRIES: u64 = 1 << 17;
const READS: u64 = 1 << 26;
/// How deep brackets may be at all.
const DEEPEST: u32 = 16;
/// How deep parentheses may be; those are read once.
const PARENTHESES: u32 = 64;

/// Whether a module can be read in a time that somebody would wait.
pub(crate) fn is_readable(source: &str) -> bool {
    let (mut brackets, mut parentheses) = (0u32, 0u32);
    let (mut tries, mut reads) = (0u64, 0u64);
    let mut bytes = source.bytes();
    while let Some(byte) = bytes.next() {
        reads += 1 << brackets;
        match byte {
            b'#' => {
                bytes.find(|byte| *byte == b'\n');
            }
            b'`' => {
                bytes.find(|byte| *byte == b'`');
            }
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' | b'\n' => break,
                        b'\\' => {
                            bytes.next();
                        }
                        _ => {}
                    }
                }
            }
            b'[' | b'{' => {
                brackets += 1;
                tries += 1 << brackets;
            }
            b']' | b'}' => brackets = brackets.saturating_sub(1),
            b'(' => parentheses += 1,
            b')' => parentheses = parentheses.saturating_sub(1),
            _ => {}
        }
        let deep = brackets > DEEPEST || parentheses > PARENTHESES;
        if deep || tries > TRIES || reads > READS {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_the_parser_forever_is_told_from_what_people_write() {
        let nested = |count: usize| format!("{}1{}", "[".repeat(count), "]".repeat(count));
        for (source, readable) in [
            (String::new(), true),
            (nested(8), true),
            (nested(17), false),
            (nested(14).repeat(20), false),
            ("{".repeat(400), false),
            ("(".repeat(64), true),
            ("(".repeat(65), false),
            // Brackets in texts and comments are none.
            (
                format!("\"{}\\\"{}\"", "[".repeat(40), "{".repeat(40)),
                true,
            ),
            (format!("`{}`", "[".repeat(40)), true),
            (format!("# {}\n1", "[".repeat(40)), true),
            // Much, but not deep.
            (
                "deny contains {\"a\": [1, {2}]} if { input.x[_] == 1 }\n".repeat(1000),
                true,
            ),
        ] {
            assert_eq!(is_readable(&source), readable, "{source:.60}");
        }
    }
}
