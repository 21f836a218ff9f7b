//! Function heads without a body: `f("x")` says that `f` is true of `"x"`. The parser refuses them in
//! v1, so they get the value that they mean before it reads the module.

use crate::token::{Kind, Tokens};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Words that cannot follow such a head, or give it a body.
const CONTINUING: [&str; 6] = ["as", "contains", "else", "if", "in", "with"];

/// A module in which every function head has a value or a body. Lines stay where they are.
pub(crate) fn complete<'t>(text: &'t str, tokens: &Tokens<'_>) -> Cow<'t, str> {
    let mut completed = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(token) = tokens.get(at) {
        if token.kind != Kind::Open {
            at += 1;
            continue;
        }
        let Some(close) = tokens.partner(at) else {
            break;
        };
        if is_head(tokens, at, close)
            && let Some(end) = tokens.get(close).map(|token| token.range.end)
        {
            completed.push_str(text.get(done..end).unwrap_or_default());
            completed.push_str(" := true");
            done = end;
        }
        at = close + 1;
    }
    match done {
        0 => Cow::Borrowed(text),
        _ => {
            completed.push_str(text.get(done..).unwrap_or_default());
            Cow::Owned(completed)
        }
    }
}

/// Whether a pair of brackets, which is in no other, ends a rule that is only a head with arguments.
fn is_head(tokens: &Tokens<'_>, open: usize, close: usize) -> bool {
    let has_arguments = tokens.text(open) == "(" && close > open + 1;
    if !has_arguments || continues(tokens, close + 1) || repeats(tokens, open..close) {
        return false;
    }
    // Terms follow each other without anything between them only where a rule begins.
    let begins = |first: &usize| tokens.is_name(*first) && tokens.ends_term(first.wrapping_sub(1));
    first(tokens, open).as_ref().is_some_and(begins)
}

/// Whether a name occurs twice. The interpreter would take it for two names, so the head is left as it is
/// and refused.
fn repeats(tokens: &Tokens<'_>, range: Range<usize>) -> bool {
    let mut seen = BTreeSet::new();
    let mut names = range.filter(|number| tokens.is_name(*number) && tokens.text(*number) != "_");
    names.any(|number| !seen.insert(tokens.text(number)))
}

/// Whether what follows a head belongs to it.
fn continues(tokens: &Tokens<'_>, next: usize) -> bool {
    match tokens.get(next).map(|token| token.kind) {
        None => false,
        Some(Kind::Name) => CONTINUING.contains(&tokens.text(next)),
        Some(_) => true,
    }
}

/// The first token of the reference that ends before a token.
fn first(tokens: &Tokens<'_>, end: usize) -> Option<usize> {
    let mut last = end.checked_sub(1)?;
    loop {
        match tokens.get(last)?.kind {
            Kind::Close if tokens.text(last) == "]" => {
                last = tokens.partner(last)?.checked_sub(1)?;
            }
            Kind::Name if tokens.is_field(last) => last = last.checked_sub(2)?,
            Kind::Name => return Some(last),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_without_value_and_body_get_a_value() {
        for (text, expected) in [
            ("f(\"x\")", "f(\"x\") := true"),
            ("f(1)\nf(null)", "f(1) := true\nf(null) := true"),
            ("f(_, \"a\") # b", "f(_, \"a\") := true # b"),
            ("f([\"x\", _]) g(2)", "f([\"x\", _]) := true g(2) := true"),
            ("f(\n  1,\n)\nx := 1", "f(\n  1,\n) := true\nx := 1"),
            ("a.f[\"b\"].c(1)", "a.f[\"b\"].c(1) := true"),
            ("a.if(1)", "a.if(1) := true"),
            ("x := g(1)\nf(1)", "x := g(1)\nf(1) := true"),
            ("x if g(1)\nf(1)", "x if g(1)\nf(1) := true"),
            ("x := true\nf(1)", "x := true\nf(1) := true"),
            ("default f(_) := 1\nf(1)", "default f(_) := 1\nf(1) := true"),
            ("f(1)\ndefault x := 1", "f(1) := true\ndefault x := 1"),
        ] {
            let text = format!("package p\n{text}");
            let completed = complete(&text, &Tokens::read(&text));
            assert_eq!(completed, format!("package p\n{expected}"));
        }
    }

    #[test]
    fn other_brackets_stay_as_they_are() {
        for text in [
            "f(1) := 2",
            "f(1) = 2",
            "f(x) if x == 1",
            "f(x) { x == 1 }",
            "f(x)\n{ x == 1 }",
            "f(1) else := 2",
            "f(1) with input as 2",
            "f(1) == 1",
            "f(1).x",
            "f(1); x := 1",
            "f(1) contains 2",
            "f()",
            "f(x, [x])",
            "not f(1)",
            "x := f(1)",
            "x = f(1)",
            "x := -f(1)",
            "x if not f(1)",
            "x if y == f(1)",
            "x if some y in f(1)",
            "x if {\n  y\n  f(1)\n}",
            "x contains f(1)",
            "x if y with input as f(1)",
            "x if y\nelse := f(1)",
            "default x := f(1)",
            "x := (1)",
            "x if (1 == 1)",
            "f(1",
            "# f(1)",
            "x := `\nf(1)\n`",
        ] {
            let text = format!("package p\n{text}");
            assert_eq!(complete(&text, &Tokens::read(&text)), text);
        }
    }
}
