//! The expression of a policy group: calls of its policies by name, such as `a() && (b() || !c())`,
//! combined with `&&`, `||`, `!`, `==`, `!=`, parentheses, `true` and `false`. A small part of CEL,
//! in which every value is a truth value.

use std::fmt;

/// The longest expression, in bytes: a row of operators becomes a tree as deep as the row is long.
pub const LENGTH: usize = 16 * 1024;
/// How deep parentheses and negations may be nested.
const DEPTH: usize = 64;

/// Words that CEL keeps for itself, so that no policy may be called by them.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// A parsed expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupExpression {
    /// `true` or `false`.
    Constant(bool),
    /// The verdict of a policy.
    Call(String),
    /// `!`
    Not(Box<GroupExpression>),
    /// `&&`
    And(Box<GroupExpression>, Box<GroupExpression>),
    /// `||`
    Or(Box<GroupExpression>, Box<GroupExpression>),
    /// `==`
    Equal(Box<GroupExpression>, Box<GroupExpression>),
    /// `!=`
    Unequal(Box<GroupExpression>, Box<GroupExpression>),
}

/// Why a text is not an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    position: usize,
    expected: &'static str,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected {} at position {}",
            self.expected, self.position
        )
    }
}

impl std::error::Error for ExpressionError {}

/// Whether a policy of a group can be called by this name.
pub fn is_callable(name: &str) -> bool {
    let start = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
    name.as_bytes().first().is_some_and(start)
        && name.bytes().all(|b| start(&b) || b.is_ascii_digit())
        && !RESERVED.contains(&name)
}

