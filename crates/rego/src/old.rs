//! What v0 must not be asked to read. Without their imports, v0 takes the keywords of v1 for names:
//! `exempt if { … }` would be two rules, one of which is always true. A module with such rules is v1 with
//! a mistake in it.

use crate::token::{Kind, Tokens};
use crate::walk;
use regorus::unstable::{Expr, Module, Rule, RuleHead};
use std::collections::BTreeSet;

/// The keywords that v0 imports.
const KEYWORDS: [&str; 4] = ["contains", "every", "if", "in"];

/// Whether a module uses keywords of v1 that it does not import. It need not be read as v0, which would
/// write a warning for each of them to the standard error.
pub(crate) fn uses_keywords(tokens: &Tokens<'_>) -> bool {
    let imported = imported(tokens);
    let mut depth = 0_usize;
    tokens.iter().enumerate().any(|(number, token)| {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        let text = tokens.text(number);
        if tokens.is_field(number) || imported.contains(text) {
            return false;
        }
        let before = number.checked_sub(1);
        let follows = before.is_some_and(|before| tokens.ends_term(before));
        match text {
            "contains" => depth == 0 && follows,
            // Rules have it between brackets only as a name.
            "if" => depth == 0,
            "every" => tokens.is_name(number + 1),
            "in" => follows && !tokens.begins_line(number),
            _ => false,
        }
    })
}

/// The keywords that a module in v0 imports.
fn imported(tokens: &Tokens<'_>) -> BTreeSet<&'static str> {
    let mut imported = BTreeSet::new();
    for number in 0..tokens.iter().count() {
        let path = ["import", "future", ".", "keywords"];
        let is_import = (path.iter().enumerate()).all(|(i, part)| tokens.text(number + i) == *part);
        match (is_import, tokens.text(number + 4), tokens.text(number + 5)) {
            (false, ..) => {}
            (true, ".", one) => {
                imported.extend(KEYWORDS.iter().filter(|keyword| **keyword == one));
                if one == "every" {
                    imported.insert("in");
                }
            }
            (true, ..) => imported.extend(KEYWORDS),
        }
    }
    imported
}

/// Whether OPA does not read a module as v0 though our parser does: a rule is only a name, a function only
/// its head, or a rule has the name of a keyword.
pub(crate) fn is_refused(module: &Module) -> bool {
    module.policy.iter().any(|rule| {
        let (refr, is_bare) = match rule.as_ref() {
            Rule::Default { refr, .. } => (refr, false),
            Rule::Spec { head, bodies, .. } => {
                let (refr, has_no_value) = match head {
                    RuleHead::Compr { refr, assign, .. } => {
                        let is_name = matches!(refr.as_ref(), Expr::Var { .. });
                        (refr, assign.is_none() && is_name)
                    }
                    RuleHead::Func { refr, assign, .. } => (refr, assign.is_none()),
                    RuleHead::Set { refr, .. } => (refr, false),
                };
                (refr, has_no_value && bodies.is_empty())
            }
        };
        is_bare || walk::root(refr).is_some_and(|name| KEYWORDS.contains(&name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_told_from_names() {
        for (text, expected) in [
            ("x if { true }", true),
            ("x\nif { true }", true),
            ("x = 1 { true } else = 2 if { true }", true),
            ("import future.keywords.in\nx if { true }", true),
            ("d[m] { some m in input.a }", true),
            ("d[m] { 1 in input.a; m := 1 }", true),
            ("d[m] { every x in input.a { x }; m := 1 }", true),
            (
                "import future.keywords.in\nd[m] { every x in input.a { x }; m := 1 }",
                true,
            ),
            ("import future.keywords\nx if { true }", false),
            ("import future.keywords.if\nx if { true }", false),
            (
                "import future.keywords.every\nd[m] { some m in input.a }",
                false,
            ),
            ("d[m] { m := input.if }", false),
            ("d[m] { m := {\"if\": 1} }", false),
            ("d[m] { if := 1; m := if }", false),
            ("d[m] {\n  x := 1\n  in := 1; m := [in, x]\n}", false),
            ("d[m] { m := \"x if y\" } # x if y", false),
            ("d contains m { m := 1 }", true),
            ("f = contains(\"a\", \"b\") { true }", false),
            ("d[m] { contains(m, \"a\") }", false),
            ("d[m] { every := 1; m := every }", false),
        ] {
            let text = format!("package p\n{text}");
            assert_eq!(uses_keywords(&Tokens::read(&text)), expected, "{text}");
        }
    }
}
