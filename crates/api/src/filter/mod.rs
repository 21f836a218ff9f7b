//! Which images of a repository are wanted: conditions in CEL over `tag` and `digest`, and how a
//! repository combines them. Whoever may write a Registry may write conditions, so one that is
//! accepted here has a known type and a bounded cost whatever the tag is ([`check`]): there are no
//! macros, hence no loops, and no text can grow without end. What a condition cannot be asked about
//! a tag (the version of `latest`) is no match and no failure.

mod check;
mod selection;
mod version;

pub use selection::{Candidates, Operator, Selection};

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::common::types::{CelBool, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{Context, DeclarationError, Env, ExecutionError, Value};
use regex::Regex;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The longest expression, in bytes.
pub const LENGTH: usize = 4096;

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError(String);

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConditionError {}

fn refuse(why: impl Into<String>) -> ConditionError {
    ConditionError(why.into())
}

/// A condition that names one image, so that no tags need be listed for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exact {
    /// `tag == "…"`
    Tag(String),
    /// `digest == "…"`
    Digest(String),
}

/// A condition on a tag and what it points to.
#[derive(Debug)]
pub struct MatchCondition {
    expression: IdedExpr,
    patterns: Vec<Regex>,
    exact: Option<Exact>,
    asks_tag: bool,
    asks_digest: bool,
}

static ENVIRONMENT: LazyLock<Result<Arc<Env>, DeclarationError>> = LazyLock::new(|| {
    // Without the macros, which are CEL's only loops.
    let mut env = Env::default().with_optional_support(false).with_stdlib();
    env.add_extension(cel::extensions::strings)?;
    env.add_extension(version::extension)?;
    cel::add_member_overload!(env, fn matches: (CelString, Pattern) -> CelBool)?;
    Ok(Arc::new(env))
});

impl MatchCondition {
    /// Parses and checks a condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        if text.len() > LENGTH {
            return Err(refuse(format!("must not be longer than {LENGTH} bytes")));
        }
        let env = environment()?;
        let parsed = env.parser().parse(text);
        let mut expression = parsed.map_err(|errors| {
            let first = errors.errors.into_iter().next();
            let said = first.map(|error| (error.pos.1, error.msg));
            let (column, why) = said.unwrap_or((0, "no expression".into()));
            refuse(format!("is no CEL expression: column {column}: {why}"))
        })?;
        let checked = check::check(&mut expression)?;
        Ok(MatchCondition {
            exact: exact(&expression),
            expression,
            patterns: checked.patterns,
            asks_tag: checked.asks_tag,
            asks_digest: checked.asks_digest,
        })
    }

    /// The one image that this condition is about, if it has such a form.
    pub fn exact(&self) -> Option<&Exact> {
        self.exact.as_ref()
    }

    /// Whether the digest must be known to judge.
    pub fn asks_digest(&self) -> bool {
        self.asks_digest
    }

    /// Whether the condition holds. For an image without a tag, what asks about the tag does not.
    pub fn holds(&self, tag: Option<&str>, digest: &str) -> bool {
        match &self.exact {
            // There may be a thousand of these, and as many images.
            Some(Exact::Tag(text)) => return tag == Some(text.as_str()),
            Some(Exact::Digest(text)) => return digest == text,
            None => {}
        }
        let tag = match (tag, self.asks_tag) {
            (None, true) => return false,
            (tag, _) => tag.unwrap_or_default(),
        };
        let Ok(env) = environment() else { return false };
        let mut context = Context::with_env(env);
        context.add_variable_as_val("tag", Box::new(CelString::from(tag)));
        context.add_variable_as_val("digest", Box::new(CelString::from(digest)));
        for (index, pattern) in self.patterns.iter().enumerate() {
            let pattern = Box::new(Pattern(pattern.clone()));
            context.add_variable_as_val(pattern_name(index), pattern);
        }
        Value::resolve(&self.expression, &context) == Ok(Value::Bool(true))
    }
}

fn environment() -> Result<Arc<Env>, ConditionError> {
    ENVIRONMENT
        .clone()
        .map_err(|error| refuse(format!("cannot be judged: {error}")))
}

/// `tag == "…"` or `digest == "…"`, either way round.
fn exact(expression: &IdedExpr) -> Option<Exact> {
    let Expr::Call(CallExpr {
        func_name, args, ..
    }) = &expression.expr
    else {
        return None;
    };
    if func_name != operators::EQUALS {
        return None;
    }
    let [left, right] = args.as_slice() else {
        return None;
    };
    let (name, text) = match (&left.expr, &right.expr) {
        (Expr::Ident(name), Expr::Literal(LiteralValue::String(text)))
        | (Expr::Literal(LiteralValue::String(text)), Expr::Ident(name)) => (name, text),
        _ => return None,
    };
    match name.as_str() {
        "tag" => Some(Exact::Tag(text.inner().to_owned())),
        "digest" => Some(Exact::Digest(text.inner().to_owned())),
        _ => None,
    }
}

/// A pattern that was compiled with its condition: no tag is worth compiling it again. It takes the
/// place of the text in the expression, as a variable that nobody can write.
#[derive(Clone, Debug)]
struct Pattern(Regex);

static PATTERN: Type = Type::new_unspecified_type("muster.Pattern");

fn pattern_name(index: usize) -> String {
    format!("@pattern{index}")
}

impl Val for Pattern {
    fn get_type(&self) -> &Type {
        &PATTERN
    }

    fn cel_type() -> &'static Type {
        &PATTERN
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Pattern {}

fn matches(text: &CelString<'_>, pattern: &Pattern) -> CelBool {
    pattern.0.is_match(text.inner()).into()
}

#[cfg(test)]
mod tests;
