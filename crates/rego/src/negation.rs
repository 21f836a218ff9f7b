//! What a negation does not reach. OPA evaluates the arguments of a negated call before the negation: if
//! one of them is undefined, so is the whole body, and `not startswith(input.name, "a")` says nothing of
//! what has no name. The same is so for the operands of operators, and for what is in the brackets of
//! references. The interpreter would take the undefined argument for an undefined call, and the
//! negation for true; so such operands get statements of their own ([`crate::rewrite`]).
//!
//! Of `==` and `=` the sides are no operands: `not input.name == "a"` is true of what has no name.

use regorus::unstable::{AssignOp, BoolOp, Expr};
use std::collections::BTreeSet;

/// The parts of a negated expression that are evaluated before it, none within another.
pub(crate) fn operands<'e>(expr: &'e Expr, globals: &BTreeSet<String>, found: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Call { fcn: _, params, .. } => {
            params.iter().for_each(|param| one(param, globals, found));
        }
        Expr::BoolExpr {
            op: BoolOp::Eq,
            lhs,
            rhs,
            ..
        }
        | Expr::AssignExpr {
            op: AssignOp::Eq,
            lhs,
            rhs,
            ..
        } => {
            side(lhs, globals, found);
            side(rhs, globals, found);
        }
        Expr::BoolExpr { lhs, rhs, .. }
        | Expr::BinExpr { lhs, rhs, .. }
        | Expr::ArithExpr { lhs, rhs, .. } => {
            one(lhs, globals, found);
            one(rhs, globals, found);
        }
        Expr::UnaryExpr { expr, .. } => one(expr, globals, found),
        Expr::Membership {
            key,
            value,
            collection,
            ..
        } => {
            key.iter().for_each(|key| one(key, globals, found));
            one(value, globals, found);
            one(collection, globals, found);
        }
        expr => side(expr, globals, found),
    }
}

/// A side of an equation, or all of what is negated: a reference is part of the negation, but what is
/// in its brackets is not.
fn side<'e>(expr: &'e Expr, globals: &BTreeSet<String>, found: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Var { .. } => {}
        Expr::RefDot { refr, .. } => side(refr, globals, found),
        Expr::RefBrack { refr, index, .. } => {
            side(refr, globals, found);
            one(index, globals, found);
        }
        expr => one(expr, globals, found),
    }
}

/// An operand: whatever of it may be undefined is evaluated before.
fn one<'e>(expr: &'e Expr, globals: &BTreeSet<String>, found: &mut Vec<&'e Expr>) {
    match expr {
        // A variable has a value by then; what has a name of its own may not.
        Expr::Var { span, .. } => {
            if globals.contains(span.text()) {
                found.push(expr);
            }
        }
        Expr::Array { items, .. } | Expr::Set { items, .. } => {
            items.iter().for_each(|item| one(item, globals, found));
        }
        Expr::Object { fields, .. } => {
            for (_, key, value) in fields {
                one(key, globals, found);
                one(value, globals, found);
            }
        }
        Expr::String { .. }
        | Expr::RawString { .. }
        | Expr::Number { .. }
        | Expr::Bool { .. }
        | Expr::Null { .. }
        // A comprehension is never undefined.
        | Expr::ArrayCompr { .. }
        | Expr::SetCompr { .. }
        | Expr::ObjectCompr { .. } => {}
        expr => found.push(expr),
    }
}

/// Whether what replaces a part of the input or the data is evaluated before too. It may also be the
/// name of a function, which has no value.
pub(crate) fn is_hoisted(expr: &Expr) -> bool {
    match expr {
        Expr::Var { .. }
        | Expr::String { .. }
        | Expr::RawString { .. }
        | Expr::Number { .. }
        | Expr::Bool { .. }
        | Expr::Null { .. } => false,
        Expr::RefDot { .. } | Expr::RefBrack { .. } => crate::walk::root(expr) == Some("input"),
        _ => true,
    }
}

/// Whether an expression is a reference with a variable in its brackets.
pub(crate) fn is_indexed(expr: &Expr) -> bool {
    match expr {
        Expr::RefDot { refr, .. } => is_indexed(refr),
        Expr::RefBrack { refr, index, .. } => {
            matches!(index.as_ref(), Expr::Var { .. }) || is_indexed(refr)
        }
        _ => false,
    }
}