impl GroupExpression {
    /// Parses an expression.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
        };
        if text.len() > LENGTH {
            return Err(parser.expected("a shorter expression"));
        }
        let expression = parser.any()?;
        parser.skip_blanks();
        if parser.at < text.len() {
            Err(parser.expected("an operator"))
        } else {
            Ok(expression)
        }
    }

    /// The policies called, in order, each as often as it is called.
    pub fn calls(&self) -> Vec<&str> {
        match self {
            GroupExpression::Constant(_) => Vec::new(),
            GroupExpression::Call(name) => vec![name],
            GroupExpression::Not(inner) => inner.calls(),
            GroupExpression::And(left, right)
            | GroupExpression::Or(left, right)
            | GroupExpression::Equal(left, right)
            | GroupExpression::Unequal(left, right) => {
                let mut calls = left.calls();
                calls.extend(right.calls());
                calls
            }
        }
    }

    /// The verdict, asking only the policies that it depends on.
    pub fn evaluate<E>(&self, ask: &mut impl FnMut(&str) -> Result<bool, E>) -> Result<bool, E> {
        Ok(match self {
            GroupExpression::Constant(value) => *value,
            GroupExpression::Call(name) => ask(name)?,
            GroupExpression::Not(inner) => !inner.evaluate(ask)?,
            GroupExpression::And(left, right) => left.evaluate(ask)? && right.evaluate(ask)?,
            GroupExpression::Or(left, right) => left.evaluate(ask)? || right.evaluate(ask)?,
            GroupExpression::Equal(left, right) => left.evaluate(ask)? == right.evaluate(ask)?,
            GroupExpression::Unequal(left, right) => left.evaluate(ask)? != right.evaluate(ask)?,
        })
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

type Parsed = Result<GroupExpression, ExpressionError>;
type Combine = fn(Box<GroupExpression>, Box<GroupExpression>) -> GroupExpression;

impl Parser<'_> {
    fn expected(&self, expected: &'static str) -> ExpressionError {
        ExpressionError {
            position: self.at,
            expected,
        }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at = self.text.len() - rest.trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn row(&mut self, operators: &[(&str, Combine)], part: fn(&mut Self) -> Parsed) -> Parsed {
        let mut left = part(self)?;
        while let Some((_, combine)) = operators.iter().find(|(token, _)| self.eat(token)) {
            left = combine(Box::new(left), Box::new(part(self)?));
        }
        Ok(left)
    }

    fn any(&mut self) -> Parsed {
        self.row(&[("||", GroupExpression::Or)], Self::all)
    }

    fn all(&mut self) -> Parsed {
        self.row(&[("&&", GroupExpression::And)], Self::comparison)
    }

    fn comparison(&mut self) -> Parsed {
        let operators: [(&str, Combine); 2] = [
            ("==", GroupExpression::Equal),
            ("!=", GroupExpression::Unequal),
        ];
        self.row(&operators, Self::negation)
    }

    fn negation(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(self.expected("less nesting"));
        }
        let parsed = if self.eat("!") {
            self.negation()
                .map(|inner| GroupExpression::Not(Box::new(inner)))
        } else if self.eat("(") {
            let inner = self.any();
            if inner.is_ok() && !self.eat(")") {
                Err(self.expected("`)`"))
            } else {
                inner
            }
        } else {
            self.call()
        };
        self.depth -= 1;
        parsed
    }

    fn call(&mut self) -> Parsed {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let name = &rest[..end];
        if let "true" | "false" = name {
            self.at += end;
            return Ok(GroupExpression::Constant(name == "true"));
        }
        if !is_callable(name) {
            return Err(self.expected("the call of a policy"));
        }
        self.at += end;
        if self.eat("(") && self.eat(")") {
            Ok(GroupExpression::Call(name.to_owned()))
        } else {
            Err(self.expected("`()` after the name of a policy"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> bool {
        let mut ask = |name: &str| Ok::<bool, ()>(name == "t");
        GroupExpression::parse(text)
            .unwrap()
            .evaluate(&mut ask)
            .unwrap()
    }

    #[test]
    fn expressions_bind_as_in_cel() {
        for (text, expected) in [
            ("t()", true),
            ("!t()", false),
            ("f() || t()", true),
            ("t() || f() && f()", true),
            ("(t() || f()) && f()", false),
            ("!f() && t()", true),
            ("t() == !f()", true),
            ("t() != t()", false),
            ("f() == f() == t()", true),
            ("f() && t() == f()", false),
            ("true || f()", true),
            (" ( ( t ( ) ) ) ", true),
            ("!!t()", true),
        ] {
            assert_eq!(verdict(text), expected, "{text}");
        }
    }

    #[test]
    fn only_policies_that_matter_are_asked() {
        let mut asked = Vec::new();
        let expression = GroupExpression::parse("f() && a() || t() || b()").unwrap();
        let verdict = expression.evaluate(&mut |name: &str| {
            asked.push(name.to_owned());
            Ok::<bool, ()>(name == "t")
        });
        assert_eq!(
            (verdict, asked),
            (Ok(true), vec!["f".to_owned(), "t".to_owned()])
        );
        assert_eq!(expression.calls(), ["f", "a", "t", "b"]);
    }

    #[test]
    fn what_is_not_an_expression_is_refused_where_it_goes_wrong() {
        for (text, complaint) in [
            ("", "expected the call of a policy at position 0"),
            (
                "a",
                "expected `()` after the name of a policy at position 1",
            ),
            (
                "a(1)",
                "expected `()` after the name of a policy at position 2",
            ),
            ("a() b()", "expected an operator at position 4"),
            ("a() &&", "expected the call of a policy at position 6"),
            ("(a()", "expected `)` at position 4"),
            ("a() + b()", "expected an operator at position 4"),
            ("while()", "expected the call of a policy at position 0"),
            ("a() & b()", "expected an operator at position 4"),
            ("\u{e4}()", "expected the call of a policy at position 0"),
        ] {
            assert_eq!(
                GroupExpression::parse(text).unwrap_err().to_string(),
                complaint,
                "{text}"
            );
        }
        assert!(GroupExpression::parse(&"(".repeat(10_000)).is_err());
        assert!(GroupExpression::parse(&format!("{}a()", "!".repeat(10_000))).is_err());
        let row = vec!["a()"; LENGTH / 5].join("||");
        assert_eq!(
            GroupExpression::parse(&row).unwrap().calls().len(),
            LENGTH / 5
        );
        assert!(GroupExpression::parse(&format!("{row}||{row}")).is_err());
    }
}
