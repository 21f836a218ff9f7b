//! Patterns as Go reads them. Classes like `\d` and `\w` are of ASCII there, some characters mean
//! themselves that mean more here, and flags differ; so a pattern is translated before it is compiled.
//! Patterns come from policies: what a compiled one takes is limited, and so is how many are kept.

use super::{MEMORY, PLACE, TooMuch, take};
use regex::{Regex, RegexBuilder};
use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::{Arc, Mutex, PoisonError};

/// What a compiled pattern may take, in bytes; and what most do.
const LARGE: usize = 1024 * 1024;
const SMALL: usize = 64 * 1024;
/// The longest text that is searched by a large pattern, and by others: searching cannot be stopped.
const LARGE_TEXT: usize = 64 * 1024;
const SMALL_TEXT: usize = 1024 * 1024;
/// What all patterns that are kept may take, in bytes.
const KEPT: usize = 16 * 1024 * 1024;
/// How often a part may be repeated by a number.
const REPEATED: u32 = 1000;

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) regex: Regex,
    size: usize,
}

impl Pattern {
    /// Whether a text is short enough to be searched.
    pub(super) fn accepts(&self, text: &str) -> Result<(), TooMuch> {
        let longest = match self.size > SMALL {
            true => LARGE_TEXT,
            false => SMALL_TEXT,
        };
        match text.len() > longest {
            true => take(MEMORY + 1),
            false => Ok(()),
        }
    }
}

/// The patterns that were compiled lately. They are the same for everybody.
static KNOWN: Mutex<Option<HashMap<String, Option<Arc<Pattern>>>>> = Mutex::new(None);

/// Compiles a pattern of Go's; nothing if it is none.
pub(super) fn compile(pattern: &str) -> Result<Option<Arc<Pattern>>, TooMuch> {
    {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.as_ref().and_then(|known| known.get(pattern)) {
            return Ok(found.clone());
        }
    }
    take(pattern.len() + PLACE)?;
    let compiled = translate(pattern).and_then(|translated| {
        let build = |size: usize| {
            let mut builder = RegexBuilder::new(&translated);
            builder.size_limit(size).dfa_size_limit(size).build()
        };
        let (regex, size) = match build(SMALL) {
            Ok(regex) => (regex, SMALL),
            Err(regex::Error::CompiledTooBig(_)) => (build(LARGE).ok()?, LARGE),
            Err(_) => return None,
        };
        Some(Arc::new(Pattern { regex, size }))
    });
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_with(HashMap::new);
    let size = |one: &Option<Arc<Pattern>>| one.as_ref().map_or(PLACE, |one| one.size);
    let kept: usize = known.iter().map(|(text, one)| text.len() + size(one)).sum();
    if kept + pattern.len() + size(&compiled) > KEPT {
        known.clear();
    }
    known.insert(pattern.to_owned(), compiled.clone());
    Ok(compiled)
}

/// A pattern of Go's as one of Rust's, if it can be one at all.
fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => escape(&mut letters, false, &mut out)?,
            '[' => class(&mut letters, &mut out)?,
            '{' => repetition(&mut letters, &mut out)?,
            '(' => {
                out.push('(');
                flags(&letters)?;
            }
            letter => out.push(letter),
        }
    }
    Some(out)
}

/// What is after a backslash.
fn escape(letters: &mut Peekable<Chars<'_>>, in_class: bool, out: &mut String) -> Option<()> {
    let (digits, words, spaces) = ("0-9", "0-9A-Za-z_", "\\t\\n\\x0C\\r ");
    let class = |out: &mut String, not: &str, letters: &str| match (in_class, not) {
        (true, "") => out.push_str(letters),
        _ => out.push_str(&format!("[{not}{letters}]")),
    };
    match letters.next()? {
        'd' => class(out, "", digits),
        'D' => class(out, "^", digits),
        'w' => class(out, "", words),
        'W' => class(out, "^", words),
        's' => class(out, "", spaces),
        'S' => class(out, "^", spaces),
        'b' if !in_class => out.push_str("(?-u:\\b)"),
        'Q' if !in_class => {
            let mut text = letters.clone().collect::<String>();
            let end = text.find("\\E");
            text.truncate(end.unwrap_or(text.len()));
            out.push_str(&regex::escape(&text));
            let taken = text.chars().count() + if end.is_some() { 2 } else { 0 };
            letters.by_ref().take(taken).for_each(|_| {});
        }
        'E' if !in_class => {}
        first @ '0'..='7' => {
            let mut code = first.to_digit(8)?;
            let is_octal = letters.peek().is_some_and(|next| next.is_digit(8));
            // `\1` alone would be a reference to a group, which neither has.
            if first != '0' && !is_octal {
                return None;
            }
            for _ in 0..2 {
                if let Some(digit) = letters.peek().and_then(|next| next.to_digit(8)) {
                    code = code * 8 + digit;
                    letters.next();
                }
            }
            out.push_str(&format!("\\x{{{code:x}}}"));
        }
        // Names of classes and codes are read the same.
        letter @ ('p' | 'P' | 'x' | 'a' | 'f' | 't' | 'n' | 'r' | 'v') => {
            out.push('\\');
            out.push(letter);
            if letters.peek() == Some(&'{') {
                for letter in letters.by_ref() {
                    out.push(letter);
                    if letter == '}' {
                        break;
                    }
                }
            }
        }
        letter @ ('A' | 'z' | 'B') if !in_class => {
            out.push('\\');
            out.push(letter);
        }
        letter if letter.is_ascii_alphanumeric() => return None,
        letter if letter.is_ascii() => {
            let mut one = [0; 4];
            let text: &str = letter.encode_utf8(&mut one);
            match in_class {
                true => out.push_str(&format!("\\x{{{:x}}}", u32::from(letter))),
                false => out.push_str(&regex::escape(text)),
            }
        }
        _ => return None,
    }
    Some(())
}

