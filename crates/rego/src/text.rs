//! The text of a module as pairs of brackets and strings. Of most expressions the parser tells where
//! they are; but not of what is in parentheses or begins or ends with a string, and not where an object
//! begins. This is what is missing.

use crate::token::{Kind, Tokens};
use regorus::unstable::Expr;
use std::collections::HashMap;
use std::ops::Range;

/// Where strings and brackets begin and end.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// By where what is in a string begins and ends.
    begins: HashMap<usize, usize>,
    ends: HashMap<usize, usize>,
    /// Brackets, by each other.
    opening: HashMap<usize, usize>,
    closing: HashMap<usize, usize>,
}

impl Marks {
    /// Reads a module.
    pub(crate) fn read(text: &str) -> Marks {
        let mut marks = Marks::default();
        let tokens = Tokens::read(text);
        for (number, token) in tokens.iter().enumerate() {
            let (start, end) = (token.range.start, token.range.end);
            match token.kind {
                Kind::String => marks.string(start, end - 1),
                Kind::Close => {
                    let opened = tokens.partner(number).and_then(|open| tokens.get(open));
                    if let Some(opened) = opened.map(|token| token.range.start) {
                        marks.opening.insert(start, opened);
                        marks.closing.insert(opened, start);
                    }
                }
                _ => {}
            }
        }
        marks
    }

    /// From one quote to the other.
    fn string(&mut self, from: usize, to: usize) {
        self.begins.insert(from + 1, from);
        self.ends.insert(to, to + 1);
    }

    /// A range of the parser's, with the quotes that it leaves out.
    pub(crate) fn whole(&self, start: u32, end: u32) -> Range<usize> {
        let (start, end) = (start as usize, end as usize);
        let start = self.begins.get(&start).copied().unwrap_or(start);
        let end = self.ends.get(&end).copied().unwrap_or(end);
        start..end
    }

    /// Where an expression is.
    pub(crate) fn range(&self, expr: &Expr) -> Range<usize> {
        let span = expr.span();
        let range = self.whole(span.start, span.end);
        match expr {
            Expr::Object { .. } => {
                let last = range.end.saturating_sub(1);
                let start = self.opening.get(&last).copied();
                start.unwrap_or(range.start)..range.end
            }
            // `set()`, of which the opening bracket is the fourth letter.
            Expr::Set { items, .. } if items.is_empty() => {
                let end = self.closing.get(&(range.start + 3)).map(|last| last + 1);
                range.start..end.unwrap_or(range.end)
            }
            _ => range,
        }
    }
}

/// The beginning of names that occur in none of these texts.
pub(crate) fn fresh(texts: &[&str]) -> String {
    let mut prefix = String::from("__m");
    while texts.iter().any(|text| text.contains(&prefix)) {
        prefix.push('m');
    }
    prefix
}
