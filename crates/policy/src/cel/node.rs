//! An expression, ready to be evaluated: every name is resolved, every function is known, and every
//! literal pattern is compiled.

use super::functions::Function;
use regex::Regex;

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Type(&'static str),
    Pattern(Box<Regex>),
    /// What the request creates.
    Object,
    /// The request.
    Request,
    /// `variables.<name>`, by its place.
    Variable(usize),
    /// What a macro binds, by its place among those that are in scope.
    Local(usize),
    Select(Box<Node>, String, Access),
    Index(Box<[Node; 2]>, Access),
    /// The items, and whether they are left out if they are none.
    List(Vec<(Node, bool)>),
    /// The entries, and whether they are left out if they are none.
    Map(Vec<(Node, Node, bool)>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Not(Box<Node>),
    If(Box<[Node; 3]>),
    Equal(Box<[Node; 2]>, bool),
    Compare(Box<[Node; 2]>, Comparison),
    Arithmetic(Box<[Node; 2]>, Operation),
    Negate(Box<Node>),
    In(Box<[Node; 2]>),
    Call(&'static Function, Vec<Node>),
    Loop(Box<Loop>),
    /// `cel.bind`
    Bind(Box<[Node; 2]>),
    /// `optMap`, and `optFlatMap` if it is flat.
    OptionalMap(Box<[Node; 2]>, bool),
}

/// How a part of a value is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// `a.b`, which must be there
    Value,
    /// `a.?b`
    Optional,
    /// `has(a.b)`
    Presence,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A macro that looks at every item.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) range: Node,
    pub(super) what: Macro,
    /// Whether it binds two variables: index and item, or key and value.
    pub(super) pairs: bool,
    /// Which items are taken, for `map(x, p, t)` and its kin.
    pub(super) filter: Option<Node>,
    pub(super) body: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    /// `transformMap`
    Entries,
}