/// What is in brackets, which may hold neither other brackets nor operators in Go.
fn class(letters: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    if letters.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut is_first = true;
    loop {
        match letters.next()? {
            ']' if !is_first => break,
            '[' if letters.peek() == Some(&':') => {
                out.push('[');
                for letter in letters.by_ref() {
                    out.push(letter);
                    if letter == ']' {
                        break;
                    }
                }
            }
            '\\' => escape(letters, true, out)?,
            letter @ ('[' | ']' | '&' | '~') => out.push_str(&format!("\\{letter}")),
            '-' if letters.peek() == Some(&'-') => {
                letters.next();
                out.push_str("-\\-");
            }
            letter => out.push(letter),
        }
        is_first = false;
    }
    out.push(']');
    Some(())
}

/// What is in braces: numbers, or else nothing special.
fn repetition(letters: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    let rest: String = letters.clone().take(12).collect();
    let inner = rest.split_once('}').map(|(inner, _)| inner);
    let numbers = inner.filter(|inner| {
        let (least, most) = inner.split_once(',').unwrap_or((inner, "0"));
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        !least.is_empty() && is_number(least) && is_number(most)
    });
    match numbers {
        None => out.push_str("\\{"),
        Some(numbers) => {
            let mut counts = numbers.split(',').filter(|count| !count.is_empty());
            if !counts.all(|count| count.parse::<u32>().is_ok_and(|count| count <= REPEATED)) {
                return None;
            }
            out.push('{');
        }
    }
    Some(())
}

/// Whether what follows a parenthesis is known to Go too.
fn flags(letters: &Peekable<Chars<'_>>) -> Option<()> {
    let mut letters = letters.clone();
    if letters.next() != Some('?') {
        return Some(());
    }
    match letters.next()? {
        'P' | '<' | ':' => Some(()),
        first => {
            let mut all = std::iter::once(first).chain(letters);
            let known = all.find(|letter| !matches!(letter, 'i' | 'm' | 's' | 'U' | '-'));
            matches!(known, Some(')' | ':')).then_some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, expected) in [
            (r"^\d$", "٣", Some(false)),
            (r"^\w$", "é", Some(false)),
            (r"^[\W]$", "é", Some(true)),
            (r"^\s$", "\u{b}", Some(false)),
            (r"^[\s\d]+$", "1 2", Some(true)),
            (r"\bb", "éb", Some(true)),
            (r"^[a&&b]+$", "a&b", Some(true)),
            (r"^[[a]$", "[", Some(true)),
            (r"^[]a]$", "]", Some(true)),
            (r"^[+--]$", ",", Some(true)),
            (r"^a{,2}$", "a{,2}", Some(true)),
            (r"^{x}$", "{x}", Some(true)),
            (r"^a{2,3}$", "aa", Some(true)),
            (r"^a{1001}$", "a", None),
            (r"^\Qa.b\E.$", "a.bc", Some(true)),
            (r"^\101$", "A", Some(true)),
            (r"\<a\>", "<a>", Some(true)),
            (r"(?x) a", "a", None),
            (r"(?i)^A$", "a", Some(true)),
            (r"(?P<n>a)", "a", Some(true)),
            (r"\p{Greek}", "α", Some(true)),
            (r"\pL", "a", Some(true)),
            (r"[[:alpha:]]", "a", Some(true)),
            (r"[\]\-]", "-", Some(true)),
            (r"(a)\1", "aa", None),
            (r"(?=a)", "a", None),
            ("[", "", None),
            ("\\", "", None),
            ("a{", "a{", Some(true)),
        ] {
            super::super::begin();
            let found = compile(pattern).unwrap();
            let found = found.map(|found| found.regex.is_match(text));
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }
}
