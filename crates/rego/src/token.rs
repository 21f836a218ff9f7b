//! The tokens of a module, for what must be known before the parser reads it. Comments and spaces are
//! left out.

use std::ops::Range;

/// Words that are never the name of a rule in v1.
const KEYWORDS: [&str; 15] = [
    "as", "contains", "default", "else", "every", "false", "if", "import", "in", "not", "null",
    "package", "some", "true", "with",
];

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a keyword.
    Name,
    /// A number.
    Number,
    /// A string with its quotes.
    String,
    /// An opening bracket.
    Open,
    /// A closing bracket.
    Close,
    /// One byte of anything else, such as an operator.
    Sign,
}

/// A token and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
}

/// All tokens of a module.
#[derive(Debug)]
pub(crate) struct Tokens<'t> {
    text: &'t str,
    list: Vec<Token>,
    /// By the number of a bracket, the number of the bracket that belongs to it.
    partners: Vec<Option<usize>>,
}

impl<'t> Tokens<'t> {
    /// Reads a module.
    pub(crate) fn read(text: &'t str) -> Tokens<'t> {
        let mut list = Vec::new();
        let mut start = 0;
        while let Some(byte) = text.as_bytes().get(start) {
            let (kind, length) = token(*byte, text.as_bytes().get(start..).unwrap_or_default());
            let range = start..start + length.max(1);
            start = range.end;
            list.extend(kind.map(|kind| Token { kind, range }));
        }
        let mut partners = vec![None; list.len()];
        let mut open = Vec::new();
        for (number, token) in list.iter().enumerate() {
            match token.kind {
                Kind::Open => open.push(number),
                Kind::Close => {
                    if let Some(opened) = open.pop() {
                        partners[opened] = Some(number);
                        partners[number] = Some(opened);
                    }
                }
                _ => {}
            }
        }
        Tokens {
            text,
            list,
            partners,
        }
    }

    /// The tokens in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Token> {
        self.list.iter()
    }

    /// The token of a number.
    pub(crate) fn get(&self, number: usize) -> Option<&Token> {
        self.list.get(number)
    }

    /// The text of a token; empty beyond the last one.
    pub(crate) fn text(&self, number: usize) -> &'t str {
        let token = self.list.get(number);
        let text = token.and_then(|token| self.text.get(token.range.clone()));
        text.unwrap_or_default()
    }

    /// The bracket that belongs to a bracket.
    pub(crate) fn partner(&self, number: usize) -> Option<usize> {
        self.partners.get(number).copied().flatten()
    }

    /// Whether a token is a name that is no keyword; the names of fields are never keywords.
    pub(crate) fn is_name(&self, number: usize) -> bool {
        let is_name = self
            .get(number)
            .is_some_and(|token| token.kind == Kind::Name);
        is_name && (self.is_field(number) || !KEYWORDS.contains(&self.text(number)))
    }

    /// Whether a token follows a dot.
    pub(crate) fn is_field(&self, number: usize) -> bool {
        number
            .checked_sub(1)
            .is_some_and(|before| self.text(before) == ".")
    }

    /// Whether a term may end with a token.
    pub(crate) fn ends_term(&self, number: usize) -> bool {
        let is_value = || matches!(self.text(number), "true" | "false" | "null");
        match self.get(number).map(|token| token.kind) {
            Some(Kind::Number | Kind::String | Kind::Close) => true,
            Some(Kind::Name) => self.is_name(number) || is_value(),
            Some(Kind::Open | Kind::Sign) | None => false,
        }
    }

    /// Whether a token is the first of its line.
    pub(crate) fn begins_line(&self, number: usize) -> bool {
        let end = |before| self.get(before).map(|token| token.range.end);
        let (Some(token), Some(before)) = (self.get(number), number.checked_sub(1).and_then(end))
        else {
            return true;
        };
        let between = self.text.get(before..token.range.start);
        between.unwrap_or_default().contains('\n')
    }
}

/// The kind and the length of what begins with a byte; comments and spaces have no kind.
fn token(first: u8, rest: &[u8]) -> (Option<Kind>, usize) {
    let length = |is_part: fn(&u8) -> bool| rest.iter().take_while(|byte| is_part(byte)).count();
    match first {
        b'#' => (None, length(|byte| *byte != b'\n')),
        byte if byte.is_ascii_whitespace() => (None, length(u8::is_ascii_whitespace)),
        b'"' | b'`' => match string(first, rest) {
            Some(length) => (Some(Kind::String), length),
            // What follows is no code either: looking for more strings in it would take quadratic time.
            None if first == b'"' => (Some(Kind::Sign), length(|byte| *byte != b'\n')),
            None => (Some(Kind::Sign), rest.len()),
        },
        b'[' | b'{' | b'(' => (Some(Kind::Open), 1),
        b']' | b'}' | b')' => (Some(Kind::Close), 1),
        byte if byte.is_ascii_digit() => {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
            (Some(Kind::Number), length(is_part))
        }
        byte if byte.is_ascii_alphabetic() || byte == b'_' => {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            (Some(Kind::Name), length(is_part))
        }
        _ => (Some(Kind::Sign), 1),
    }
}

/// The length of a string with its quotes, if it ends. Only raw strings span lines.
fn string(quote: u8, rest: &[u8]) -> Option<usize> {
    let mut bytes = rest.iter().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            byte if *byte == quote => return Some(at + 1),
            b'\n' if quote == b'"' => return None,
            b'\\' if quote == b'"' => {
                bytes.next();
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_tokens_without_spaces_and_comments() {
        use Kind::{Close, Name, Number, Open, Sign, String};
        let cases: [(&str, &[(Kind, &str)]); 7] = [
            ("", &[]),
            ("  # [\"\n a_1 ", &[(Name, "a_1")]),
            ("1.5e3", &[(Number, "1.5e3")]),
            ("\"a\\\"[\"b", &[(String, "\"a\\\"[\""), (Name, "b")]),
            (
                "`a\n\\`(b)",
                &[(String, "`a\n\\`"), (Open, "("), (Name, "b"), (Close, ")")],
            ),
            // A string that does not end is no string, and its line has nothing else.
            ("\"a\nb", &[(Sign, "\"a"), (Name, "b")]),
            (
                "x := -y",
                &[
                    (Name, "x"),
                    (Sign, ":"),
                    (Sign, "="),
                    (Sign, "-"),
                    (Name, "y"),
                ],
            ),
        ];
        for (text, expected) in cases {
            let tokens = Tokens::read(text);
            let list = tokens.iter().enumerate();
            let list: Vec<_> = list
                .map(|(number, token)| (token.kind, tokens.text(number)))
                .collect();
            assert_eq!(list, expected, "{text}");
        }
    }

    #[test]
    fn any_bytes_end() {
        for text in ["é\"é", "`", "))((", "\\\"", "#", "\u{feff}a"] {
            let tokens = Tokens::read(text);
            assert!(tokens.iter().count() <= text.len(), "{text}");
        }
    }
}
