//! What a condition may be: every part of it has a type, the whole is a truth value, and the most
//! that judging a tag can cost is known beforehand. The tables here are the language; what is not
//! in them does not exist for conditions.

use super::{ConditionError, pattern_name, refuse};
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators as op};
use regex::{Regex, RegexBuilder};

/// How deep an expression may be nested; a row of operators is nested too.
const DEPTH: usize = 512;
/// The longest text that an expression may build, in bytes.
const LONGEST: usize = 16 * 1024;
/// The most work for one tag, in bytes that are looked at.
const MOST_WORK: usize = 500_000;
/// What a compiled pattern may take, in bytes.
const PATTERN: usize = 256 * 1024;
/// A pattern's work for each byte of a text, at worst.
const PATTERN_WORK: usize = 100;
/// The longest tag, and the longest digest (of SHA-512).
const TAG: usize = 128;
const DIGEST: usize = 135;
/// What a number or a version is counted as.
const SMALL: usize = 32;

/// What CEL has elsewhere, and writers may look for.
const MACROS: [&str; 6] = ["has", "all", "exists", "exists_one", "map", "filter"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Int,
    Double,
    Text,
    Version,
    Texts,
    Ints,
    Doubles,
}

impl Type {
    /// A list of these.
    fn list(self) -> Option<Type> {
        match self {
            Type::Text => Some(Type::Texts),
            Type::Int => Some(Type::Ints),
            Type::Double => Some(Type::Doubles),
            _ => None,
        }
    }

    /// What a list has in it.
    fn item(self) -> Option<Type> {
        [Type::Text, Type::Int, Type::Double]
            .into_iter()
            .find(|item| item.list() == Some(self))
    }

    fn name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Double => "double",
            Type::Text => "string",
            Type::Version => "Semver",
            Type::Texts => "list(string)",
            Type::Ints => "list(int)",
            Type::Doubles => "list(double)",
        }
    }
}

/// The type of a part, and how many bytes it has at most.
#[derive(Clone, Copy, Debug)]
struct Shape {
    kind: Type,
    size: usize,
}

/// What was found out about a condition.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) patterns: Vec<Regex>,
    pub(super) asks_tag: bool,
    pub(super) asks_digest: bool,
    work: usize,
}

/// Checks an expression, and puts compiled patterns in the place of their texts.
pub(super) fn check(expression: &mut IdedExpr) -> Result<Checked, ConditionError> {
    let mut checked = Checked::default();
    let shape = checked.shape(expression, DEPTH)?;
    match shape.kind {
        Type::Bool => Ok(checked),
        other => Err(refuse(format!("must yield bool and not {}", other.name()))),
    }
}

