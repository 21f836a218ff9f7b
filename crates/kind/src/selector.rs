//! Label and field selectors, with Kubernetes' grammar and meaning: a requirement with `!=` or
//! `notin` also matches an object that lacks the key. Parsing never panics and is linear.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::name;

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label has one of these values.
    In(String, BTreeSet<String>),
    /// The label is absent or has none of these values.
    NotIn(String, BTreeSet<String>),
    /// The label is present.
    Exists(String),
    /// The label is absent.
    Absent(String),
    /// The label is a whole number greater than this.
    Greater(String, i64),
    /// The label is a whole number less than this.
    Less(String, i64),
}

/// A label selector: all requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<Requirement>);

/// A field selector: all terms hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(pub Vec<FieldTerm>);

/// One term of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field's path.
    pub field: String,
    /// The value it must, or must not, have.
    pub value: String,
    /// `=` rather than `!=`.
    pub equal: bool,
}

/// Why a selector could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError(pub String);

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SelectorError {}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let number = |key: &str| labels.get(key).and_then(|v| v.parse::<i64>().ok());
        match self {
            Requirement::In(key, values) => labels.get(key).is_some_and(|v| values.contains(v)),
            Requirement::NotIn(key, values) => !labels.get(key).is_some_and(|v| values.contains(v)),
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Absent(key) => !labels.contains_key(key),
            Requirement::Greater(key, than) => number(key).is_some_and(|n| n > *than),
            Requirement::Less(key, than) => number(key).is_some_and(|n| n < *than),
        }
    }
}

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>3`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser {
            tokens: lex(text),
            at: 0,
        };
        let mut requirements = Vec::new();
        if matches!(parser.peek(), Token::End) {
            return Ok(LabelSelector(requirements));
        }
        loop {
            match parser.peek() {
                Token::Word(_) | Token::Not => {
                    let requirement = parser.requirement().map_err(|SelectorError(why)| {
                        SelectorError(format!("unable to parse requirement: {why}"))
                    })?;
                    requirements.push(requirement);
                }
                other => {
                    return Err(SelectorError(format!(
                        "found '{other}', expected: !, identifier, or 'end of string'"
                    )));
                }
            }
            match parser.next() {
                Token::End => break,
                Token::Comma => match parser.peek() {
                    Token::Word(_) | Token::Not => {}
                    other => {
                        return Err(SelectorError(format!(
                            "found '{other}', expected: identifier after ','"
                        )));
                    }
                },
                other => {
                    return Err(SelectorError(format!(
                        "found '{other}', expected: ',' or 'end of string'"
                    )));
                }
            }
        }
        Ok(LabelSelector(requirements))
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }

    /// Everything is selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FieldSelector {
    /// Reads `metadata.name=a,spec.registry!=b`; `\` escapes `,`, `=` and itself in values.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for term in split_terms(text) {
            if term.is_empty() {
                continue;
            }
            let (field, operator, value) = split_operator(&term).ok_or_else(|| {
                SelectorError(format!(
                    "invalid selector: '{term}'; can't understand '{term}'"
                ))
            })?;
            terms.push(FieldTerm {
                field: field.into(),
                value: unescape(value)?,
                equal: operator != "!=",
            });
        }
        Ok(FieldSelector(terms))
    }

    /// Whether an object with these fields is selected; an absent field is empty.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0
            .iter()
            .all(|t| (field(&t.field).unwrap_or_default() == t.value) == t.equal)
    }

    /// The value a field must equal, if the selector says so.
    pub fn requires(&self, field: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|t| t.equal && t.field == field)
            .map(|t| t.value.as_str())
    }

    /// Everything is selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ',' if !escaped => terms.push(String::new()),
            c => {
                if let Some(term) = terms.last_mut() {
                    term.push(c);
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    terms
}

fn split_operator(term: &str) -> Option<(&str, &'static str, &str)> {
    for (at, _) in term.char_indices() {
        for operator in ["!=", "==", "="] {
            if let Some(value) = term[at..].strip_prefix(operator) {
                return Some((&term[..at], operator, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut out = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let rest: String = other.into_iter().collect();
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence: \\{rest}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Comma,
    Open,
    Close,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Token::Word(word) => word,
            Token::Comma => ",",
            Token::Open => "(",
            Token::Close => ")",
            Token::Not => "!",
            Token::Equals => "=",
            Token::DoubleEquals => "==",
            Token::NotEquals => "!=",
            Token::Greater => ">",
            Token::Less => "<",
            Token::End => "",
        })
    }
}

fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        if matches!(c, ' ' | '\t' | '\r' | '\n') {
            chars.next();
            continue;
        }
        if let Some(token) = symbol(c) {
            chars.next();
            let double = chars.peek() == Some(&'=');
            tokens.push(match (token, double) {
                (Token::Equals, true) => Token::DoubleEquals,
                (Token::Not, true) => Token::NotEquals,
                (token, _) => {
                    tokens.push(token);
                    continue;
                }
            });
            chars.next();
            continue;
        }
        let mut word = String::new();
        while let Some(&c) = chars.peek() {
            if symbol(c).is_some() || matches!(c, ' ' | '\t' | '\r' | '\n') {
                break;
            }
            word.push(c);
            chars.next();
        }
        tokens.push(Token::Word(word));
    }
    tokens
}

fn symbol(c: char) -> Option<Token> {
    Some(match c {
        ',' => Token::Comma,
        '(' => Token::Open,
        ')' => Token::Close,
        '!' => Token::Not,
        '=' => Token::Equals,
        '>' => Token::Greater,
        '<' => Token::Less,
        _ => return None,
    })
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.peek() == Token::Not;
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(word) => word,
            other => {
                return Err(SelectorError(format!(
                    "found '{other}', expected: identifier"
                )));
            }
        };
        check("<nil>", &key, name::label_key(&key))?;
        if absent {
            return Ok(Requirement::Absent(key));
        }
        match self.peek() {
            Token::End | Token::Comma => Ok(Requirement::Exists(key)),
            Token::Equals | Token::DoubleEquals => {
                self.next();
                Ok(Requirement::In(key.clone(), [self.value(&key)?].into()))
            }
            Token::NotEquals => {
                self.next();
                Ok(Requirement::NotIn(key.clone(), [self.value(&key)?].into()))
            }
            token @ (Token::Greater | Token::Less) => {
                self.next();
                let value = self.value(&key)?;
                let number = value.parse().map_err(|_| {
                    SelectorError(format!(
                        "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                    ))
                })?;
                Ok(match token {
                    Token::Greater => Requirement::Greater(key, number),
                    _ => Requirement::Less(key, number),
                })
            }
            Token::Word(word) if word == "in" || word == "notin" => {
                self.next();
                let values = self.values(&key)?;
                Ok(match word.as_str() {
                    "in" => Requirement::In(key, values),
                    _ => Requirement::NotIn(key, values),
                })
            }
            other => Err(SelectorError(format!(
                "found '{other}', expected: in, notin, =, ==, !=, gt, lt"
            ))),
        }
    }

    fn value(&mut self, key: &str) -> Result<String, SelectorError> {
        let value = match self.peek() {
            Token::Word(word) => {
                self.next();
                word
            }
            Token::End | Token::Comma => String::new(),
            other => {
                return Err(SelectorError(format!(
                    "found '{other}', expected: identifier"
                )));
            }
        };
        check_value(key, &value)?;
        Ok(value)
    }

    fn values(&mut self, key: &str) -> Result<BTreeSet<String>, SelectorError> {
        match self.next() {
            Token::Open => {}
            other => return Err(SelectorError(format!("found '{other}' expected: '('"))),
        }
        let mut values = BTreeSet::new();
        let mut pending = String::new();
        loop {
            match self.next() {
                Token::Word(word) if pending.is_empty() => pending = word,
                Token::Comma => {
                    values.insert(std::mem::take(&mut pending));
                }
                Token::Close => {
                    values.insert(pending);
                    break;
                }
                other => {
                    return Err(SelectorError(format!(
                        "found '{other}', expected: ',' or ')'"
                    )));
                }
            }
        }
        values
            .iter()
            .try_for_each(|value| check_value(key, value))?;
        Ok(values)
    }
}

fn check_value(key: &str, value: &str) -> Result<(), SelectorError> {
    check(
        &format!("values[0][{key}]"),
        value,
        name::label_value(value),
    )
}

fn check(field: &str, value: &str, wrong: Vec<String>) -> Result<(), SelectorError> {
    if wrong.is_empty() {
        return Ok(());
    }
    Err(SelectorError(format!(
        "{field}: Invalid value: {value:?}: {}",
        wrong.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> BTreeMap<String, String> {
        text.split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect()
    }

    #[test]
    fn label_selectors_mean_what_kubernetes_says() {
        for (selector, object, selected) in [
            ("", "", true),
            ("a=b", "a=b", true),
            ("a==b", "a=b", true),
            ("a=b", "a=c", false),
            ("a!=b", "a=c", true),
            ("a!=b", "", true),
            ("a!=b", "a=b", false),
            ("a in (b, c)", "a=c", true),
            ("a in (b,c)", "", false),
            ("a notin (b,c)", "", true),
            ("a notin (b,c)", "a=b", false),
            ("a", "a=", true),
            ("!a", "", true),
            ("!a", "a=x", false),
            ("a>3", "a=4", true),
            ("a<3", "a=4", false),
            ("a=b,c", "a=b", false),
            ("a=", "a=", true),
            ("a in (,b)", "a=", true),
            ("example.com/x=1,y notin (z)", "example.com/x=1", true),
        ] {
            let parsed = LabelSelector::parse(selector).unwrap();
            assert_eq!(
                parsed.matches(&labels(object)),
                selected,
                "{selector} on {object}"
            );
        }
    }

    #[test]
    fn garbage_is_refused_with_a_reason() {
        for bad in [
            ",",
            "a=b,",
            "a in b",
            "a in (",
            "!",
            "a b",
            "a=b=c",
            "==",
            "-a=b",
            "a=-",
            "a>x",
            "a in (b c)",
            "(",
            "a notin",
        ] {
            assert!(LabelSelector::parse(bad).is_err(), "{bad}");
        }
        for bad in ["metadata.name", "a=b=c", "a=\\x"] {
            assert!(FieldSelector::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn field_selectors_compare_and_take_absent_as_empty() {
        let field = |name: &str| match name {
            "metadata.name" => Some("x"),
            "spec.a" => Some("1,2"),
            _ => None,
        };
        for (selector, selected) in [
            ("metadata.name=x", true),
            ("metadata.name!=x", false),
            ("spec.a=1\\,2", true),
            ("spec.none=", true),
            ("spec.none!=y,metadata.name==x", true),
            ("", true),
        ] {
            assert_eq!(
                FieldSelector::parse(selector).unwrap().matches(field),
                selected,
                "{selector}"
            );
        }
    }
}