impl Checked {
    fn shape(&mut self, part: &mut IdedExpr, depth: usize) -> Result<Shape, ConditionError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(refuse("is nested too deeply"));
        };
        let shape = match &mut part.expr {
            Expr::Literal(literal) => constant(literal)?,
            Expr::Ident(name) => self.variable(name)?,
            Expr::List(list) => self.list(&mut list.elements, depth)?,
            Expr::Call(call) => self.call(call, depth)?,
            Expr::Select(select) => {
                let why = format!(
                    "has the field `.{}`, and nothing here has any",
                    select.field
                );
                return Err(refuse(why));
            }
            _ => {
                return Err(refuse(
                    "holds what conditions do not have: a map or a message",
                ));
            }
        };
        if shape.size > LONGEST {
            let why = format!("could build a text of more than {LONGEST} bytes");
            return Err(refuse(why));
        }
        self.work(shape.size)?;
        Ok(shape)
    }

    fn work(&mut self, more: usize) -> Result<(), ConditionError> {
        self.work = self.work.saturating_add(more);
        match self.work > MOST_WORK {
            true => Err(refuse("could cost too much")),
            false => Ok(()),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Shape, ConditionError> {
        let size = match name {
            "tag" => {
                self.asks_tag = true;
                TAG
            }
            "digest" => {
                self.asks_digest = true;
                DIGEST
            }
            _ => {
                let why = format!("asks for `{name}`; there are only `tag` and `digest`");
                return Err(refuse(why));
            }
        };
        let kind = Type::Text;
        Ok(Shape { kind, size })
    }

    fn list(&mut self, items: &mut [IdedExpr], depth: usize) -> Result<Shape, ConditionError> {
        let mut kind = None;
        let mut size = 0_usize;
        for item in items {
            let shape = self.shape(item, depth)?;
            if *kind.get_or_insert(shape.kind) != shape.kind {
                return Err(refuse("has a list with items of several types"));
            }
            size = size.saturating_add(shape.size).saturating_add(1);
        }
        let kind = kind.unwrap_or(Type::Text).list();
        let kind = kind.ok_or_else(|| refuse("has a list of neither texts nor numbers"))?;
        Ok(Shape { kind, size })
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<Shape, ConditionError> {
        let is_member = call.target.is_some();
        if MACROS.contains(&call.func_name.as_str()) {
            let why = format!("uses `{}`; conditions have no macros", call.func_name);
            return Err(refuse(why));
        }
        // A pattern takes the place of its text, so it is looked at before the text is.
        let pattern = match call.func_name.as_str() {
            "matches" => Some(self.pattern(call)?),
            _ => None,
        };
        let mut shapes = Vec::new();
        for part in call.target.as_deref_mut().into_iter().chain(&mut call.args) {
            match pattern.is_some() && shapes.len() == 1 {
                true => shapes.push(Shape {
                    kind: Type::Text,
                    size: 0,
                }),
                false => shapes.push(self.shape(part, depth)?),
            }
        }
        let kinds: Vec<Type> = shapes.iter().map(|shape| shape.kind).collect();
        let Some(kind) = result(&call.func_name, is_member, &kinds) else {
            return Err(refuse(unknown(&call.func_name, is_member, &kinds)));
        };
        let sizes: Vec<usize> = shapes.iter().map(|shape| shape.size).collect();
        let (size, work) = cost(&call.func_name, kind, &sizes);
        self.work(work)?;
        if let Some(index) = pattern {
            replace_pattern(call, index);
        }
        Ok(Shape { kind, size })
    }

    /// Compiles the pattern of a call of `matches`.
    fn pattern(&mut self, call: &CallExpr) -> Result<usize, ConditionError> {
        let text = match (&call.target, call.args.as_slice()) {
            (Some(_), [pattern]) | (None, [_, pattern]) => &pattern.expr,
            _ => return Err(refuse("has a call of `matches` that has not one pattern")),
        };
        let Expr::Literal(LiteralValue::String(text)) = text else {
            return Err(refuse("has a pattern that is no literal text"));
        };
        let pattern = RegexBuilder::new(text.inner()).size_limit(PATTERN).build();
        let pattern = pattern.map_err(|error| {
            // The message shows the pattern on several lines; its last says what is wrong.
            let said = error.to_string();
            let said = said.lines().last().unwrap_or_default().trim();
            refuse(format!("has a pattern that cannot be used: {said}"))
        })?;
        self.patterns.push(pattern);
        Ok(self.patterns.len() - 1)
    }
}

/// `matches(text, pattern)` is `text.matches(pattern)`.
fn replace_pattern(call: &mut CallExpr, index: usize) {
    if call.target.is_none() && !call.args.is_empty() {
        call.target = Some(Box::new(call.args.remove(0)));
    }
    if let Some(pattern) = call.args.last_mut() {
        pattern.expr = Expr::Ident(pattern_name(index));
    }
}

fn constant(literal: &LiteralValue) -> Result<Shape, ConditionError> {
    let (kind, size) = match literal {
        LiteralValue::Boolean(_) => (Type::Bool, 1),
        LiteralValue::Int(_) => (Type::Int, SMALL),
        LiteralValue::Double(_) => (Type::Double, SMALL),
        LiteralValue::String(text) => (Type::Text, text.inner().len()),
        LiteralValue::UInt(_) | LiteralValue::Bytes(_) | LiteralValue::Null => {
            let why = "holds a literal that is no text, number or truth value";
            return Err(refuse(why));
        }
    };
    Ok(Shape { kind, size })
}

/// The type of a call, if there is such a function.
fn result(name: &str, is_member: bool, arguments: &[Type]) -> Option<Type> {
    use Type::{Bool, Double, Int, Text};
    let kind = match (name, arguments) {
        (op::LOGICAL_AND | op::LOGICAL_OR, all) if all.iter().all(|kind| *kind == Bool) => Bool,
        (op::LOGICAL_NOT, [Bool]) => Bool,
        (op::CONDITIONAL, [Bool, yes, no]) if yes == no => *yes,
        (op::EQUALS | op::NOT_EQUALS, [left, right]) if left == right => Bool,
        (
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS,
            [Int, Int] | [Double, Double] | [Text, Text],
        ) => Bool,
        (op::IN, [item, list]) if list.item() == Some(*item) => Bool,
        (op::INDEX, [list, Int]) => list.item()?,
        (op::ADD, [Text, Text]) => Text,
        (op::ADD, [left, right]) if left == right && left.item().is_some() => *left,
        (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE, [Int, Int]) => Int,
        (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE, [Double, Double]) => Double,
        (op::MODULO, [Int, Int]) => Int,
        (op::NEGATE, [Int]) => Int,
        (op::NEGATE, [Double]) => Double,
        ("size", [Text]) => Int,
        ("size", [list]) if list.item().is_some() => Int,
        ("matches", [Text, Text]) => Bool,
        (other, arguments) => return named(other, is_member, arguments),
    };
    Some(kind)
}

/// The functions that have but one way to be called.
fn named(name: &str, is_member: bool, arguments: &[Type]) -> Option<Type> {
    use Type::{Bool, Double, Int, Text, Texts, Version};
    let (member, kind) = match (name, arguments) {
        ("bool", [Bool | Text]) => (false, Bool),
        ("int", [Int | Double | Text]) => (false, Int),
        ("double", [Int | Double | Text]) => (false, Double),
        ("string", [Bool | Int | Double | Text]) => (false, Text),
        ("semver", [Text] | [Text, Bool]) => (false, Version),
        ("isSemver", [Text] | [Text, Bool]) => (false, Bool),
        ("contains" | "startsWith" | "endsWith", [Text, Text]) => (true, Bool),
        ("charAt", [Text, Int]) => (true, Text),
        ("indexOf" | "lastIndexOf", [Text, Text] | [Text, Text, Int]) => (true, Int),
        ("lowerAscii" | "upperAscii" | "trim" | "reverse", [Text]) => (true, Text),
        ("replace", [Text, Text, Text] | [Text, Text, Text, Int]) => (true, Text),
        ("split", [Text, Text] | [Text, Text, Int]) => (true, Texts),
        ("substring", [Text, Int] | [Text, Int, Int]) => (true, Text),
        ("join", [Texts] | [Texts, Text]) => (true, Text),
        ("isLessThan" | "isGreaterThan", [Version, Version]) => (true, Bool),
        ("compareTo", [Version, Version]) => (true, Int),
        ("major" | "minor" | "patch", [Version]) => (true, Int),
        _ => return None,
    };
    (member == is_member).then_some(kind)
}

/// How many bytes a call yields at most, and how many it looks at beside its result.
fn cost(name: &str, kind: Type, sizes: &[usize]) -> (usize, usize) {
    let size = |index: usize| sizes.get(index).copied().unwrap_or_default();
    let all = sizes
        .iter()
        .fold(0_usize, |sum, size| sum.saturating_add(*size));
    match (name, kind) {
        (op::ADD, Type::Int | Type::Double) => (SMALL, 0),
        (op::ADD, _) => (all, 0),
        (op::CONDITIONAL, _) => (size(1).max(size(2)), 0),
        // At worst everything is put between any two letters.
        ("replace", _) => (
            size(0)
                .saturating_add(1)
                .saturating_mul(size(2).saturating_add(1)),
            all,
        ),
        ("join", _) => (size(0).saturating_mul(size(1).saturating_add(1)), all),
        ("split", _) => (size(0).saturating_mul(2).saturating_add(1), all),
        ("string", _) => (size(0).max(SMALL), all),
        ("indexOf" | "lastIndexOf", _) => (SMALL, size(0).saturating_mul(size(1).max(1))),
        ("matches", _) => (1, size(0).saturating_add(1).saturating_mul(PATTERN_WORK)),
        (_, Type::Bool) => (1, all),
        (_, Type::Int | Type::Double) => (SMALL, all),
        _ => (size(0).max(SMALL), all),
    }
}

fn unknown(name: &str, is_member: bool, arguments: &[Type]) -> String {
    let arguments: Vec<&str> = arguments.iter().map(|kind| kind.name()).collect();
    let shown = match (is_member, arguments.split_first()) {
        (true, Some((target, rest))) => format!("{target}.{name}({})", rest.join(", ")),
        _ => format!("{name}({})", arguments.join(", ")),
    };
    format!("calls {shown}, which there is not")
}
